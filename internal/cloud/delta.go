package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/loadcontrol"
	"snap/internal/store"
)

// A delta needs two snapshots: its base and its result. The caller must be able to pull the base,
// which must be of the same target and organization. For every other base, the response is the same
// as for a snapshot that does not exist. Each download from the URL of a delta is checked like a
// download of both snapshots.

// The purposes of the tokens in URLs of deltas.
const (
	deltaUp   = "delta up"
	deltaDown = "delta down"
)

// deltaTicket is the content of a URL of a delta.
type deltaTicket struct {
	ticket
	Base string `json:"b"`
	Size int64  `json:"z"`
}

type deltaPushInput struct {
	ByID
	Body api.DeltaPush
}

type deltaPullInput struct {
	ByID
	Body api.DeltaRequest
}

// deltaBase returns where the file of a snapshot is stored, if it may be the base of a delta for
// this caller. It fails with snap.ErrNotFound for every other snapshot.
func (s *Service) deltaBase(ctx context.Context, c snap.Caller, id, target string, org int64) (store.Bytes, error) {
	sn, err := s.store.Snapshot(ctx, c, id)
	if err != nil {
		return store.Bytes{}, err
	}
	if sn.Target != target || sn.Org.ID != org || snap.Allowed(c, snap.ActPull, sn) != nil {
		return store.Bytes{}, snap.ErrNotFound
	}
	return s.store.Bytes(ctx, c, id)
}

// deltaURL returns the URL of a delta for this caller.
func (s *Service) deltaURL(c snap.Caller, purpose, id, base string, size int64) (string, time.Time) {
	expires := s.now().Add(pullLife).UTC().Truncate(time.Millisecond)
	token := blob.SignToken(s.transfers.urlKey, purpose, deltaTicket{ticket{Snapshot: id, Principal: c.Principal(),
		Kind: c.Credential.Kind, Credential: c.Credential.ID, Expires: expires.UnixMilli()}, base, size})
	return s.config.PublicURL + "/blobs/deltas/" + token, expires
}

// pushDelta returns the URL to which the delta of a push is sent.
func (s *Service) pushDelta(ctx context.Context, in *deltaPushInput) (*body[api.DeltaUpload], error) {
	c := callOf(ctx)
	if _, err := s.deltaBase(ctx, c.caller, in.Body.Base, c.upload.Target, c.caller.Org.ID); err != nil {
		return nil, err
	}
	if in.Body.Size >= c.upload.Size {
		return nil, snap.Invalid("the delta is not smaller than the snapshot", "push the whole file")
	}
	url, expires := s.deltaURL(c.caller, deltaUp, c.upload.ID, in.Body.Base, in.Body.Size)
	return &body[api.DeltaUpload]{api.DeltaUpload{URL: url, Expires: expires}}, nil
}

// candidate is a snapshot that may be the base of a delta.
type candidate struct {
	id    string
	bytes store.Bytes
}

// candidates returns the snapshots of a list that can be the base of a delta to the call's
// snapshot, in the order of the list.
func (s *Service) candidates(ctx context.Context, c *call, have []string) (all []candidate, err error) {
	for _, id := range have {
		base, err := s.deltaBase(ctx, c.caller, id, c.snapshot.Target, c.snapshot.Org.ID)
		if errors.Is(err, snap.ErrNotFound) || id == c.snapshot.ID {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, candidate{id, base})
	}
	return all, nil
}

