package console

import (
	"cmp"
	"net/url"
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
	Doomed   []string // IDs of snapshots whose deletion the person has to confirm
	Waiting  int      // requests for access that the caller may answer
	Requests string   // address of their page
	First    string   // address of the first page; empty on it
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
	data := snapshotsPage{layout: s.outer(v, v.section.title, Snapshots), Me: v.caller.User.Email,
		Since: v.query("since"), Until: v.query("until")}
	data.Chosen = api.ListOptions{Filter: snap.Filter(v.query("show")), Target: v.query("target"),
		Type: snap.Type(v.query("type")), Q: v.query("q"), Owner: v.query("owner"),
		Cursor: v.query("cursor"), Limit: onPage}
	if data.Chosen.Filter == "" {
		data.Chosen.Filter = snap.FilterAll
	}
	if data.Chosen.Filter == expiring {
		data.Chosen.Filter, data.Chosen.ExpiresSoon = snap.FilterAll, true
	}
	err := data.days()
	var page api.SnapshotPage
	if err == nil {
		page, err = v.api.Snapshots(v.r.Context(), data.Chosen)
	}
	if err != nil && !data.shows(v, err) {
		return err
	}
	waiting, err := v.api.AccessRequests(v.r.Context(), false)
	if err != nil {
		return err
	}
	data.Items, data.Waiting, data.Requests = page.Items, len(waiting), s.root+Requests
	if page.NextCursor != "" {
		data.Next = v.withParameter("cursor", page.NextCursor)
	}
	if v.query("cursor") != "" {
		data.First = v.withParameter("cursor", "")
	}
	data.Filters = filters(v)
	if v.field("do") == "delete" && v.problem != nil && v.problem.Code == snap.CodeConfirm {
		data.Problem, data.Doomed = "", v.r.PostForm["id"]
	}
	return s.write(v, "snapshots.html", data)
}

// expiring is the filter for snapshots with a share that expires soon.
const expiring snap.Filter = "expiring"

// days parses the days of the filter. Until is the last day that it includes.
func (p *snapshotsPage) days() error {
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

// filters returns the links that choose whose snapshots are listed. They keep the other filters and
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

// changeMany shares, unshares or deletes the chosen snapshots.
func (s *Server) changeMany(v *visit) (string, error) {
	ctx, r := v.r.Context(), api.BulkRequest{IDs: v.r.PostForm["id"]}
	if len(r.IDs) == 0 {
		return "", snap.Invalid("no snapshot is chosen", "tick the snapshots to change")
	}
	verb := "shared"
	switch v.field("do") {
	case "everyone":
		r.Share = &api.SharesRequest{OrgWide: true}
	case "group":
		id, err := v.groupID(ctx, strings.TrimSpace(v.field("group")))
		if err != nil {
			return "", err
		}
		r.Share = &api.SharesRequest{GroupIDs: []string{id}}
	case "unshare":
		verb, r.Unshare = "unshared", &api.UnshareRequest{All: true}
	case "delete":
		if v.field("confirmed") == "" {
			return "", &snap.Error{Code: snap.CodeConfirm, Detail: "a deletion must be confirmed"}
		}
		verb, r.Delete = "deleted", true
	default:
		return "", snap.Invalid("the form names no action", "reload the page")
	}
	done, err := v.api.Bulk(ctx, r, false)
	if err != nil {
		return "", err
	}
	v.announce(bulkFlash(done, verb))
	return announced, nil
}

// bulkFlash counts the snapshots that were changed, and names the first reason why others were not.
func bulkFlash(done api.BulkResults, verb string) flash {
	changed, failed := 0, flash{}
	for _, one := range done.Items {
		switch {
		case one.Error == nil:
			changed++
		case failed.Warning == "":
			failed.Warning = one.Error.Detail
		}
	}
	failed.Text = look.Plural(changed, "snapshot", "snapshots") + " " + verb + "."
	if others := len(done.Items) - changed; others > 0 {
		failed.Text += " " + look.Plural(others, "other was", "others were") + " not."
	}
	return failed
}
