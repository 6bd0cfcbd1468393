package login_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/login"
	"snap/internal/servertest"
)

// SPEC 2.5, SPEC 5.2, U1, U2, U4, U10, A1: the code comes first and is shown with the
// link, the browser is opened after it, and the session is stored for its owner only.
func TestLogin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.login("mia@acme.test")
	if s.Email != "mia@acme.test" || s.Organization != "acme" {
		t.Errorf("signed in as %q of %q", s.Email, s.Organization)
	}
	if !slices.Equal(d.order, []string{"code", "browser"}) {
		t.Errorf("the person saw %v, want the code before the browser", d.order)
	}
	c := d.codes[0]
	if c.UserCode == "" || c.URL == "" || !strings.Contains(c.Complete, c.UserCode) || d.opened[0] != c.Complete {
		t.Errorf("code %+v, opened %v", c, d.opened)
	}
	me, err := d.me()
	if err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the session calls the API as %q: %v", me.Email, err)
	}
	for path, want := range map[string]os.FileMode{d.dir: 0o700, d.file().Path(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

// U10: a looser mode is repaired, with a warning.
func TestLooseModeIsRepaired(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	if err := os.Chmod(d.file().Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.file().Session(d.cloud.URL); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.file().Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v after reading", info.Mode().Perm())
	}
	if len(d.notes) == 0 || !strings.Contains(d.notes[len(d.notes)-1], "could be read by others") {
		t.Errorf("no warning: %v", d.notes)
	}
}

// U6, U8: remaining time is shown; an unapproved code ends with a message and exit code of its own,
// and the existing session stays valid.
func TestExpired(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	d := newDesk(t)
	d.login("mia@acme.test")
	d.waits = nil
	_, err := login.Login(t.Context(), d.options())
	if snap.CodeOf(err) != snap.CodeNotSignedIn || !strings.Contains(err.Error(), "expired") {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	if len(d.waits) < 300 || d.waits[0] <= d.waits[len(d.waits)-1] {
		t.Errorf("the countdown had %d steps", len(d.waits))
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the session before: %v, %v", me.Email, err)
	}
}

// Nobody is asked to approve a session that cannot be stored.
func TestNowhereToKeepTheSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.options()
	o.ConfigDir = filepath.Join(t.TempDir(), "file", "config")
	if err := os.WriteFile(filepath.Dir(o.ConfigDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := login.Login(t.Context(), o); err == nil || len(d.codes) > 0 {
		t.Errorf("%v, after %d codes", err, len(d.codes))
	}
}

// U8: a denied login has another message and exit code.
func TestDenied(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.onWait = func() { d.decide("mia@acme.test", "deny") }
	_, err := login.Login(t.Context(), d.options())
	if snap.CodeOf(err) != snap.CodeForbidden || !strings.Contains(err.Error(), "denied") {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	if _, ok, err := d.file().Session(d.cloud.URL); ok || err != nil {
		t.Errorf("a session was left behind: %v, %v", ok, err)
	}
}

// U8: Ctrl-C ends at once and leaves no half session.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.onWait = cancel
	o := d.options()
	o.After = func(time.Duration) <-chan time.Time { return nil } // the time never comes
	_, err := login.Login(ctx, o)
	if snap.CodeOf(err) != snap.CodeInterrupted {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	if _, ok, _ := d.file().Session(d.cloud.URL); ok {
		t.Error("a session was left behind")
	}
}

// U7: failures of the network and of the service do not end a login.
func TestFaultsWhilePolling(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	faults := 0
	d.wire.broken = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/auth/token" || faults >= 6 {
			return nil, nil
		}
		faults++
		switch faults % 3 {
		case 0:
			return nil, errors.New("connection reset by peer")
		case 1:
			return reply(r, http.StatusServiceUnavailable, "<html>down"), nil
		}
		return reply(r, http.StatusBadGateway, ""), nil
	}
	if s := d.login("mia@acme.test"); s.Email != "mia@acme.test" || faults != 6 {
		t.Errorf("signed in as %q after %d faults", s.Email, faults)
	}
}

// U7: the error for a service that never responds differs from that for a code that was not
// approved.
func TestServiceGoneWhilePolling(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.wire.broken = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/auth/token" {
			return nil, errors.New("connection reset by peer")
		}
		return nil, nil
	}
	if _, err := login.Login(t.Context(), d.options()); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	if polls := d.wire.count("/auth/token"); polls > 60 {
		t.Errorf("%d polls in ten minutes: no back-off", polls)
	}
}

// U7: an approval with an incomplete response gets an error that explains the problem.
func TestTornAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.wire.broken = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/auth/token" {
			return reply(r, http.StatusOK, `{"access_token": "eyJ`), nil
		}
		return nil, nil
	}
	_, err := login.Login(t.Context(), d.options())
	if err == nil || !strings.Contains(err.Error(), "approved, but the response was lost") {
		t.Errorf("error %v", err)
	}
}

