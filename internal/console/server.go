package console

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/look"
)

//go:embed pages/*.html
var pageFiles embed.FS

// Prefix is the path of the console below the public URL.
const Prefix = "/console"

// AuditExport is the path of the audit log's export below the public URL.
const AuditExport = Prefix + "/audit/export"

// Snapshots is the path of the list of snapshots below the public URL.
const Snapshots = "/snapshots"

// Options configures a [Server]. All fields are required.
type Options struct {
	// API serves the routes below api.MountUser on behalf of the given caller. If the caller is
	// nil, API authenticates the request itself.
	API       func(http.ResponseWriter, *http.Request, *snap.Caller)
	PublicURL string // of the service
	// Caller returns the caller of a request that a browser sends with its cookie. It fails with
	// snap.ErrUnauthenticated if nobody is signed in.
	Caller   func(*http.Request) (snap.Caller, error)
	Forms    auth.Forms
	NotFound http.Handler                             // the response for addresses that do not exist
	Problem  func(context.Context, error) api.Problem // describes the failure of a page and logs internal failures
	Now      func() time.Time
}

// Server serves the pages of this package.
type Server struct {
	o      Options
	root   string // path of the public URL; empty unless the service is below a path
	views  *look.Views
	assets *look.Assets
}

// New returns the server of the pages.
func New(o Options) (*Server, error) {
	u, err := url.Parse(o.PublicURL)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, root: strings.TrimRight(u.Path, "/")}
	s.assets = look.NewAssets(s.root+Prefix+"/assets/", look.Files())
	s.views, err = look.Parse(s.assets, func() time.Time { return o.Now().UTC() }, pageFiles, "pages/*.html")
	return s, err
}

// Register adds the pages to a mux.
func (s *Server) Register(mux *http.ServeMux) {
	add := func(path string, p section, isAllowed func(snap.Caller) bool) {
		h := look.Secure(s.page(p, isAllowed))
		mux.Handle("GET "+s.root+path, h)
		if p.act != nil {
			mux.Handle("POST "+s.root+path, h)
		}
	}
	for _, p := range s.sections() {
		add(Prefix+p.path, p, admins)
	}
	add(Snapshots, section{title: "Snapshots", show: s.snapshots, act: s.changeMany}, everybody)
	add(Snapshots+"/{id}", section{title: "Snapshot", show: s.snapshot, act: s.changeSnapshot}, everybody)
	add(Requests, section{title: "Requests", show: s.requests, act: s.changeSnapshot}, everybody)
	mux.Handle("GET "+s.root+Prefix+"/assets/", s.assets)
	mux.Handle("GET "+s.root+AuditExport, look.Secure(s.visitHandler(admins, s.exportAudit)))
}

// section is one page. show writes the page. act carries out the form that the page sent and
// returns the name of the success to announce; see [successes]. A page without forms has no act.
type section struct {
	path, title, icon string
	show              func(*visit) error
	act               func(*visit) (done string, err error)
}

// sections lists the pages of the console in the order of the navigation.
func (s *Server) sections() []section {
	return []section{
		{"", "Overview", "activity", s.overview, nil},
		{"/members", "Members", "person", s.members, s.signOut},
		{"/groups", "Groups", "people", s.groups, s.endShare},
		{"/outside", "Shared outside", "building", s.outside, s.endShare},
		{"/keys", "Keys and sessions", "key", s.keys, s.changeKeys},
		{"/channels", "Channels", "refresh", s.channels, s.changeChannels},
		{"/retention", "Retention", "clock", s.retention, s.changeRetention},
		{"/webhooks", "Webhooks", "up", s.webhooks, s.changeWebhooks},
		{"/audit", "Audit log", "tasks", s.audit, s.verifyAudit},
		{"/storage", "Storage", "load", s.storage, nil},
	}
}

