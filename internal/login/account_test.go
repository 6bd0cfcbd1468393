package login_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/login"
)

// U15: a second login keeps the first session; each is chosen by name, e-mail
// address or organization, and the last login is in use.
func TestSecondAccountKeepsTheFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mia, gail := d.login("mia@acme.test"), d.login("gail@globex.test")
	alice := d.login("alice@acme.test")
	if got := d.accounts(); !slices.Equal(got, []string{"acme", "alice@acme.test *", "globex"}) {
		t.Errorf("accounts %v", got)
	}
	for _, tc := range []struct {
		choice login.Choice
		want   login.Session
	}{
		{login.Choice{}, alice},
		{login.Choice{Account: "globex"}, gail},
		{login.Choice{Account: "gail@globex.test"}, gail},
		{login.Choice{Org: "globex"}, gail},
		{login.Choice{Account: "acme"}, mia},              // a name takes precedence over an organization
		{login.Choice{Org: "acme"}, alice},                // of several, the one in use
		{login.Choice{Account: "mia@acme.test"}, mia},     // its name is acme
		{login.Choice{Account: "alice@acme.test"}, alice}, // its name
	} {
		f := d.file()
		f.Choose(tc.choice)
		if s, ok, err := f.Session(d.cloud.URL); !ok || err != nil || s.RefreshToken != tc.want.RefreshToken {
			t.Errorf("%+v chose %s of %s, %v", tc.choice, s.Email, s.Organization, err)
		}
		if status := d.status(tc.want.AccessToken); status != http.StatusOK {
			t.Errorf("the session of %s answers %d", tc.want.Email, status)
		}
	}
	f := d.file()
	f.Choose(login.Choice{Account: "nobody"})
	_, _, err := f.Session(d.cloud.URL)
	if e := new(snap.Error); snap.CodeOf(err) != snap.CodeNotSignedIn || !errors.As(err, &e) ||
		!strings.Contains(e.Hint, "acme, alice@acme.test, globex") {
		t.Errorf("an account that is not there: %v", err)
	}
}

// An account with a name of the user's choice can hold a second session of the same user, and keeps
// its name when that user signs in again. A login of another user under this name replaces the
// session.
func TestNamedAccounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	work := d.loginAs("mia@acme.test", "work")
	if got := d.accounts(); !slices.Equal(got, []string{"acme", "work *"}) {
		t.Fatalf("accounts %v", got)
	}
	again := d.login("mia@acme.test")
	if again.Account() != "work" || d.status(work.AccessToken) != http.StatusUnauthorized {
		t.Errorf("signing in again made the account %s, or left the session before it alive", again.Account())
	}
	d.loginAs("gail@globex.test", "work")
	if got := d.accounts(); !slices.Equal(got, []string{"acme", "work *"}) || d.status(again.AccessToken) !=
		http.StatusUnauthorized {
		t.Errorf("accounts %v, or the session that was replaced is alive", got)
	}
	o := d.options()
	for _, name := range []string{"two words", "-x", "a\x1b[2J", strings.Repeat("x", 65)} {
		o.As = name
		if _, err := login.Login(t.Context(), o); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

// A session in a file of an earlier version works as before, and stays when a second account is
// added.
func TestFileOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.login("mia@acme.test")
	var whole map[string]map[string]map[string]any
	data, err := os.ReadFile(d.file().Path())
	if err == nil {
		err = json.Unmarshal(data, &map[string]any{})
	}
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields)
	_ = json.Unmarshal([]byte(`{"sessions":`+string(fields["sessions"])+`}`), &whole)
	for _, s := range whole["sessions"] {
		delete(s, "name")
	}
	if data, err = json.Marshal(whole); err == nil {
		err = os.WriteFile(d.file().Path(), data, 0o600)
	}
	if err != nil || strings.Contains(string(data), `"name"`) {
		t.Fatalf("not the file of an earlier version: %v %s", err, data)
	}
	d.clock.Advance(10 * time.Minute)
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Fatalf("the session before: %v, %v", me.Email, err)
	}
	d.login("gail@globex.test")
	if got := d.accounts(); !slices.Equal(got, []string{"acme", "globex *"}) {
		t.Errorf("accounts %v", got)
	}
	if s, err := d.file().Switch(t.Context(), d.cloud.URL, login.Choice{}); err != nil || s.SignedIn != first.SignedIn {
		t.Errorf("switched to %s: %v", s.Account(), err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("after the switch: %v, %v", me.Email, err)
	}
}

// A command stays with its account while another process switches; a refresh
// writes into the account that it belongs to.
func TestSwitchDuringACommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	d.login("gail@globex.test")
	running := d.file()
	source := running.Source(d.cloud.URL, d.client())
	if _, err := source(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := d.file().Switch(t.Context(), d.cloud.URL, login.Choice{Account: "acme"}); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(10 * time.Minute) // the access token ends
	token, err := source(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	f := d.file()
	f.Choose(login.Choice{Account: "globex"})
	if s, _, err := f.Session(d.cloud.URL); err != nil || s.AccessToken != token || s.Email != "gail@globex.test" {
		t.Errorf("the refreshed session is that of %s: %v", s.Email, err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the account in use: %v, %v", me.Email, err)
	}
	running.Reselect()
	if s, _, err := running.Session(d.cloud.URL); err != nil || s.Email != "mia@acme.test" {
		t.Errorf("selected again: %v, %v", s.Email, err)
	}
}

// U14: logout ends one session, and no other account becomes the account in use by itself.
func TestLogoutKeepsTheOtherAccounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mia, gail := d.login("mia@acme.test"), d.login("gail@globex.test")
	if ended, err := login.Logout(t.Context(), d.file(), d.cloud.URL, d.client()); !ended || err != nil {
		t.Fatalf("logout: %v, %v", ended, err)
	}
	if d.status(gail.AccessToken) != http.StatusUnauthorized || d.status(mia.AccessToken) != http.StatusOK {
		t.Error("logout ended another session than the one in use")
	}
	_, err := d.me()
	if e := new(snap.Error); snap.CodeOf(err) != snap.CodeNotSignedIn || !errors.As(err, &e) ||
		!strings.Contains(e.Hint, "snapcli switch") || !strings.Contains(e.Hint, "acme") {
		t.Errorf("with no account in use: %v", err)
	}
	if _, err := d.file().Switch(t.Context(), d.cloud.URL, login.Choice{}); err != nil {
		t.Fatal(err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("after the switch: %v, %v", me.Email, err)
	}
}

// accounts returns the names of the accounts, with a star at the one in use.
func (d *desk) accounts() (names []string) {
	d.t.Helper()
	all, inUse, err := d.file().Accounts(d.cloud.URL)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range all {
		name := s.Account()
		if name == inUse {
			name += " *"
		}
		names = append(names, name)
	}
	return names
}

func (d *desk) loginAs(email, name string) login.Session {
	d.t.Helper()
	d.onWait = func() { d.decide(email, "approve") }
	o := d.options()
	o.As = name
	s, err := login.Login(d.t.Context(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}
