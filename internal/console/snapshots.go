package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// snapshotsPage is the data of snapshots.html.
type snapshotsPage struct {
	layout
	Items    []api.Snapshot
	Chosen   api.ListOptions
	Filters  []look.Link
	Since    string   // the first day, as typed
	Until    string   // the last day
	ToDelete []string // IDs of snapshots whose deletion the person has to confirm
	ToEnd    []string // IDs of snapshots whose shares end once the person has confirmed it
	Endings  []ending // those shares
	Waiting  int      // requests for access that the caller may answer
	Requests string   // address of their page
	Range    string   // which part of the list the page shows
	First    string   // address of the first page; empty on the first two pages
	Previous string   // address of the page before; empty if it is not known
	Next     string   // address of the next page
	Me       string   // e-mail of the caller
}

// Narrowed reports whether the list is filtered, so that an empty list does not mean that there are
// no snapshots.
func (p snapshotsPage) Narrowed() bool {
	return p.Chosen.Q != "" || p.Chosen.Target != "" || p.Chosen.Type != "" || p.Chosen.Filter != snap.FilterAll ||
		p.Chosen.Owner != "" || p.Since != "" || p.Until != "" || p.Chosen.ExpiresSoon
}

// OfTarget returns the address of the list of a target's snapshots.
func (p snapshotsPage) OfTarget(name string) string {
	return p.Here + "?" + url.Values{"target": {name}}.Encode()
}

// Address returns the address of a snapshot's page.
func (p snapshotsPage) Address(s api.Snapshot) string { return p.Here + "/" + url.PathEscape(s.ID) }

// snapshots lists the snapshots that the caller may see, newest first.
func (s *Server) snapshots(v *visit) error {
	data := snapshotsPage{layout: s.baseLayout(v, v.section.title, Snapshots), Me: v.caller.User.Email,
		Since: v.query("since"), Until: v.query("until")}
	data.Chosen = api.ListOptions{Filter: cmp.Or(snap.Filter(v.query("show")), snap.FilterAll),
		Target: v.query("target"), Type: snap.Type(v.query("type")), Q: v.query("q"), Owner: v.query("owner"),
		Cursor: v.query("cursor"), Limit: rowsPerPage}
	if data.Chosen.Filter == expiring {
		data.Chosen.Filter, data.Chosen.ExpiresSoon = snap.FilterAll, true
	}
	err := data.parseDays()
	var page api.SnapshotPage
	if err == nil {
		page, err = v.api.Snapshots(v.r.Context(), data.Chosen)
	}
	if err != nil && !data.showError(v, err) {
		return err
	}
	waiting, err := v.api.AccessRequests(v.r.Context())
	if err != nil {
		return err
	}
	data.Items, data.Waiting, data.Requests = page.Items, len(waiting), s.root+Requests
	if data.Problem == "" {
		if err := data.setPosition(v, page); err != nil {
			return err
		}
	}
	data.Filters = filters(v)
	if v.problem != nil && v.problem.Code == snap.CodeConfirm {
		switch v.field("do") {
		case "delete":
			data.Problem, data.ToDelete = "", v.r.PostForm["id"]
		case "unshare":
			data.Problem, data.ToEnd = "", v.r.PostForm["id"]
			if data.Endings, err = v.sharesToEnd(v.r.Context(), data.ToEnd); err != nil {
				return err
			}
		}
	}
	return s.write(v, "snapshots.html", data)
}

// maxPast is the maximum number of earlier pages that an address remembers.
const maxPast = 100

// setPosition sets the position of the page in the list, and the addresses of the other pages.
// Cursors lead only forward, so the parameter "past" has the cursors of the pages between the first
// one and this one.
func (p *snapshotsPage) setPosition(v *visit, page api.SnapshotPage) error {
	cursor, past := v.query("cursor"), strings.FieldsFunc(v.query("past"), func(r rune) bool { return r == '.' })
	known := len(past) <= maxPast
	at := func(cursor string, past []string) string {
		q := v.r.URL.Query()
		q.Del("done")
		q.Del("cursor")
		q.Del("past")
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if len(past) > 0 {
			q.Set("past", strings.Join(past, "."))
		}
		return (&url.URL{Path: v.r.URL.Path, RawQuery: q.Encode()}).String()
	}
	before, all, more := 0, len(page.Items), false
	switch {
	case cursor == "":
		past = nil
	case !known:
		p.First = at("", nil)
	case len(past) == 0:
		p.Previous, before = at("", nil), rowsPerPage
	default:
		p.First, p.Previous = at("", nil), at(past[len(past)-1], past[:len(past)-1])
		before = rowsPerPage * (len(past) + 1)
	}
	if page.NextCursor != "" {
		next := past
		if cursor != "" && known {
			next = append(slices.Clone(past), cursor)
		}
		p.Next = at(page.NextCursor, next)
	}
	if cursor != "" || page.NextCursor != "" {
		n, err := v.api.CountSnapshots(v.r.Context(), p.Chosen)
		if err != nil {
			return err
		}
		all, more = n.Count, n.More
	}
	if known && len(page.Items) > 0 {
		p.Range = look.Range(before, len(page.Items), all, more)
	}
	return nil
}

// expiring is the filter for snapshots with a share that expires soon.
const expiring snap.Filter = "expiring"

// parseDays parses the days of the filter. Until is the last day that it includes.
func (p *snapshotsPage) parseDays() error {
	for _, one := range []struct {
		text string
		into *time.Time
		add  int
	}{{p.Since, &p.Chosen.Since, 0}, {p.Until, &p.Chosen.Until, 1}} {
		if one.text == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, one.text)
		if err != nil {
			return snap.Invalid("that is not a date", "write dates like 2026-11-21")
		}
		*one.into = day.AddDate(0, 0, one.add)
	}
	return nil
}

// filters returns the links that choose which snapshots are listed. They keep the other filters and
// begin at the first page.
func filters(v *visit) (all []look.Link) {
	chosen := cmp.Or(snap.Filter(v.query("show")), snap.FilterAll)
	for _, f := range []struct {
		filter snap.Filter
		text   string
	}{{snap.FilterAll, "All"}, {snap.FilterMine, "Mine"}, {snap.FilterShared, "Shared"},
		{snap.FilterReceived, "Received"}, {expiring, "Expires soon"}} {
		q := v.r.URL.Query()
		q.Del("cursor")
		q.Del("past")
		q.Del("done")
		q.Set("show", string(f.filter))
		if f.filter == snap.FilterAll {
			q.Del("show")
		}
		all = append(all, look.Link{URL: (&url.URL{Path: v.r.URL.Path, RawQuery: q.Encode()}).String(),
			Text: f.text, Current: f.filter == chosen})
	}
	return all
}
