package webui

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
	"snap/internal/look"
	"snap/internal/nightly"
)

// homePage is the data of home.html: the state of each target, and what needs attention.
type homePage struct {
	look.Page
	Targets   []homeTarget
	More      int   // number of targets that are not listed
	Ending    []row // with a share that ends soon
	Exposed   []row // originals that others can see
	Partial   bool  // only the newest collectLimit cloud snapshots were considered
	Cloud     bool  // a cloud service is configured
	Problem   *problem
	SignedOut bool
	SignIn    signinView
	Jobs      []jobView
}

// homeTarget is the state of one target.
type homeTarget struct {
	targetView
	Known   bool         // the target is configured on this machine
	Built   *row         // the newest snapshot that was built here, without its cloud copy
	Proven  *row         // the newest masked copy that was verified by loading it, without its cloud copy
	Pushed  *row         // the newest one that the organization pushed
	Masked  *row         // the newest sanitized one, on this machine or in the cloud
	Night   *nightly.Run // the last run of its nightly job
	Changed string       // how much data is new in the newest local snapshot for which that is known
	Sizes   look.Plot
	rows    []row
}

// The maximum numbers of entries on the page, so that it stays small.
const (
	targetsHome = 24
	alertsHome  = 10
	pointsHome  = 20
)

// home shows the overview.
func (s *Server) home(w http.ResponseWriter, r *http.Request) error {
	revision := s.revisions.next()
	list, err := s.newest(r.Context(), query{Show: showAll})
	if err != nil {
		return err
	}
	page := homePage{Page: s.page(titleHome, "/"), Cloud: s.cloud.configured(), Problem: problemOf(list.Problem),
		Partial: list.SortedOnly, Jobs: s.dock()}
	page.Revision = revision
	if page.SignedOut = signedOut(list.Problem); page.SignedOut {
		page.SignIn = s.signin.view("/")
	}
	page.alert(list.Rows, s.o.Now())
	page.Targets = s.homeTargets(list.Rows)
	page.More = max(0, len(page.Targets)-targetsHome)
	page.Targets = page.Targets[:min(len(page.Targets), targetsHome)]
	return s.show(w, r, "home.html", "home", page)
}

// alert sets the snapshots that need attention: those with a share that ends soon, the soonest
// first, and the shared originals, the newest first.
func (p *homePage) alert(rows []row, now time.Time) {
	for _, one := range rows {
		c := one.Cloud
		if c == nil {
			continue
		}
		if end := nextEnd(*c); end != nil && end.Sub(now) <= snap.SoonExpiring {
			p.Ending = append(p.Ending, one)
		}
		if !one.Sanitized() && !c.Received && (c.Shared || c.Groups > 0 || c.Orgs > 0 || c.Outside) {
			p.Exposed = append(p.Exposed, one)
		}
	}
	slices.SortStableFunc(p.Ending, func(a, b row) int { return a.NextEnd().Compare(*b.NextEnd()) })
	slices.SortStableFunc(p.Exposed, func(a, b row) int { return b.Created().Compare(a.Created()) })
}

// Soon returns the first entries of Ending.
func (p homePage) Soon() []row { return p.Ending[:min(len(p.Ending), alertsHome)] }

// Originals returns the newest entries of Exposed.
func (p homePage) Originals() []row { return p.Exposed[:min(len(p.Exposed), alertsHome)] }

// EndingURL returns the URL of the list of shares that end soon.
func (p homePage) EndingURL() string {
	return query{Show: showCloud, filters: filters{Only: onlyEnding}}.URL()
}

// ExposedURL returns the URL of the list of originals in the cloud.
func (p homePage) ExposedURL() string { return query{Show: showCloud, Type: snap.TypeSnapshot}.URL() }

// homeTargets returns the configured targets and the targets of the rows, beginning with the target
// that has the newest snapshot.
func (s *Server) homeTargets(rows []row) []homeTarget {
	var all []*homeTarget
	byName := map[string]*homeTarget{}
	target := func(t local.Target, known bool) *homeTarget {
		if byName[t.Name] == nil {
			byName[t.Name] = &homeTarget{targetView: targetView{Target: t}, Known: known}
			all = append(all, byName[t.Name])
		}
		return byName[t.Name]
	}
	for _, t := range s.o.Agent.Targets() {
		target(t, true)
	}
	for _, one := range rows {
		t := target(local.Target{Name: one.Target()}, false)
		t.rows = append(t.rows, one)
	}
	out := make([]homeTarget, len(all))
	for i, t := range all {
		slices.SortStableFunc(t.rows, func(a, b row) int { return b.Created().Compare(a.Created()) })
		t.fill(s.o.Now().Location())
		if record, err := s.o.Agent.Runs().Read(t.Name); err == nil && len(record.Runs) > 0 {
			t.Night = &record.Runs[len(record.Runs)-1]
		}
		out[i] = *t
	}
	slices.SortStableFunc(out, func(a, b homeTarget) int {
		return cmp.Or(b.Newest.Compare(a.Newest), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// fill sets the target's fields from its rows, which are newest first. Times are shown in the zone.
func (t *homeTarget) fill(zone *time.Location) {
	t.Snapshots = len(t.rows)
	var sizes []api.Snapshot
	for i := range t.rows {
		one := &t.rows[i]
		if i == 0 {
			t.Newest = one.Created()
		}
		if l := one.Local; l != nil {
			if t.Built == nil && l.From.Origin == local.Mine && l.Type == snap.TypeSnapshot {
				t.Built = &row{Local: l}
			}
			if t.Proven == nil && l.Proven {
				t.Proven = &row{Local: l}
			}
			if t.Changed == "" {
				t.Changed = one.Changed()
			}
		}
		if t.Pushed == nil && one.Cloud != nil && !one.Cloud.Received {
			t.Pushed = one
		}
		if t.Masked == nil && one.Sanitized() {
			t.Masked = one
		}
		if one.Type() == t.rows[0].Type() && len(sizes) < pointsHome {
			sizes = append(sizes, one.either())
		}
	}
	t.Sizes = look.Sizes(sizes, zone)
	t.Sizes.Title, t.Sizes.When, t.Sizes.Total = sizesOf(t.Name), whenMade, ""
}

// List returns the URL of the target's snapshots, with the newest sanitized one first.
func (t homeTarget) List() string { return query{Show: showAll, Target: t.Name, Sort: byTarget}.URL() }
