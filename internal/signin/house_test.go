package signin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/signin"
	"snap/internal/store"
)

// newClock returns a clock that only the test moves.
func newClock() *clocktest.Clock {
	return clocktest.New(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
}

// syncBuffer is a log that tests read while the service writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// house is the auth service over real HTTP, with two routes of the API next to it.
type house struct {
	t     testing.TB
	url   string
	dir   string // of the database; empty on PostgreSQL
	clock *clocktest.Clock
	store *store.Store
	auth  *auth.Authenticator
	log   *syncBuffer

	sealer   *auth.Sealer    // for refresh tokens; if nil, they are not stored
	service  *signin.Service // once it serves
	listed   bool            // the sign-in page lists the organizations
	handler  http.Handler
	listener net.Listener // for the next server
	public   string       // URL of the service, if it differs from the server's
}

func acme() signin.Organization {
	return signin.Organization{Slug: "acme", Local: []signin.LocalUser{
		{Email: "alice@acme.test", Name: "Alice", Password: "alice-password", Role: snap.RoleOwner,
			Groups: []string{"eng"}},
		{Email: "mia@acme.test", Name: "Mia", Password: "mia-password", Role: snap.RoleMember, Groups: []string{"eng"}},
	}}
}

func globex() signin.Organization {
	return signin.Organization{Slug: "globex", Local: []signin.LocalUser{
		{Email: "gail@globex.test", Name: "Gail", Password: "gail-password", Role: snap.RoleOwner},
	}}
}

// start starts the service on SQLite with these organizations, acme when none
// is given.
func start(t testing.TB, orgs ...signin.Organization) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), clock: newClock(), log: &syncBuffer{}}
	return h.begin(orgs)
}

// startListed is start, and the sign-in page lists the organizations.
func startListed(t testing.TB, orgs ...signin.Organization) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), clock: newClock(), log: &syncBuffer{}, listed: true}
	return h.begin(orgs)
}

// migrated copies an empty database with the newest schema into a folder.
var migrated = servertest.Template(func(dir string) error {
	s, err := store.Open(context.Background(), store.Options{DataDir: dir})
	if err != nil {
		return err
	}
	return s.Close()
})

// postgres returns the URL of an empty PostgreSQL database with the newest schema.
var postgres = servertest.PostgresTemplate(func(url string) error {
	s, err := store.Open(context.Background(), store.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
})

func (h *house) begin(orgs []signin.Organization) *house {
	h.t.Helper()
	return h.open(store.Options{DataDir: h.dir, Now: h.clock.Now}, orgs)
}

func (h *house) open(o store.Options, orgs []signin.Organization) *house {
	h.t.Helper()
	if len(orgs) == 0 {
		orgs = []signin.Organization{acme()}
	}
	ctx := h.t.Context()
	if left, err := os.ReadDir(o.DataDir); err == nil && len(left) == 0 {
		migrated(h.t, o.DataDir)
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	for _, org := range orgs {
		if _, err := s.ApplyOrg(ctx, org.Slug, strings.ToUpper(org.Slug[:1])+org.Slug[1:], snap.Policy{}); err != nil {
			h.t.Fatal(err)
		}
	}
	h.store = s
	h.serve(orgs)
	return h
}

// serve starts the HTTP server: the auth service and the routes /api/user and /api/agent, which
// respond with the caller's e-mail or organization.
func (h *house) serve(orgs []signin.Organization) {
	h.t.Helper()
	h.listen()
	listener := h.listener
	h.listener = nil
	public := h.url
	if h.public != "" {
		public = h.public
	}
	service, err := signin.New(h.t.Context(), h.store, signin.Options{
		PublicURL: public, ClientID: "snapcli", Organizations: orgs, ListOrganizations: h.listed, Now: h.clock.Now,
		Sealer: h.sealer,
		Log:    slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	// A busy machine must not count as a slow provider.
	service.SetTimeouts(servertest.Patience, servertest.Patience, servertest.Patience)
	service.SetProviderTimeout(servertest.Patience)
	h.service = service
	h.auth = auth.New(h.store, auth.Options{Issuer: service.Issuer(), PublicURL: public, Now: h.clock.Now,
		Sealer: h.sealer, Confirm: service.Confirm, Log: slog.New(slog.NewTextHandler(h.log, nil))})
	mux := http.NewServeMux()
	mux.Handle("/auth/", service.Handler())
	mux.Handle("/.well-known/", service.Handler())
	mux.HandleFunc("/api/user", h.whoami(h.auth.User))
	mux.HandleFunc("/api/agent", h.whoami(h.auth.Agent))
	h.handler = mux
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
	server.Start()
	h.t.Cleanup(server.Close)
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Log(h.log)
		}
	})
}

// listen chooses the address of the next server.
func (h *house) listen() {
	h.t.Helper()
	if h.listener != nil {
		return
	}
	var err error
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		h.t.Fatal(err)
	}
	h.url = "http://" + h.listener.Addr().String()
}

