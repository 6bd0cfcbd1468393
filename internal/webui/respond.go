package webui

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"snap"
	"snap/internal/look"
)

// problem is an error as a page displays it.
type problem struct {
	Title  string
	Detail string
	Hint   string
	Back   string
}

func problemOf(err error) *problem {
	if err == nil {
		return nil
	}
	var e *snap.Error
	if !errors.As(err, &e) {
		return problemInside()
	}
	return &problem{Title: titleOf(e.Code), Detail: e.Error(), Hint: e.Hint}
}

// statusOf returns the HTTP status for a page that reports err. 401 is reserved for browsers
// without the start link; being signed out of the cloud gets another status.
func statusOf(err error) int {
	code := snap.CodeOf(err)
	switch code {
	case snap.CodeUnauthenticated, snap.CodeNotSignedIn:
		return http.StatusForbidden
	case snap.CodeUnreachable, snap.CodeUnavailable:
		return http.StatusBadGateway
	case snap.CodeUsage:
		return http.StatusBadRequest
	}
	return cmp.Or(code.Info().Status, http.StatusInternalServerError)
}

// fragment reports whether our script made the request. The script expects fragments instead of a
// whole page.
func fragment(r *http.Request) bool { return r.Header.Get("Fragment") != "" }

// errorPage is the data of error.html.
type errorPage struct {
	look.Page
	Problem problem
}

// fail reports an error of a handler to the browser.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if snap.CodeOf(err) == snap.CodeInternal {
		s.o.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	s.renderProblem(w, r, statusOf(err), err, s.page(titleProblem, ""))
}

// gateProblem reports to a browser why it may not use the web UI.
func (s *Server) gateProblem(w http.ResponseWriter, r *http.Request, status int, err error) {
	s.renderProblem(w, r, status, err, look.Page{Title: titleGate, Product: product, Narrow: true})
}

func (s *Server) renderProblem(w http.ResponseWriter, r *http.Request, status int, err error, page look.Page) {
	data := errorPage{Page: page, Problem: *problemOf(err)}
	data.Page.Narrow = true
	if status == http.StatusUnauthorized || status == http.StatusMisdirectedRequest {
		data.Problem.Title = page.Title
	} else {
		data.Problem.Back = back(r)
		data.Page.Title = data.Problem.Title
	}
	part := "base"
	if fragment(r) {
		part = "toast"
	}
	if err := s.views.Part(w, status, "error.html", part, data); err != nil {
		s.o.Log.Error("the error page failed", "err", err)
		http.Error(w, textInside, http.StatusInternalServerError)
	}
}

// back returns the path, on this server, to which a form asks to return, or /snapshots.
func back(r *http.Request) string {
	to := r.PostFormValue("back")
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return "/snapshots"
	}
	return to
}

// done responds to a change. Our script receives the named part; a browser without JavaScript is
// redirected to the path that [back] returns.
func (s *Server) done(w http.ResponseWriter, r *http.Request, page, part string, data any) error {
	if fragment(r) {
		return s.views.Part(w, http.StatusOK, page, part, data)
	}
	return redirect(w, r, back(r))
}

// redirect tells the browser to request another page after a form was sent.
func redirect(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// show responds to a GET. Our script receives the named part; a browser without JavaScript receives
// the whole page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, page, part string, data any) error {
	if !fragment(r) {
		part = "base"
	}
	return s.views.Part(w, http.StatusOK, page, part, data)
}

func (s *Server) noPage(http.ResponseWriter, *http.Request) error { return errNoPage() }
