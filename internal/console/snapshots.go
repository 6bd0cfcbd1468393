package console

import (
	"net/url"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// snapshotsPage is the data of snapshots.html.
type snapshotsPage struct {
	layout
	Items   []api.Snapshot
	Chosen  api.ListOptions
	Filters []look.Link
	First   string // address of the first page; empty on it
	Next    string // address of the next page
	Me      string // e-mail of the caller
}

// Narrowed reports whether something was chosen, so that an empty list does not mean that there are
// no snapshots.
func (p snapshotsPage) Narrowed() bool {
	return p.Chosen.Q != "" || p.Chosen.Target != "" || p.Chosen.Type != "" || p.Chosen.Filter != snap.FilterAll
}

// OfTarget returns the address of the list of a target's snapshots.
func (p snapshotsPage) OfTarget(name string) string {
	return p.Here + "?" + url.Values{"target": {name}}.Encode()
}

// Address returns the address of a snapshot's page.
func (p snapshotsPage) Address(s api.Snapshot) string { return p.Here + "/" + url.PathEscape(s.ID) }

// snapshots lists the snapshots that the caller may see, newest first.
func (s *Server) snapshots(v *visit) error {
	data := snapshotsPage{layout: s.outer(v, v.section.title, Snapshots), Me: v.caller.User.Email}
	data.Chosen = api.ListOptions{Filter: snap.Filter(v.query("show")), Target: v.query("target"),
		Type: snap.Type(v.query("type")), Q: v.query("q"), Cursor: v.query("cursor"), Limit: onPage}
	if data.Chosen.Filter == "" {
		data.Chosen.Filter = snap.FilterAll
	}
	page, err := v.api.Snapshots(v.r.Context(), data.Chosen)
	if err != nil && !data.shows(v, err) {
		return err
	}
	data.Items = page.Items
	if page.NextCursor != "" {
		data.Next = v.withParameter("cursor", page.NextCursor)
	}
	if v.query("cursor") != "" {
		data.First = v.withParameter("cursor", "")
	}
	data.Filters = filters(v, data.Chosen.Filter)
	return s.write(v, "snapshots.html", data)
}

// filters returns the links that choose whose snapshots are listed. They keep the rest of the choice
// and begin at the first page.
func filters(v *visit, chosen snap.Filter) (all []look.Link) {
	for _, f := range []struct {
		filter snap.Filter
		text   string
	}{{snap.FilterAll, "All"}, {snap.FilterMine, "Mine"}, {snap.FilterShared, "Shared"},
		{snap.FilterReceived, "Received"}} {
		q := v.r.URL.Query()
		q.Del("cursor")
		q.Set("show", string(f.filter))
		if f.filter == snap.FilterAll {
			q.Del("show")
		}
		all = append(all, look.Link{URL: (&url.URL{Path: v.r.URL.Path, RawQuery: q.Encode()}).String(),
			Text: f.text, Current: f.filter == chosen})
	}
	return all
}
