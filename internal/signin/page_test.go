package signin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/signin"
)

// F2: after the sign-in, a browser is redirected only to our own pages.
func TestNextIsALocalPath(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, next := range []string{
		"https://evil.test/", "//evil.test/",
		`/\evil.test`, `/auth/\evil.test`, "/auth//evil.test", "/auth/../evil", "javascript:alert(1)",
		"/auth@evil.test", "/authevil", "", "/other", "/auth/account\r\nX: y", "http:/auth/account",
	} {
		b := h.browser()
		b.c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		a := b.submit(b.get("/auth/signin"), "/auth/signin", "next", next, "email", "mia@acme.test", "password",
			"mia-password")
		if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != "/auth/account" {
			t.Errorf("next %q leads to %q (%d)", next, got, a.status)
		}
	}
	for _, next := range []string{"/auth/device/confirm?user_code=BCDF-GHJK", "/requests", "/snapshots/snap_x",
		"/console/audit?action=share"} {
		b := h.browser()
		a := b.submit(b.get("/auth/signin"), "/auth/signin", "next", next, "email", "mia@acme.test", "password",
			"mia-password")
		if a.url.RequestURI() != next {
			t.Errorf("the local path %q was not followed: %s", next, a.url)
		}
	}
}

// With several organizations, the person chooses; the e-mail decides when the
// form does not.
func TestChoiceOfTheOrganization(t *testing.T) {
	t.Parallel()
	twice := globex()
	twice.Local = append(twice.Local, signin.LocalUser{Email: "mia@acme.test", Password: "other-password",
		Role: snap.RoleViewer})
	h := startListed(t, acme(), twice)
	page := h.browser().get("/auth/signin")
	for _, want := range []string{`<option value="acme"`, `<option value="globex"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("no choice %s", want)
		}
	}
	for _, tc := range []struct {
		org, email, password, want string
	}{
		{"acme", "mia@acme.test", "mia-password", "Acme (acme)"},
		{"globex", "mia@acme.test", "other-password", "Globex (globex)"},
		{"", "gail@globex.test", "gail-password", "Globex (globex)"},
		{"", "Gail@Globex.test ", "gail-password", "Globex (globex)"},
		{"", "mia@acme.test", "mia-password", "E-mail or password is wrong"},
		{"acme", "gail@globex.test", "gail-password", "E-mail or password is wrong"},
		{"globex", "mia@acme.test", "mia-password", "E-mail or password is wrong"},
		{"nowhere", "mia@acme.test", "mia-password", "E-mail or password is wrong"},
		{"acme", "mia@acme.test", "", "E-mail or password is wrong"},
		{"acme", "", "", "E-mail or password is wrong"},
	} {
		b := h.browser()
		a := b.submit(b.get("/auth/signin"), "/auth/signin", "organization", tc.org, "email", tc.email, "password",
			tc.password)
		if !strings.Contains(a.body, tc.want) {
			t.Errorf("%s at %q: page without %q (%d)", tc.email, tc.org, tc.want, a.status)
		}
	}
}

// Guessing a password is stopped, only for that account.
func TestGuessingPasswordsIsStopped(t *testing.T) {
	t.Parallel()
	h := start(t)
	b := h.browser()
	var last answer
	for range 6 {
		last = b.signIn("mia@acme.test", "guess")
	}
	if last.status != http.StatusTooManyRequests {
		t.Errorf("the sixth guess: %d", last.status)
	}
	if a := b.signIn("mia@acme.test", "mia-password"); a.status != http.StatusTooManyRequests {
		t.Errorf("the right password after six guesses: %d", a.status)
	}
	if a := h.browser().signIn("alice@acme.test", "alice-password"); a.url.Path != "/auth/account" {
		t.Errorf("another account: %d", a.status)
	}
	h.clock.Advance(10 * time.Minute)
	if a := b.signIn("mia@acme.test", "mia-password"); a.url.Path != "/auth/account" {
		t.Errorf("ten minutes later: %d", a.status)
	}
}

// Wrong passwords from one address lock the right person out only at that address. Wrong passwords
// from very many addresses lock everybody out of the account.
func TestOthersCannotLockAnAccount(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	h := start(t)
	b := h.browser()
	csrf := csrfField.FindStringSubmatch(b.get("/auth/signin").body)[1]
	guess := func(address string) int {
		r := httptest.NewRequest(http.MethodPost, h.url+"/auth/signin", strings.NewReader(form([]string{
			"email", "mia@acme.test", "password", "guess", "csrf_token", csrf,
		}).Encode()))
		for _, c := range b.c.Jar.Cookies(mustURL(t, h.url)) {
			r.AddCookie(c)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.RemoteAddr = address + ":1234"
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 6 {
		if status := guess("192.0.2.1"); (status == http.StatusTooManyRequests) != (i == 5) {
			t.Fatalf("guess %d from one address: %d", i+1, status)
		}
	}
	if a := h.browser().signIn("mia@acme.test", "mia-password"); a.url.Path != "/auth/account" {
		t.Errorf("the right person elsewhere: %d", a.status)
	}
	for i := range 195 { // with the five that were judged, 200
		if status := guess(fmt.Sprintf("198.51.100.%d", i/5)); status != http.StatusUnauthorized {
			t.Fatalf("guess %d from many addresses: %d", i+1, status)
		}
	}
	if a := h.browser().signIn("mia@acme.test", "mia-password"); a.status != http.StatusTooManyRequests {
		t.Errorf("after 200 wrong passwords from 40 addresses: %d", a.status)
	}
}

// D11: an organization can disable device login.
func TestDeviceLoginSwitchedOff(t *testing.T) {
	t.Parallel()
	h := start(t)
	if _, err := h.store.ApplyOrg(t.Context(), "acme", "Acme", snap.Policy{NoDeviceLogin: true}); err != nil {
		t.Fatal(err)
	}
	deviceCode, userCode := h.device()
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	page := b.submit(b.get("/auth/device/confirm?user_code="+userCode), "/auth/device/confirm", "user_code", userCode,
		"decision", "approve")
	if page.status != http.StatusForbidden || !strings.Contains(page.body, "does not allow login from a terminal") {
		t.Errorf("page: %d %s", page.status, page.body)
	}
	wantError(t, h.poll(deviceCode), "access_denied")
}

// D10: the account page lists and ends sessions, makes and revokes keys; a
// key's secret is shown once.
func TestAccountPage(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.login("mia@acme.test", "mia-password")
	b := h.browser()
	page := b.signIn("mia@acme.test", "mia-password")
	for _, want := range []string{"mia@acme.test", "member", "eng", "snapcli test on laptop", "this browser", "as of"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	page = b.submit(page, "/auth/account/keys", "name", "ci at home", "expires", "30d", "from", "10.0.0.0/99")
	for _, want := range []string{`value="ci at home"`, `value="10.0.0.0/99"`, `value="30d" selected`, `role="alert"`} {
		if page.status != http.StatusBadRequest || !strings.Contains(page.body, want) {
			t.Errorf("a wrong network: %d, and the page has no %s", page.status, want)
		}
	}
	page = b.submit(page, "/auth/account/keys", "name", "ci", "expires", "30d")
	secret := regexp.MustCompile(`cak_[0-9A-Za-z]{38}`).FindString(page.body)
	if page.status != http.StatusCreated || secret == "" {
		t.Fatalf("no key: %d %s", page.status, page.body)
	}
	asAgent := func() answer { return h.get("/api/agent", "X-API-Key", secret) }
	if a := asAgent(); a.body != "mia@acme.test member" {
		t.Errorf("the key calls as %q", a.body)
	}
	page = b.get("/auth/account")
	if strings.Contains(page.body, secret) || !strings.Contains(page.body, secret[:8]+"..."+secret[38:]) {
		t.Error("the account page shows the secret, or not its hint")
	}
	id := regexp.MustCompile(`keys/revoke"><input type="hidden" name="csrf_token" value="[^"]+">` +
		`<input type="hidden" name="id" value="(\d+)"`).FindStringSubmatch(page.body)[1]
	other := h.browser()
	ids := regexp.MustCompile(`name="id" value="(\d+)"`)
	theirs := ids.FindStringSubmatch(other.signIn("alice@acme.test", "alice-password").body)[1]
	if a := b.submit(page, "/auth/account/sessions/end", "id", theirs); a.status != http.StatusNotFound {
		t.Errorf("ending someone else's session: %d", a.status)
	}
	b.submit(page, "/auth/account/keys/revoke", "id", id)
	if a := asAgent(); a.status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", a.status)
	}
}

// S4: after signing out, a copied cookie opens nothing.
func TestSignOut(t *testing.T) {
	t.Parallel()
	h := start(t)
	b := h.browser()
	page := b.signIn("mia@acme.test", "mia-password")
	thief := h.browser()
	thief.c.Jar.SetCookies(mustURL(t, h.url), b.c.Jar.Cookies(mustURL(t, h.url)))
	if a := thief.get("/api/user"); a.status != http.StatusOK {
		t.Fatalf("the copied cookie before: %d", a.status)
	}
	b.submit(page, "/auth/signout")
	if a := thief.get("/api/user"); a.status != http.StatusUnauthorized {
		t.Errorf("the copied cookie after: %d", a.status)
	}
	if a := b.submit(page, "/auth/account/keys", "name", "ci"); !strings.Contains(a.body, `name="password"`) {
		t.Errorf("a form of the ended session: %d %s", a.status, a.body)
	}
}

// Every page is safe in a browser, errors included, and errors are pages.
func TestEveryPageIsSafe(t *testing.T) {
	t.Parallel()
	h := start(t)
	in := h.browser()
	in.signIn("mia@acme.test", "mia-password")
	for path, want := range map[string]int{
		"/auth/device": 200, "/auth/device?user_code=%22%3E%3Cscript%3E": 200, "/auth/signin": 200,
		"/auth/account": 200,
		"/auth/device/confirm?user_code=BBBB-BBBB": 404, "/auth/device/done?decision=approve": 200,
		"/auth/nothing":                     404,
		"/auth/signin?organization=%3Cb%3E": 404,
	} {
		a := in.get(path)
		if a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
		for name, value := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Type": "text/html; charset=utf-8",
		} {
			if got := a.header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
		if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no strict policy", path)
		}
		if strings.Contains(a.body, "<script") || strings.Contains(a.body, "style=") ||
			strings.Contains(a.body, "<b>") {
			t.Errorf("%s: script or inline style", path)
		}
	}
}

// The configuration of local users is applied at every start, as if each had just signed in: a
// changed role or group takes effect.
func TestLocalUsersAreAppliedAtEveryStart(t *testing.T) {
	t.Parallel()
	h := start(t)
	org, err := h.store.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	changed := acme()
	changed.Local[1].Role, changed.Local[1].Groups = snap.RoleViewer, []string{"dba"}
	h.serve([]signin.Organization{changed})
	m, err := h.store.UserByEmail(t.Context(), org.ID, "mia@acme.test")
	if err != nil || m.Role != snap.RoleViewer || len(m.Groups) != 1 || m.Groups[0].GroupID != "dba" {
		t.Errorf("mia after the restart: %+v, %v", m, err)
	}
}

// A local user who is no longer listed is locked out, with every session and key.
func TestUnlistedLocalUsersAreLockedOut(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	shorter := acme()
	shorter.Local = shorter.Local[:1]
	h.serve([]signin.Organization{shorter})
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	if a := h.browser().signIn("mia@acme.test", "mia-password"); a.status != http.StatusUnauthorized {
		t.Errorf("sign-in: %d", a.status)
	}
	if m, err := h.member("acme", "mia@acme.test"); err != nil || !m.Disabled {
		t.Errorf("the account: %+v, %v", m, err)
	}
	if m, err := h.member("acme", "alice@acme.test"); err != nil || m.Disabled {
		t.Errorf("another account: %+v, %v", m, err)
	}
	h.serve([]signin.Organization{acme()})
	tokensOf(t, h.refresh(got.refresh)) // listed again, the user continues as before
}

// A user whom the operator disabled stays disabled, however the configuration lists them.
func TestDisabledLocalUsersStayDisabled(t *testing.T) {
	t.Parallel()
	h := start(t)
	shorter := acme()
	shorter.Local = shorter.Local[:1]
	for _, unlisted := range []bool{false, true} { // disabled before, and while, the user is not listed
		m, err := h.member("acme", "mia@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		if unlisted {
			h.serve([]signin.Organization{shorter})
		}
		if err := h.store.SetDisabled(t.Context(), m.ID, true); err != nil {
			t.Fatal(err)
		}
		h.serve([]signin.Organization{shorter})
		h.serve([]signin.Organization{acme()})
		if m, err := h.member("acme", "mia@acme.test"); err != nil || !m.Disabled {
			t.Errorf("disabled while unlisted %v: %+v, %v", unlisted, m, err)
		}
		if err := h.store.SetDisabled(t.Context(), m.ID, false); err != nil {
			t.Fatal(err)
		}
	}
}

// While an organization is closed, none of its members is signed in anywhere.
// When it is open again, browsers and terminals continue as before.
func TestClosedOrganizationIsSignedOut(t *testing.T) {
	t.Parallel()
	h := start(t)
	got, b := h.login("mia@acme.test", "mia-password"), h.browser()
	b.signIn("mia@acme.test", "mia-password")
	closeAllBut := func(slugs ...string) {
		t.Helper()
		if err := h.store.CloseAllBut(t.Context(), slugs); err != nil {
			t.Fatal(err)
		}
	}
	closeAllBut("globex")
	wantError(t, h.refresh(got.refresh), "unauthorized_client")
	_, userCode := h.device()
	for _, a := range []answer{b.get("/auth/account"),
		b.submit(b.get("/auth/device"), "/auth/device", "user_code", userCode)} {
		if a.url.Path != "/auth/signin" {
			t.Errorf("the browser is let in to %s", a.url)
		}
	}
	if a := b.get("/api/user"); a.status != http.StatusUnauthorized {
		t.Errorf("the cookie: %d", a.status)
	}
	if a := h.api(got.access); a.status != http.StatusUnauthorized {
		t.Errorf("the access token: %d", a.status)
	}
	if a := h.browser().signIn("mia@acme.test", "mia-password"); a.status != http.StatusForbidden {
		t.Errorf("a sign-in at a replica that still lists it: %d", a.status)
	}
	closeAllBut("acme")
	if a := h.api(tokensOf(t, h.refresh(got.refresh)).access); a.status != http.StatusOK {
		t.Errorf("open again, the terminal: %d", a.status)
	}
	if a := b.get("/auth/account"); a.url.Path != "/auth/account" {
		t.Errorf("open again, the browser is at %s", a.url)
	}
}

// D1: user codes have 34 bits and more, in an alphabet without vowels, and
// case, dashes and spaces do not matter.
func TestUserCodes(t *testing.T) {
	t.Parallel()
	h := start(t)
	_, userCode := h.device()
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(userCode) {
		t.Errorf("user code %q", userCode)
	}
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	lower := strings.ToLower(strings.ReplaceAll(userCode, "-", " "))
	for _, typed := range []string{lower, " " + lower + " ", strings.ReplaceAll(userCode, "-", ""),
		userCode[:2] + " - " +
			userCode[2:]} {
		a := b.submit(b.get("/auth/device"), "/auth/device", "user_code", typed)
		if a.url.Path != "/auth/device/confirm" || a.status != http.StatusOK {
			t.Errorf("%q was not understood: %d", typed, a.status)
		}
	}
	if a := b.submit(b.get("/auth/device"), "/auth/device", "user_code", "BCDF-GHJK"); !strings.Contains(a.body,
		"run <code>snapcli login</code> again.") {
		t.Errorf("an unknown code: %s", a.body)
	}
}

// D12: waiting logins are limited by address, and removed after they expire.
func TestWaitingLoginsAreLimited(t *testing.T) {
	t.Parallel()
	h := start(t)
	refused := 0
	for range 1000 {
		if a := h.post("/device_authorization", "client_id", "snapcli"); a.status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 950 {
		t.Errorf("%d of 1000 refused, want 950", refused)
	}
	h.clock.Advance(10 * time.Minute)
	h.device()
	h.clock.Advance(2 * time.Hour)
	h.device()
	n, err := h.store.DeviceGrants(t.Context())
	if err != nil || n != 1 {
		t.Errorf("%d rows are left, want 1 (%v)", n, err)
	}
}

// With identity providers, people type the organization. It is not listed, so that the page does
// not reveal the customers. A wrong one can be corrected.
func TestOrganizationsAreNotListed(t *testing.T) {
	t.Parallel()
	h, _ := startWith(t, 2)
	b := h.browser()
	page := b.get("/auth/signin")
	if strings.Contains(page.body, "Globex") || !strings.Contains(page.body, `name="organization"`) {
		t.Errorf("the choice: %s", page.body)
	}
	if page := b.get("/auth/signin?organization=nowhere"); page.status != http.StatusNotFound ||
		!strings.Contains(page.body, "No organization here is known as nowhere.") {
		t.Errorf("an unknown organization: %d %s", page.status, page.body)
	}
	page = b.get("/auth/signin?organization=Acme&next=/auth/device")
	for _, want := range []string{"Sign in to Acme", "/auth/upstream/start?organization=acme", "Another organization"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page of acme does not say %q", want)
		}
	}
}

// Local organizations are not listed either, unless the operator wants that: a person types the
// slug, their e-mail or its domain.
func TestOrganizationByEMail(t *testing.T) {
	t.Parallel()
	third := globex()
	third.Slug, third.Domains, third.Local = "initech", []string{"Initech.example"},
		[]signin.LocalUser{{Email: "ian@globex.test", Password: "ian-password", Role: snap.RoleOwner}}
	h := start(t, acme(), globex(), third)
	b := h.browser()
	page := b.get("/auth/signin")
	for _, name := range []string{"Acme", "Globex", "globex", "Initech"} {
		if strings.Contains(page.body, name) {
			t.Errorf("the page names %s: %s", name, page.body)
		}
	}
	for typed, want := range map[string]string{
		"acme": "Sign in to Acme", "Mia@Acme.test": "Sign in to Acme", "acme.test": "Sign in to Acme",
		"someone@initech.example": "Sign in to Initech", "globex": "Sign in to Globex",
		"gail@globex.test": "No organization here is known as", // two organizations have this domain
		"hooli.test":       "No organization here is known as",
	} {
		page := b.get("/auth/signin?organization=" + url.QueryEscape(typed))
		if !strings.Contains(page.body, want) {
			t.Errorf("%s: no %q in %s", typed, want, page.body)
		}
	}
	page = b.get("/auth/signin?organization=mia@acme.test")
	if a := b.submit(page, "/auth/signin", "organization", "acme", "email", "mia@acme.test", "password",
		"mia-password"); !strings.Contains(a.body, "Acme (acme)") {
		t.Errorf("signed in: %s", a.body)
	}
}
