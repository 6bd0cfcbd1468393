// Package auth turns a request into its caller: API keys on the agent mount,
// access tokens and browser sessions on the user mount.
package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"snap"
	"snap/internal/store"
)

// Options configure an [Authenticator].
type Options struct {
	Issuer    string                     // of the access tokens to accept: the auth service's URL
	Audience  string                     // that they must name; empty is the public URL
	PublicURL string                     // of the service; decides the cookie's name and origin
	Now       func() time.Time           // nil is time.Now
	Address   func(*http.Request) string // of the client, for rate limits; nil is the connection's
}

// Authenticator finds out who calls. It is safe for concurrent use.
type Authenticator struct{}

// New returns an authenticator over the store's keys and sessions.
func New(s *store.Store, o Options) *Authenticator { return &Authenticator{} }

// Agent returns the caller of a request on the agent mount, by its API key.
func (a *Authenticator) Agent(r *http.Request) (snap.Caller, error) {
	return snap.Caller{}, snap.ErrUnauthenticated
}

// User returns the caller of a request on the user mount, by its access token
// or browser session.
func (a *Authenticator) User(r *http.Request) (snap.Caller, error) {
	return snap.Caller{}, snap.ErrUnauthenticated
}

// KeySpec says what key to make.
type KeySpec struct {
	OrgID     int64
	UserID    int64 // for user-scoped keys
	Kind      snap.CredentialKind
	Name      string
	Scopes    []snap.Scope // for organization-level keys
	Expires   time.Time    // zero is never
	CreatedBy int64        // the user who makes it; 0 is the operator
}

// NewKey makes an API key and returns its secret, which is stored nowhere.
func (a *Authenticator) NewKey(ctx context.Context, k KeySpec) (secret string, key store.Key, err error) {
	return "", store.Key{}, errors.ErrUnsupported
}
