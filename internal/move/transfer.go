package move

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/store"
)

// Place is where a service keeps its data.
type Place struct {
	Database store.Options
	Blobs    func(ctx context.Context) (blob.Store, error) // opens the object store
	// CheckOwner fails with code usage if the object store belongs to a service that has another
	// [store.Store.URLSecret].
	CheckOwner func(ctx context.Context, blobs blob.Store, secret []byte) error
	Sealer     *auth.Sealer // encrypts the signing keys; may be nil
}

// Report counts the moved rows and objects, or in a dry run those that would be moved.
type Report struct {
	Rows         int64 `json:"rows"`
	Objects      int64 `json:"objects"`
	Bytes        int64 `json:"bytes"`
	AlreadyThere int64 `json:"already_there"` // objects that an earlier run had moved
}

// Progress receives the progress of a transfer, a backup or a restore.
type Progress struct {
	// Objects is called for each object, possibly from several goroutines at once.
	Objects func(done, of, bytes int64)
	// Table is called after each table.
	Table func(name string, rows int64)
}

func (p Progress) objects(done, of, bytes int64) {
	if p.Objects != nil {
		p.Objects(done, of, bytes)
	}
}

func (p Progress) table(name string, rows int64) {
	if p.Table != nil {
		p.Table(name, rows)
	}
}

// workers is how many objects are moved at a time.
const workers = 4

// page is how many objects are requested at a time.
const page = 500

// Transfer copies a stopped service to another place, which must be empty or hold an unfinished
// transfer from the same service. It first copies the objects, and reads each again to compare it.
// Then it copies every row in one transaction, and compares the rows too. Until the transfer is
// complete, the source accepts no writes, the destination shows no rows, and no service can start
// on the destination. At the end the source is marked as moved, so that no service starts on it by
// mistake; nothing else in it changes. With dryRun, Transfer copies nothing.
func Transfer(ctx context.Context, from, to Place, p Progress, dryRun bool) (r Report, err error) {
	if from.Database.URL == to.Database.URL && (from.Database.URL != "" ||
		from.Database.DataDir == to.Database.DataDir) {
		return r, snap.Usage("source and destination are the same database",
			"name the destination's configuration with --to")
	}
	source, err := openStopped(ctx, from.Database)
	if err != nil {
		return r, err
	}
	defer source.Close()
	if err := source.CheckTransferred(ctx); err != nil {
		return r, err
	}
	secret, err := source.URLSecret(ctx)
	if err != nil {
		return r, err
	}
	frozen, err := source.Freeze(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, frozen.Release()) }()
	if r.Rows, r.Objects, r.Bytes, err = frozen.Totals(ctx); err != nil {
		return r, err
	}
	t := &transfer{from: frozen, report: r, progress: p, name: to.Database.Place()}
	if t.source, err = from.Blobs(ctx); err != nil {
		return r, err
	}
	if t.destination, err = to.Blobs(ctx); err != nil {
		return r, err
	}
	if err := errors.Join(t.source.Ping(ctx), t.destination.Ping(ctx)); err != nil {
		return r, err
	}
	err = to.CheckOwner(ctx, t.destination, secret)
	if snap.CodeOf(err) == snap.CodeUsage {
		err = snap.Usage("the destination: "+err.Error(),
			"transfer into an object store that no service has used; nothing was changed")
	}
	if err != nil {
		return r, err
	}
	identity, err := frozen.Identity(ctx)
	if err != nil {
		return r, err
	}
	if dryRun {
		return r, store.CheckBeginAt(ctx, to.Database, identity)
	}
	if t.to, err = store.Open(ctx, to.Database); err != nil {
		return r, fmt.Errorf("open the destination: %w", err)
	}
	defer t.to.Close()
	return t.run(ctx, identity, auth.Reseal(from.Sealer, to.Sealer))
}

