package webui

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"snap/api"
	"snap/internal/local"
)

// ui is a web UI over real HTTP, with a browser's cookies.
type ui struct {
	t      testing.TB
	URL    string
	Server *Server
	Agent  *local.Agent
	http   *http.Client
}

// openUI starts a web UI over an agent in a fresh folder, with this
// configuration file, and opens its start link.
func openUI(t testing.TB, client *api.Client, config string) *ui {
	t.Helper()
	u := startUI(t, client, config)
	res, err := u.http.Get(u.URL + u.Server.StartPath())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/" {
		t.Fatalf("the start link led to %s with status %d", res.Request.URL, res.StatusCode)
	}
	return u
}

// startUI is like openUI, without opening the start link.
func startUI(t testing.TB, client *api.Client, config string) *ui {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string {
		return map[string]string{"SNAPCLI_CONFIG_DIR": dir, "SNAPCLI_DATA_DIR": filepath.Join(dir, "data")}[name]
	}
	agent, err := local.Open(local.Options{ConfigFile: file, DataDir: filepath.Join(dir, "data"), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Agent: agent, Client: client, Version: "test", Env: env,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	u := &ui{t: t, Server: s, Agent: agent}
	u.serve()
	return u
}

// serveUI is like openUI, for an existing server.
func serveUI(t testing.TB, s *Server) *ui {
	t.Helper()
	u := &ui{t: t, Server: s, Agent: s.o.Agent}
	u.serve()
	u.must(u.get(s.StartPath()), http.StatusOK)
	return u
}

func (u *ui) serve() {
	t, s := u.t, u.Server
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		s.jobs.stop()
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	u.URL, u.http = server.URL, &http.Client{Jar: jar}
}

// answer is the response to a request.
type answer struct {
	Status int
	Header http.Header
	Body   string
	URL    *url.URL // where redirects led
}

func (u *ui) do(method, path string, form url.Values, header ...string) answer {
	u.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, u.URL+path, body)
	if err != nil {
		u.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := u.http.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		u.t.Fatal(err)
	}
	return answer{Status: res.StatusCode, Header: res.Header, Body: text.String(), URL: res.Request.URL}
}

func (u *ui) get(path string, header ...string) answer {
	u.t.Helper()
	return u.do(http.MethodGet, path, nil, header...)
}

// post sends a form as a browser without JavaScript does.
func (u *ui) post(path string, form url.Values, header ...string) answer {
	u.t.Helper()
	return u.do(http.MethodPost, path, form, append([]string{"Sec-Fetch-Site", "same-origin", "Origin", u.URL},
		header...)...)
}

// must fails unless the answer has this status and contains all of these texts.
func (u *ui) must(a answer, status int, want ...string) {
	u.t.Helper()
	if a.Status != status {
		u.t.Fatalf("%s answered %d, want %d:\n%s", a.URL, a.Status, status, a.Body)
	}
	for _, text := range want {
		if !strings.Contains(a.Body, text) {
			u.t.Errorf("%s lacks %q:\n%s", a.URL, text, a.Body)
		}
	}
}

// mustNot fails if the answer contains one of these.
func (u *ui) mustNot(a answer, texts ...string) {
	u.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.Body, text) {
			u.t.Errorf("%s holds %q:\n%s", a.URL, text, a.Body)
		}
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// unreachable returns a client of a service that is not there.
func unreachable(t *testing.T) *api.Client {
	t.Helper()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := api.New(api.Options{BaseURL: gone.URL, Mount: api.MountAgent, Token: api.StaticToken("x")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// door is a proxy in front of a service. When it is shut, nothing answers.
type door struct {
	t      testing.TB
	server *httptest.Server
	mu     sync.Mutex
	closed bool
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t}
	proxy := httputil.NewSingleHostReverseProxy(target)
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		closed := d.closed
		d.mu.Unlock()
		if closed {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(d.server.Close)
	return d
}

func (d *door) shut(closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = closed
}

func (d *door) client(key string) *api.Client {
	d.t.Helper()
	c, err := api.New(api.Options{BaseURL: d.server.URL, Mount: api.MountAgent, Token: api.StaticToken(key)})
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}
