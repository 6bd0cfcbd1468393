package login

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"snap"
	"snap/api"
)

// refreshMargin is how long before its expiry an access token is refreshed.
const refreshMargin = 30 * time.Second

// refreshTimeout limits one refresh. Nothing else can interrupt it: once the service has replaced
// the refresh token, the new one must be written to the file.
const refreshTimeout = 30 * time.Second

// Source returns a token source for requests to a cloud URL, and to no other. The source refreshes
// a token that expires soon or was refused. If several processes need a refresh, one performs it
// and the others use its result. The source fails with code not_signed_in if there is no session or
// the session has ended.
func (f *File) Source(cloudURL string, h *http.Client) api.TokenSource {
	h = withoutRedirects(h)
	return func(ctx context.Context, refused string) (string, error) {
		s, err := f.requireSession(cloudURL)
		if err != nil {
			return "", err
		}
		if f.usable(s, refused) {
			return s.AccessToken, nil
		}
		s, err = f.refresh(ctx, h, cloudURL, refused)
		return s.AccessToken, err
	}
}

// Refresh refreshes the session of a cloud URL now and returns it.
func (f *File) Refresh(ctx context.Context, cloudURL string, h *http.Client) (Session, error) {
	s, err := f.requireSession(cloudURL)
	if err != nil {
		return Session{}, err
	}
	return f.refresh(ctx, withoutRedirects(h), cloudURL, s.AccessToken)
}

// requireSession is like [File.Session], but fails with code not_signed_in if there is no session.
func (f *File) requireSession(cloudURL string) (Session, error) {
	s, ok, err := f.Session(cloudURL)
	if err == nil && !ok {
		err = notSignedIn(cloudURL)
	}
	return s, err
}

func (f *File) usable(s Session, refused string) bool {
	return s.AccessToken != refused && f.now().Add(refreshMargin).Before(s.Expiry)
}

func notSignedIn(cloudURL string) error {
	return &snap.Error{Code: snap.CodeNotSignedIn, Detail: "you are not signed in to " + cloudURL,
		Hint: "run `snapcli login`, or set cloud.api_key"}
}

func sessionEnded(cause error) error {
	return &snap.Error{Code: snap.CodeNotSignedIn, Detail: "your session has ended", Hint: "run `snapcli login`",
		Cause: cause}
}

// refresh gets a new access token. It takes the lock, reads the file again, and contacts the
// service only if a refresh is still needed. Once it holds the lock, it cannot be interrupted.
func (f *File) refresh(ctx context.Context, h *http.Client, cloudURL, refused string) (Session, error) {
	unlock, err := f.lock(ctx)
	if err != nil {
		return Session{}, err
	}
	defer unlock()
	s, err := f.requireSession(cloudURL)
	if err != nil {
		return Session{}, err
	}
	if f.usable(s, refused) {
		return s, nil
	}
	if s.RefreshToken == "" {
		return Session{}, sessionEnded(nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	next, err := redeem(ctx, h, s, f.now)
	var r *refusal
	switch {
	case errors.As(err, &r) && r.Code == "invalid_grant":
		return Session{}, f.forget(cloudURL, s.RefreshToken, err)
	case errors.As(err, &r) && r.Code == "unauthorized_client":
		return Session{}, signInRefused(s, r)
	case err != nil && s.AccessToken != refused && f.now().Before(s.Expiry):
		return s, nil // the token is still valid; the next request tries again
	case err != nil:
		return Session{}, unreachable(s, err)
	}
	return next, f.changeLocked(func(c *contents) { c.put(cloudURL, next) })
}

// redeem exchanges the refresh token for new tokens (RFC 6749 section 6).
func redeem(ctx context.Context, h *http.Client, s Session, now func() time.Time) (Session, error) {
	var got tokenResponse
	err := postForm(ctx, h, s.TokenURL, url.Values{
		"grant_type":    {"refresh_token"},
		"client_id":     {s.ClientID},
		"refresh_token": {s.RefreshToken},
	}, &got)
	if err == nil && got.AccessToken == "" {
		err = errLostResponse
	}
	if err != nil {
		return Session{}, err
	}
	s.AccessToken, s.Expiry = got.AccessToken, got.expiry(now())
	if got.RefreshToken != "" {
		s.RefreshToken = got.RefreshToken
	}
	return s, nil
}

// forget deletes the session with the refused refresh token, unless the file already holds a newer
// token. It returns the error for a session that has ended.
func (f *File) forget(cloudURL, token string, cause error) error {
	err := f.changeLocked(func(c *contents) {
		for _, s := range c.accounts(cloudURL) {
			if s.RefreshToken == token {
				c.drop(cloudURL, s.Account())
			}
		}
	})
	if err != nil {
		return err
	}
	return sessionEnded(cause)
}

// signInRefused is the error for a session that still exists but gets no token at present, for
// example while its organization is closed.
func signInRefused(s Session, r *refusal) error {
	return &snap.Error{
		Code:   snap.CodeForbidden,
		Detail: hostOf(s.AuthURL) + " refuses your sign-in: " + snap.CleanText(r.Description),
		Hint:   "ask the service's operator; you need not sign in again afterwards",
		Cause:  r,
	}
}

func unreachable(s Session, err error) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return &snap.Error{Code: snap.CodeUnreachable, Cause: r,
			Detail: hostOf(s.AuthURL) + " did not refresh your session: " + r.Error(),
			Hint:   "try again later; you are still signed in"}
	}
	return &snap.Error{
		Code:   snap.CodeUnreachable,
		Detail: hostOf(s.AuthURL) + " cannot be reached to refresh your session",
		Hint:   "check your network and try again; you are still signed in",
		Cause:  err,
	}
}

// Logout deletes the session of the selected account from this machine and revokes it at the auth
// service. Other accounts remain, and none of them is put in use. ended reports whether a session
// was deleted. If it is true, an error only explains why the service may still accept the session.
// If it is false and err is nil, there was no session.
func Logout(ctx context.Context, f *File, cloudURL string, h *http.Client) (ended bool, err error) {
	s, found, err := f.Session(cloudURL)
	if err != nil || !found {
		return false, err
	}
	if err := f.change(ctx, func(c *contents) {
		s, ended = c.byName(cloudURL, s.Account())
		c.drop(cloudURL, s.Account())
	}); err != nil {
		return false, err
	}
	if !ended {
		return false, nil
	}
	if err := revoke(ctx, withoutRedirects(h), s); err != nil {
		return true, &snap.Error{
			Code:   snap.CodeUnreachable,
			Detail: "you are signed out here, but " + hostOf(s.AuthURL) + " did not end the session",
			Hint:   "end the session on your account page there",
			Cause:  err,
		}
	}
	return true, nil
}

// revoke revokes a session at its auth service (RFC 7009).
func revoke(ctx context.Context, h *http.Client, s Session) error {
	if s.RevokeURL == "" {
		return errors.New("the auth service does not support revocation")
	}
	token, hint := s.RefreshToken, "refresh_token"
	if token == "" {
		token, hint = s.AccessToken, "access_token"
	}
	return postForm(ctx, h, s.RevokeURL, url.Values{"token": {token}, "token_type_hint": {hint},
		"client_id": {s.ClientID}}, nil)
}