func (h *house) whoami(authenticate func(*http.Request) (snap.Caller, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := authenticate(r)
		if err != nil {
			w.WriteHeader(snap.CodeOf(err).Info().Status)
			io.WriteString(w, err.Error())
			return
		}
		if c.User != nil {
			io.WriteString(w, c.User.Email+" "+string(c.Role))
			return
		}
		io.WriteString(w, c.Org.Slug)
	}
}

// answer is an HTTP response and its whole body.
type answer struct {
	status int
	header http.Header
	body   string
	url    *url.URL // of the page, after redirects
}

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		t.Fatalf("not JSON: %v: %s", err, a.body)
	}
	return m
}

func (h *house) do(c *http.Client, r *http.Request) answer {
	h.t.Helper()
	res, err := c.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body), res.Request.URL}
}

// post sends a form to the auth service as a program does.
func (h *house) post(path string, fields ...string) answer {
	h.t.Helper()
	return h.postWith("", path, fields...)
}

// postWith sends a form with an Authorization header, unless that is empty.
func (h *house) postWith(authorization, path string, fields ...string) answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/auth"+path,
		strings.NewReader(form(fields).Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return h.do(http.DefaultClient, r)
}

func form(fields []string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		v.Add(fields[i], fields[i+1])
	}
	return v
}

// get asks for a URL of the service with headers.
func (h *house) get(path string, headers ...string) answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return h.do(http.DefaultClient, r)
}

// api asks the service for the user of a bearer token.
func (h *house) api(token string) answer {
	return h.get("/api/user", "Authorization", "Bearer "+token)
}

// device begins a login.
func (h *house) device() (deviceCode, userCode string) {
	h.t.Helper()
	a := h.post("/device_authorization", "client_id", "snapcli", "program", "snapcli test", "host", "laptop")
	if a.status != http.StatusOK {
		h.t.Fatalf("device authorization: %d %s", a.status, a.body)
	}
	m := a.json(h.t)
	return m["device_code"].(string), m["user_code"].(string)
}

func (h *house) poll(deviceCode string) answer {
	return h.post("/token", "grant_type", "urn:ietf:params:oauth:grant-type:device_code", "client_id", "snapcli",
		"device_code", deviceCode)
}

func (h *house) refresh(token string) answer {
	return h.post("/token", "grant_type", "refresh_token", "client_id", "snapcli", "refresh_token", token)
}

// tokens are the tokens from a login.
type tokens struct{ access, refresh, id string }

func tokensOf(t testing.TB, a answer) tokens {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("no tokens: %d %s", a.status, a.body)
	}
	m := a.json(t)
	id, _ := m["id_token"].(string)
	return tokens{m["access_token"].(string), m["refresh_token"].(string), id}
}

// login completes a device login for a user.
func (h *house) login(email, password string) tokens {
	h.t.Helper()
	deviceCode, userCode := h.device()
	b := h.browser()
	b.approve(userCode, email, password)
	return tokensOf(h.t, h.poll(deviceCode))
}

// browser is a person's browser: cookies, redirects, hidden fields.
type browser struct {
	h *house
	c *http.Client
}

func (h *house) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{h, &http.Client{Jar: jar}}
}

func (b *browser) get(path string) answer {
	b.h.t.Helper()
	r, err := http.NewRequestWithContext(b.h.t.Context(), http.MethodGet, b.h.url+path, nil)
	if err != nil {
		b.h.t.Fatal(err)
	}
	return b.h.do(b.c, r)
}

// send posts a form with exactly these fields.
func (b *browser) send(path string, fields ...string) answer {
	b.h.t.Helper()
	r, err := http.NewRequestWithContext(b.h.t.Context(), http.MethodPost, b.h.url+path,
		strings.NewReader(form(fields).Encode()))
	if err != nil {
		b.h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.h.url)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.h.do(b.c, r)
}

var csrfField = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)
var nextField = regexp.MustCompile(`name="next" value="([^"]+)"`)

// submit fills in the form of a page and sends it.
func (b *browser) submit(page answer, path string, fields ...string) answer {
	b.h.t.Helper()
	m := csrfField.FindStringSubmatch(page.body)
	if m == nil {
		b.h.t.Fatalf("no form on the page %s (%d): %s", page.url, page.status, page.body)
	}
	return b.send(path, append([]string{"csrf_token", m[1]}, fields...)...)
}

// signIn signs a local user in.
func (b *browser) signIn(email, password string) answer {
	b.h.t.Helper()
	return b.submit(b.get("/auth/signin"), "/auth/signin", "email", email, "password", password)
}

// approve enters a code, signs in if asked to, and approves.
func (b *browser) approve(userCode, email, password string) {
	b.h.t.Helper()
	page := b.submit(b.get("/auth/device?user_code="+userCode), "/auth/device", "user_code", userCode)
	if page.url.Path == "/auth/signin" {
		next := nextField.FindStringSubmatch(page.body)[1]
		page = b.submit(page, "/auth/signin", "next", strings.ReplaceAll(next, "&amp;", "&"), "email", email,
			"password",
			password)
	}
	page = b.submit(page, "/auth/device/confirm", "user_code", userCode, "decision", "approve")
	if page.status != http.StatusOK || !strings.Contains(page.body, "Approved") {
		b.h.t.Fatalf("not approved: %d %s", page.status, page.body)
	}
}

func mustURL(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
