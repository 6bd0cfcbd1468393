package signin

import (
	"crypto/rand"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"snap"
	"snap/internal/look"
	"snap/internal/store"
)

//go:embed pages/*.html
var pageFiles embed.FS

// visit is one request for a page, with the signed-in user and the browser's CSRF token.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	number  string // the browser's random number, which binds forms to the browser
	csrf    string
	caller  snap.Caller   // zero when nobody is signed in
	session store.Session // of the browser
}

func (v *visit) signedIn() bool { return v.caller.User != nil }

// actAs makes c the audit log's actor for changes to users, keys and sessions.
func (v *visit) actAs(c snap.Caller) { v.r = v.r.WithContext(snap.ActingAs(v.r.Context(), c)) }

// pageHandler handles a visit. The error it returns becomes an error page.
type pageHandler func(*visit) error

// page wraps a page handler. A form (POST) must pass [auth.Forms.Check].
func (s *Service) page(h pageHandler) http.HandlerFunc {
	return s.visitHandler(func(v *visit) error {
		if err := s.checkForm(v); err != nil {
			return err
		}
		return h(v)
	})
}

// accountPage wraps a page handler for people who are signed in. Others are sent to the sign-in
// page before their form is checked, because the form's token ended with their session.
func (s *Service) accountPage(h pageHandler) http.HandlerFunc {
	return s.visitHandler(func(v *visit) error {
		if !v.signedIn() {
			return s.redirect(v, "/signin", url.Values{"next": {s.path + "/account"}})
		}
		if err := s.checkForm(v); err != nil {
			return err
		}
		return h(v)
	})
}

// visitHandler identifies the person before it calls a page handler.
func (s *Service) visitHandler(h pageHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r}
		err := s.identify(v)
		if err == nil {
			err = h(v)
		}
		if err != nil {
			s.errorPage(v, err)
		}
	}
}

// checkForm fails if the request is a form that was not sent by one of our pages.
func (s *Service) checkForm(v *visit) error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	return s.forms.Check(v.w, v.r, v.csrf)
}

// identify finds the signed-in user and computes the CSRF token: a keyed hash of the browser's form
// cookie and its session.
func (s *Service) identify(v *visit) error {
	if err := s.findCaller(v); err != nil && !errors.Is(err, snap.ErrUnauthenticated) {
		return err
	}
	v.number = s.forms.Number(v.w, v.r)
	v.csrf = s.forms.Token(v.number, v.session.ID)
	return nil
}

// findCaller sets the visit's caller and session from the browser's session. It fails with
// snap.ErrUnauthenticated if the user was not confirmed recently enough; see [Service.Confirm].
func (s *Service) findCaller(v *visit) error {
	session, err := s.browser.Session(v.r)
	if err != nil {
		return err
	}
	c, err := s.store.CallerOfUser(v.r.Context(), session.UserID)
	if err != nil {
		return err
	}
	c.Credential = snap.Credential{Kind: snap.Browser, ID: session.ID, Name: session.Name}
	fresh, err := s.Confirm(v.r.Context(), c, session.Confirmed, true)
	if err != nil {
		return err
	}
	if fresh { // the role may have changed
		credential := c.Credential
		if c, err = s.store.CallerOfUser(v.r.Context(), session.UserID); err != nil {
			return err
		}
		c.Credential = credential
	}
	v.caller, v.session = c, session
	v.actAs(c)
	return nil
}

// layout holds the data that all pages have. Page data embeds it.
type layout struct {
	look.Page
	Base string // path of the auth service
	Root string // path of the service's other pages
	CSRF string
}

func (s *Service) layout(v *visit, title string) layout {
	l := layout{Page: look.Page{Title: title, Product: "snapcloud", Home: s.path + "/", Narrow: true},
		Base: s.path, Root: s.root, CSRF: v.csrf}
	if v.signedIn() {
		l.Who, l.WhoLink = v.caller.User.Email, s.path+"/account"
		l.Nav = []look.Link{{URL: s.root + "/snapshots", Text: "Snapshots"}}
	}
	return l
}

func (s *Service) redirect(v *visit, path string, query url.Values) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	http.Redirect(v.w, v.r, s.path+path, http.StatusSeeOther)
	return nil
}

// localPath returns next if it is the path of a page that requires sign-in, otherwise the path of
// the account page. Browsers treat "//" and "\" as the beginning of another host.
func (s *Service) localPath(next string) string {
	home := s.path + "/account"
	if strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(next, "//") {
		return home
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.Contains(u.Path, "..") ||
		strings.Contains(u.Path, "//") {
		return home
	}
	for _, page := range []string{s.path, s.root + "/console", s.root + "/snapshots", s.root + "/requests"} {
		if strings.HasPrefix(u.Path, page+"/") || u.Path == page && page != s.path {
			return next
		}
	}
	return home
}

type problemPage struct {
	layout
	Detail, Hint, ID string
}

func (s *Service) errorPage(v *visit, err error) {
	known, ok := errors.AsType[*snap.Error](err)
	if !ok {
		known = s.fault(v.r, err)
	}
	status := known.Code.Info().Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if errors.As(err, new(errUpstream)) {
		status = http.StatusBadGateway
	}
	if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", retrySoon)
	}
	data := problemPage{layout: s.layout(v, titleOf(status)), Detail: sentence(known.Error()),
		Hint: sentence(known.Hint)}
	// A network error means that the client has disconnected, which needs no log line.
	if err := s.views.Page(v.w, status, "problem.html", data); err != nil && !store.Unavailable(err) {
		s.log.ErrorContext(v.r.Context(), "error page", "error", err)
	}
}

// retrySoon is the Retry-After, in seconds, of a failure that is probably brief.
const retrySoon = "1"

// fault logs an error that the client did not cause, and returns the error to show to the client.
// The returned error says that the database is briefly unavailable, that its disk is full or that
// the request was canceled, or contains the ID under which the original error is logged.
func (s *Service) fault(r *http.Request, err error) *snap.Error {
	if known, ok := errors.AsType[*snap.Error](err); ok && known.Code == snap.CodeStorageFull {
		s.log.WarnContext(r.Context(), "the database's disk is full", "path", r.URL.Path, "error", err)
		return known
	}
	if r.Context().Err() != nil {
		s.log.WarnContext(r.Context(), "the request was canceled", "path", r.URL.Path, "error", err)
		return &snap.Error{Code: snap.CodeUnavailable, Detail: "the request was canceled before it was done",
			Hint: "try again", Cause: err}
	}
	if store.Unavailable(err) {
		s.log.WarnContext(r.Context(), "the database is not available", "path", r.URL.Path, "error", err)
		return store.ErrUnavailable(err)
	}
	id := rand.Text()[:8]
	s.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "id", id, "error", err)
	return &snap.Error{Code: snap.CodeInternal, Detail: "an unexpected error occurred in the service",
		Hint: "try again; if it happens again, give the operator the ID " + id, Cause: err}
}

func titleOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "The request failed"
	case http.StatusUnauthorized:
		return "You are signed out"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusTooManyRequests:
		return "Please wait"
	case http.StatusBadGateway:
		return "Sign-in failed"
	case http.StatusServiceUnavailable:
		return "Temporarily unavailable"
	}
	return "Something went wrong"
}

// sentence formats an error's text as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (s *Service) noPage(*visit) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "this page does not exist",
		Hint: "go to your account, or enter a code to sign in from a terminal"}
}

func (s *Service) home(v *visit) error { return s.redirect(v, "/account", nil) }
