package local

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/transfer"
)

// A delta is only an attempt to transfer fewer bytes. After a delta, a push still runs the ordinary
// transfer, which then finds nothing left to send, unless the snapshot is encrypted. If anything
// goes wrong with a delta, the whole file is transferred.

const (
	minDeltaFile  = 128 << 10 // bytes; smaller files are transferred whole
	maxDeltaBases = 20        // maximum number of local snapshots that are offered as a base
	maxDeltaPolls = 120       // maximum number of polls, one a second, while the service makes a delta
)

// sentDelta describes a delta that the service has accepted.
type sentDelta struct {
	delta.Written
	base Snapshot
}

// A service cannot read encrypted snapshots. A push of an encrypted snapshot therefore sends the
// whole file in addition to the delta, which serves only pulls. Writing and applying such a delta
// requires a private key. Keys that need a passphrase are not used, so nobody is asked for a
// passphrase.

// allBases returns the local snapshots that can be the base of a delta to a snapshot of this target
// and type, the newest one first. Encrypted ones are included only if encrypted is set and a
// configured key needs no passphrase.
func (a *Agent) allBases(target string, typ snap.Type, encrypted bool) ([]Snapshot, error) {
	all, err := a.Snapshots(target)
	if err != nil {
		return nil, err
	}
	encrypted = encrypted && len(a.readyIdentities()) > 0
	all = slices.DeleteFunc(all, func(s Snapshot) bool { return s.Type != typ || s.Encrypted > 0 && !encrypted })
	slices.SortStableFunc(all, func(s, t Snapshot) int { return t.Created.Compare(s.Created) })
	return all, nil
}

// deltaLimit returns the maximum size in bytes of a delta to a snapshot. It is lower for an
// encrypted snapshot, because its delta does not replace the file.
func deltaLimit(s Snapshot) int64 {
	if s.Encrypted > 0 {
		return s.Size / 5
	}
	return s.Size / 5 * 4
}

// pushDelta pushes a snapshot as a delta from an earlier snapshot that the service and this machine
// both have. It returns nil if it pushed no delta.
func (a *Agent) pushDelta(ctx context.Context, c *api.Client, s Snapshot, o transfer.Options, p Progress) (*sentDelta,
	error) {
	if s.Size < minDeltaFile {
		return nil, nil
	}
	sent, err := a.tryPushDelta(ctx, c, s, o, p)
	if err != nil {
		return nil, a.fallBack(ctx, err)
	}
	return sent, nil
}

// fallBack handles the error of an attempt to use a delta. It returns an error only if the context
// has ended. After any other error, the whole file is transferred.
func (a *Agent) fallBack(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.log.Debug("the whole file is transferred instead of a delta", "error", err)
	return nil
}

// errNoBase means that there is no snapshot from which a delta can be made.
var errNoBase = errors.New("no local snapshot can be the base of a delta")

func (a *Agent) tryPushDelta(ctx context.Context, c *api.Client, s Snapshot, o transfer.Options,
	p Progress) (*sentDelta, error) {
	base, id, err := a.commonBase(ctx, c, s)
	if err != nil {
		return nil, err
	}
	plan, err := c.Push(ctx, pushOf(s))
	if err == nil && (plan.Exists || len(plan.Present) > 0) {
		err = errors.New("the service already has the file or some of its parts")
	}
	if err != nil {
		return nil, err
	}
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	defer done()
	p.phase("compare")
	file, written, err := writeDelta(ctx, filepath.Join(dir, "delta"), base, s, deltaLimit(s), a.readyIdentities())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	upload, err := c.PushDelta(ctx, plan.ID, api.DeltaPush{Base: id, Size: written.Size})
	if err != nil {
		return nil, err
	}
	p.phase("push")
	if err := transfer.SendDelta(ctx, upload.URL, file, written.Size, o); err != nil {
		return nil, err
	}
	return &sentDelta{written, base}, nil
}

// commonBase returns a local snapshot of the same target and type as s that is also in the cloud,
// and its ID there. It chooses the newest one in the cloud whose checksum is not that of s and that
// does not come from another organization.
func (a *Agent) commonBase(ctx context.Context, c *api.Client, s Snapshot) (Snapshot, string, error) {
	page, err := c.Snapshots(ctx, api.ListOptions{Target: s.Target, Type: s.Type, Limit: 50})
	if err != nil {
		return Snapshot{}, "", err
	}
	local, err := a.allBases(s.Target, s.Type, s.Encrypted > 0)
	if err != nil {
		return Snapshot{}, "", err
	}
	for _, there := range page.Items {
		for _, here := range local {
			if here.SHA256 == there.SHA256 && here.SHA256 != s.SHA256 && !there.Received {
				return here, there.ID, nil
			}
		}
	}
	return Snapshot{}, "", errNoBase
}

// writeDelta writes the delta between two local snapshots to a new file, and returns the file,
// positioned at its start. It fails if the delta would be larger than limit bytes.
func writeDelta(ctx context.Context, path string, base, result Snapshot, limit int64,
	ids []age.Identity) (*os.File, delta.Written, error) {
	defer collectOften()()
	var none delta.Written
	old, err := openUnlocked(base, ids)
	if err != nil {
		return nil, none, err
	}
	defer old.Close()
	now, err := openUnlocked(result, ids)
	if err != nil {
		return nil, none, err
	}
	defer now.Close()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, none, err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	written, err := delta.Write(ctx, out, old, now, deltaFile(base), deltaFile(result), limit)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, none, errors.Join(err, file.Close())
	}
	return file, written, nil
}

