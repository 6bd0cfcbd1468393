package webui

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"snap/internal/local"
	"snap/internal/look"
)

// begin starts a job. Our script receives the job's view; a browser without JavaScript is
// redirected to the Jobs page. fields lists the names of the form fields that are needed to repeat
// the job.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, kind, target, title string,
	run func(context.Context, local.Progress) (outcome, error), fields ...string) error {
	id, err := s.jobs.start(task{kind: kind, target: target, title: title, again: again(r, fields), run: run})
	if err != nil {
		return err
	}
	if !fragment(r) {
		return redirect(w, r, "/jobs")
	}
	view := s.jobs.list(func(j *job) bool { return j.id == id })
	return s.views.Part(w, http.StatusAccepted, "jobs.html", "job", view[0])
}

// again returns the URL of the form that repeats a job. Its query has the given fields of the form
// in r, except empty ones.
func again(r *http.Request, fields []string) string {
	var pairs []string
	for _, name := range fields {
		pairs = append(pairs, name, r.FormValue(name))
	}
	return (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: parameters(pairs...).Encode()}).String()
}

func (s *Server) build(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.begin(w, r, "build", t.Name, jobBuild(t.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			built, err := s.o.Agent.Build(ctx, t.Name, local.BuildOptions{}, p)
			return outcome{text: endBuild(built.Name, built.Size), snapshot: built.Name}, err
		})
}

func (s *Server) sanitize(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.begin(w, r, "sanitize", l.Target, jobSanitize(l.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			masked, err := s.o.Agent.Sanitize(ctx, l.Target, local.SanitizeOptions{Snapshot: l.Name}, p)
			return outcome{text: endSanitize(masked.Name, masked.Size), snapshot: masked.Name}, err
		})
}

// loadPage is the data of load.html, which describes a load and asks for confirmation.
type loadPage struct {
	look.Page
	Snapshot local.Snapshot
	// Certificate describes the snapshot's certificate; empty for an original.
	Certificate string
	Preflight   local.Preflight
	Database    string // the name that must be typed; "" if the load replaces nothing
	Problem     *problem
	Back        string
}

// Action returns the URL that the form is sent to.
func (p loadPage) Action() string { return "/local/" + url.PathEscape(p.Snapshot.Name) + "/load" }

// LeftOut returns the number of programs that are not loaded, by kind.
func (p loadPage) LeftOut() string { return local.CountPrograms(p.Preflight.LeftOut) }

// LeftOutKinds returns the programs that are not loaded, by kind.
func (p loadPage) LeftOutKinds() []local.Kind { return local.KindsOf(p.Preflight.LeftOut) }

// Programs returns how many programs the load adds from somebody else's snapshot, by kind.
func (p loadPage) Programs() string { return local.CountPrograms(p.Preflight.Programs) }

// confirmLoad shows what a load would replace and asks the user to type the database's name.
func (s *Server) confirmLoad(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	page := loadPage{Page: s.page(jobLoad(l.Name), "/snapshots"), Snapshot: l, Back: "/snapshots"}
	page.Narrow = true
	page.Preflight, err = s.o.Agent.Preflight(r.Context(), l.Target, local.LoadOptions{Snapshot: l.Name})
	page.Problem, page.Database = problemOf(err), replaced(page.Preflight)
	page.Certificate = s.o.Agent.Certificate(l)
	return s.show(w, r, "load.html", "dialog", page)
}

// load starts a job that loads a snapshot into the destination. If this replaces a database, the
// user must have typed the name of that database.
func (s *Server) load(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	typed := strings.TrimSpace(r.PostFormValue("database"))
	flight, err := s.o.Agent.Preflight(r.Context(), l.Target, local.LoadOptions{Snapshot: l.Name})
	if err != nil {
		return err
	}
	if name := replaced(flight); name != "" && typed != name {
		return errOtherDatabase(name)
	}
	o := confirmedBy(typed, flight)
	o.Terminate = r.PostFormValue("terminate") == "true"
	return s.begin(w, r, "load", l.Target, jobLoad(l.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			res, err := s.o.Agent.Load(ctx, l.Target, o, p)
			text := endLoad(databaseName(res.Destination), len(res.Tables), local.CountPrograms(res.LeftOut),
				res.Notices)
			return outcome{text: text}, err
		})
}

// confirmedBy returns the options of a load for which a name was typed. The database with that name
// may be replaced. Any other database may be replaced only if nothing is lost.
func confirmedBy(typed string, f local.Preflight) local.LoadOptions {
	return local.LoadOptions{Snapshot: f.Snapshot.Name, Agreed: typed == databaseName(f.Destination),
		Confirm: func(now local.Preflight) error {
			if name := replaced(now); name != "" && typed != name {
				return errDestinationChanged()
			}
			return nil
		}}
}

// replaced returns the name of the database that a load replaces, or "" if nothing would be lost.
func replaced(f local.Preflight) string {
	if !f.Loses() {
		return ""
	}
	return databaseName(f.Destination)
}

// databaseName returns the name of the database in a URL: the last part of its path.
func databaseName(destination string) string {
	u, err := url.Parse(destination)
	if err != nil || u.Path == "" && u.Opaque == "" {
		return destination
	}
	return path.Base(u.Path + u.Opaque)
}