// pullDelta offers a delta to a client that lists the snapshots that it has. The base is the first
// snapshot in the list from which a delta already exists. If no delta exists, pullDelta makes one
// from the first snapshot that can be a base.
func (s *Service) pullDelta(ctx context.Context, in *deltaPullInput) (*body[api.DeltaOffer], error) {
	c := callOf(ctx)
	none := &body[api.DeltaOffer]{}
	bases, err := s.candidates(ctx, c, in.Body.Have)
	if err != nil || len(bases) == 0 {
		return none, err
	}
	result, err := s.store.Bytes(ctx, c.caller, c.snapshot.ID)
	if err != nil || result.Size < deltaMinFile {
		return none, err
	}
	base, f, err := s.existingDelta(bases, result)
	if f == nil && err == nil {
		var making bool
		base = bases[0]
		if f, making, err = s.transfers.deltas.get(ctx, base.bytes, result); making {
			return &body[api.DeltaOffer]{api.DeltaOffer{Making: true}}, nil
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "cannot make a delta", "error", err)
	}
	if err != nil || f == nil {
		return none, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	if err := s.store.Note(ctx, c.caller, c.snapshot, snap.AuditPullStarted, snap.AuditDetail{}); err != nil {
		return nil, err
	}
	certificate, err := s.envelope(ctx, c)
	if err != nil {
		return nil, err
	}
	s.telemetry.metrics.pulls.Inc()
	url, expires := s.deltaURL(c.caller, deltaDown, c.snapshot.ID, base.id, info.Size())
	return &body[api.DeltaOffer]{api.DeltaOffer{Base: base.id, Size: info.Size(), URL: url, Expires: &expires,
		Certificate: certificate}}, nil
}

// existingDelta returns the first delta that already exists, and its base.
func (s *Service) existingDelta(bases []candidate, result store.Bytes) (candidate, *os.File, error) {
	for _, base := range bases {
		if f, err := s.transfers.deltas.openKept(nameOf(base.bytes, result)); f != nil || err != nil {
			return base, f, err
		}
	}
	return candidate{}, nil, nil
}

// openDeltaTicket returns the content of a delta's URL if this service signed the URL and it has
// not expired.
func (s *Service) openDeltaTicket(r *http.Request, purpose string) (t deltaTicket, err error) {
	if !blob.OpenToken(s.transfers.urlKey, purpose, r.PathValue("token"), &t) ||
		!s.now().Before(time.UnixMilli(t.Expires)) {
		return deltaTicket{}, errTicket
	}
	return t, nil
}

// deltaFiles returns the files of a delta's base and result. It fails with snap.ErrNotFound when
// the bearer of the ticket can no longer see one of the two snapshots.
func (s *Service) deltaFiles(r *http.Request, t deltaTicket) (base, result store.Bytes, err error) {
	if result, err = s.ticketBytes(r, t.ticket); err != nil {
		return base, result, err
	}
	t.Snapshot = t.Base
	base, err = s.ticketBytes(r, t.ticket)
	return base, result, err
}

// serveDelta handles GET of a delta's URL.
func (s *Service) serveDelta(w http.ResponseWriter, r *http.Request) {
	t, err := s.openDeltaTicket(r, deltaDown)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	base, result, err := s.deltaFiles(r, t)
	var f *os.File
	if err == nil {
		f, err = s.transfers.deltas.openKept(nameOf(base, result))
	}
	if err == nil && f == nil {
		err = snap.ErrNotFound
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	defer f.Close()
	w.Header().Set("Cache-Control", "private, no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	allowed := func() error {
		_, _, err := s.deltaFiles(r, t)
		return err
	}
	checked := &loadcontrol.Response{ResponseWriter: w, Piece: 8 << 20, Before: recheck(s.transfers.recheck, allowed)}
	defer watch(w, s.transfers.recheck, allowed)()
	http.ServeContent(checked, r, "", time.Time{}, f)
}

// receiveDelta handles PUT of a delta's URL: it rebuilds the snapshot's file and verifies it. The
// upload is then complete in the object store, and the push can be completed. An encrypted delta
// does not replace the upload of the whole file.
func (s *Service) receiveDelta(w http.ResponseWriter, r *http.Request) {
	body := &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w),
		maxStall: s.transfers.deltas.maxStall}
	if err := s.applyDelta(r, body); err != nil {
		s.writeError(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// timedBody is a request body that fails if no byte arrives for maxStall, or if the client falls
// more than maxStall behind minDeltaRate. Without this, a client that sends almost nothing would
// keep a slot for work on deltas. Only the time for which the service waits for the client counts.
type timedBody struct {
	io.ReadCloser
	control  *http.ResponseController
	maxStall time.Duration
	due      time.Duration // how long the bytes that have arrived may take
	waited   time.Duration
}

// minDeltaRate is the lowest rate at which a client may send a delta, in bytes per second.
const minDeltaRate = 16 << 10

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	began := time.Now() // by the real clock
	_ = b.control.SetReadDeadline(began.Add(min(b.maxStall, b.maxStall+b.due-b.waited)))
	n, err := b.ReadCloser.Read(p)
	b.waited += time.Since(began)
	b.due += time.Duration(n) * time.Second / minDeltaRate
	if errors.Is(err, io.EOF) { // the work that follows may take longer
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (s *Service) applyDelta(r *http.Request, body io.ReadCloser) error {
	t, err := s.openDeltaTicket(r, deltaUp)
	if err != nil {
		return err
	}
	ctx := r.Context()
	caller, err := s.auth.Recheck(r, t.Kind, t.Credential, t.Principal)
	if errors.Is(err, snap.ErrUnauthenticated) {
		err = snap.ErrNotFound
	}
	if err == nil {
		err = snap.Allowed(caller, snap.ActPush, snap.Snapshot{})
	}
	if err != nil {
		return err
	}
	u, err := s.store.Upload(ctx, caller, t.Snapshot)
	if err != nil {
		return err
	}
	base, err := s.deltaBase(ctx, caller, t.Base, u.Target, caller.Org.ID)
	if err != nil {
		return err
	}
	if r.ContentLength != t.Size {
		return snap.Invalid("the delta does not have the announced size", "push again")
	}
	held, release, err := s.holdUpload(ctx, u.ID)
	if err != nil || !held {
		return errors.Join(err, errNoDelta)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, rebuildLimit)
	defer cancel()
	defer s.dropUnused(ctx, u.Blob)
	sent := http.MaxBytesReader(nil, body, t.Size)
	if rebuilt, err := s.transfers.deltas.receive(ctx, u, base, sent, t.Size); err != nil || !rebuilt {
		return err
	}
	return s.transfers.blobs.Abort(ctx, u.Blob, u.BlobUpload)
}

// rebuildLimit is how long one replica may take to rebuild a file. Then it stops, and another
// replica may begin.
const rebuildLimit = time.Hour

// holdUpload reserves an upload for this request across all replicas.
func (s *Service) holdUpload(ctx context.Context, id string) (held bool, release func(), err error) {
	name, holder := "delta of "+id, rand.Text()
	held, err = s.store.Lease(ctx, name, holder, rebuildLimit)
	return held, func() {
		if _, err := s.store.Lease(context.WithoutCancel(ctx), name, holder, 0); err != nil {
			s.log.WarnContext(ctx, "cannot end the lease of an upload", "error", err)
		}
	}, err
}
