package signin

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

type accountData struct {
	layout
	now       time.Time
	Caller    snap.Caller
	Sessions  []store.Session
	Current   int64 // the session of this browser
	Keys      []store.Key
	Secret    string // of the key that was just created
	Lifetimes []lifetimeChoice
	Form      keyForm
	Problem   string // why no key was created
	Hint      string
}

// keyForm holds the fields of the form that creates a key.
type keyForm struct{ Name, Expires, From string }

// lifetimeChoice is a choice of how long a new key is valid.
type lifetimeChoice struct{ Value, Text string }

// lifetimeChoices returns the choices that the organization's policy allows.
func lifetimeChoices(longest time.Duration) (all []lifetimeChoice) {
	for _, days := range []int{30, 90, 365} {
		if d := time.Duration(days) * 24 * time.Hour; longest == 0 || d <= longest {
			all = append(all, lifetimeChoice{strconv.Itoa(days) + "d", snap.Span(d)})
		}
	}
	if longest == 0 {
		return append(all, lifetimeChoice{"", "never"})
	}
	if len(all) == 0 {
		all = append(all, lifetimeChoice{longest.String(), snap.Span(longest)})
	}
	return all
}

// Idle reports whether a key has been unused for so long that it may no longer be needed.
func (p accountData) Idle(k store.Key) bool { return !p.now.Before(k.IdleSince().Add(snap.IdleKey)) }

// account shows the signed-in user, with their sessions and keys.
func (s *Service) account(v *visit) error {
	return s.showAccount(v, http.StatusOK, accountData{Form: keyForm{Expires: "90d"}})
}

func (s *Service) showAccount(v *visit, status int, data accountData) error {
	data.layout, data.Caller, data.Current, data.now = s.layout(v, "Your account"), v.caller, v.session.ID, s.now()
	var err error
	if data.Sessions, err = s.store.Sessions(v.r.Context(), v.caller); err != nil {
		return err
	}
	if data.Keys, err = s.store.Keys(v.r.Context(), v.caller, store.KeyQuery{}); err != nil {
		return err
	}
	org, err := s.store.Org(v.r.Context(), v.caller.Org.ID)
	if err != nil {
		return err
	}
	data.Lifetimes = lifetimeChoices(org.Policy.MaxKeyAge)
	return s.views.Page(v.w, status, "account.html", data)
}

func (s *Service) endSession(v *visit) error {
	id, err := strconv.ParseInt(v.r.PostFormValue("id"), 10, 64)
	if err != nil {
		return snap.Invalid("the form has no valid session ID", "reload the page")
	}
	if err := s.store.EndSession(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	s.log.InfoContext(v.r.Context(), "session ended", "user", v.caller.User.ID, "session", id)
	return s.redirect(v, "/account", nil)
}

// createKey creates a user-scoped key and shows its secret, which cannot be retrieved later. If it
// fails, it shows the form again with the typed values.
func (s *Service) createKey(v *visit) error {
	typed := keyForm{v.r.PostFormValue("name"), v.r.PostFormValue("expires"), v.r.PostFormValue("from")}
	secret, err := s.newKey(v, typed)
	if known, ok := errors.AsType[*snap.Error](err); ok {
		return s.showAccount(v, known.Code.Info().Status,
			accountData{Form: typed, Problem: known.Error(), Hint: known.Hint})
	}
	if err != nil {
		return err
	}
	return s.showAccount(v, http.StatusCreated, accountData{Secret: secret, Form: keyForm{Expires: "90d"}})
}

func (s *Service) newKey(v *visit, typed keyForm) (secret string, err error) {
	spec := auth.KeySpec{
		OrgID: v.caller.Org.ID, UserID: v.caller.User.ID, Kind: snap.UserKey,
		Name: printable(typed.Name, 100), CreatedBy: v.caller.User.ID,
	}
	if typed.Expires != "" {
		life, err := snap.ParseDuration(typed.Expires)
		if err != nil {
			return "", snap.Invalid(err.Error(), "choose a lifetime from the list")
		}
		spec.Expires = s.now().Add(life).Truncate(time.Second)
	}
	if spec.Networks, err = snap.ParseNetworks(strings.Fields(typed.From)); err != nil {
		return "", err
	}
	secret, key, err := s.keys.NewKey(v.r.Context(), spec)
	if err != nil {
		return "", err
	}
	s.log.InfoContext(v.r.Context(), "key created", "user", v.caller.User.ID, "key", key.ID)
	return secret, nil
}

func (s *Service) revokeKey(v *visit) error {
	id, err := strconv.ParseInt(v.r.PostFormValue("id"), 10, 64)
	if err != nil {
		return snap.Invalid("the form has no valid key ID", "reload the page")
	}
	if err := s.store.RevokeKey(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	s.log.InfoContext(v.r.Context(), "key revoked", "user", v.caller.User.ID, "key", id)
	return s.redirect(v, "/account", nil)
}

func formatID(id int64) string { return strconv.FormatInt(id, 10) }
