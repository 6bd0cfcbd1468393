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
}

// targetView is a target and the number of its local snapshots.
type targetView struct {
	local.Target
	Snapshots int
	Newest    time.Time
}

// Build returns the target of the Build form.
func (t targetView) Build() string { return "/targets/" + url.PathEscape(t.Name) + "/build" }

// List returns the URL of the target's snapshots.
func (t targetView) List() string { return query{Show: showAll, Target: t.Name}.URL() }

// Edit returns the URL of the target's form.
func (t targetView) Edit() string { return "/targets/" + url.PathEscape(t.Name) + "/edit" }

// From returns the source without password and without the values of ${NAME}.
func (t targetView) From() string { return local.Redact(t.Source) }

// Into returns the destination, in the same form as From.
func (t targetView) Into() string { return local.Redact(t.Destination) }

func (s *Server) targets(w http.ResponseWriter, r *http.Request) error {
	page := targetsPage{Page: s.page(titleTargets, "/targets"), Config: s.o.Agent.ConfigPath(), Jobs: s.dock()}
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
