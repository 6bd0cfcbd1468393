package webui

import (
	"net/http"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// accountPage is the data of account.html.
type accountPage struct {
	look.Page
	Cloud    string // the service's URL; empty without one
	Me       api.Me
	Problem  *problem
	SignIn   signinView
	Sessions []api.Session
	Keys     []api.Key
	Config   string
	Version  string
	Jobs     []jobView
}

// Credential describes the credential by which the service recognizes the caller.
func (p accountPage) Credential() string { return credentialText(p.Me.Credential.Kind) }

// Stored describes the caller's usage of the service. It is empty if the service does not report
// it.
func (p accountPage) Stored() string { return usageText(p.Me.Usage) }

// OrgStored describes the organization's usage, for its owners and admins.
func (p accountPage) OrgStored() string { return usageText(p.Me.OrgUsage) }

// SignedIn reports whether a login session is in use, which can be ended here.
func (p accountPage) SignedIn() bool { return p.Me.Credential.Kind == snap.LoginToken }

func (s *Server) account(w http.ResponseWriter, r *http.Request) error {
	s.cloud.forget()
	revision := s.revisions.next()
	page := accountPage{Cloud: s.cloud.base(), Config: s.o.Agent.ConfigPath(), Version: s.o.Version,
		SignIn: s.signin.view(), Jobs: s.dock()}
	if s.cloud.configured() {
		me, err := s.cloud.whoami(r.Context())
		page.Me, page.Problem = me, problemOf(err)
		if page.SignIn.Offered && (snap.CodeOf(err) == snap.CodeNotSignedIn ||
			snap.CodeOf(err) == snap.CodeUnauthenticated) {
			page.Problem = nil // the page offers a sign-in instead
		}
	}
	if page.SignedIn() {
		g, ctx := errgroup.WithContext(r.Context())
		g.Go(func() (err error) {
			page.Sessions, err = s.cloud.client().Sessions(ctx)
			return err
		})
		g.Go(func() (err error) {
			page.Keys, err = s.cloud.client().Keys(ctx)
			return err
		})
		if err := g.Wait(); err != nil {
			page.Problem = problemOf(err)
		}
	}
	page.Page = s.page(titleAccount, "/account")
	page.Revision = revision
	return s.show(w, r, "account.html", "account", page)
}

// endSession signs the caller out on another device or browser.
func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	if err := s.cloud.client().EndSession(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.toAccount(w, r)
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	if err := s.cloud.client().RevokeKey(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.toAccount(w, r)
}
