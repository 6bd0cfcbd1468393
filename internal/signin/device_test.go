package signin_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func wantError(t *testing.T, a answer, code string) {
	t.Helper()
	if a.status != http.StatusBadRequest || a.json(t)["error"] != code {
		t.Errorf("answer %d %s, want 400 %s", a.status, a.body, code)
	}
}

// The whole way: code, sign-in, approval, tokens, API, refresh, revocation.
func TestDeviceLoginEndToEnd(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	wantError(t, h.poll(deviceCode), "authorization_pending")
	h.browser().approve(userCode, "mia@acme.test", "mia-password")
	got := tokensOf(t, h.poll(deviceCode))
	if a := h.api(got.access); a.status != http.StatusOK || a.body != "mia@acme.test member" {
		t.Fatalf("API: %d %s", a.status, a.body)
	}
	next := tokensOf(t, h.refresh(got.refresh))
	if a := h.api(next.access); a.status != http.StatusOK {
		t.Fatalf("API after refresh: %d %s", a.status, a.body)
	}
	if a := h.post("/revoke", "client_id", "snapcli", "token", next.refresh); a.status != http.StatusOK {
		t.Fatalf("revoke: %d %s", a.status, a.body)
	}
	if a := h.api(next.access); a.status != http.StatusUnauthorized {
		t.Errorf("API after revocation: %d", a.status)
	}
}

// D3: a code lives ten minutes.
func TestDeviceCodeExpires(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	h.clock.Advance(10*time.Minute - time.Second)
	wantError(t, h.poll(deviceCode), "authorization_pending")
	h.clock.Advance(time.Second)
	wantError(t, h.poll(deviceCode), "expired_token")
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	if page := b.get("/auth/device/confirm?user_code=" + userCode); page.status != http.StatusNotFound {
		t.Errorf("confirm page of an expired code: %d", page.status)
	}
}

// D4: of 24 polls at once, one gets the tokens.
func TestApprovedCodeGivesTokensOnce(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	h.browser().approve(userCode, "mia@acme.test", "mia-password")
	var wg sync.WaitGroup
	answers := make([]answer, 24)
	for i := range answers {
		wg.Go(func() { answers[i] = h.poll(deviceCode) })
	}
	wg.Wait()
	won := 0
	for _, a := range answers {
		if a.status == http.StatusOK {
			won++
		} else {
			wantError(t, a, "invalid_grant")
		}
	}
	if won != 1 {
		t.Errorf("%d polls got tokens, want 1", won)
	}
	wantError(t, h.poll(deviceCode), "invalid_grant")
}

// D5: each fast poll adds five seconds; an approved code is never delayed.
func TestFastPollingSlowsDown(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	wantError(t, h.poll(deviceCode), "authorization_pending")
	wantError(t, h.poll(deviceCode), "slow_down")
	for _, early := range []time.Duration{6 * time.Second, 11 * time.Second, 16 * time.Second} { // waits: 7, 12, 17 s
		h.clock.Advance(early)
		wantError(t, h.poll(deviceCode), "slow_down")
	}
	h.clock.Advance(22 * time.Second)
	wantError(t, h.poll(deviceCode), "authorization_pending")
	h.browser().approve(userCode, "mia@acme.test", "mia-password")
	tokensOf(t, h.poll(deviceCode))
}

// D6: a device code belongs to its client.
func TestDeviceCodeIsBoundToItsClient(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, _ := h.device()
	a := h.post("/token", "grant_type", "urn:ietf:params:oauth:grant-type:device_code", "client_id", "other",
		"device_code", deviceCode)
	if a.status != http.StatusUnauthorized || a.json(t)["error"] != "invalid_client" {
		t.Errorf("another client: %d %s", a.status, a.body)
	}
	if a := h.post("/device_authorization", "client_id", "other"); a.status != http.StatusUnauthorized {
		t.Errorf("device authorization by another client: %d", a.status)
	}
}

// D7: a guesser is stopped after five wrong codes; legitimate users get in.
func TestGuessingCodesIsStopped(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	guesser := h.browser()
	guesser.signIn("mia@acme.test", "mia-password")
	var last answer
	for range 10 {
		last = guesser.submit(guesser.get("/auth/device"), "/auth/device", "user_code", "BBBB-BBBB")
	}
	if last.status != http.StatusTooManyRequests {
		t.Fatalf("the tenth wrong code: %d", last.status)
	}
	if page := guesser.get("/auth/device/confirm?user_code=" + userCode); page.status != http.StatusTooManyRequests {
		t.Errorf("the guesser with a right code: %d", page.status)
	}
	stranger := h.browser()
	if page := stranger.submit(stranger.get("/auth/device"), "/auth/device", "user_code",
		userCode); page.status != http.StatusTooManyRequests {
		t.Errorf("a stranger at the guesser's address: %d", page.status)
	}
	right := h.browser()
	right.signIn("alice@acme.test", "alice-password")
	right.approve(userCode, "", "")
	tokensOf(t, h.poll(deviceCode))
}

