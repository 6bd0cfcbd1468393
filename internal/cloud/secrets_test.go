package cloud_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// TestNoSecretInTheLog (SPEC 4.3: no secret in a log) plays a day of the service, including
// failures, at the level debug. No line of the log contains a secret that passed the wire in either
// direction.
func TestNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	wire := &secretsOnTheWire{seen: map[string]bool{}}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	defer receiver.Close()
	c := cloudtest.Start(t, cloudtest.Options{Log: &log, Wrap: wire.watch, Config: func(o *cloud.Config) {
		o.Webhooks.AllowPrivate = true
		o.Auth.KeyEncryptionKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	}})
	wire.add("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "mia-password")
	aDay(t, c, receiver.URL+"/hook?token=of-the-receiver")
	wire.add("of-the-receiver")
	said := log.String()
	if !strings.Contains(said, "request_id=") || !strings.Contains(said, "status=401") {
		t.Fatalf("the log has no requests: %.300s", said)
	}
	if len(wire.seen) < 25 {
		t.Errorf("only %d secrets were on the wire; is the test looking in the right place?", len(wire.seen))
	}
	for secret := range wire.seen {
		if strings.Contains(said, secret) {
			at := strings.Index(said, secret)
			t.Errorf("the log has the secret %q: ...%s...", secret,
				said[max(0, at-120):min(len(said), at+len(secret)+40)])
		}
	}
}

// aDay uses every kind of credential, rightly and wrongly.
func aDay(t *testing.T, c *cloudtest.Cloud, hook string) {
	ctx := context.Background()
	alice, mia := c.As("alice@acme.test"), c.SignedIn("mia@acme.test")
	admin := c.SignedIn("alice@acme.test")
	if _, err := admin.AddWebhook(ctx, api.WebhookRequest{URL: hook}); err != nil {
		t.Fatal(err)
	}
	sn := c.Push(alice, "shop", bytes.Repeat([]byte("secret rows "), 1000))
	if _, err := alice.Share(ctx, sn.ID); err != nil {
		t.Fatal(err)
	}
	pull, err := mia.Pull(ctx, sn.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{pull.URL, pull.URL + "x", c.URL + "/auth/nothing?token=crt_SOMETHINGSECRETHERE",
		c.URL + "/blobs/parts/crt_SOMETHINGSECRETTOO"} {
		exchange(t, http.MethodGet, url, "")
	}
	exchange(t, http.MethodPut, c.URL+"/blobs/parts/crt_APARTTHATISNOTONE", "")
	for _, key := range []string{"cak_0000000000000000000000000000000000000a", "Bearer", c.RevokedKey("acme"),
		"eyJhbGciOiJub25lIn0.e30.", c.OrgKey("acme", snap.PipelineKey, snap.ScopePull)} {
		_, _ = c.Client(key).Snapshots(ctx, api.ListOptions{Q: "x"})
	}
	if _, err := admin.NewKey(ctx, api.KeyRequest{Name: "mine", Kind: snap.UserKey}); err != nil {
		t.Fatal(err)
	}
	refreshAndReuse(t, c)
	post(t, c.URL+"/auth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"snapcli"},
		"refresh_token": {"crt_ATOKENTHATNEVERWAS"}})
	post(t, c.URL+"/auth/revoke", url.Values{"client_id": {"snapcli"}, "token": {"crt_ANOTHERTHATNEVERWAS"}})
	if _, err := c.Service.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Store.Close(); err != nil { // every response from now on is an internal error
		t.Fatal(err)
	}
	_, _ = alice.Snapshots(ctx, api.ListOptions{})
	exchange(t, http.MethodGet, pull.URL, "")
	post(t, c.URL+"/auth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"snapcli"},
		"refresh_token": {"crt_NODATABASEFORTHIS"}})
}

// refreshAndReuse signs in, refreshes, and uses the old refresh token again.
func refreshAndReuse(t *testing.T, c *cloudtest.Cloud) {
	begun := post(t, c.URL+"/auth/device_authorization",
		url.Values{"client_id": {"snapcli"}, "scope": {"openid offline_access"}})
	code := jsonString(begun, "user_code")
	b := c.Browser()
	b.SignIn("gus@acme.test")
	b.Submit("/auth/device/confirm?user_code="+code, "/auth/device/confirm",
		url.Values{"user_code": {code}, "decision": {"approve"}})
	tokens := post(t, c.URL+"/auth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"snapcli"},
		"device_code": {jsonString(begun, "device_code")},
	})
	again := url.Values{"grant_type": {"refresh_token"}, "client_id": {"snapcli"},
		"refresh_token": {jsonString(tokens, "refresh_token")}}
	if again.Get("refresh_token") == "" {
		t.Fatalf("no refresh token: %s", tokens)
	}
	next := jsonString(post(t, c.URL+"/auth/token", again), "refresh_token")
	post(t, c.URL+"/auth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"snapcli"},
		"refresh_token": {next}})
	post(t, c.URL+"/auth/token", again)
}

func jsonString(text, name string) string {
	if found := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

func post(t *testing.T, target string, form url.Values) string {
	t.Helper()
	return exchange(t, http.MethodPost, target, form.Encode())
}

func exchange(t *testing.T, method, target, form string) string {
	t.Helper()
	req, err := http.NewRequest(method, target, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// secretsOnTheWire is a proxy that remembers the secrets in every request and response.
type secretsOnTheWire struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (s *secretsOnTheWire) add(all ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range all {
		if len(secret) > 7 { // shorter ones are words
			s.seen[secret] = true
		}
	}
}

var (
	secretInForm = regexp.MustCompile(`(?:^|&)(?:password|device_code|refresh_token|token|` +
		`csrf_token|user_code|code)=([^&]+)`)
	secretInJSON = regexp.MustCompile(`"(?:access_token|refresh_token|id_token|device_code|user_code|secret|key|` +
		`csrf_token)":\s*"([^"]+)"`)
	secretAtAll = regexp.MustCompile(`\b(?:cak|clt|sak|crt|whsec)_[0-9A-Za-z+/=]{12,}` +
		`|/blobs/(?:parts/)?([^/?"\s]{8,})|name="csrf_token" value="([^"]+)"`)
)

func (s *secretsOnTheWire) note(text string) {
	for _, pattern := range []*regexp.Regexp{secretInForm, secretInJSON, secretAtAll} {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			for i, group := range found {
				if i > 0 || strings.Contains(group, "_") && !strings.ContainsAny(group, `/"&=`) {
					s.add(group)
				}
			}
		}
	}
}

func (s *secretsOnTheWire) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.note(r.URL.RequestURI())
		s.note(r.URL.RawQuery)
		s.note(string(body))
		s.add(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		for _, cookie := range r.Cookies() {
			s.add(cookie.Value)
		}
		out := httptest.NewRecorder()
		next.ServeHTTP(out, r)
		s.note(out.Body.String())
		res := out.Result()
		for _, cookie := range res.Cookies() {
			s.add(cookie.Value)
		}
		for name, values := range res.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(out.Body.Bytes())
	})
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
