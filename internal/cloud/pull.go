package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

// A pull answers with a URL that the service has signed. It names the snapshot, the caller and the
// credential, and holds no secret. Every request for the URL, and so every range, checks the
// caller's right again: an unshare, a role change, a revoked key or an ended session stops a
// running download. The object store then sends the bytes itself, or a redirect to a presigned URL
// that lives for about a minute.

// pullLife is how long a download URL is valid.
const pullLife = 15 * time.Minute

// ticket is the content of a download URL.
type ticket struct {
	Snapshot   string              `json:"s"`
	Principal  int64               `json:"p"`
	Kind       snap.CredentialKind `json:"k"`
	Credential int64               `json:"c"`
	Expires    int64               `json:"e"` // milliseconds since 1970
}

// errTicket is the answer to a download URL that is invalid or has expired.
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
	s.metrics.pulls.Inc()
	expires := s.now().Add(pullLife).UTC().Truncate(time.Millisecond)
	token := s.seal(ticket{
		Snapshot: c.snapshot.ID, Principal: c.caller.Principal(),
		Kind: c.caller.Credential.Kind, Credential: c.caller.Credential.ID, Expires: expires.UnixMilli(),
	})
	return &body[api.PullResponse]{api.PullResponse{
		Snapshot: wireSnapshot(c.snapshot), URL: s.config.PublicURL + "/blobs/" + token, Expires: expires,
	}}, nil
}

func (s *Service) seal(t ticket) string {
	payload, err := json.Marshal(t)
	if err != nil {
		panic(err) // cannot happen: strings and numbers always encode
	}
	text := base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.mac(text))
}

func (s *Service) mac(text string) []byte {
	h := hmac.New(sha256.New, s.urlKey)
	h.Write([]byte("download\x00" + text))
	return h.Sum(nil)
}

func (s *Service) open(token string) (ticket, error) {
	text, mac, _ := strings.Cut(token, ".")
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(sum, s.mac(text)) {
		return ticket{}, errTicket
	}
	payload, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return ticket{}, errTicket
	}
	var t ticket
	if err := json.Unmarshal(payload, &t); err != nil || !s.now().Before(time.UnixMilli(t.Expires)) {
		return ticket{}, errTicket
	}
	return t, nil
}

// bytes returns the object that a ticket gives access to now. It fails with snap.ErrNotFound when
// the bearer may no longer see the snapshot.
func (s *Service) bytes(r *http.Request, t ticket) (store.Bytes, error) {
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
	// Pulling a visible snapshot requires only the scope of the key.
	return b, snap.Allowed(caller, snap.ActPull, snap.Snapshot{})
}

// serveBytes answers GET and HEAD of a download URL.
func (s *Service) serveBytes(w http.ResponseWriter, r *http.Request) {
	t, err := s.open(r.PathValue("token"))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	b, err := s.bytes(r, t)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "private, no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	checked := &checkedWriter{ResponseWriter: w, every: s.recheck, last: time.Now(), check: func() error {
		_, err := s.bytes(r, t)
		return err
	}}
	s.blobs.Serve(checked, r, b.Blob, `"`+b.SHA256+`"`)
}

// checkedWriter checks the right to an answer while it is sent, and aborts the answer when the
// right has ended.
type checkedWriter struct {
	http.ResponseWriter
	every time.Duration
	last  time.Time // of the last check, by the real clock
	check func() error
}

// Unwrap lets http.ResponseController reach the connection.
func (w *checkedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *checkedWriter) Write(p []byte) (int, error) {
	w.recheck()
	return w.ResponseWriter.Write(p)
}

// ReadFrom copies in pieces and checks between them.
func (w *checkedWriter) ReadFrom(src io.Reader) (int64, error) {
	return copyPieces(w.ResponseWriter, src, 8<<20, w.recheck)
}

// recheck aborts the connection when the right has ended. The status line has already been sent, so
// the only way to report it is to break the connection. The client's next request gets not_found.
func (w *checkedWriter) recheck() {
	if time.Since(w.last) < w.every {
		return
	}
	if w.check() != nil {
		panic(http.ErrAbortHandler)
	}
	w.last = time.Now()
}
