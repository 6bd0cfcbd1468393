package cloud_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// FuzzAPI checks that any request to any route gets the route's response or a problem of the error
// table, never an internal error.
func FuzzAPI(f *testing.F) {
	c := cloudtest.Start(f, cloudtest.Options{})
	key := c.Key("alice@acme.test")
	id := newScene(f, c).id
	routes := c.Service.Routes()
	for i := range routes {
		f.Add(i, id, "limit=3", []byte(`{"name":"x","target":"shop","expires_at":"2030-01-01T00:00:00Z"}`))
	}
	f.Add(0, "%00", "q=%25&cursor=AQAAAAAAAAAA&filter=shared", []byte(`{`))
	f.Add(1, "..", "", []byte(`{"target":"\u0000","size":-1,"sha256":"zz","type":5}`))
	f.Add(2, "snap_", "user=a@b", []byte(`{"parts":[{"number":0,"crc64":"é"},{"number":9999999999999999999}]}`))
	f.Add(3, "1", "at=x", []byte(`{"slug":"globex","expires_at":"9999-12-31T23:59:59+23:59","group_id":"\ud800"}`))
	f.Add(4, "9223372036854775808", "", []byte(`{"url":"https://[::1]:x/","events":["x"],"keep_last":1e99}`))
	f.Fuzz(func(t *testing.T, n int, at, query string, body []byte) {
		method, pattern, _ := strings.Cut(routes[((n%len(routes))+len(routes))%len(routes)], " ")
		path := pattern
		for strings.Contains(path, "{") {
			before, rest, _ := strings.Cut(path, "{")
			_, after, _ := strings.Cut(rest, "}")
			path = before + url.PathEscape(at) + after
		}
		u := &url.URL{Path: "/", RawQuery: query}
		r, err := http.NewRequestWithContext(t.Context(), method, u.String(), bytes.NewReader(body))
		if err != nil {
			return
		}
		if r.URL, err = url.Parse(api.MountAgent + path); err != nil {
			return
		}
		r.URL.RawQuery = query
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		c.Service.Handler().ServeHTTP(out, r)
		if out.Code < 200 || out.Code >= 500 {
			t.Fatalf("%s %s?%s %q: %d %s", method, r.URL.Path, query, body, out.Code, out.Body)
		}
		if out.Code < 400 {
			return
		}
		var problem api.Problem
		if err := json.Unmarshal(out.Body.Bytes(), &problem); err != nil || problem.Code == "" ||
			problem.Status != out.Code {
			t.Fatalf("%s %s?%s %q: %d %s is no problem, %v", method, r.URL.Path, query, body, out.Code, out.Body, err)
		}
	})
}

// FuzzDownloadToken checks that only the service can make a download link.
func FuzzDownloadToken(f *testing.F) {
	c := cloudtest.Start(f, cloudtest.Options{})
	id := newScene(f, c).id
	pull, err := c.As("mia@acme.test").Pull(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	good := strings.TrimPrefix(pull.URL, c.URL+"/blobs/")
	for _, seed := range []string{good, good + "=", good[1:], strings.ToUpper(good), ".", "",
		"e30." + strings.Repeat("A", 43), "%", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: "/blobs/" + token}
		out := httptest.NewRecorder()
		c.Service.Handler().ServeHTTP(out, r)
		if token != good && out.Code < 300 && !strings.Contains(token, "/") || out.Code >= 500 {
			t.Fatalf("%q is answered with %d", token, out.Code)
		}
	})
}

// FuzzRange checks that any ranges and conditions (RFC 9110 section 14) get the whole snapshot,
// bytes that it contains, or status 304 or 416. Of a response with several ranges it checks only
// the size.
func FuzzRange(f *testing.F) {
	c := cloudtest.Start(f, cloudtest.Options{})
	var content []byte // in which no part is repeated at another offset
	for i := range 250 {
		content = fmt.Appendf(content, "%04d", i)
	}
	sn := c.Push(c.As("mia@acme.test"), "shop", content)
	pull, err := c.As("mia@acme.test").Pull(f.Context(), sn.ID)
	if err != nil {
		f.Fatal(err)
	}
	tag := `"` + sn.SHA256 + `"`
	for _, seed := range []string{"bytes=0-9", "bytes=-5", "bytes=990-", "bytes=0-0,5-6", "bytes=9-0", "bytes=99999-",
		"items=1-2", "bytes=0-18446744073709551616", "bytes=", "bytes=0-9,0-9,0-9,0-9"} {
		f.Add(seed, tag, "")
		f.Add(seed, `W/`+tag, tag)
	}
	f.Fuzz(func(t *testing.T, ranges, ifRange, ifNoneMatch string) {
		r := httptest.NewRequest(http.MethodGet, pull.URL, nil)
		r.Header["Range"], r.Header["If-Range"], r.Header["If-None-Match"] = []string{ranges}, []string{ifRange},
			[]string{ifNoneMatch}
		out := httptest.NewRecorder()
		c.Service.Handler().ServeHTTP(out, r)
		switch out.Code {
		case http.StatusOK:
			if !bytes.Equal(out.Body.Bytes(), content) {
				t.Fatalf("%q: %d bytes of %d", ranges, out.Body.Len(), len(content))
			}
		case http.StatusPartialContent:
			// net/http reads no further than the tag
			if ifRange != "" && !strings.HasPrefix(strings.TrimSpace(ifRange), tag) {
				t.Fatalf("a part although If-Range is %q", ifRange)
			}
			var first, last int
			span, several := out.Header().Get("Content-Range"),
				strings.HasPrefix(out.Header().Get("Content-Type"), "multipart/byteranges")
			if _, err := fmt.Sscanf(span, "bytes %d-%d/1000", &first, &last); !several && (err != nil ||
				!bytes.Equal(out.Body.Bytes(), content[first:last+1])) {
				t.Fatalf("%q: other bytes than the snapshot's %s", ranges, span)
			}
			if out.Body.Len() > 20*len(content)+20_000 {
				t.Fatalf("%q is answered with %d bytes", ranges, out.Body.Len())
			}
		case http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable:
		default:
			t.Fatalf("%q, %q, %q: %d", ranges, ifRange, ifNoneMatch, out.Code)
		}
	})
}

