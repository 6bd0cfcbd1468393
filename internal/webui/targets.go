package webui

import (
	"net/http"
	"net/url"
	"time"

	"snap/internal/local"
	"snap/internal/look"
)

// targetsPage is the data of targets.html.
type targetsPage struct {
	look.Page
	Targets []targetView
	Config  string // path of the configuration file
	Jobs    []jobView
	Problem *problem // why the configuration file, which another program changed, cannot be read
}

// targetView is a target and the number of its local snapshots.
type targetView struct {
	local.Target
	Snapshots int
	Newest    time.Time
}

// Build returns the URL that the Build form is sent to.
func (t targetView) Build() string { return "/targets/" + url.PathEscape(t.Name) + "/build" }

// List returns the URL of the target's snapshots.
func (t targetView) List() string { return query{Show: showAll, Target: t.Name}.URL() }

// Edit returns the URL of the form that edits the target.
func (t targetView) Edit() string { return "/targets/" + url.PathEscape(t.Name) + "/edit" }

// Rules returns the URL of the page that reviews the target's rules.
func (t targetView) Rules() string { return rulesPath(t.Name) }

// Remove returns the URL of the page that asks whether to remove the target. Its form is sent to
// the same URL.
func (t targetView) Remove() string { return "/targets/" + url.PathEscape(t.Name) + "/remove" }

// ID returns the ID of the target's card on the page.
func (t targetView) ID() string { return "target-" + url.PathEscape(t.Name) }

// From returns the source for display, with its password hidden and every ${NAME} as written.
func (t targetView) From() string { return local.Redact(t.Source) }

// Into returns the destination, in the same form as From.
func (t targetView) Into() string { return local.Redact(t.Destination) }

func (s *Server) targets(w http.ResponseWriter, r *http.Request) error {
	problem := problemOf(s.o.Agent.Reload())
	page := targetsPage{Problem: problem,
		Page: s.page(titleTargets, "/targets"), Config: s.o.Agent.ConfigPath(), Jobs: s.dock()}
	here, err := s.o.Agent.Snapshots("")
	if err != nil {
		return err
	}
	for _, t := range s.o.Agent.Targets() {
		v := targetView{Target: t}
		for _, l := range here {
			if l.Target == t.Name {
				v.Snapshots++
				if l.Created.After(v.Newest) {
					v.Newest = l.Created
				}
			}
		}
		page.Targets = append(page.Targets, v)
	}
	return s.show(w, r, "targets.html", "main", page)
}

// confirmRemoveTarget asks whether to remove a target.
func (s *Server) confirmRemoveTarget(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.ask(w, r, confirmPage{Page: s.page(titleRemove, "/targets"), Question: removeQuestion(t.Name),
		Detail: removeDetails, Icon: "trash", Button: buttonRemove, Back: "/targets",
		Action: targetView{Target: t}.Remove(), Removes: targetView{Target: t}.ID()})
}

// removeTarget removes a target from the configuration file. Its snapshots remain.
func (s *Server) removeTarget(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Agent.RemoveTarget(r.PathValue("name")); err != nil {
		return err
	}
	return s.done(w, r, "confirm.html", "gone", textRemoved)
}
