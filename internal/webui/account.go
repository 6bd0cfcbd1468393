package webui

import (
	"net/http"

	"snap/api"
	"snap/internal/look"
)

// accountPage is the data of account.html.
type accountPage struct {
	look.Page
	Cloud   string // the service's URL; empty without one
	Me      api.Me
	Problem *problem
	Config  string
	Version string
	Jobs    []jobView
}

// Credential says in words by what the service knows the caller.
func (p accountPage) Credential() string {
	switch p.Me.Credential.Kind {
	case "login":
		return "login session"
	case "browser":
		return "browser session"
	case "cak":
		return "user-scoped API key"
	case "clt":
		return "organization-level key for pipelines"
	case "sak":
		return "organization-level key of a service agent"
	}
	return ""
}

func (s *Server) account(w http.ResponseWriter, r *http.Request) error {
	s.cloud.forget()
	me, err := s.cloud.whoami(r.Context())
	page := accountPage{Page: s.page(r, "Account", "/account"), Cloud: s.cloud.base(), Me: me, Config: s.o.Agent.ConfigPath(), Version: s.o.Version, Jobs: s.dock()}
	if s.cloud.configured() {
		page.Problem = problemOf(err)
	}
	return s.show(w, r, "account.html", "main", page)
}
