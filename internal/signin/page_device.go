package signin

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"snap"
	"snap/internal/store"
)

type codePage struct {
	layout
	Code    string // as it is shown; it may come from the link
	Problem string
	Hint    string
}

// enterCode shows the form for the code. A link that contains the code only fills in the form.
func (s *Service) enterCode(v *visit) error {
	typed := v.r.URL.Query().Get("user_code")
	data := codePage{layout: s.layout(v, "Sign in from a terminal"), Code: printable(typed, 20)}
	if code, ok := cleanUserCode(typed); ok {
		data.Code = formatUserCode(code)
	}
	return s.views.Page(v.w, http.StatusOK, "code.html", data)
}

// postCode looks up the code and continues with sign-in or with the confirmation page.
func (s *Service) postCode(v *visit) error {
	typed := v.r.PostFormValue("user_code")
	g, err := s.pendingGrant(v, typed)
	if err != nil {
		return s.codeProblem(v, typed, err)
	}
	confirm := url.Values{"user_code": {formatUserCode(g.UserCode)}}
	if v.signedIn() {
		return s.redirect(v, "/device/confirm", confirm)
	}
	return s.redirect(v, "/signin", url.Values{"next": {s.path + "/device/confirm?" + confirm.Encode()}})
}

func (s *Service) codeProblem(v *visit, typed string, err error) error {
	known, ok := errors.AsType[*snap.Error](err)
	if !ok {
		return err
	}
	return s.views.Page(v.w, known.Code.Info().Status, "code.html", codePage{
		layout: s.layout(v, "Sign in from a terminal"), Code: printable(typed, 20),
		Problem: sentence(known.Error()), Hint: sentence(known.Hint),
	})
}

type confirmPage struct {
	layout
	Code, Program, Host, Address string
	Asked, Expires               time.Time
	Caller                       snap.Caller
	SameAddress                  bool
	BrowserAddress               string
	Scopes                       []string
}

// confirm shows where the login request came from, so that the user can recognize it. It approves
// nothing.
func (s *Service) confirm(v *visit) error {
	typed := v.r.URL.Query().Get("user_code")
	if !v.signedIn() {
		return s.redirect(v, "/signin", url.Values{"next": {v.r.URL.RequestURI()}})
	}
	g, err := s.pendingGrant(v, typed)
	if err != nil {
		return s.codeProblem(v, typed, err)
	}
	data := confirmPage{
		layout: s.layout(v, "Is this you?"),
		Code:   formatUserCode(g.UserCode), Program: g.Program, Host: g.Host, Address: g.Address,
		Asked: g.Created, Expires: g.Expires, Caller: v.caller,
		SameAddress: g.Address == s.address(v.r), BrowserAddress: s.address(v.r), Scopes: approvedRights(),
	}
	return s.views.Page(v.w, http.StatusOK, "confirm.html", data)
}

// approvedRights describes to the user the rights that an approval gives. They do not depend on the
// requested scopes: the API and userinfo show every program who the user is, and every login may be
// refreshed.
func approvedRights() []string {
	return []string{"use the cloud service as you, with your role and groups", "stay signed in until you sign it out",
		"see your name and e-mail"}
}

// decide approves or denies a login. It requires a signed-in browser; every form also requires the
// CSRF token.
func (s *Service) decide(v *visit) error {
	typed, decision := v.r.PostFormValue("user_code"), v.r.PostFormValue("decision")
	if !v.signedIn() {
		return s.redirect(v, "/signin",
			url.Values{"next": {s.path + "/device?" + url.Values{"user_code": {typed}}.Encode()}})
	}
	g, err := s.pendingGrant(v, typed)
	if err != nil {
		return s.codeProblem(v, typed, err)
	}
	ctx := v.r.Context()
	switch decision {
	case "approve":
		if err := s.approve(v, g); err != nil {
			return err
		}
	case "deny":
		if err := s.store.DenyDevice(ctx, g.UserCode, "the login was denied in the browser"); err != nil {
			return err
		}
	default:
		return snap.Invalid("the form contains neither approve nor deny", "go back and use one of the two buttons")
	}
	s.log.InfoContext(ctx, "device login decided", "decision", decision, "user", v.caller.User.ID, "program", g.Program,
		"host", g.Host, "address", g.Address)
	return s.redirect(v, "/device/done", url.Values{"decision": {decision}})
}

// approve approves a login, unless the organization has disabled login by device grant.
func (s *Service) approve(v *visit, g store.DeviceGrant) error {
	org, err := s.store.Org(v.r.Context(), v.caller.Org.ID)
	if err != nil {
		return err
	}
	if org.Policy.NoDeviceLogin {
		if err := s.store.DenyDevice(v.r.Context(), g.UserCode,
			"the organization "+org.Slug+" does not allow login from a terminal"); err != nil {
			return err
		}
		return &snap.Error{Code: snap.CodePolicy, Detail: "your organization does not allow login from a terminal",
			Hint: "use an API key, or ask an owner of the organization"}
	}
	return s.store.ApproveDevice(v.r.Context(), g.UserCode, v.caller.User.ID)
}

type donePage struct {
	layout
	Approved bool
}

func (s *Service) done(v *visit) error {
	approved := v.r.URL.Query().Get("decision") == "approve"
	title := "Denied"
	if approved {
		title = "Approved"
	}
	return s.views.Page(v.w, http.StatusOK, "done.html", donePage{layout: s.layout(v, title), Approved: approved})
}
