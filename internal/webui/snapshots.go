package webui

import (
	"maps"
	"net/http"
	"slices"

	"snap"
	"snap/internal/look"
)

// snapshotsPage is the data of snapshots.html.
type snapshotsPage struct {
	look.Page
	listing
	Targets []string
	Types   []snap.Type
	Cloud   bool // a cloud service is configured
	Problem *problem
	// SignedOut means that this machine has no credential that the service accepts. SignIn is then
	// offered, unless the credential is an API key.
	SignedOut bool
	SignIn    signinView
	Jobs      []jobView
}

// Filters returns the entries of the filter row.
func (p snapshotsPage) Filters() []filterLink {
	link := func(s show, text, hint string, n tally) filterLink {
		return filterLink{Link: look.Link{URL: p.Query.first(s).URL(), Text: text, Current: p.Query.Show == s},
			Hint: hint, Count: n.String()}
	}
	return []filterLink{
		link(showAll, "All", hintAll, p.Counts.All),
		link(showLocal, "Local", hintLocal, p.Counts.Local),
		link(showCloud, "Cloud", hintCloud, p.Counts.Cloud),
		link(showShared, "Shared", hintShared, p.Counts.Shared),
	}
}

type filterLink struct {
	look.Link
	Hint  string
	Count string
}

// Cleared returns the URL without search, target, type and other filters.
func (p snapshotsPage) Cleared() string { return query{Show: p.Query.Show, Sort: p.Query.Sort}.URL() }

// First returns the URL of the first page.
func (p snapshotsPage) First() string { return p.Query.first(p.Query.Show).URL() }

// Sorts returns the sort orders to choose from.
func (p snapshotsPage) Sorts() []sortChoice { return sortChoices() }

// OnlyChoices returns the entries of the menu that chooses which snapshots are listed.
func (p snapshotsPage) OnlyChoices() []onlyChoice { return onlyChoices() }

// Filtered reports whether a choice in the menu with the label Filters restricts the list.
func (p snapshotsPage) Filtered() bool { return !p.Query.filters.empty() }

// CollectLimit returns the maximum number of cloud snapshots that are fetched for sorting.
func (p snapshotsPage) CollectLimit() int { return collectLimit }

// Range describes the page's part of the list.
func (p snapshotsPage) Range() string {
	all := map[show]tally{showAll: p.Counts.All, showLocal: p.Counts.Local, showCloud: p.Counts.Cloud,
		showShared: p.Counts.Shared}[p.Query.Show]
	if len(p.Rows) == 0 || !p.Placed {
		return ""
	}
	if !all.Known {
		return look.Range(p.Before, len(p.Rows), -1, false)
	}
	return look.Range(p.Before, len(p.Rows), all.N, all.More)
}

// Heading returns a column heading that sorts by the column.
func (p snapshotsPage) Heading(text string, orders ...order) sortHeading {
	h := sortHeading{Text: text, URL: p.Query.sorted(orders[0]).URL()}
	for i, o := range orders {
		if p.Query.Sort == o && (o != newestFirst || i == 0) {
			h.Now = "descending"
			if o == oldestFirst || o == byName || o == byTarget {
				h.Now = "ascending"
			}
			h.URL = p.Query.sorted(orders[(i+1)%len(orders)]).URL()
		}
	}
	return h
}

// sortHeading is a column heading. Now is the value of aria-sort if the list is sorted by this
// column.
type sortHeading struct{ Text, URL, Now string }

// Later reports whether this is not the first page.
func (p snapshotsPage) Later() bool { return !p.Query.isFirst() }

// PreviousIsFirst reports whether the page before this one is the first.
func (p snapshotsPage) PreviousIsFirst() bool { return p.Previous != nil && p.Previous.isFirst() }

// Narrowed reports whether a search, a target, a type or another filter restricts the list.
func (p snapshotsPage) Narrowed() bool { return p.Query.narrowed() }

// snapshots shows the Snapshots page (SPEC 4.6).
func (s *Server) snapshots(w http.ResponseWriter, r *http.Request) error {
	revision := s.revisions.next()
	list, err := s.list(r.Context(), parseQuery(r.URL.Query()))
	if err != nil {
		return err
	}
	page := snapshotsPage{
		Page: s.page(titleSnapshots, "/snapshots"), listing: list,
		Targets: s.targetNames(list), Types: []snap.Type{snap.TypeSanitized, snap.TypeSnapshot},
		Cloud: s.cloud.configured(), Problem: problemOf(list.Problem), Jobs: s.dock(),
	}
	page.Revision = revision
	if page.SignedOut = signedOut(list.Problem); page.SignedOut {
		page.SignIn = s.signin.view(list.Query.URL())
	}
	return s.show(w, r, "snapshots.html", "listing", page)
}

// targetNames returns the names of the configured targets, of the selected one and of those on the
// current page.
func (s *Server) targetNames(list listing) []string {
	names := slices.Sorted(maps.Keys(s.o.Agent.Config().Targets))
	add := func(n string) {
		if n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	add(list.Query.Target)
	for _, r := range list.Rows {
		add(r.Target())
	}
	return names
}