// FuzzConfig checks that any configuration and environment is either read or refused with an error
// for the operator.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "listen: 127.0.0.1:1",
		"organizations: [{slug: acme, sign_in: {type: local}, users: [{email: a, password: b}]}]",
		"limits: {max_snapshot_size: 1e99}",
		"a: &a [*a]", "database: {url: ${X}}", "trust_proxies: [10.0.0.0/8, x]",
		"organizations: [{slug: a, policy: {max_cross_org_expiry: 1w}}]", "tracing: {sample: .nan}",
		"organizations: {}",
		"[", "\x00", "auth: {key_encryption_key: AAAA}", "database: null",
	} {
		f.Add([]byte(seed), "SNAPCLOUD_DATABASE__URL=x")
	}
	f.Add([]byte(""), "SNAPCLOUD_ORGANIZATIONS=x")
	f.Add([]byte("x: 1"), "SNAPCLOUD_LIMITS=x")
	file := filepath.Join(f.TempDir(), "snapcloud.yaml")
	f.Fuzz(func(t *testing.T, text []byte, variable string) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := cloud.LoadConfig(file, []string{"X=postgres://x", variable})
		if err != nil && snap.CodeOf(err) != snap.CodeUsage {
			t.Fatalf("%q, %q: %v", text, variable, err)
		}
		if err == nil && c.Check() != nil {
			t.Fatalf("%q is accepted although %v", text, c.Check())
		}
	})
}

// FuzzWebhookURL checks that every accepted address of a webhook uses https and has no credentials.
func FuzzWebhookURL(f *testing.F) {
	for _, seed := range []string{"https://hooks.example/x", "http://x", "https://u:p@x", "https://", "javascript:x",
		"https://x\r\ny", "//x", "https://[::1]", "HTTPS://X", "https:x"} {
		f.Add(seed)
	}
	c := cloudtest.Start(f, cloudtest.Options{})
	alice := c.SignedIn("alice@acme.test")
	f.Fuzz(func(t *testing.T, raw string) {
		hook, err := alice.AddWebhook(t.Context(), api.WebhookRequest{URL: raw})
		if err != nil {
			if code := snap.CodeOf(err); code != snap.CodeInvalid && code != snap.CodeRateLimited {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if err := alice.DeleteWebhook(t.Context(), hook.ID); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(hook.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			t.Fatalf("%q is accepted", raw)
		}
	})
}

// FuzzForm checks that the endpoints for tokens, device authorization and revocation refuse a form
// only with an OAuth error (RFC 6749 section 5.2), never with a status of 500 or more.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"grant_type=refresh_token&client_id=snapcli&refresh_token=crt_x",
		"grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=snapcli&device_code=%00",
		"grant_type=refresh_token&grant_type=x", "%", "client_id=snapcli",
		"grant_type=refresh_token&client_id=snapcli&refresh_token=x&scope=admin", ";",
	} {
		f.Add("/auth/token", seed)
		f.Add("/auth/device_authorization", seed)
		f.Add("/auth/revoke", seed)
	}
	c := cloudtest.Start(f, cloudtest.Options{})
	f.Fuzz(func(t *testing.T, path, form string) {
		if path != "/auth/token" && path != "/auth/device_authorization" && path != "/auth/revoke" {
			return
		}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		out := httptest.NewRecorder()
		c.Service.Handler().ServeHTTP(out, r)
		var answer struct {
			Error string `json:"error"`
		}
		if out.Code >= 500 || out.Code >= 400 && (json.Unmarshal(out.Body.Bytes(), &answer) != nil ||
			answer.Error == "") {
			t.Fatalf("%s %q: %d %s", path, form, out.Code, out.Body)
		}
	})
}
