package signin

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

type accountPage struct {
	layout
	Caller   snap.Caller
	Sessions []store.Session
	Current  int64 // the session of this browser
	Keys     []store.Key
	Secret   string // of the key that was just created
}

// account shows who is signed in, their sessions and keys.
func (s *Service) account(v *visit) error { return s.showAccount(v, http.StatusOK, "") }

func (s *Service) showAccount(v *visit, status int, secret string) error {
	if !v.signedIn() {
		return s.redirect(v, "/signin", url.Values{"next": {s.path + "/account"}})
	}
	data := accountPage{layout: s.layout(v, "Your account"), Caller: v.caller, Current: v.session.ID, Secret: secret}
	var err error
	if data.Sessions, err = s.store.Sessions(v.r.Context(), v.caller); err != nil {
		return err
	}
	if data.Keys, err = s.store.Keys(v.r.Context(), v.caller, false); err != nil {
		return err
	}
	return s.views.Page(v.w, status, "account.html", data)
}

var errSignedOut = &snap.Error{Code: snap.CodeUnauthenticated, Detail: "you are signed out", Hint: "sign in again"}

func (s *Service) endSession(v *visit) error {
	if !v.signedIn() {
		return errSignedOut
	}
	id, err := strconv.ParseInt(v.r.PostFormValue("id"), 10, 64)
	if err != nil {
		return snap.Invalid("the form names no session", "reload the page")
	}
	if err := s.store.EndSession(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	s.log.InfoContext(v.r.Context(), "session ended", "user", v.caller.User.ID, "session", id)
	return s.redirect(v, "/account", nil)
}

// createKey creates a user-scoped key and shows its secret, which cannot be retrieved later.
func (s *Service) createKey(v *visit) error {
	if !v.signedIn() {
		return errSignedOut
	}
	spec := auth.KeySpec{
		OrgID: v.caller.Org.ID, UserID: v.caller.User.ID, Kind: snap.UserKey,
		Name: printable(v.r.PostFormValue("name"), 100), CreatedBy: v.caller.User.ID,
	}
	if typed := v.r.PostFormValue("expires"); typed != "" {
		life, err := snap.ParseDuration(typed)
		if err != nil {
			return snap.Invalid(err.Error(), "choose one from the list")
		}
		spec.Expires = s.now().Add(life).Truncate(time.Second)
	}
	secret, key, err := s.keys.NewKey(v.r.Context(), spec)
	if err != nil {
		return err
	}
	s.log.InfoContext(v.r.Context(), "key made", "user", v.caller.User.ID, "key", key.ID)
	return s.showAccount(v, http.StatusCreated, secret)
}

func (s *Service) revokeKey(v *visit) error {
	if !v.signedIn() {
		return errSignedOut
	}
	id, err := strconv.ParseInt(v.r.PostFormValue("id"), 10, 64)
	if err != nil {
		return snap.Invalid("the form names no key", "reload the page")
	}
	if err := s.store.RevokeKey(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	s.log.InfoContext(v.r.Context(), "key revoked", "user", v.caller.User.ID, "key", id)
	return s.redirect(v, "/account", nil)
}

func formatID(id int64) string { return strconv.FormatInt(id, 10) }

func asKnown(err error) (*snap.Error, bool) {
	var known *snap.Error
	ok := errors.As(err, &known)
	return known, ok
}
