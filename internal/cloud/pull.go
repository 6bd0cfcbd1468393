package cloud

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/loadcontrol"
	"snap/internal/store"
)

// The response to a pull contains a URL that the service has signed. The URL names the snapshot,
// the caller and the credential, but does not contain the credential. Anybody who has the URL can
// use it until it expires, so it is never logged or stored. At each use of the URL, and therefore
// for each range, the service checks again whether the caller may pull the snapshot. If so, it
// sends the bytes from its folder, or redirects the client to a presigned URL of the object store
// that is valid for a minute. While it sends bytes, it repeats the check, so ending a share,
// changing a role, revoking a key or ending a session stops a running download.

// pullLife is how long a download URL is valid.
const pullLife = 15 * time.Minute

// download is the purpose of the tokens in download URLs.
const download = "download"

// ticket is the content of a download URL.
type ticket struct {
	Snapshot   string              `json:"s"`
	Principal  int64               `json:"p"`
	Kind       snap.CredentialKind `json:"k"`
	Credential int64               `json:"c"`
	Expires    int64               `json:"e"` // milliseconds since 1970
}

// errTicket is the error for a download URL that is invalid or has expired.
var errTicket = &snap.Error{
	Code:   snap.CodeForbidden,
	Detail: "this download URL is not valid or has expired",
	Hint:   "pull again to get a new URL",
}

func (s *Service) pullSnapshot(ctx context.Context, _ *ByID) (*body[api.PullResponse], error) {
	c := callOf(ctx)
	if err := s.store.Note(ctx, c.caller, c.snapshot, snap.AuditPullStarted, snap.AuditDetail{}); err != nil {
		return nil, err
	}
	certificate, err := s.envelope(ctx, c)
	if err != nil {
		return nil, err
	}
	s.telemetry.metrics.pulls.Inc()
	expires := s.now().Add(pullLife).UTC().Truncate(time.Millisecond)
	token := blob.SignToken(s.transfers.urlKey, download, ticket{
		Snapshot: c.snapshot.ID, Principal: c.caller.Principal(),
		Kind: c.caller.Credential.Kind, Credential: c.caller.Credential.ID, Expires: expires.UnixMilli(),
	})
	return &body[api.PullResponse]{api.PullResponse{
		Snapshot: wireSnapshot(c.snapshot), URL: s.config.PublicURL + "/blobs/" + token, Expires: expires,
		Certificate: certificate,
	}}, nil
}

// openTicket returns the content of a download URL that this service signed and that is still
// valid.
func (s *Service) openTicket(token string) (t ticket, err error) {
	if !blob.OpenToken(s.transfers.urlKey, download, token, &t) || !s.now().Before(time.UnixMilli(t.Expires)) {
		return ticket{}, errTicket
	}
	return t, nil
}

// ticketBytes returns the object that a ticket currently gives access to. It fails with
// snap.ErrNotFound if the caller can no longer see the snapshot.
func (s *Service) ticketBytes(r *http.Request, t ticket) (store.Bytes, error) {
	ctx := r.Context()
	caller, err := s.auth.Recheck(r, t.Kind, t.Credential, t.Principal)
	if errors.Is(err, snap.ErrUnauthenticated) {
		return store.Bytes{}, snap.ErrNotFound
	}
	if err != nil {
		return store.Bytes{}, err
	}
	b, err := s.store.Bytes(ctx, caller, t.Snapshot)
	if err != nil {
		return store.Bytes{}, err
	}
	// A caller who can see a snapshot may pull it, unless their key lacks the scope.
	return b, snap.Allowed(caller, snap.ActPull, snap.Snapshot{})
}

// serveBytes handles GET and HEAD of a download URL.
func (s *Service) serveBytes(w http.ResponseWriter, r *http.Request) {
	t, err := s.openTicket(r.PathValue("token"))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	b, err := s.ticketBytes(r, t)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "private, no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	allowed := func() error {
		_, err := s.ticketBytes(r, t)
		return err
	}
	checked := &loadcontrol.Response{ResponseWriter: w, Piece: 8 << 20, Before: recheck(s.transfers.recheck, allowed)}
	defer watch(w, s.transfers.recheck, allowed)()
	s.transfers.blobs.Serve(checked, r, b.Blob, `"`+b.SHA256+`"`)
}

// recheck returns a function that aborts the connection when check fails. It calls check at most
// once per interval. The status line has already been sent, so the only way to report the failure
// is to break the connection. The client's next request gets the reason, usually not_found.
func recheck(every time.Duration, check func() error) func() {
	last := time.Now() // by the real clock
	return func() {
		if time.Since(last) < every {
			return
		}
		if check() != nil {
			panic(http.ErrAbortHandler)
		}
		last = time.Now()
	}
}

// watch calls check periodically, even while a client reads so slowly that no write completes. When
// check fails, watch breaks the connection. The returned function stops watching.
func watch(w http.ResponseWriter, every time.Duration, check func() error) (stop func()) {
	const retryEvery = 50 * time.Millisecond // a new write moves the deadline, so watch sets it repeatedly
	ended, control := make(chan struct{}), http.NewResponseController(w)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(max(every, retryEvery))
		defer tick.Stop()
		for gone := false; ; {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if !gone && check() != nil {
				gone = true
				tick.Reset(retryEvery)
			}
			if gone {
				_ = control.SetWriteDeadline(time.Unix(1, 0)) // a connection that ended needs no deadline
			}
		}
	})
	return func() {
		close(ended)
		watching.Wait()
	}
}
