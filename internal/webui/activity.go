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

// activityPage is the data of activity.html: the audit log, for owners and
// admins.
type activityPage struct {
	look.Page
	Snapshot, Actor string
	Action          snap.AuditAction
	Actions         []snap.AuditAction
	Entries         []activity
	Next            string
	First           string // the address of the newest page; empty on it
	Problem         *problem
	Jobs            []jobView
}

// activity is one line of the audit log, in words.
type activity struct {
	snap.AuditEntry
	Did   string // such as "shared"
	Whom  string // such as "with the group eng"; may be empty
	Thing string // name of what it concerns; may be empty
	Icon  string
}

// Who is the actor: a person, or a key of the organization, or the operator.
func (a activity) Who() string {
	switch {
	case a.Actor != "":
		return a.Actor
	case a.ActorOrg != "":
		return actorKey(a.ActorOrg)
	}
	return actorOperator
}

func (s *Server) activity(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	page := activityPage{
		Snapshot: strings.TrimSpace(v.Get("snapshot")), Actor: strings.TrimSpace(v.Get("actor")), Action: snap.AuditAction(v.Get("action")),
		Actions: auditActions(), Jobs: s.dock(),
	}
	if v.Get("cursor") != "" {
		page.First = activityURL(v, "")
	}
	if err := s.needCloud(); err != nil {
		page.Problem = problemOf(err)
	} else {
		o := api.AuditOptions{Snapshot: page.Snapshot, Actor: page.Actor, Action: page.Action, Cursor: v.Get("cursor"), Limit: pageSize}
		log, err := s.cloud.client().Audit(r.Context(), o)
		page.Problem = problemOf(err)
		page.Entries = inWords(log.Items)
		if log.NextCursor != "" {
			page.Next = activityURL(v, log.NextCursor)
		}
	}
	page.Page = s.page(titleActivity, "/activity")
	return s.show(w, r, "activity.html", "activity", page)
}

func activityURL(v url.Values, cursor string) string {
	next := url.Values{}
	for _, name := range []string{"snapshot", "actor", "action"} {
		if v.Get(name) != "" {
			next.Set(name, v.Get(name))
		}
	}
	if cursor != "" {
		next.Set("cursor", cursor)
	}
	if len(next) == 0 {
		return "/activity"
	}
	return "/activity?" + next.Encode()
}

// auditActions are those one can choose.
func auditActions() []snap.AuditAction {
	return []snap.AuditAction{
		snap.AuditPushed, snap.AuditPullStarted, snap.AuditPulled, snap.AuditShared, snap.AuditUnshared, snap.AuditShareRefused,
		snap.AuditDeclined, snap.AuditDeleted, snap.AuditChannelMade, snap.AuditChannelGone, snap.AuditRetention,
		snap.AuditWebhookMade, snap.AuditWebhookGone, snap.AuditUserChanged, snap.AuditKeyMade, snap.AuditKeyRevoked,
		snap.AuditSessionBegan, snap.AuditSessionEnded,
	}
}

// inWords makes sentences of the log's lines. A snapshot is called by its name
// when a line of the page tells it, else by its ID.
func inWords(log []snap.AuditEntry) []activity {
	names := map[string]string{}
	for _, e := range log {
		if e.Snapshot != "" && e.Detail.Name != "" {
			names[e.Snapshot] = e.Detail.Name
		}
	}
	lines := make([]activity, len(log))
	for i, e := range log {
		lines[i] = activity{AuditEntry: e, Thing: e.Detail.Name, Icon: auditIcon(e.Action)}
		if e.Snapshot != "" {
			lines[i].Thing = cmp.Or(names[e.Snapshot], e.Snapshot)
		}
		lines[i].Did, lines[i].Whom = did(e)
		if e.Action == snap.AuditUserChanged {
			lines[i].Thing = e.Detail.User
		}
	}
	return lines
}

func auditIcon(a snap.AuditAction) string {
	switch a {
	case snap.AuditPushed:
		return "up"
	case snap.AuditPullStarted, snap.AuditPulled:
		return "down"
	case snap.AuditShared:
		return "people"
	case snap.AuditUnshared, snap.AuditDeclined:
		return "lock"
	case snap.AuditShareRefused:
		return "warn"
	case snap.AuditDeleted:
		return "trash"
	case snap.AuditUserChanged, snap.AuditSessionBegan, snap.AuditSessionEnded:
		return "person"
	case snap.AuditKeyMade, snap.AuditKeyRevoked:
		return "key"
	}
	return "activity"
}
