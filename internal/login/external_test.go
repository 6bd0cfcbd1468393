package login_test

import (
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/login"
	"snap/internal/servertest"
)

// With auth.issuer set, login uses that provider, and the API takes the role and groups from its
// access tokens. The providers are oidc-provider and zitadel/oidc, third-party programs with their
// own scopes, endpoints and errors. The client learns about the provider in both ways: from the
// cloud service, and by --auth-url and --client-id.
func TestLoginAtAnotherAuthService(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		provider func(testing.TB, servertest.OIDC) string
		approve  func(*testing.T, login.Code)
	}{
		"oidc-provider": {servertest.OIDCProvider, approveAtOIDCProvider},
		"zitadel":       {servertest.Zitadel, approveAtZitadel},
	} {
		for _, pinned := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", pinned"}[pinned], func(t *testing.T) {
				t.Parallel()
				loginElsewhere(t, tc.provider, tc.approve, pinned)
			})
		}
	}
}

func approveAtOIDCProvider(t *testing.T, c login.Code) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	status, at, body := servertest.OIDCSignIn(t, &http.Client{Jar: jar}, c.Complete, "mia")
	if status != http.StatusOK || !strings.Contains(body, "Sign-in Success") {
		t.Fatalf("approval: %d at %s: %s", status, at, body)
	}
}

func approveAtZitadel(t *testing.T, c login.Code) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	h := &http.Client{Jar: jar}
	_, at, _ := servertest.OIDCSignIn(t, h, c.Complete, "mia")
	status, _, body := servertest.OIDCSignIn(t, h, at.Scheme+"://"+at.Host+"/device/confirm?action=allowed", "mia")
	if status != http.StatusOK || !strings.Contains(body, "authorization allowed") {
		t.Fatalf("approval: %d: %s", status, body)
	}
}

func loginElsewhere(t *testing.T, provider func(testing.TB, servertest.OIDC) string,
	approve func(*testing.T, login.Code), pinned bool) {
	t.Helper()
	public := freeURL(t)
	issuer := provider(t, servertest.OIDC{
		Redirect: public + "/auth/upstream/callback", Audience: public,
		Claims: map[string]map[string]any{"mia": {"groups": []string{"eng", "admins"}}},
	})
	d := &desk{t: t, clock: clocktest.New(time.Now()), dir: t.TempDir() + "/snapcli", wire: &wire{}}
	d.cloud = cloudtest.Start(t, cloudtest.Options{Config: func(c *cloud.Config) {
		c.Auth.Issuer, c.Auth.Audience = issuer, public
		c.Organizations[0].Users = nil
		c.Organizations[0].SignIn = cloud.SignIn{
			Type: "oidc", Issuer: issuer, ClientID: "snapcloud", ClientSecret: servertest.OIDCSecret,
			AllowPrivate: true,
			Roles:        map[snap.Role][]string{snap.RoleAdmin: {"admins"}},
		}
	}})
	d.onWait = func() { approve(t, d.codes[0]) }
	o := d.options()
	if pinned {
		o.AuthURL, o.ClientID = issuer, "snapcli"
	}
	s, err := login.Login(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s.AuthURL != issuer || s.Email != "mia@acme.test" || s.Organization != "acme" {
		t.Errorf("session %+v", s)
	}
	if len(d.notes) == 0 || !strings.Contains(d.notes[0], strings.TrimPrefix(issuer, "http://")) {
		t.Errorf("the other host was not named (A2): %v", d.notes)
	}
	me, err := d.me()
	if err != nil || me.Role != snap.RoleAdmin || len(me.Groups) != 2 {
		t.Fatalf("the API: %+v, %v", me, err)
	}
	before := s.AccessToken
	s, err = d.file().Refresh(t.Context(), d.cloud.URL, d.client())
	if err != nil || s.AccessToken == before {
		t.Fatalf("refresh: %v", err)
	}
	if me, err := d.me(); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the API after the refresh: %+v, %v", me, err)
	}
	if status := d.status(strings.TrimSuffix(s.AccessToken, s.AccessToken[len(s.AccessToken)-4:]) +
		"AAAA"); status != http.StatusUnauthorized {
		t.Errorf("a forged token: %d", status)
	}
	if ended, warning := login.Logout(t.Context(), d.file(), d.cloud.URL, d.client()); !ended || warning != nil {
		t.Errorf("logout: %v, %v", ended, warning)
	}
}

