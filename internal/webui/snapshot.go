package webui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/local"
	"snap/internal/look"
)

// snapshotPage is the data of snapshot.html: one snapshot with its card, wherever its copies are.
type snapshotPage struct {
	look.Page
	Row      row
	Card     look.Card
	Mine     []look.Way     // why the caller sees the cloud copy
	Audience *look.Audience // people who see the cloud copy; nil unless the caller may know
	Pulls    []api.PullCount
	Sizes    look.Plot
	Link     string   // address of the snapshot's page on the service, to send to a colleague
	Problem  *problem // why the cloud copy of a local snapshot is missing
	Gone     bool     // it was deleted or unshared while its page was open
	Jobs     []jobView
}

// changedSnapshot is the data of the part "changed": the page after a change of its shares.
type changedSnapshot struct {
	snapshotPage
	Change look.Change
}

// versionsShown is the maximum number of a target's snapshots in the plot of their sizes.
const versionsShown = 30

// cloudSnapshot shows a cloud snapshot, with its local copy if there is one.
func (s *Server) cloudSnapshot(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return s.reportGone(w, r, err)
	}
	return s.showSnapshot(w, r, one, nil)
}

// localSnapshot shows a local snapshot, with its recorded cloud copy if the caller may see it.
func (s *Server) localSnapshot(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err == nil && l.Name != r.PathValue("name") { // an abbreviation may later match another snapshot
		err = errNoPage()
	}
	if err != nil {
		return s.reportGone(w, r, err)
	}
	one := row{Local: &l, Revision: s.revisions.next()}
	if !s.cloud.configured() {
		return s.showSnapshot(w, r, one, nil)
	}
	if id := l.Cloud[s.cloud.base()]; id != "" {
		synced, err := s.cloudRow(r.Context(), id)
		if err == nil {
			synced.Local = &l
			return s.showSnapshot(w, r, synced, nil)
		}
		if snap.CodeOf(err) != snap.CodeNotFound {
			return s.showSnapshot(w, r, one, err)
		}
	}
	one.Me, err = s.cloud.whoami(r.Context())
	return s.showSnapshot(w, r, one, err)
}

// reportGone shows in an open page that its snapshot no longer exists. For any other request it
// returns the error.
func (s *Server) reportGone(w http.ResponseWriter, r *http.Request, err error) error {
	if !fragment(r) || snap.CodeOf(err) != snap.CodeNotFound {
		return err
	}
	page := snapshotPage{Page: s.page(titleSnapshot, "/snapshots"), Gone: true}
	return s.views.Part(w, http.StatusOK, "snapshot.html", "snapshot", page)
}

// showSnapshot writes the page of a snapshot. problem is why its cloud copy is missing.
func (s *Server) showSnapshot(w http.ResponseWriter, r *http.Request, one row, problem error) error {
	page, err := s.snapshotOf(r.Context(), r.URL.Query(), one)
	if err != nil {
		return err
	}
	page.Problem = problemOf(problem)
	return s.show(w, r, "snapshot.html", "snapshot", page)
}