// openUnlocked opens a snapshot's file and decrypts it if it is encrypted.
func openUnlocked(s Snapshot, ids []age.Identity) (*archive.Reader, error) {
	r, err := archive.Open(s.Path)
	if err != nil {
		return nil, err
	}
	if err := r.Unlock(ids...); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func deltaFile(s Snapshot) delta.File { return delta.File{Size: s.Size, SHA256: s.SHA256} }

// pulledDelta is the result of an attempt to pull a delta.
type pulledDelta struct {
	fetched     int64           // bytes of the delta; 0 if the whole file must be pulled
	certificate json.RawMessage // of the snapshot
}

// pullDelta makes the file of a snapshot from a delta and a local snapshot.
func (a *Agent) pullDelta(ctx context.Context, c *api.Client, wanted api.Snapshot, path string,
	o transfer.Options) (none pulledDelta, err error) {
	bases, have, err := a.basesFor(c, wanted)
	if err != nil {
		return none, err
	}
	offer, err := c.PullDelta(ctx, wanted.ID, api.DeltaRequest{Have: have})
	for n := 0; err == nil && offer.Making && n < maxDeltaPolls; n++ {
		if err = api.Wait(ctx, time.Second); err == nil {
			offer, err = c.PullDelta(ctx, wanted.ID, api.DeltaRequest{Have: have})
		}
	}
	if err != nil {
		return none, err
	}
	base, ok := bases[offer.Base]
	if !ok || offer.Size >= wanted.Size {
		return none, errNoBase
	}
	err = a.fetchDelta(ctx, offer.URL, offer.Size, base, wanted, path, o)
	return pulledDelta{offer.Size, offer.Certificate}, err
}

// fetchDelta fetches a delta of size bytes and writes the file that it describes.
func (a *Agent) fetchDelta(ctx context.Context, url string, size int64, base Snapshot, wanted api.Snapshot,
	path string, o transfer.Options) error {
	dir, done, err := a.workDir()
	if err != nil {
		return err
	}
	defer done()
	file, err := os.OpenFile(filepath.Join(dir, "delta"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err = transfer.FetchDelta(ctx, url, size, file, o); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	return applyDelta(ctx, file, base, wanted, path, a.readyIdentities())
}

// basesFor returns the local snapshots that may be the base of a delta to a cloud snapshot, by ID.
// It also returns these IDs, with the best one first. The service makes a delta only from the first
// one, and cannot make one from an encrypted snapshot.
func (a *Agent) basesFor(c *api.Client, wanted api.Snapshot) (map[string]Snapshot, []string, error) {
	local, err := a.allBases(wanted.Target, wanted.Type, true)
	if err != nil {
		return nil, nil, err
	}
	local = slices.DeleteFunc(local, func(s Snapshot) bool { return s.Cloud[c.BaseURL()] == "" })
	local = local[:min(len(local), maxDeltaBases)]
	slices.SortStableFunc(local, func(s, t Snapshot) int {
		return cmp.Compare(min(s.Encrypted, 1), min(t.Encrypted, 1))
	})
	bases := map[string]Snapshot{}
	var ids []string
	for _, s := range local {
		id := s.Cloud[c.BaseURL()]
		bases[id], ids = s, append(ids, id)
	}
	if len(ids) == 0 {
		return nil, nil, errNoBase
	}
	return bases, ids, nil
}

// applyDelta writes the file that a delta describes. It leaves no file if the result is not the
// wanted snapshot.
func applyDelta(ctx context.Context, r io.Reader, base Snapshot, wanted api.Snapshot, path string,
	ids []age.Identity) error {
	h, in, err := openDelta(bufio.NewReaderSize(r, 1<<20), ids)
	if err != nil {
		return err
	}
	if h.Base != deltaFile(base) || h.Result != (delta.File{Size: wanted.Size, SHA256: wanted.SHA256}) {
		return snap.Invalid("the delta is not from this base to this snapshot", "")
	}
	old, err := openUnlocked(base, ids)
	if err != nil {
		return err
	}
	defer old.Close()
	sweepParts(filepath.Dir(path)) // a killed pull may have left a file of this name
	part, err := os.OpenFile(path+partSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	defer os.Remove(part.Name()) // fails harmlessly once the file has become the snapshot
	lock := flock.New(part.Name(), flock.SetFlag(os.O_RDWR))
	defer lock.Close()
	if locked, err := lock.TryLock(); err != nil || !locked {
		return errors.Join(errors.New("cannot lock the snapshot"), err, part.Close())
	}
	out := bufio.NewWriterSize(part, 1<<20)
	if err = delta.Apply(ctx, out, h, old, in); err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// openDelta reads the header of a delta, and decrypts the delta if it is encrypted.
func openDelta(r io.Reader, ids []age.Identity) (delta.Header, io.Reader, error) {
	h, err := delta.ReadHeader(r)
	if err != nil || h.Sealed == nil {
		return h, r, err
	}
	envelope, content, err := archive.OpenSealed(*h.Sealed, r, ids...)
	if err != nil {
		return h, nil, err
	}
	h, err = h.Unseal(envelope, content)
	return h, content, err
}
