package cloud_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// TestMetricsPage compares the table in docs/operations.md with the program: it has every metric of
// ours with its labels, and no other.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	page, err := os.ReadFile(filepath.Join(servertest.Root(t), "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:snapcloud|go_sql)_[a-z0-9_]+)` \\| ([^|]*) "+
		"\\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = strings.ReplaceAll(strings.TrimSpace(row[2]), "`", "")
	}
	described := make(chan *prometheus.Desc)
	go func() { c.Service.Registry().Describe(described); close(described) }()
	format := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	exists := map[string]bool{}
	for d := range described {
		found := format.FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("a description reads differently now: %s", d)
		}
		name, labels := found[1], strings.ReplaceAll(found[2], ",", ", ")
		if !strings.HasPrefix(name, "snapcloud_") && !strings.HasPrefix(name, "go_sql_") {
			continue
		}
		exists[name] = true
		if strings.HasPrefix(name, "go_sql_") {
			labels = "db_name" // a constant of each pool
		}
		if has, is := documented[name]; !is || has != labels {
			t.Errorf("docs/operations.md says %q of the labels of %s, which are %q", documented[name], name, labels)
		}
	}
	for name := range documented {
		if !exists[name] {
			t.Errorf("docs/operations.md names %s, which is not there", name)
		}
	}
}

// TestMetricNames checks the names against the conventions of Prometheus: counters, and no others,
// end with _total, and histograms end with _seconds.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	useEverything(t, c)
	for _, line := range strings.Split(metrics(t, c), "\n") {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "# TYPE snapcloud_") || len(fields) != 4 {
			continue
		}
		name, kind := fields[2], fields[3]
		if (kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, kind)
		}
		if kind == "histogram" && !strings.HasSuffix(name, "_seconds") {
			t.Errorf("the histogram %s has no unit", name)
		}
	}
}

// TestMetricsCount: the metrics count the actions of the test.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	useEverything(t, c)
	// A request counts when its handler ends, which may be after its client has the response.
	waitFor(t, func() bool { return strings.Contains(metrics(t, c), "snapcloud_http_requests_in_flight 0\n") })
	said := metrics(t, c)
	for _, want := range []string{
		`snapcloud_pushes_total 1`,
		`snapcloud_pushed_bytes_total 5000`,
		`snapcloud_pulls_total 1`,
		`snapcloud_transfer_bytes_total{direction="up"} 5000`,
		`snapcloud_transfer_bytes_total{direction="down"} 5000`,
		`snapcloud_logins_total{door="device",outcome="ok"} 1`,
		`snapcloud_logins_total{door="exchange",outcome="ok"} 0`,
		`snapcloud_logins_total{door="device",outcome="wrong"} 1`,
		`snapcloud_logins_total{door="password",outcome="ok"} 1`,
		`snapcloud_logins_total{door="password",outcome="wrong"} 1`,
		`snapcloud_logins_total{door="refresh",outcome="expired"} 1`,
		`snapcloud_http_requests_total{route="POST /api/v1/agents/snapshots/{id}/pull",status="200"} 1`,
		`snapcloud_http_requests_total{route="GET /api/v1/agents/snapshots/{id}",status="404"} 1`,
		`snapcloud_http_requests_total{route="none",status="404"} 1`,
		`snapcloud_http_requests_in_flight 0`,
		`snapcloud_panics_total 1`,
		`snapcloud_ready{what="database"} 1`,
		`snapcloud_ready{what="storage"} 1`,
		`snapcloud_webhook_deliveries_total{outcome="retried"} 1`,
	} {
		if !strings.Contains(said, want+"\n") {
			name, _, _ := strings.Cut(want, "{")
			t.Errorf("the metrics lack %s; there is %q", want,
				regexp.MustCompile("(?m)^"+name+".*$").FindAllString(said, -1))
		}
	}
	for _, want := range []string{
		`snapcloud_database_query_duration_seconds_count{kind="select"}`, `snapcloud_build_info{go_version="go`,
		`go_sql_open_connections{db_name="write"}`, `go_sql_wait_duration_seconds_total{db_name="read"}`,
		`process_resident_memory_bytes`,
		`go_goroutines`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, secret := range []string{"shop-secret", "alice"} {
		if strings.Contains(said, secret) {
			t.Errorf("a label holds %q, which a client chose", secret)
		}
	}
}

