package webui

import (
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// accountPage is the data of account.html.
type accountPage struct {
	look.Page
	Cloud    string // the service's URL; empty if none is configured
	Me       api.Me
	Problem  *problem
	SignIn   signinView
	Sessions []api.Session
	Keys     []api.Key
	KeyList  string // the keys to list: own; admins may also choose all or idle
	now      time.Time
	Config   string
	Version  string
	Jobs     []jobView
}

// The values of KeyList.
const (
	ownKeys  = "own"
	allKeys  = "all"
	idleKeys = "idle"
)

// keyList returns the choice of keys that a request asks for.
func keyList(r *http.Request, me api.Me) string {
	list := r.URL.Query().Get("keys")
	if me.Role.IsAdmin() && (list == allKeys || list == idleKeys) {
		return list
	}
	return ownKeys
}

// Idle reports whether a key has been unused for so long that it may no longer be needed.
func (p accountPage) Idle(k api.Key) bool {
	since := k.CreatedAt
	if k.LastUsed != nil {
		since = *k.LastUsed
	}
	return !p.now.Before(since.Add(snap.IdleKey))
}

// Credential describes the credential with which the caller is signed in.
func (p accountPage) Credential() string { return credentialText(p.Me.Credential.Kind) }

// Stored describes the caller's usage of the service. It returns "" if the service does not report
// the usage.
func (p accountPage) Stored() string { return usageText(p.Me.Usage) }

// OrgStored describes the organization's usage, for its owners and admins.
func (p accountPage) OrgStored() string { return usageText(p.Me.OrgUsage) }

// SignedIn reports whether the caller uses a login session, which the page can end.
func (p accountPage) SignedIn() bool { return p.Me.Credential.Kind == snap.LoginToken }

func (s *Server) account(w http.ResponseWriter, r *http.Request) error {
	s.cloud.forget()
	revision := s.revisions.next()
	page := accountPage{Cloud: s.cloud.base(), Config: s.o.Agent.ConfigPath(), Version: s.o.Version,
		SignIn: s.signin.view(""), Jobs: s.dock()}
	if s.cloud.configured() {
		me, err := s.cloud.whoami(r.Context())
		page.Me, page.Problem = me, problemOf(err)
		if page.SignIn.Offered && signedOut(err) {
			page.Problem = nil // the page offers a sign-in instead
		}
	}
	page.KeyList, page.now = keyList(r, page.Me), s.o.Now()
	if page.SignedIn() {
		filter := api.KeyFilter{All: page.KeyList != ownKeys}
		if page.KeyList == idleKeys {
			filter.Idle = snap.IdleKey
		}
		g, ctx := errgroup.WithContext(r.Context())
		g.Go(func() (err error) {
			page.Sessions, err = s.cloud.client().Sessions(ctx)
			return err
		})
		g.Go(func() (err error) {
			page.Keys, err = s.cloud.client().Keys(ctx, filter)
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
	if err := s.cloud.client().EndSession(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.toAccount(w, r)
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	if err := s.cloud.client().RevokeKey(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.toAccount(w, r)
}
