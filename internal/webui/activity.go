package webui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// activityPage is the data of activity.html: the audit log, for owners and admins.
type activityPage struct {
	look.Page
	Snapshot, Actor string
	Action          snap.AuditAction
	Actions         []snap.AuditAction
	Entries         []activity
	Next            string
	First           string // URL of the first page; empty on that page
	Problem         *problem
	Notices         []api.Notice // events that concern the caller's own snapshots and sessions
	Jobs            []jobView
}

// activity is one audit entry in words.
type activity struct {
	snap.AuditEntry
	Did   string // such as "shared"
	Thing string // name of the object; may be empty
	How   string // such as "with the group eng"; may be empty
	Icon  string
}

func (s *Server) activity(w http.ResponseWriter, r *http.Request) error {
	v, revision := r.URL.Query(), s.revisions.next()
	page := activityPage{
		Snapshot: strings.TrimSpace(v.Get("snapshot")), Actor: strings.TrimSpace(v.Get("actor")),
		Action: snap.AuditAction(v.Get("action")), Actions: snap.AuditActions(), Jobs: s.dock(),
	}
	if v.Get("cursor") != "" {
		page.First = activityURL(v, "")
	}
	if err := s.requireCloud(); err != nil {
		page.Problem = problemOf(err)
	} else {
		o := api.AuditOptions{Snapshot: page.Snapshot, Actor: page.Actor, Action: page.Action, Cursor: v.Get("cursor"),
			Limit: pageSize}
		if me, err := s.cloud.whoami(r.Context()); err == nil {
			page.Notices = me.Notices
		}
		log, err := s.cloud.client().Audit(r.Context(), o)
		page.Problem = problemOf(err)
		page.Entries = inWords(log.Items)
		if log.NextCursor != "" {
			page.Next = activityURL(v, log.NextCursor)
		}
	}
	page.Page = s.page(titleActivity, "/activity")
	page.Revision = revision
	return s.show(w, r, "activity.html", "activity", page)
}

func activityURL(v url.Values, cursor string) string {
	next := parameters("snapshot", v.Get("snapshot"), "actor", v.Get("actor"), "action", v.Get("action"),
		"cursor", cursor)
	return (&url.URL{Path: "/activity", RawQuery: next.Encode()}).String()
}

// inWords converts audit entries to sentences. It names a snapshot if any entry on the page
// contains its name, otherwise it uses the ID.
func inWords(log []snap.AuditEntry) []activity {
	names := map[string]string{}
	for _, e := range log {
		if e.Snapshot != "" && e.Detail.Name != "" {
			names[e.Snapshot] = e.Detail.Name
		}
	}
	lines := make([]activity, len(log))
	for i, e := range log {
		d := actionTextOf(e.Action)
		lines[i] = activity{AuditEntry: e, Did: d.verb, How: actionDetails(e), Thing: objectName(e, names),
			Icon: d.icon}
	}
	return lines
}

// objectName returns the name of the object of an entry.
func objectName(e snap.AuditEntry, names map[string]string) string {
	d := e.Detail
	if e.Action == snap.AuditUserChanged {
		return d.User
	}
	return cmp.Or(names[e.Snapshot], e.Snapshot, d.Name, d.Target, d.URL)
}
