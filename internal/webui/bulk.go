package webui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// pick is one snapshot that a form acts on: its ID in the cloud, its name on this machine, or both.
// Until is the expiry of the share that Undo restores. warning is the service's warning about a
// share of original data; it is not part of the form.
type pick struct{ ID, Name, Until, warning string }

// bulk is an action on several snapshots.
type bulk struct {
	local   bool // acts on copies on this machine
	confirm bool // asks for confirmation first
	undo    string
	do      func(s *Server, ctx context.Context, p *pick, confirmed bool) (changed bool, err error)
}

// picksLimit is the maximum number of snapshots in one form.
const picksLimit = 500

// bulks returns the actions by the value that their button sends.
func bulks() map[string]bulk {
	return map[string]bulk{
		"share":        {undo: "unshare", do: (*Server).shareOne},
		"unshare":      {undo: "share", do: (*Server).unshareOne},
		"delete":       {confirm: true, do: (*Server).deleteOne},
		"delete-local": {local: true, confirm: true, do: (*Server).deleteOneLocal},
	}
}

func (s *Server) shareOne(ctx context.Context, p *pick, confirmed bool) (bool, error) {
	before, err := s.cloud.client().Snapshot(ctx, p.ID)
	if err != nil || before.Shared {
		return false, err // an existing share keeps its expiry
	}
	with := api.SharesRequest{OrgWide: true}
	if end, err := time.Parse(time.RFC3339Nano, p.Until); err == nil {
		with.ExpiresAt = &end
	}
	result, err := s.cloud.client().ShareWith(ctx, p.ID, with, confirmed)
	p.warning = result.Warning
	return len(result.Changes) > 0 && result.Changes[0].Changed, err
}

