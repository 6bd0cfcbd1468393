package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"snap"
	"snap/api"
)

// visit is one request for a page by a person who is signed in.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	section section
	caller  snap.Caller
	csrf    string
	api     *api.Client // acts as the caller

	secure       bool        // the service is reached by HTTPS
	groupName    string      // name of the group that the form names
	status       int         // of the response; 0 means 200
	problem      *snap.Error // why the form that the page sent failed
	announcement *flash      // for our script
}

// fragment reports whether our script made the request. The script expects only a part of the page.
func (v *visit) fragment() bool { return v.r.Header.Get("Fragment") != "" }

// page returns the handler of a section, for the people for whom isAllowed returns true.
func (s *Server) page(p section, isAllowed func(snap.Caller) bool) http.HandlerFunc {
	return s.visitHandler(isAllowed, func(v *visit) error {
		v.section = p
		if v.r.Method != http.MethodPost {
			return s.read(v)
		}
		if err := s.o.Forms.Check(v.w, v.r, v.csrf); err != nil {
			return err
		}
		done, err := p.act(v)
		if err != nil {
			return s.showAgain(v, err)
		}
		if v.fragment() && v.announcement == nil {
			v.announcement = &flash{Text: successes()[done]}
		}
		if v.announcement != nil {
			return p.show(v)
		}
		if done == announced {
			http.Redirect(v.w, v.r, v.withParameter("done", ""), http.StatusSeeOther)
		} else if done != "" {
			http.Redirect(v.w, v.r, v.withParameter("done", done), http.StatusSeeOther)
		}
		return nil
	})
}

// read shows a page whose requests to the API only read. They act as the caller whom [Server.admit]
// has just authenticated. The API authenticates each request of a form or an export itself: a form
// may end the session that sent it, and an export can take as long as the browser needs to receive
// it.
func (s *Server) read(v *visit) (err error) {
	if v.api, err = s.client(v.r, &v.caller); err != nil {
		return err
	}
	return v.section.show(v)
}

// showAgain shows the page again with the reason why its form failed.
func (s *Server) showAgain(v *visit, err error) error {
	if !new(layout).showError(v, err) || !errors.As(err, &v.problem) {
		return err
	}
	return v.section.show(v)
}

// everybody admits everyone who is signed in.
func everybody(snap.Caller) bool { return true }

// admins reports whether c is an owner or admin.
func admins(c snap.Caller) bool { return snap.Allowed(c, snap.ActAdminister, snap.Snapshot{}) == nil }

// visitHandler returns a handler for the people for whom isAllowed returns true. Others get the
// response for an address that does not exist. People who are signed out are sent to the sign-in
// page.
func (s *Server) visitHandler(isAllowed func(snap.Caller) bool, h func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r, secure: strings.HasPrefix(s.o.PublicURL, "https:")}
		err := s.admit(v, isAllowed)
		if err == nil {
			err = h(v)
		}
		switch {
		case err == nil:
		case snap.CodeOf(err) == snap.CodeUnauthenticated:
			next := url.Values{"next": {r.URL.RequestURI()}}
			http.Redirect(w, r, s.root+"/auth/signin?"+next.Encode(), http.StatusSeeOther)
		case errors.Is(err, errNoPage):
			s.o.NotFound.ServeHTTP(w, r)
		default:
			s.fail(w, r, err)
		}
	}
}

// errNoPage is the error for an address that does not exist or that the caller is not allowed to
// open.
var errNoPage = errors.New("the page does not exist for this caller")

// admit sets the caller, who must use a browser and for whom isAllowed must return true.
func (s *Server) admit(v *visit, isAllowed func(snap.Caller) bool) error {
	caller, err := s.o.Caller(v.r)
	if err != nil {
		return err
	}
	if caller.Credential.Kind != snap.Browser || !isAllowed(caller) {
		return errNoPage
	}
	v.caller = caller
	v.csrf = s.o.Forms.Token(s.o.Forms.Number(v.w, v.r), caller.Credential.ID)
	v.api, err = s.client(v.r, nil)
	return err
}

// field returns a field of the form that the page sent.
func (v *visit) field(name string) string { return v.r.PostFormValue(name) }

// query returns a parameter of the page's address.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// form returns fields of the form that failed, or nil when no form failed.
func (v *visit) form(names ...string) form {
	if v.problem == nil {
		return nil
	}
	out := form{}
	for _, name := range names {
		out[name] = v.field(name)
	}
	return out
}

// withParameter returns the address of the page with a new value for one parameter; "" removes the
// parameter.
func (v *visit) withParameter(name, value string) string {
	q := v.r.URL.Query()
	q.Del("done")
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	return (&url.URL{Path: v.r.URL.Path, RawQuery: q.Encode()}).String()
}
