package webui

import (
	"context"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
	"snap/internal/login"
)

// signin is the sign-in by device grant that the pages offer (SPEC 5.2). At most one sign-in is in
// progress. The tokens are stored in credentials.json and never sent to a page (L4).
type signin struct {
	options login.Options // without Prompt
	file    *login.File

	mu      sync.Mutex
	cancel  context.CancelFunc // nil if none is in progress
	code    *login.Code
	problem error
	notes   []string
	changed func()
}

// newSignin returns nil if there is no cloud service or an API key is set, because there is then
// nothing to sign in for.
func newSignin(o Options, changed func()) (*signin, error) {
	config := o.Agent.Config().Cloud
	if config.URL == "" || config.APIKey != "" {
		return nil, nil
	}
	dir, err := local.ConfigDir(o.Env)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	file := o.Sessions
	if file == nil {
		file = login.OpenFile(dir)
	}
	return &signin{
		options: login.Options{CloudURL: config.URL, NoBrowser: true, ConfigDir: dir, Host: host,
			Program: product + " " + o.Version, Env: o.Env, Now: o.Now, HTTP: o.HTTP},
		file: file, changed: changed,
	}, nil
}

// client returns a client that uses the current session at each request.
func (g *signin) client(version string) (*api.Client, error) {
	base, err := api.CheckBaseURL(g.options.CloudURL)
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{BaseURL: base, Mount: api.MountUser, Token: g.file.Source(base, g.options.HTTP),
		HTTP: g.options.HTTP, UserAgent: product + "/" + version})
}

// prompt receives the progress of one login.
type prompt struct {
	g     *signin
	ready chan struct{}
	once  sync.Once
}

func (p *prompt) Code(c login.Code) {
	p.g.mu.Lock()
	p.g.code = &c
	p.g.mu.Unlock()
	p.once.Do(func() { close(p.ready) })
}

func (p *prompt) Waiting(time.Duration) {}

func (p *prompt) Note(text string) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.g.notes = append(p.g.notes, text)
}

// begin starts a login unless one is in progress. It returns when there is a code to show or the
// login has failed.
func (g *signin) begin(ctx context.Context) {
	g.mu.Lock()
	if g.cancel != nil {
		g.mu.Unlock()
		return
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel, g.code, g.problem, g.notes = cancel, nil, nil, nil
	g.mu.Unlock()
	p := &prompt{g: g, ready: make(chan struct{})}
	go func() {
		o := g.options
		o.Prompt = p
		_, err := login.Login(running, o)
		if err == nil {
			g.file.Reselect()
		}
		g.mu.Lock()
		g.cancel, g.code = nil, nil
		if snap.CodeOf(err) != snap.CodeInterrupted {
			g.problem = err
		}
		g.mu.Unlock()
		cancel()
		p.once.Do(func() { close(p.ready) })
		g.changed()
	}()
	select {
	case <-p.ready:
	case <-ctx.Done():
	}
}

// stop cancels the login in progress, if any.
func (g *signin) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil {
		g.cancel()
	}
}

// signedOut reports whether an error means that this machine has no credential that the service
// accepts.
func signedOut(err error) bool {
	code := snap.CodeOf(err)
	return code == snap.CodeNotSignedIn || code == snap.CodeUnauthenticated
}

// signinView is the sign-in as a page shows it.
type signinView struct {
	Offered bool   // signing in and out is possible here
	Service string // its URL
	Back    string // path of the page that shows it; empty means the Account page
	Code    *login.Code
	Problem *problem
	Notes   []string
}

func (g *signin) view(back string) signinView {
	if g == nil {
		return signinView{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return signinView{Offered: true, Service: g.options.CloudURL, Back: back, Code: g.code,
		Problem: problemOf(g.problem), Notes: slices.Clone(g.notes)}
}

func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	if s.signin == nil {
		return errNoSignIn()
	}
	s.signin.begin(r.Context())
	return s.redirectBack(w, r)
}

func (s *Server) stopSignIn(w http.ResponseWriter, r *http.Request) error {
	if s.signin == nil {
		return errNoSignIn()
	}
	s.signin.stop()
	return s.redirectBack(w, r)
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request) error {
	if s.signin == nil {
		return errNoSignIn()
	}
	_, err := login.Logout(r.Context(), s.signin.file, s.cloud.base(), s.o.HTTP)
	s.signedInOrOut()
	if err != nil {
		return err
	}
	return s.toAccount(w, r)
}

// redirectBack responds with the page that showed the sign-in, or with its fragment.
func (s *Server) redirectBack(w http.ResponseWriter, r *http.Request) error {
	if r.PostFormValue("back") == "" {
		return s.toAccount(w, r)
	}
	return redirect(w, r, back(r)) // our script's request keeps its Fragment header when it is redirected
}

// toAccount responds with the Account page, or with its fragment.
func (s *Server) toAccount(w http.ResponseWriter, r *http.Request) error {
	if fragment(r) {
		return s.account(w, r)
	}
	to := "/account"
	if list := r.URL.Query().Get("keys"); list == allKeys || list == idleKeys {
		to += "?keys=" + list
	}
	return redirect(w, r, to)
}