// D7: concurrent guesses reveal no more than sequential ones, and very many raise an alarm.
func TestParallelGuessesAreStopped(t *testing.T) {
	t.Parallel()
	h := start(t)
	b := h.browser()
	page := b.signIn("mia@acme.test", "mia-password")
	token := csrfField.FindStringSubmatch(page.body)[1]
	for range 99 { // one more raises the alarm
		if _, err := h.store.Miss(t.Context(), "code:all", 10*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	answers := make([]answer, 24)
	for i := range answers {
		wg.Go(func() { answers[i] = b.send("/auth/device", "csrf_token", token, "user_code", "BBBB-BBBB") })
	}
	wg.Wait()
	judged := 0
	for _, a := range answers {
		if a.status != http.StatusTooManyRequests {
			judged++
		}
	}
	if judged < 1 || judged > 5 {
		t.Errorf("%d guesses were answered, want at most 5", judged)
	}
	if !strings.Contains(h.log.String(), "someone is guessing") {
		t.Error("no alarm in the log")
	}
}

// D8: only a POST from our own page, by a signed-in browser with its CSRF
// token, approves.
func TestApprovalTakesTheWholeForm(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	page := b.get("/auth/device/confirm?user_code=" + userCode)
	token := csrfField.FindStringSubmatch(page.body)[1]
	other := h.browser()
	otherToken := csrfField.FindStringSubmatch(other.get("/auth/device").body)[1]
	approve := []string{"user_code", userCode, "decision", "approve"}
	attempts := map[string]func() answer{
		"GET": func() answer {
			return b.get("/auth/device/confirm?decision=approve&csrf_token=" + token + "&user_code=" + userCode)
		},
		"no CSRF token": func() answer { return b.send("/auth/device/confirm", approve...) },
		"wrong CSRF token": func() answer {
			return b.send("/auth/device/confirm",
				append(approve, "csrf_token", token+"x")...)
		},
		"another browser's token": func() answer {
			return b.send("/auth/device/confirm",
				append(approve, "csrf_token", otherToken)...)
		},
		"not signed in": func() answer {
			return other.send("/auth/device/confirm",
				append(approve, "csrf_token", otherToken)...)
		},
		"from another site": func() answer {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/auth/device/confirm",
				strings.NewReader(form(append(approve, "csrf_token", token)).Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "https://evil.test")
			return h.do(b.c, r)
		},
	}
	for name, attempt := range attempts {
		if a := attempt(); strings.Contains(a.body, "<h1>Approved") {
			t.Errorf("%s: approved", name)
		}
		h.clock.Advance(5 * time.Second)
		wantError(t, h.poll(deviceCode), "authorization_pending")
	}
	b.approve(userCode, "", "")
	tokensOf(t, h.poll(deviceCode))
}

// D9: the page shows the code to compare, approves nothing by itself and cannot be framed.
func TestConfirmPage(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	page := b.get("/auth/device/confirm?user_code=" + userCode)
	for _, want := range []string{userCode, "snapcli test", "laptop", "127.0.0.1", "20 Nov 2026, 09:00 UTC",
		"only if you started", "mia@acme.test", "use the cloud service as you"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if page.header.Get("X-Frame-Options") != "DENY" ||
		!strings.Contains(page.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the page can be framed: %v", page.header)
	}
	if strings.Contains(page.body, "<script") || regexp.MustCompile(`\son[a-z]+=|style=`).MatchString(page.body) {
		t.Error("the page has script or inline style")
	}
	narrow, _ := h.post("/device_authorization", "client_id", "snapcli", "scope",
		"openid").json(t)["user_code"].(string)
	if page := b.get("/auth/device/confirm?user_code=" + narrow); !strings.Contains(page.body,
		"stay signed in until you sign it out; see your name and e-mail") {
		t.Error("the page does not say what every login may do, whatever its scopes are")
	}
	b.get("/auth/device?user_code=" + userCode)
	h.clock.Advance(5 * time.Second)
	wantError(t, h.poll(deviceCode), "authorization_pending")
}

// The program learns that a login was denied.
func TestDeny(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	b.submit(b.get("/auth/device/confirm?user_code="+userCode), "/auth/device/confirm", "user_code", userCode,
		"decision",
		"deny")
	wantError(t, h.poll(deviceCode), "access_denied")
}

// RFC 6749 section 5.2: a scope that does not exist is refused at once.
func TestUnknownScope(t *testing.T) {
	t.Parallel()
	h := start(t)
	wantError(t, h.post("/device_authorization", "client_id", "snapcli", "scope", "openid admin"), "invalid_scope")
	if a := h.post("/device_authorization", "client_id", "snapcli", "scope",
		"openid offline_access"); a.status != http.StatusOK {
		t.Errorf("known scopes: %d %s", a.status, a.body)
	}
}
