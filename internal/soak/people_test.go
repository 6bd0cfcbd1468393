//go:build linux

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"snap/api"
	"snap/internal/login"
)

// publicURL is the service's address for people. Nothing listens there: every connection to it goes
// to one of the replicas, as with a load balancer.
const publicURL = "http://localhost:1"

// person is one user with a computer: a login session in a file, and clients.
type person struct {
	w     *world
	email string
	org   string
	admin bool
	owns  bool   // pushes
	dir   string // of credentials.json
	file  *login.File
	web   *http.Client   // to any replica
	webs  []*http.Client // the same, to one replica
	any   *api.Client    // by the login session
	at    []*api.Client  // the same, to one replica

	// Guarded by the model; changed by sign-ins.
	groups  map[string]*fact
	signIns int
}

func (w *world) newPerson(name, org string, admin bool, groups ...string) *person {
	w.t.Helper()
	p := &person{
		w: w, email: name + "@" + org + ".test", org: org, admin: admin,
		dir: filepath.Join(w.dir, name), groups: map[string]*fact{},
	}
	for _, g := range []string{"eng", "dba"} {
		p.groups[g] = &fact{}
	}
	for _, g := range groups {
		if p.groups[g] != nil {
			p.groups[g].is = yes
		}
	}
	w.provider.put(p.email, groups)
	p.web = p.newClient(-1)
	for i := range w.replicas {
		p.webs = append(p.webs, p.newClient(i))
	}
	p.file = login.OpenFile(p.dir)
	p.any = p.api(-1)
	for i := range w.replicas {
		p.at = append(p.at, p.api(i))
	}
	w.people = append(w.people, p)
	return p
}

// api returns a client of the user mount, to a replica or to any (-1).
func (p *person) api(replica int) *api.Client {
	c, err := api.New(api.Options{BaseURL: publicURL, Mount: api.MountUser, Token: p.file.Source(publicURL, p.web),
		UserAgent: "soak", HTTP: p.client(replica)})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return c
}

// byKey returns a client of the agent mount to a replica.
func (p *person) byKey(secret string, replica int) *api.Client {
	c, err := api.New(api.Options{BaseURL: publicURL, Mount: api.MountAgent, Token: api.StaticToken(secret),
		UserAgent: "soak", HTTP: p.client(replica)})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return c
}

// by returns a client of the user mount to a replica, by this access token.
func (p *person) by(token string, replica int) *api.Client {
	c, err := api.New(api.Options{BaseURL: publicURL, Mount: api.MountUser, Token: api.StaticToken(token),
		UserAgent: "soak", HTTP: p.client(replica)})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return c
}

// patience is how long a client waits for one response.
const patience = 5 * time.Second

// client returns the person's HTTP client to a replica, or to any of them (-1).
func (p *person) client(replica int) *http.Client {
	if replica < 0 {
		return p.web
	}
	return p.webs[replica]
}

// closeIdle closes the idle connections.
func (p *person) closeIdle() {
	for _, c := range append(p.webs, p.web) {
		if i, ok := c.Transport.(inspector); ok {
			i.next.(*http.Transport).CloseIdleConnections()
		}
	}
}

// newClient returns an HTTP client whose connections to the service go to a
// replica, or to any of them (-1), and those to the object store through the link
// between clients and storage.
func (p *person) newClient(replica int) *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		switch {
		case "http://"+address == publicURL:
			n := replica
			if n < 0 {
				n = p.w.pick(len(p.w.replicas))
			}
			address = p.w.replicas[n].front.address()
		case p.w.isStorage(address):
			address = p.w.clientS3.address()
		}
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
	}
	t := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: 2 * time.Second,
		DisableCompression: true}
	p.w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: inspector{p, t}, Timeout: patience}
}

// inspector checks every response from the service.
type inspector struct {
	p    *person
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (i inspector) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// Each from an address of its own, so that no limit by address is met.
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", i.p.w.pick(256), i.p.w.pick(256)))
	if r.URL.Host == strings.TrimPrefix(i.p.w.provider.issuer, "http://") {
		r.Header.Set(accountHeader, i.p.email)
	}
	res, err := i.next.RoundTrip(r)
	if err != nil || r.URL.Scheme+"://"+r.URL.Host != publicURL {
		return res, err
	}
	w := i.p.w
	w.count("status " + fmt.Sprint(res.StatusCode))
	switch {
	case res.StatusCode < 500 || w.old != "": // an older program reports failures in its own way
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "":
		w.violated("%s %s: 503 without Retry-After", r.Method, r.URL.Path)
	// the identity provider is down
	case res.StatusCode == http.StatusBadGateway && strings.HasPrefix(r.URL.Path, "/auth/upstream/"):
	case res.StatusCode != http.StatusServiceUnavailable:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(text))
		w.violated("%s %s: status %d: %s", r.Method, r.URL.Path, res.StatusCode, text)
	}
	return res, err
}

// login signs in by device grant, as `snapcli login` does, and keeps the
// session in a folder.
func (p *person) login(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := &approver{p: p, giveUp: cancel}
	_, err := login.Login(ctx, login.Options{
		CloudURL: publicURL, ConfigDir: dir, NoBrowser: true, Program: "soak", Host: "here",
		Env:    func(string) string { return "" },
		Prompt: a, HTTP: p.web,
	})
	return err
}

// approver opens the page at once when the code is shown.
type approver struct {
	p      *person
	giveUp context.CancelFunc
}

// Code implements the prompt of a login.
func (a *approver) Code(c login.Code) {
	for range 3 { // a person tries again
		if b, err := a.p.signIn(); err == nil && b.approve(c.UserCode) == nil {
			return
		}
	}
	a.giveUp()
}

// Waiting implements the prompt of a login.
func (a *approver) Waiting(time.Duration) {}

// Note implements the prompt of a login.
func (a *approver) Note(string) {}

// browser is a person at a browser.
type browser struct {
	p *person
	c *http.Client
}

// signIn signs a person in at the identity provider, in a new browser.
func (p *person) signIn() (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	b := &browser{p, &http.Client{Transport: p.web.Transport, Jar: jar, Timeout: patience}}
	_, err = b.visit(http.MethodGet, "/auth/upstream/start?organization="+p.org+"&next=/device", nil)
	return b, err
}

var csrfToken = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

func (b *browser) approve(code string) error {
	page, err := b.visit(http.MethodGet, "/auth/device/confirm?user_code="+url.QueryEscape(code), nil)
	if err != nil {
		return err
	}
	found := csrfToken.FindStringSubmatch(page)
	if found == nil {
		return fmt.Errorf("the page has no form: %s", page)
	}
	_, err = b.visit(http.MethodPost, "/auth/device/confirm",
		url.Values{"csrf_token": {found[1]}, "user_code": {code}, "decision": {"approve"}})
	return err
}

// visit opens a page, and fails unless it is shown.
func (b *browser) visit(method, path string, form url.Values) (string, error) {
	r, err := http.NewRequest(method, publicURL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", publicURL)
	}
	res, err := b.c.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", res.Request.URL.Path, res.StatusCode)
	}
	return string(text), err
}

// scratch returns a new folder for one login or pull.
func (w *world) scratch() string {
	dir, err := os.MkdirTemp(w.dir, "scratch-")
	if err != nil {
		w.violated("make a folder: %v", err)
	}
	return dir
}
