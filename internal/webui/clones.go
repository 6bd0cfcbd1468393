package webui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"snap"
	"snap/internal/clone"
	"snap/internal/local"
	"snap/internal/look"
)

// clonesPage is the data of clones.html.
type clonesPage struct {
	look.Page
	Clones  []cloneView
	Targets []string // that have a snapshot and are not production
	TTL     string   // the default lifetime of clones, or ttlOfTarget
	Problem *problem
	Jobs    []jobView
}

// cloneView is a clone as the page shows it.
type cloneView struct{ clone.Listed }

// Action returns the URL of a form for the clone.
func (c cloneView) Action(what string) string {
	return "/clones/" + url.PathEscape(c.Label()) + "/" + what
}

// Droppable reports whether the clone can be dropped here: it is ready and not part of a run.
func (c cloneView) Droppable() bool { return c.Kind != clone.Run && c.State == clone.Ready }

// Changeable reports whether the clone can also be reset and branched here: it has a name.
func (c cloneView) Changeable() bool { return c.Kind == clone.Named && c.State == clone.Ready }

// Badge returns the clone's state or kind, if that is unusual.
func (c cloneView) Badge() string {
	if c.State != clone.Ready {
		return string(c.State)
	}
	if c.Kind != clone.Named {
		return string(c.Kind)
	}
	return ""
}

func (s *Server) clones(w http.ResponseWriter, r *http.Request) error {
	page := clonesPage{Page: s.page(titleClones, "/clones"), Jobs: s.dock()}
	all, err := s.o.Agent.Clones(r.Context())
	page.Problem = problemOf(err)
	for _, c := range all {
		page.Clones = append(page.Clones, cloneView{c})
	}
	for _, t := range s.o.Agent.Targets() {
		if _, err := s.o.Agent.ToClone(t.Name, local.CloneOptions{}); err == nil && !t.Production {
			page.Targets = append(page.Targets, t.Name)
			if ttl := cmp.Or(t.Clones.TTL, "24h"); page.TTL == "" || page.TTL == ttl {
				page.TTL = ttl
			} else {
				page.TTL = ttlOfTarget
			}
		}
	}
	return s.show(w, r, "clones.html", "clones", page)
}

// cloneFields returns the fields of the form that makes clones.
func cloneFields() []string { return []string{"target", "name", "snapshot", "type", "ttl", "count"} }

// cloneForm reads the form that makes clones. It also reads the URL, because the link that repeats
// a job has the fields there.
func (s *Server) cloneForm(r *http.Request) (t local.Target, o local.CloneOptions, err error) {
	if t, err = s.o.Agent.Target(r.FormValue("target")); err != nil {
		return t, o, err
	}
	o = local.CloneOptions{Name: r.FormValue("name"), Snapshot: r.FormValue("snapshot"),
		Type: snap.Type(r.FormValue("type")), Count: 1}
	if o.Type != "" && !o.Type.Valid() {
		return t, o, errNoType(string(o.Type))
	}
	if text := r.FormValue("ttl"); text != "" {
		if o.TTL, err = snap.ParseDuration(text); err != nil {
			return t, o, err
		}
	}
	if text := r.FormValue("count"); text != "" {
		if o.Count, err = strconv.Atoi(text); err != nil || o.Count < 1 {
			return t, o, errNoCount(text)
		}
	}
	return t, o, nil
}

// makeClone makes clones of a target's snapshot, as a job.
func (s *Server) makeClone(w http.ResponseWriter, r *http.Request) error {
	t, o, err := s.cloneForm(r)
	if err != nil {
		return err
	}
	return s.begin(w, r, "clone", t.Name, jobClone(t.Name, o.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			all, err := s.o.Agent.Clone(ctx, t.Name, o, p)
			if err != nil {
				return outcome{}, err
			}
			return outcome{text: endClone(all[0].Name, len(all), all[0].LeftOut)}, nil
		}, cloneFields()...)
}

// warmClones prepares copies for later runs, as a job.
func (s *Server) warmClones(w http.ResponseWriter, r *http.Request) error {
	t, o, err := s.cloneForm(r)
	if err != nil {
		return err
	}
	return s.begin(w, r, "clone", t.Name, jobWarm(t.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			n, err := s.o.Agent.WarmClones(ctx, t.Name, o.Count, o, p)
			return outcome{text: endWarm(n)}, err
		}, cloneFields()...)
}

func (s *Server) branchClone(w http.ResponseWriter, r *http.Request) error {
	from := r.PathValue("name")
	o := local.CloneOptions{Name: r.PostFormValue("name")}
	if _, err := s.o.Agent.Branch(r.Context(), from, o, r.PostFormValue("terminate") == "true"); err != nil {
		return err
	}
	return redirect(w, r, "/clones")
}

// clonePage is the data of clone.html: a question before a clone is reset, branched or dropped.
type clonePage struct {
	look.Page
	Question, Detail, Button, Action string

	Named string // the clone to branch; if set, the page asks for a name for the branch
}

func (s *Server) confirmReset(w http.ResponseWriter, r *http.Request) error {
	return s.confirmClone(w, r, "reset", questionResetClone)
}

func (s *Server) confirmBranch(w http.ResponseWriter, r *http.Request) error {
	return s.confirmClone(w, r, "branch", questionBranchClone)
}

func (s *Server) confirmDrop(w http.ResponseWriter, r *http.Request) error {
	return s.confirmClone(w, r, "drop", questionDropClone)
}

// confirmClone asks for confirmation before a clone is changed.
func (s *Server) confirmClone(w http.ResponseWriter, r *http.Request, what string,
	ask func(clone.Clone) (question, detail, button string)) error {
	c, err := s.o.Agent.FindClone(r.PathValue("name"))
	if err != nil {
		return err
	}
	page := clonePage{Page: s.page(titleClones, "/clones"), Action: cloneView{clone.Listed{Clone: c}}.Action(what)}
	page.Question, page.Detail, page.Button = ask(c)
	page.Narrow = true
	if what == "branch" {
		page.Named = c.Name
	}
	return s.show(w, r, "clone.html", "main", page)
}

func (s *Server) resetClone(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.o.Agent.ResetClone(r.Context(), r.PathValue("name"), local.CloneOptions{}, nil); err != nil {
		return err
	}
	return redirect(w, r, "/clones")
}

func (s *Server) dropClone(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Agent.DropClone(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	return redirect(w, r, "/clones")
}

// tidyEvery is how often expired clones are dropped.
const tidyEvery = 30 * time.Second

// tidy drops expired clones, and templates of revoked snapshots, until the context ends.
func (s *Server) tidy(ctx context.Context) {
	again := time.NewTicker(tidyEvery)
	defer again.Stop()
	for {
		s.tidyOnce(ctx)
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) tidyOnce(ctx context.Context) {
	if err := s.o.Agent.Reload(); err != nil {
		s.o.Log.Debug("the configuration file could not be read", "err", err)
	}
	if _, err := s.o.Agent.SweepClones(ctx); err != nil {
		s.o.Log.Debug("expired clones could not be dropped", "err", err)
	}
	if s.o.Client == nil {
		return
	}
	if _, err := s.o.Agent.DropRevoked(ctx, s.o.Client); err != nil {
		s.o.Log.Debug("templates of revoked snapshots could not be dropped", "err", err)
	}
}
