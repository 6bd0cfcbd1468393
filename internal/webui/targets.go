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

// targetView is a target with its local snapshots counted.
type targetView struct {
	local.Target
	Snapshots int
	Newest    time.Time
}

// Build is where the Build form leads.
func (t targetView) Build() string { return "/targets/" + url.PathEscape(t.Name) + "/build" }

// List is the address of its snapshots.
func (t targetView) List() string { return query{Show: showAll, Target: t.Name}.URL() }

// Edit is the address of its form.
func (t targetView) Edit() string { return "/targets/" + url.PathEscape(t.Name) + "/edit" }

// From is the source, without password and without the values of ${NAME}.
func (t targetView) From() string { return local.Redact(t.Source) }

// Into is the destination, likewise.
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
