package auth

import (
	"context"
	"errors"

	"snap"
)

// Recheck returns the current caller for a credential that was accepted earlier, named by its kind,
// its identifier and the principal it acted for. It fails with snap.ErrUnauthenticated when the key
// or session has been revoked or has expired, or the user is disabled. Download URLs call it for
// every range.
func (a *Authenticator) Recheck(ctx context.Context, kind snap.CredentialKind, id, principal int64) (snap.Caller,
	error) {
	c, err := a.recheck(ctx, kind, id)
	if err == nil && (c.Credential.Kind != kind || c.Principal() != principal) {
		err = snap.ErrUnauthenticated
	}
	if err != nil {
		return snap.Caller{}, err
	}
	return c, nil
}

func (a *Authenticator) recheck(ctx context.Context, kind snap.CredentialKind, id int64) (snap.Caller, error) {
	switch {
	case kind.IsKey():
		return a.store.CallerOfKeyID(ctx, id)
	case kind == snap.LoginToken || kind == snap.Browser:
		n, err := a.store.LiveSession(ctx, id)
		if err != nil {
			return snap.Caller{}, err
		}
		return a.ofSession(ctx, n)
	}
	return snap.Caller{}, errors.New("auth: unknown kind of credential")
}