// snapshotOf collects the data of a snapshot's page. v has the number of the page of tables and the
// words to search for.
func (s *Server) snapshotOf(ctx context.Context, v url.Values, one row) (snapshotPage, error) {
	one.Back = one.Page()
	p := snapshotPage{Page: s.page(one.Target(), "/snapshots"), Row: one, Jobs: s.dock()}
	p.Revision = one.Revision
	q := strings.TrimSpace(v.Get("q"))
	n, err := strconv.Atoi(v.Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	if one.Cloud != nil {
		if err := s.loadCloud(ctx, &p, q, n); err != nil {
			return p, err
		}
		p.Link = s.cloud.base() + "/snapshots/" + url.PathEscape(one.Cloud.ID)
	}
	if one.Local != nil && p.Card.Card == nil {
		if err := s.loadLocal(&p, q, n); err != nil {
			return p, err
		}
	}
	if one.Cloud == nil {
		p.Card.Signed = s.o.Agent.Certificate(*one.Local)
	}
	p.Card.Snapshot, p.Card.Q, p.Card.Here, p.Card.List = one.either(), q, one.Page(), "/snapshots"
	return p, nil
}

// Here returns the address of the page with the same tables.
func (p snapshotPage) Here() string {
	if p.Card.Q == "" && p.Card.Page <= 1 {
		return p.Card.Here
	}
	return p.Card.Here + "?" + url.Values{"q": {p.Card.Q}, "page": {strconv.Itoa(p.Card.Page)}}.Encode()
}

// loadCloud requests everything about the cloud copy from the service concurrently.
func (s *Server) loadCloud(ctx context.Context, p *snapshotPage, q string, n int) error {
	c, sn := s.cloud.client(), *p.Row.Cloud
	var ways []api.AccessWay
	var versions []api.Snapshot
	var changes api.CardChanges
	var access api.Access
	g, ctx := errgroup.WithContext(ctx)
	load := func(ask func() error) {
		g.Go(func() error {
			err := ask()
			if snap.CodeOf(err) == snap.CodeNotFound { // an older service
				return nil
			}
			return err
		})
	}
	load(func() (err error) { p.Card.SnapshotCard, err = c.Card(ctx, sn.ID, q, n); return err })
	load(func() (err error) { ways, err = c.Why(ctx, sn.ID); return err })
	load(func() (err error) { changes, err = c.CardChanges(ctx, sn.ID); return err })
	load(func() (err error) { versions, err = c.Versions(ctx, sn, versionsShown); return err })
	explain := sn.Can != nil && sn.Can.Explain
	if explain {
		load(func() (err error) { access, err = c.Access(ctx, sn.ID, ""); return err })
		load(func() (err error) { p.Pulls, err = c.Pulls(ctx, sn.ID); return err })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.Mine, p.Card.Changes = look.Ways(ways, sn.Organization), &changes
	p.Sizes = look.Sizes(versions, s.o.Now().Location())
	if changes.Previous != nil {
		p.Card.Before = row{Cloud: changes.Previous}.Page()
	}
	if explain {
		p.Audience = look.AudienceOf(access, sn.Organization, sn.Organization)
	}
	return nil
}

// loadLocal reads the card of the local copy from its file, and compares it with the local snapshot
// before it.
func (s *Server) loadLocal(p *snapshotPage, q string, n int) error {
	l := *p.Row.Local
	if err := s.o.Agent.Describe(&l, nil); err != nil {
		return err
	}
	versions, err := s.versions(l)
	if err != nil {
		return err
	}
	if p.Row.Cloud == nil {
		p.Sizes = look.Sizes(snapshotsOf(versions), s.o.Now().Location())
		p.Sizes.When = whenBuilt
	}
	if l.Card == nil {
		p.Card.Sealed = l.Encrypted > 0
		return nil
	}
	p.Card.SnapshotCard = card.Page(*l.Card, q, n)
	before, changes, err := s.o.Agent.Changes(l)
	if before == nil {
		return err
	}
	previous := row{Local: before}
	sn := previous.either()
	p.Card.Before = previous.Page()
	p.Card.Changes = &api.CardChanges{Previous: &sn, Changes: changes, Counted: card.Counts(*l.Card, before.SHA256)}
	return nil
}

// versions returns the newest local snapshots of a snapshot's target and type, the newest first.
func (s *Server) versions(of local.Snapshot) ([]local.Snapshot, error) {
	all, err := s.o.Agent.Snapshots(of.Target)
	all = slices.DeleteFunc(all, func(l local.Snapshot) bool { return l.Type != of.Type })
	return all[:min(len(all), versionsShown)], err
}

// snapshotsOf converts local snapshots to the type that the service uses.
func snapshotsOf(here []local.Snapshot) (all []api.Snapshot) {
	for i := range here {
		all = append(all, row{Local: &here[i]}.either())
	}
	return all
}