// openStopped opens the database of a service that is not running.
func openStopped(ctx context.Context, o store.Options) (*store.Store, error) {
	if err := errors.Join(store.CheckExists(o), store.CheckRestored(o)); err != nil {
		return nil, err
	}
	running, err := store.RunningAt(ctx, o)
	if err != nil {
		return nil, err
	}
	if running > 0 {
		return nil, &snap.Error{
			Code:   snap.CodeConflict,
			Detail: fmt.Sprintf("the service is running: %d of its processes write to the source", running),
			Hint:   "stop it and try again; a killed process counts as running for " + store.RunningLife.String(),
		}
	}
	return store.Open(ctx, o)
}

// transfer is one run of Transfer.
type transfer struct {
	from        *store.Frozen
	to          *store.Store
	source      blob.Store
	destination blob.Store
	progress    Progress
	name        string // of the destination

	mu     sync.Mutex
	done   int64
	bytes  int64
	report Report
}

func (t *transfer) run(ctx context.Context, identity string, reseal func(string, []byte) ([]byte, error)) (Report,
	error) {
	if err := t.to.BeginTransfer(ctx, identity); err != nil {
		return t.report, err
	}
	if err := eachObject(ctx, t.from.Objects, t.object); err != nil {
		return t.report, err
	}
	err := t.to.CopyFrom(ctx, t.from, reseal, func(c store.CopiedTable) { t.progress.table(c.Table, c.Rows) })
	if err != nil {
		return t.report, err
	}
	if err := t.from.RecordMove(context.WithoutCancel(ctx), t.name); err != nil {
		return t.report, &snap.Error{Code: snap.CodeInternal, Cause: err,
			Detail: "everything was copied, but the source could not be marked as moved: " + err.Error(),
			Hint:   "start the service at the destination, and never again at the source"}
	}
	return t.report, nil
}

// eachObject calls do for every object, several objects at a time.
func eachObject(ctx context.Context, list func(context.Context, string, int) ([]store.Object, error),
	do func(context.Context, store.Object) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	listed := func() error {
		for after := ""; ; {
			objects, err := list(ctx, after, page)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if groupCtx.Err() != nil {
					return nil //nolint:nilerr // the failed goroutine reports why
				}
				group.Go(func() error { return do(groupCtx, o) })
				after = o.Key
			}
			if len(objects) < page {
				return nil
			}
		}
	}()
	return errors.Join(group.Wait(), listed)
}

// object copies one object and reads it again, unless an earlier run did.
func (t *transfer) object(ctx context.Context, o store.Object) error {
	present, err := t.to.IsCopied(ctx, o)
	if err != nil {
		return err
	}
	if !present {
		err := copyObject(ctx, t.source, t.destination, o)
		if err == nil {
			err = t.to.RecordCopied(ctx, o)
		}
		if err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.done++
	t.bytes += o.Size
	if present {
		t.report.AlreadyThere++
	}
	done, bytes := t.done, t.bytes
	t.mu.Unlock()
	t.progress.objects(done, t.report.Objects, bytes)
	return nil
}

// copyObject copies one object from one object store to another, and reads it again there. It
// removes a copy that is damaged, because a later run would take it for complete.
func copyObject(ctx context.Context, from, to blob.Store, o store.Object) error {
	r, err := from.Open(ctx, o.Key)
	if errors.Is(err, snap.ErrNotFound) {
		return missing(o)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := to.Put(ctx, o.Key, r, o.Size, o.SHA256); err != nil {
		return err
	}
	err = blob.Verify(ctx, to, o.Key, o.Size, o.SHA256)
	if snap.CodeOf(err) == snap.CodeChecksumMismatch {
		err = errors.Join(err, to.Delete(ctx, o.Key))
	}
	return err
}

// missing is the error for an object that the database names and the object store does not have.
func missing(o store.Object) error {
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: fmt.Sprintf("the object store has no object %s, which the database needs", o.Key),
		Hint:   "restore it from a backup, or delete its snapshot if it has one, and run this again",
	}
}