// unshareOne notes the expiry of the share that it ends, so that Undo can restore the share
// exactly.
func (s *Server) unshareOne(ctx context.Context, p *pick, _ bool) (bool, error) {
	before, err := s.cloud.client().Snapshot(ctx, p.ID)
	if err != nil || !before.Shared {
		return false, err
	}
	if before.ExpiresAt != nil {
		p.Until = before.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	return true, s.cloud.client().Unshare(ctx, p.ID)
}

func (s *Server) deleteOne(ctx context.Context, p *pick, _ bool) (bool, error) {
	return true, s.cloud.client().Delete(ctx, p.ID)
}

func (s *Server) deleteOneLocal(_ context.Context, p *pick, _ bool) (bool, error) {
	return true, s.o.Agent.DeleteSnapshot(p.Name)
}

// changeSeveral carries out an action on the chosen snapshots. A refusal of one does not stop the
// others.
func (s *Server) changeSeveral(w http.ResponseWriter, r *http.Request) error {
	do := r.PostFormValue("do")
	act, ok := bulks()[do]
	if !ok {
		return errNoSuchAction()
	}
	picks, err := picksOf(r.PostForm["pick"], act.local)
	if err != nil {
		return err
	}
	if !act.local {
		if err := s.requireCloud(); err != nil {
			return err
		}
	}
	confirmed := r.PostFormValue("confirmed") == "true"
	if act.confirm && !confirmed {
		return s.askBulk(w, r, do, picks)
	}
	result := s.each(r.Context(), act, picks, confirmed)
	s.cloud.changed()
	if len(result.asked) == len(picks) {
		return s.askBulk(w, r, do, picks)
	}
	for range result.asked {
		result.refused = append(result.refused, errAsksFirst())
	}
	return s.writeSeveral(w, r, do, result)
}

// severalResult is the result of an action on several snapshots.
type severalResult struct {
	changed []pick
	asked   []pick // the organization's policy requires confirmation for them
	refused []error
}

// writeSeveral responds to an action on several snapshots, with a form that undoes it if that is
// possible.
func (s *Server) writeSeveral(w http.ResponseWriter, r *http.Request, do string, result severalResult) error {
	n := len(result.changed)
	if !fragment(r) {
		if len(result.refused) > 0 {
			return bulkRefused(do, n, result.refused)
		}
		return redirect(w, r, back(r))
	}
	people := s.peopleReached(r.Context(), do, result.changed)
	change := look.Change{Text: bulkText(do, n, people), Action: "/bulk", Refresh: true}
	for _, p := range result.changed {
		change.Warning = cmp.Or(change.Warning, p.warning)
	}
	if len(result.refused) > 0 {
		refusal := bulkRefused(do, 0, result.refused).Error()
		change.Warning = strings.TrimPrefix(change.Warning+"; "+refusal, "; ")
	}
	if undo := bulks()[do].undo; undo != "" && n > 0 {
		change.Fields = look.Fields("do", undo, "confirmed", "true", "back", back(r))
		for _, p := range result.changed {
			change.Fields = append(change.Fields, look.Fields("pick", p.encode())...)
		}
	}
	return s.views.Part(w, http.StatusOK, "snapshots.html", "change", change)
}

// peopleReached returns how many people can see snapshots that were shared with everyone, or 0 if
// that is not known. The number is the same for all of these snapshots, so peopleReached asks about
// the first one only.
func (s *Server) peopleReached(ctx context.Context, do string, changed []pick) int {
	if do != "share" || len(changed) == 0 {
		return 0
	}
	access, err := s.cloud.client().Access(ctx, changed[0].ID, "")
	if err != nil {
		return 0 // the announcement then has no number
	}
	return access.People
}

// each acts on all snapshots, a few at a time.
func (s *Server) each(ctx context.Context, act bulk, picks []pick, confirmed bool) (all severalResult) {
	type outcome struct {
		changed bool
		err     error
	}
	results := make([]outcome, len(picks))
	var g errgroup.Group
	g.SetLimit(8)
	for i := range picks {
		g.Go(func() error {
			results[i].changed, results[i].err = act.do(s, ctx, &picks[i], confirmed)
			return nil
		})
	}
	_ = g.Wait() // the functions return no errors
	for i, result := range results {
		switch {
		case snap.CodeOf(result.err) == snap.CodeConfirm:
			all.asked = append(all.asked, picks[i])
		case result.err != nil:
			all.refused = append(all.refused, result.err)
		case result.changed:
			all.changed = append(all.changed, picks[i])
		}
	}
	return all
}

// askBulk asks for confirmation. Confirming sends the same form again.
func (s *Server) askBulk(w http.ResponseWriter, r *http.Request, do string, picks []pick) error {
	page := confirmPage{Page: s.page(titleSnapshots, "/snapshots"), Question: bulkQuestion(do, len(picks)),
		Detail: bulkDetails(do), Icon: bulkIcon(do), Button: bulkButton(do), Action: "/bulk", Back: back(r),
		Unpicks: true, Fields: look.Fields("do", do, "confirmed", "true")}
	for _, p := range picks {
		page.Fields = append(page.Fields, look.Fields("pick", p.encode())...)
	}
	return s.ask(w, r, page)
}

func (p pick) encode() string {
	return parameters("id", p.ID, "name", p.Name, "until", p.Until).Encode()
}

// picksOf parses the chosen snapshots. If local is set, it returns those with a local copy,
// otherwise those in the cloud. It fails if there is none.
func picksOf(values []string, local bool) (picks []pick, err error) {
	if len(values) > picksLimit {
		return nil, errTooManyPicks()
	}
	for _, value := range values {
		v, err := url.ParseQuery(value)
		p := pick{ID: v.Get("id"), Name: v.Get("name"), Until: v.Get("until")}
		if err != nil || p == (pick{}) {
			return nil, errNoSuchAction()
		}
		if local && p.Name != "" || !local && p.ID != "" {
			picks = append(picks, p)
		}
	}
	if len(picks) == 0 {
		return nil, errNothingPicked(local)
	}
	return picks, nil
}
