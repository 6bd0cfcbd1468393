package login_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/login"
	"snap/internal/servertest"
)

// desk is a person with a terminal and a browser, and a running cloud service. Waiting moves the
// clock, so no test sleeps.
type desk struct {
	t     *testing.T
	cloud *cloudtest.Cloud
	clock *clocktest.Clock
	dir   string // of the configuration
	wire  *wire

	mu      sync.Mutex
	codes   []login.Code
	notes   []string
	order   []string // the order in which the person saw the code and the browser
	opened  []string
	waits   []time.Duration
	onWait  func() // the person's action while the terminal waits
	confirm bool
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, clock: clocktest.New(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)), dir: t.TempDir() + "/snapcli",
		wire: &wire{}}
	d.cloud = cloudtest.Start(t, cloudtest.Options{Clock: d.clock})
	return d
}

// newDeskNow is like newDesk, with a service that uses the real clock; waiting still takes no time.
func newDeskNow(t *testing.T, o cloudtest.Options) *desk {
	t.Helper()
	d := &desk{t: t, clock: clocktest.New(time.Now()), dir: t.TempDir() + "/snapcli", wire: &wire{}}
	d.cloud = cloudtest.Start(t, o)
	return d
}

func (d *desk) options() login.Options {
	return login.Options{
		CloudURL: d.cloud.URL, ConfigDir: d.dir, Program: "snapcli test", Host: "laptop",
		Env: func(string) string { return "" }, Terminal: true,
		Browser: func() (bool, string) { return true, "" },
		OpenURL: func(u string) error {
			d.opened = append(d.opened, u)
			d.order = append(d.order,
				"browser")
			return nil
		},
		Confirm: func(string) bool { return d.confirm },
		Prompt:  d, HTTP: d.client(), Now: d.clock.Now, After: d.after,
	}
}

func (d *desk) client() *http.Client {
	return &http.Client{Transport: d.wire, Timeout: servertest.Patience}
}

// after moves the clock instead of waiting.
func (d *desk) after(wait time.Duration) <-chan time.Time {
	d.clock.Advance(wait)
	c := make(chan time.Time, 1)
	c <- d.clock.Now()
	return c
}

func (d *desk) Code(c login.Code) {
	d.codes = append(d.codes, c)
	d.order = append(d.order, "code")
}

func (d *desk) Waiting(remaining time.Duration) {
	d.waits = append(d.waits, remaining)
	if do := d.onWait; do != nil {
		d.onWait = nil
		do()
	}
}

func (d *desk) Note(text string) { d.notes = append(d.notes, text) }

// file is the credentials file, on the desk's clock.
func (d *desk) file() *login.File {
	f := login.OpenFile(d.dir)
	f.Now = d.clock.Now
	f.Warn = func(text string) { d.mu.Lock(); defer d.mu.Unlock(); d.notes = append(d.notes, text) }
	return f
}

// login signs in, approved by the user with this e-mail.
func (d *desk) login(email string) login.Session {
	d.t.Helper()
	d.onWait = func() { d.decide(email, "approve") }
	s, err := login.Login(d.t.Context(), d.options())
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// me asks the cloud service for the session's user.
func (d *desk) me() (api.Me, error) {
	d.t.Helper()
	c, err := api.New(api.Options{BaseURL: d.cloud.URL, Mount: api.MountUser,
		Token: d.file().Source(d.cloud.URL, d.client()), HTTP: d.client()})
	if err != nil {
		d.t.Fatal(err)
	}
	return c.Me(d.t.Context())
}

var csrfField = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

// decide uses the pages as a person does, for the newest code.
func (d *desk) decide(email, decision string) {
	d.t.Helper()
	decideIn(d.t, d.cloud.URL, d.codes[len(d.codes)-1].UserCode, email, decision)
}

func decideIn(t testing.TB, cloudURL, code, email, decision string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	name, _, _ := strings.Cut(email, "@")
	page := read(t, browser, http.MethodGet, cloudURL+"/auth/device?user_code="+code, nil)
	send := func(path string, fields url.Values) {
		t.Helper()
		m := csrfField.FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("no form on the page: %s", page)
		}
		fields.Set("csrf_token", m[1])
		page = read(t, browser, http.MethodPost, cloudURL+"/auth"+path, fields)
	}
	send("/device", url.Values{"user_code": {code}})
	send("/signin", url.Values{"email": {email}, "password": {name + "-password"},
		"next": {"/auth/device/confirm?user_code=" + code}})
	send("/device/confirm", url.Values{"user_code": {code}, "decision": {decision}})
}

func read(t testing.TB, c *http.Client, method, target string, fields url.Values) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, target, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %v %s", method, target, res.StatusCode, err, body)
	}
	return string(body)
}

// wire is the network between the terminal and the services. Tests count its requests and break it.
type wire struct {
	mu     sync.Mutex
	counts map[string]int
	// broken replaces the service's response when it returns one.
	broken func(r *http.Request) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	w.counts[r.URL.Path]++
	broken := w.broken
	w.mu.Unlock()
	if broken != nil {
		if res, err := broken(r); res != nil || err != nil {
			return res, err
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (w *wire) count(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[path]
}

// reply makes a response from the broken network.
func reply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}
}
