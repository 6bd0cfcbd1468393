// Package webui is the local web UI of `snapcli serve` (SPEC 4.6). It shows the snapshots on this
// machine and those in the cloud, and the actions on them.
//
// Pages are html/template over typed data and work without JavaScript. Our own ES modules send the
// same forms, request fragments of the same pages, and insert them. Only this process contacts the
// cloud: no credential for the cloud ever reaches a page (AUTH.md L4). gate.go decides who may open
// the pages at all (L1 to L3).
package webui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"snap/api"
	"snap/internal/local"
	"snap/internal/login"
	"snap/internal/look"
)

//go:embed assets
var assetFiles embed.FS

//go:embed pages/*.html
var pageFiles embed.FS

// Options configure the web UI.
type Options struct {
	Agent  *local.Agent
	Client *api.Client // nil without a cloud service or a credential; if there is a service, a page offers to sign in
	// Sessions are the login sessions that Client uses. Nil means the sessions in the configuration
	// folder.
	Sessions *login.File
	HTTP     *http.Client // for signing in and, if Client is nil, for all requests; nil means the default client

	Listen      string   // host:port; "" means port 8484 of 127.0.0.1, or the next free port
	AllowRemote bool     // allow Listen to be an address other than loopback
	Hosts       []string // additional host names that browsers may use

	Open    bool               // open the start link in a browser
	Browse  func(string) error // opens a browser; nil means the system's browser
	Out     io.Writer          // receives the addresses; may be nil
	Version string
	Env     func(string) string // nil means os.Getenv
	Now     func() time.Time    // nil means time.Now
	Log     *slog.Logger        // nil discards
}

// Server is the web UI.
type Server struct {
	o         Options
	assets    *look.Assets
	views     *look.Views
	gate      *gate
	cloud     *cloud
	jobs      *jobs
	revisions *revisions
	rules     ruleReviews
	trail     trail
	signin    *signin // nil if there is nothing to sign in to
}

// New returns a web UI that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	own, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		return nil, fmt.Errorf("find the assets: %w", err)
	}
	s := &Server{o: o, assets: look.NewAssets("/assets/", look.Files(), own)}
	if s.views, err = look.Parse(s.assets, o.Now, pageFiles, "pages/*.html"); err != nil {
		return nil, err
	}
	s.gate, s.revisions = newGate(o.Hosts), newRevisions()
	s.rules.of = map[string]*ruleReview{}
	dir, err := local.DataDir(o.Env)
	if err != nil {
		return nil, err
	}
	journal, left, err := openJournal(filepath.Join(dir, "webui"))
	if err != nil {
		return nil, err
	}
	s.jobs = newJobs(o.Now, o.Log, s.revisions, journal, left)
	if s.signin, err = newSignin(o, s.signedInOrOut); err != nil {
		return nil, err
	}
	if o.Client == nil && s.signin != nil {
		if s.o.Client, err = s.signin.client(o.Version); err != nil {
			return nil, err
		}
	}
	s.cloud = newCloud(s.o.Client, o.Now)
	return s, nil
}

// signedInOrOut is called after every sign-in and sign-out, even after one that failed.
func (s *Server) signedInOrOut() {
	s.cloud.forget()
	s.jobs.announce("account")
	s.jobs.announce("listing")
}

// StartPath returns the path of a new one-time link. The first browser that opens it may use the
// web UI until the process ends (L3).
func (s *Server) StartPath() string { return s.gate.link() }

// Handler returns the whole web UI. Its connections must come from a net/http server, which records
// their local address.
func (s *Server) Handler() http.Handler {
	compress, err := gzhttp.NewWrapper(gzhttp.ExceptContentTypes([]string{"text/event-stream"}))
	if err != nil {
		panic(err) // the options are constants
	}
	return look.Secure(s.gate.protect(compress(s.routes()), s.gateProblem))
}

// Run serves the web UI until the context ends. Then it cancels the running requests and jobs. It
// waits for all jobs, and up to five seconds for the requests. It fails with code usage if the
// address is not loopback and AllowRemote is not set.
func Run(ctx context.Context, o Options) error {
	s, err := New(o)
	if err != nil {
		return err
	}
	ln, err := listen(ctx, o.Listen, o.AllowRemote)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	s.announce(baseURL(ln.Addr(), o.Hosts))
	go s.tidy(serving)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve the web UI: %w", err)
	case <-ctx.Done():
	}
	stop() // ends the event streams
	if s.signin != nil {
		s.signin.stop()
	}
	s.jobs.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the web UI: %w", err)
	}
	return nil
}

// announce prints the address and the one-time link, and opens the link if configured.
func (s *Server) announce(base string) {
	s.gate.used = func() {
		fmt.Fprint(s.o.Out, textOpened(base+s.StartPath()))
	}
	link := base + s.StartPath()
	fmt.Fprint(s.o.Out, textServing(base, link))
	if !s.o.Open {
		return
	}
	browse := s.o.Browse
	if browse == nil {
		browse = openBrowser
	}
	if err := browse(link); err != nil {
		fmt.Fprint(s.o.Out, textNoBrowser(err))
	}
}