func useEverything(t *testing.T, c *cloudtest.Cloud) {
	t.Helper()
	ctx := context.Background()
	alice := c.As("alice@acme.test")
	if _, err := c.SignedIn("alice@acme.test").AddWebhook(ctx,
		api.WebhookRequest{URL: "https://127.0.0.1:1/"}); err != nil {
		t.Fatal(err)
	}
	sn := c.Push(alice, "shop-secret", make([]byte, 5000))
	pull, err := alice.Pull(ctx, sn.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := exchange(t, http.MethodGet, pull.URL, ""); len(got) != 5000 {
		t.Fatalf("%d bytes", len(got))
	}
	_, _ = alice.Snapshot(ctx, "snap_never")
	exchange(t, http.MethodGet, c.URL+"/nothing/alice", "")
	exchange(t, http.MethodGet, c.URL+"/readyz", "")
	client := url.Values{"client_id": {"snapcli"}}
	with := func(more ...string) url.Values {
		form := url.Values{"client_id": client["client_id"]}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return form
	}
	post(t, c.URL+"/auth/token", with("grant_type", "refresh_token", "refresh_token", "crt_NEVERWAS"))
	post(t, c.URL+"/auth/token", with("grant_type", "urn:ietf:params:oauth:grant-type:device_code", "device_code",
		"never-was"))
	wrongPassword(t, c)
	panics := c.Service.Wrapped(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") }))
	panics.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
	if _, err := c.Service.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
}

// wrongPassword tries to sign in as Mia with another password.
func wrongPassword(t *testing.T, c *cloudtest.Cloud) {
	t.Helper()
	b := c.Browser().Client()
	res, err := b.Get(c.URL + "/auth/signin")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`name="csrf_token" value="([^"]+)"`).FindSubmatch(page)
	req, err := http.NewRequest(http.MethodPost, c.URL+"/auth/signin", strings.NewReader(url.Values{
		"csrf_token": {string(token[1])}, "organization": {"acme"}, "email": {"mia@acme.test"},
		"password": {"not-hers"},
	}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", c.URL)
	answer, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Fatalf("a wrong password is answered with %d", answer.StatusCode)
	}
}

// metrics returns the response of the private listener's /metrics.
func metrics(t *testing.T, c *cloudtest.Cloud) string {
	t.Helper()
	out := httptest.NewRecorder()
	c.Service.Private().ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if out.Code != http.StatusOK {
		t.Fatalf("/metrics: %d", out.Code)
	}
	return out.Body.String()
}

// TestPrivateListener: metrics and profiles are only on the private listener. A web page whose name
// resolves to this machine cannot read a profile.
func TestPrivateListener(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	paths := []string{"/metrics", "/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/cmdline",
		"/debug/pprof/heap"}
	for _, path := range paths {
		res, err := http.Get(c.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("the public listener answers %s with %d", path, res.StatusCode)
		}
		for host, want := range map[string]int{"127.0.0.1:9090": 200, "localhost:9090": 200, "[::1]:9090": 200,
			"evil.example": 403} {
			if path == "/metrics" {
				want = http.StatusOK
			}
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			out := httptest.NewRecorder()
			c.Service.Private().ServeHTTP(out, r)
			if out.Code != want || out.Body.Len() == 0 {
				t.Errorf("%s at %s: %d with %d bytes, want %d", path, host, out.Code, out.Body.Len(), want)
			}
		}
	}
}

// TestObservingConfig checks that impossible settings are refused.
func TestObservingConfig(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"private: {listen: here}", "{listen: 127.0.0.1:1, private: {listen: 127.0.0.1:1}}",
		"tracing: {endpoint: collector}",
		"tracing: {endpoint: ftp://x}", "tracing: {sample: 2}", "tracing: {sample: -1}", "log: {format: xml}",
		"log: {level: loud}",
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := cloud.LoadConfig(file, nil)
		if err == nil || !slices.ContainsFunc([]string{"private.listen", "tracing.", "log."},
			func(key string) bool { return strings.Contains(err.Error(), key) }) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
