package auth

import (
	"errors"
	"net/http"

	"snap"
)

// Recheck returns the current caller for a credential that an earlier request used to get the URL
// of r. The credential is given by its kind, its identifier and the principal it acted for. Recheck
// fails with snap.ErrUnauthenticated when the key or session has been revoked or has expired, when
// the user is disabled, when the key may not be used from the address of r, or when the identity
// provider has not confirmed the user recently. Downloads call it for every range.
func (a *Authenticator) Recheck(r *http.Request, kind snap.CredentialKind, id, principal int64) (snap.Caller, error) {
	c, err := a.recheck(r, kind, id)
	if err == nil && (c.Credential.Kind != kind || c.Principal() != principal) {
		err = snap.ErrUnauthenticated
	}
	if err != nil {
		return snap.Caller{}, err
	}
	return c, nil
}

func (a *Authenticator) recheck(r *http.Request, kind snap.CredentialKind, id int64) (snap.Caller, error) {
	ctx := r.Context()
	switch {
	case kind.IsKey():
		u, err := a.store.CallerOfKeyID(ctx, id)
		if err != nil {
			return snap.Caller{}, err
		}
		return a.useKey(r, u, false)
	case kind == snap.LoginToken || kind == snap.Browser:
		n, err := a.store.LiveSession(ctx, id)
		if err != nil {
			return snap.Caller{}, err
		}
		return a.confirmedCaller(ctx, n, false)
	}
	return snap.Caller{}, errors.New("auth: unknown kind of credential")
}
