package login_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/login"
)

// U9, U17: an access token is refreshed when it has expired by this machine's clock. If many
// callers want it at once, one of them asks and the others use its result.
func TestRefreshIsDoneOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.login("mia@acme.test")
	d.clock.Advance(10 * time.Minute)
	before := d.wire.count("/auth/token")
	tokens := make([]string, 12)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			token, err := d.file().Source(d.cloud.URL, d.client())(t.Context(), "")
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token
		})
	}
	wg.Wait()
	if asked := d.wire.count("/auth/token") - before; asked != 1 {
		t.Errorf("%d refreshes, want 1", asked)
	}
	for _, token := range tokens {
		if token != tokens[0] || token == first.AccessToken {
			t.Fatal("the callers have different tokens, or the old one")
		}
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the API after the refresh: %v, %v", me.Email, err)
	}
}

// U17: a refused token is refreshed once, even if it has not expired by the clock.
func TestRefusedTokenIsRefreshed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.login("mia@acme.test")
	token, err := d.file().Source(d.cloud.URL, d.client())(t.Context(), s.AccessToken)
	if err != nil || token == s.AccessToken {
		t.Errorf("token unchanged: %v", err)
	}
	again, err := d.file().Source(d.cloud.URL, d.client())(t.Context(), s.AccessToken)
	if err != nil || again != token {
		t.Errorf("a second refusal of the same token was not answered with the new one: %v", err)
	}
}

// U9, U11: an ended session is forgotten, and the error is one sentence with
// the command to run.
func TestEndedSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.login("mia@acme.test")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.cloud.URL+"/auth/revoke",
		strings.NewReader("client_id=snapcli&token="+s.RefreshToken))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	_, err = d.me()
	var known *snap.Error
	if !errors.As(err, &known) || known.Code != snap.CodeNotSignedIn ||
		!strings.Contains(known.Hint, "snapcli login") ||
		strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("error %v", err)
	}
	if _, ok, _ := d.file().Session(d.cloud.URL); ok {
		t.Error("the ended session is still here")
	}
}

// A closed organization is reported, and the session works when the organization is open again.
func TestSessionOutlivesAClosedOrganization(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	if err := d.cloud.Store.CloseAllBut(t.Context(), []string{"globex"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.me(); snap.CodeOf(err) != snap.CodeForbidden || !strings.Contains(err.Error(), "closed") {
		t.Errorf("while closed: %v", err)
	}
	if err := d.cloud.Store.CloseAllBut(t.Context(), []string{"acme"}); err != nil {
		t.Fatal(err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("open again: %v, %v", me.Email, err)
	}
}

// U9: without a network the session is kept, and a token that is still valid is used. An error of
// the service is reported as such.
func TestRefreshWithoutNetwork(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.login("mia@acme.test")
	d.wire.broken = func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }
	d.clock.Advance(10*time.Minute - 10*time.Second)
	source := d.file().Source(d.cloud.URL, d.client())
	if token, err := source(t.Context(), ""); err != nil || token != s.AccessToken {
		t.Errorf("a token that lives ten seconds more: %v", err)
	}
	d.clock.Advance(time.Minute)
	if _, err := source(t.Context(), ""); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	d.wire.broken = func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadGateway, Body: http.NoBody}, nil
	}
	if _, err := source(t.Context(), ""); snap.CodeOf(err) != snap.CodeUnreachable ||
		!strings.HasSuffix(err.Error(), "did not refresh your session: the auth service answered 502") {
		t.Errorf("error %v (%s)", err, snap.CodeOf(err))
	}
	if _, ok, _ := d.file().Session(d.cloud.URL); !ok {
		t.Error("the session is gone")
	}
}

// U9, T4: if the response to a refresh is lost, the next refresh saves the session.
func TestLostRefreshAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	d.clock.Advance(10 * time.Minute)
	lost := false
	d.wire.broken = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/auth/token" || lost {
			return nil, nil
		}
		lost = true
		res, err := http.DefaultTransport.RoundTrip(r) // the service has responded ...
		if err != nil {
			return nil, err
		}
		res.Body.Close()
		return nil, errors.New("connection reset by peer") // ... but the response is lost
	}
	source := d.file().Source(d.cloud.URL, d.client())
	if _, err := source(t.Context(), ""); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Fatalf("error %v", err)
	}
	d.clock.Advance(30 * time.Second)
	if _, err := source(t.Context(), ""); err != nil {
		t.Errorf("the session was lost: %v", err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the API: %v, %v", me.Email, err)
	}
}

// U9: once it has begun, a refresh cannot be interrupted.
func TestInterruptedRefreshIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	d.clock.Advance(10 * time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	d.wire.broken = func(*http.Request) (*http.Response, error) { cancel(); return nil, nil }
	token, err := d.file().Source(d.cloud.URL, d.client())(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if s, _, _ := d.file().Session(d.cloud.URL); s.AccessToken != token {
		t.Error("the new token did not reach the file")
	}
}

// A3, U15: sessions are stored by cloud URL, and a token is sent nowhere else.
func TestSessionsByCloudURL(t *testing.T) {
	t.Parallel()
	one, two := newDesk(t), newDesk(t)
	two.dir = one.dir
	first, second := one.login("mia@acme.test"), two.login("gail@globex.test")
	for cloudURL, want := range map[string]login.Session{one.cloud.URL: first, two.cloud.URL + "/": second} {
		if token, err := one.file().Source(cloudURL, one.client())(t.Context(), ""); err != nil ||
			token != want.AccessToken {
			t.Errorf("%s: another token, or %v", cloudURL, err)
		}
	}
	_, err := one.file().Source("https://elsewhere.example", one.client())(t.Context(), "")
	if snap.CodeOf(err) != snap.CodeNotSignedIn {
		t.Errorf("another cloud: %v", err)
	}
}