// successes returns the announcements for forms that were carried out, by name. A page's address
// names one of them, so that a link cannot make a page say anything else.
func successes() map[string]string {
	return map[string]string{
		"signed-out": "The person was signed out of every device and browser. Their keys keep working.",
		"session":    "The device was signed out.",
		"ended":      "The share ended. People who could see the snapshot only through this share have lost access.",
		"revoked":    "The key was revoked. It no longer works.",
		"channel":    "The channel was created. It shares the next snapshot that is pushed.",
		"no-channel": "The channel was deleted, and the shares that it made ended.",
		"rule":       "The retention rule was saved. It is applied within an hour.",
		"no-rule":    "The rule was deleted. The target's snapshots are now kept indefinitely.",
		"applied":    "The retention rules were applied.",
		"no-webhook": "The webhook was deleted.",
		"enabled":    "The webhook is enabled. Waiting messages are sent now.",
		"unchanged":  look.Unchanged,
		"described":  "The description and labels were saved.",
		"requested": "Your request was sent. If the snapshot exists, its owner and the admins of its organization " +
			"will see it.",
		"withdrawn":   "The request was withdrawn.",
		"refused":     "The request was refused. The person is not informed.",
		"resent":      "The message will be sent again within seconds.",
		"test-ok":     "The receiver accepted a test message.",
		"test-failed": "The receiver did not accept a test message.",
	}
}

// layout holds the data that all pages have. Page data embeds it.
type layout struct {
	look.Page
	Org      snap.OrgRef
	Heading  string
	Here     string // path of the page
	Self     string // address of the page with its parameters, where its forms are sent
	CSRF     string
	Sections []look.Link
	Done     string // a success to announce
	Flash    *flash // a change of shares to announce
	Problem  string // why the form failed
	Hint     string
}

// layout returns the data of a page of the console.
func (s *Server) layout(v *visit) layout {
	l := s.baseLayout(v, v.section.title+" · "+v.caller.Org.Name, Prefix)
	l.Here = s.root + Prefix + v.section.path
	for _, p := range s.sections() {
		l.Sections = append(l.Sections, look.Link{URL: s.root + Prefix + p.path, Text: p.title, Icon: p.icon,
			Current: p.path == v.section.path})
	}
	return l
}

// baseLayout returns the data that the pages for everybody and those of the console have in common.
// current is the path of the navigation entry that leads to the page.
func (s *Server) baseLayout(v *visit, title, current string) layout {
	l := layout{
		Page: look.Page{Title: title, Product: "snapcloud", Home: s.root + Snapshots, Nav: s.navigation(v, current),
			Who: v.caller.User.Email, WhoLink: s.root + "/auth/account", Styles: []string{"snapshots.css"}},
		Org: v.caller.Org, Heading: v.section.title, Here: s.root + current,
		Self: v.withParameter("done", ""), CSRF: v.csrf,
		Done: successes()[v.r.URL.Query().Get("done")],
	}
	if l.Flash = v.flash(); l.Flash != nil {
		l.Done = ""
	}
	if v.problem != nil {
		l.showError(v, v.problem)
	}
	return l
}

// navigation lists the parts of the service that the caller may open.
func (s *Server) navigation(v *visit, current string) (all []look.Link) {
	add := func(path, text, icon string) {
		all = append(all, look.Link{URL: s.root + path, Text: text, Icon: icon, Current: path == current})
	}
	add(Snapshots, "Snapshots", "load")
	add(Requests, "Requests", "person")
	if admins(v.caller) {
		add(Prefix, "Organization", "building")
	}
	add("/docs", "API", "")
	return all
}

// showError puts an error on the page if it concerns the person's input, and reports whether it
// does.
func (l *layout) showError(v *visit, err error) bool {
	var known *snap.Error
	if !errors.As(err, &known) {
		return false
	}
	status := known.Code.Info().Status
	if status < 400 || status >= 500 || known.Code == snap.CodeUnauthenticated {
		return false
	}
	v.status = status
	l.Done, l.Problem, l.Hint = "", known.Error(), known.Hint
	return true
}

// write writes a page.
func (s *Server) write(v *visit, name string, data any) error {
	return s.views.Page(v.w, cmp.Or(v.status, http.StatusOK), name, data)
}

// problemPage is the data of problem.html.
type problemPage struct {
	look.Page
	Problem api.Problem
}

// fail writes the page that describes an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.o.Problem(r.Context(), err)
	p.Title = strings.ToUpper(p.Title[:1]) + p.Title[1:]
	data := problemPage{look.Page{Title: p.Title, Product: "snapcloud", Home: s.root + "/", Narrow: true}, p}
	if err := s.views.Page(w, p.Status, "problem.html", data); err != nil {
		s.o.Problem(r.Context(), err)
	}
}