// --auth-url and --client-id pin the auth service: the cloud service is not
// asked for it.
func TestPinnedAuthService(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.options()
	o.AuthURL, o.ClientID = d.cloud.URL+"/auth", "snapcli"
	d.onWait = func() { d.decide("mia@acme.test", "approve") }
	if _, err := login.Login(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if d.wire.count("/api/v1/auth/config") != 0 {
		t.Error("the cloud service was asked")
	}
	o.ClientID = "unknown"
	if _, err := login.Login(t.Context(), o); snap.CodeOf(err) != snap.CodeForbidden ||
		!strings.Contains(err.Error(), "unknown") {
		t.Errorf("an unknown client: %v", err)
	}
}

func freeURL(t *testing.T) string {
	t.Helper()
	return "http://" + servertest.Address(t)
}

// A2: metadata that name another issuer or an unencrypted endpoint are refused. So are a redirect
// and an auth service without device grant.
func TestDiscoveryIsStrict(t *testing.T) {
	t.Parallel()
	metadata := func(changes ...string) string {
		text := `{"issuer":"ISSUER","device_authorization_endpoint":"ISSUER/device_authorization",` +
			`"token_endpoint":"ISSUER/token"}`
		for i := 0; i < len(changes); i += 2 {
			text = strings.Replace(text, changes[i], changes[i+1], 1)
		}
		return text
	}
	for name, tc := range map[string]struct {
		document string
		want     string
	}{
		"another issuer": {metadata("ISSUER", "https://evil.test"), "reports that its URL is https://evil.test"},
		"plain http":     {metadata("ISSUER/token", "http://evil.test/token"), "not encrypted"},
		"file":           {metadata("ISSUER/token", "file:///etc/passwd"), "not the URL"},
		"no device grant": {metadata(`"device_authorization_endpoint":"ISSUER/device_authorization",`,
			""), "no login by device code"},
		"not JSON":            {"<html>", "cannot read"},
		"a redirect (A2)":     {"redirect", "cannot read"},
		"control codes in it": {metadata("ISSUER", "https://evil\\u001b[2J.test"), "https://evil[2J.test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.wire.broken = func(r *http.Request) (*http.Response, error) {
				if !strings.Contains(r.URL.Path, "/.well-known/") {
					return nil, nil
				}
				if tc.document == "redirect" {
					res := reply(r, http.StatusFound, "")
					res.Header.Set("Location", d.cloud.URL+"/auth/.well-known/oauth-authorization-server")
					return res, nil
				}
				return reply(r, http.StatusOK, strings.ReplaceAll(tc.document, "ISSUER", d.cloud.URL+"/auth")), nil
			}
			_, err := login.Login(t.Context(), d.options())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// A5: a cloud service that suddenly names another auth service is not followed silently: the person
// is asked, and the login fails unless the person agrees.
func TestChangedAuthService(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.login("mia@acme.test")
	moved := strings.Replace(d.cloud.URL, "127.0.0.1", "localhost", 1) + "/auth"
	d.wire.broken = func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/api/v1/auth/config" {
			return reply(r, http.StatusOK, `{"auth_url":"`+moved+`","client_id":"snapcli","scopes":["openid"]}`), nil
		}
		return nil, nil
	}
	codes := len(d.codes)
	_, err := login.Login(t.Context(), d.options())
	if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), "another auth service") ||
		len(d.codes) != codes {
		t.Errorf("error %v, %d codes shown", err, len(d.codes)-codes)
	}
	d.confirm = true
	_, err = login.Login(t.Context(), d.options())
	if err == nil || !strings.Contains(err.Error(), "reports that its URL is") {
		t.Errorf("after yes: %v", err) // the service at that name is still the old one
	}
}

// The default scope is the cloud service's suggestion, limited to the scopes that the auth service
// knows. The value of --scope is sent unchanged.
func TestScope(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[string]string{"": "openid offline_access", "openid other": "openid other"} {
		d := newDesk(t)
		var sent []string
		d.wire.broken = func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/auth/device_authorization" {
				if err := r.ParseForm(); err != nil {
					return nil, err
				}
				sent = append(sent, r.PostFormValue("scope"))
				return reply(r, http.StatusBadRequest, `{"error":"invalid_scope"}`), nil
			}
			return nil, nil
		}
		o := d.options()
		o.Scope = wanted
		if _, err := login.Login(t.Context(), o); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("a refused scope: %v", err)
		}
		if !slices.Equal(sent, []string{want}) {
			t.Errorf("scope %q was sent as %q", wanted, sent)
		}
	}
}
