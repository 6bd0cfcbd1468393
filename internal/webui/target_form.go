package webui

import (
	"context"
	"net/http"
	"strings"

	"snap"
	"snap/internal/local"
	"snap/internal/look"
)

// targetPage is the data of target.html, the form for a new or existing target. It never contains a
// URL with a secret: the field of such a URL is empty, and leaving it empty keeps the current URL.
type targetPage struct {
	look.Page
	Known       bool // the target exists; its name cannot change
	Name        string
	Source      secretField
	Destination secretField
	NameProblem *problem
}

// secretField is a URL as the form shows it.
type secretField struct {
	Name, Label, Hint string
	Value             string   // as typed, or the current URL if it contains no secret
	Kept              string   // the current URL without its secret; leaving the field empty keeps the whole URL
	Was               string   // the URL when the user opened the form, without its secret
	Lost              *problem // why the page did not keep the typed URL; nil if it did
	Problem           *problem
	Tested            *local.DatabaseCheck // the result of Test connection
}

// Works returns the sentence about a tested database that can be used.
func (f secretField) Works() string { return textWorks(*f.Tested) }

// Action returns the URL that the form is sent to.
func (p targetPage) Action() string {
	if p.Known {
		return targetView{Target: local.Target{Name: p.Name}}.Edit()
	}
	return "/targets/new"
}

// targetPage returns the form's data.
func (s *Server) targetPage(title string, t local.Target) targetPage {
	field := func(name, label, hint, value string) secretField {
		if shown := local.Redact(value); shown != value {
			return secretField{Name: name, Label: label, Hint: hint, Kept: shown, Was: shown}
		}
		return secretField{Name: name, Label: label, Hint: hint, Value: value, Was: value}
	}
	page := targetPage{
		Page: s.page(title, "/targets"), Name: t.Name,
		Source:      field("source", "Source", hintSource, t.Source),
		Destination: field("destination", "Destination", hintDestination, t.Destination),
	}
	page.Narrow = true
	return page
}

func (s *Server) newTarget(w http.ResponseWriter, _ *http.Request) error {
	return s.views.Page(w, http.StatusOK, "target.html", s.targetPage(titleNewTarget, local.Target{}))
}

func (s *Server) editTarget(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	page := s.targetPage(titleChange(t.Name), t)
	page.Known = true
	return s.views.Page(w, http.StatusOK, "target.html", page)
}

// saveNewTarget writes a target into the configuration file.
func (s *Server) saveNewTarget(w http.ResponseWriter, r *http.Request) error {
	t := local.Target{Name: r.PostFormValue("name")}
	page := s.targetPage(titleNewTarget, t)
	name, err := snap.CleanTarget(t.Name)
	if err == nil {
		if _, known := s.o.Agent.Config().Targets[name]; known {
			err = errTargetKnown()
		}
	}
	if err != nil {
		page.NameProblem = problemOf(err)
	}
	t.Name = name
	return s.saveTarget(w, r, page, t)
}

// saveExistingTarget changes the source and destination of an existing target.
func (s *Server) saveExistingTarget(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	page := s.targetPage(titleChange(t.Name), t)
	page.Known = true
	return s.saveTarget(w, r, page, t)
}

// saveTarget saves the fields that the user changed, or shows the form again with an error next to
// each invalid field. It changes no other setting in the file.
func (s *Server) saveTarget(w http.ResponseWriter, r *http.Request, page targetPage, t local.Target) error {
	bad := page.NameProblem != nil
	source, changesSource := page.Source.read(r)
	destination, changesDestination := page.Destination.read(r)
	change := func(t *local.Target) {
		if changesSource {
			t.Source = source
		}
		if changesDestination {
			t.Destination = destination
		}
	}
	change(&t)
	bad = bad || page.Source.Problem != nil || page.Destination.Problem != nil
	if !bad && t.Source == "" && t.Destination == "" {
		bad, page.Source.Problem = true, problemOf(errNoDatabase())
	}
	if !bad && r.PostFormValue("test") != "" {
		s.test(r.Context(), &page, t)
		return s.views.Page(w, http.StatusOK, "target.html", page)
	}
	if bad {
		return s.views.Page(w, http.StatusUnprocessableEntity, "target.html", page)
	}
	if err := s.o.Agent.ChangeTarget(t.Name, change); err != nil {
		return err
	}
	return redirect(w, r, "/targets")
}

// read reads the field from a form that was sent. It returns the typed URL, and whether the user
// changed the field. It sets the problem of the field if the typed URL is not valid, if another
// program changed the current URL after the form was opened, or if the page did not keep the typed
// URL and the user did not enter it again.
func (f *secretField) read(r *http.Request) (typed string, changed bool) {
	typed = strings.TrimSpace(r.PostFormValue(f.Name))
	was := r.PostFormValue(f.Name + "-was")
	switch {
	case typed == "" && r.PostFormValue(f.Name+"-lost") != "":
		f.Lost = problemOf(errLostURL())
		f.Problem = f.Lost
		return "", false
	case typed == was || typed == f.Was || typed == "" && was == f.Was && f.Kept != "":
		return "", false
	case was != f.Was:
		f.Problem = problemOf(errChangedMeanwhile(f.Was))
	case typed != "":
		f.Problem = problemOf(local.CheckURL(typed))
	}
	if typed != "" || f.Problem == nil {
		f.Value = typed
	}
	if local.Redact(typed) != typed {
		f.Value, f.Lost = "", problemOf(errLostURL())
	}
	return typed, true
}

// test connects to the databases of the form and shows each result next to its field.
func (s *Server) test(ctx context.Context, page *targetPage, t local.Target) {
	for _, c := range s.o.Agent.CheckDatabases(ctx, t) {
		field := &page.Source
		if c.Role == page.Destination.Name {
			field = &page.Destination
		}
		switch {
		case c.Err != nil:
			field.Problem = problemOf(c.Err)
		case len(c.Missing) > 0:
			field.Problem = &problem{Detail: c.Missing[0].What, Hint: c.Missing[0].Remedy}
		default:
			field.Tested = &c
		}
	}
}