// U6: slow_down makes the interval 5 s longer, and each wait is a fifth longer than the interval.
// An interval in the response is honored. Nonsense intervals do no harm.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		interval string
		answers  []string
		want     []time.Duration
	}{
		"twice": {"5",
			[]string{`{"error":"slow_down"}`, `{"error":"slow_down"}`, `{"error":"authorization_pending"}`},
			[]time.Duration{12 * time.Second, 18 * time.Second, 18 * time.Second}},
		"with an interval": {"5", []string{`{"error":"slow_down","interval":30}`}, []time.Duration{36 * time.Second}},
		"none":             {"0", []string{`{"error":"authorization_pending"}`}, []time.Duration{6 * time.Second}},
		"huge": {"9223372037", []string{`{"error":"authorization_pending"}`},
			[]time.Duration{72 * time.Second}},
		"negative": {"-7", []string{`{"error":"authorization_pending"}`}, []time.Duration{6 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			var at []time.Time
			d.wire.broken = func(r *http.Request) (*http.Response, error) {
				switch r.URL.Path {
				case "/auth/device_authorization":
					return reply(r, http.StatusOK,
						`{"device_code":"d","user_code":"BCDF-GHJK","verification_uri":"`+d.cloud.URL+`/auth/device",`+
							`"expires_in":600,"interval":`+tc.interval+`}`), nil
				case "/auth/token":
					at = append(at, d.clock.Now())
					if len(at) > len(tc.answers) {
						return reply(r, http.StatusBadRequest, `{"error":"access_denied"}`), nil
					}
					return reply(r, http.StatusBadRequest, tc.answers[len(at)-1]), nil
				}
				return nil, nil
			}
			if _, err := login.Login(t.Context(), d.options()); snap.CodeOf(err) != snap.CodeForbidden {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				if got := at[i+1].Sub(at[i]); got != want {
					t.Errorf("wait %d was %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

// U14: a new login ends the one before; logout ends the session at the service
// and here, and says when the service could not be reached.
func TestLogoutAndSecondLogin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.login("mia@acme.test")
	second := d.login("mia@acme.test")
	if first.RefreshToken == second.RefreshToken {
		t.Fatal("the second login gave the first session")
	}
	if status := d.status(first.AccessToken); status != http.StatusUnauthorized {
		t.Errorf("the first session after the second login: %d", status)
	}
	if ended, warning := login.Logout(t.Context(), d.file(), d.cloud.URL, d.client()); !ended || warning != nil {
		t.Errorf("logout: %v, %v", ended, warning)
	}
	if status := d.status(second.AccessToken); status != http.StatusUnauthorized {
		t.Errorf("the session after logout: %d", status)
	}
	if ended, warning := login.Logout(t.Context(), d.file(), d.cloud.URL, d.client()); ended || warning != nil {
		t.Errorf("logout without a session: %v, %v", ended, warning)
	}
	d.login("mia@acme.test")
	d.wire.broken = func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }
	ended, warning := login.Logout(t.Context(), d.file(), d.cloud.URL, d.client())
	if !ended || warning == nil {
		t.Errorf("logout without network: %v, %v", ended, warning)
	}
	if _, ok, _ := d.file().Session(d.cloud.URL); ok {
		t.Error("the session is still here")
	}
}

// status asks the API with a bearer token.
func (d *desk) status(token string) int {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.cloud.URL+"/api/v1/me", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
