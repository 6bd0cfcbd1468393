package webui

import (
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
	Did  string // such as "shared with the group eng"
	Icon string
}

// Who is the actor: a person, or a key of the organization, or the operator.
func (a activity) Who() string {
	switch {
	case a.Actor != "":
		return a.Actor
	case a.ActorOrg != "":
		return "a key of " + a.ActorOrg
	}
	return "the operator"
}

// What is the name of what it concerns.
func (a activity) What() string {
	if a.Detail.Name != "" {
		return a.Detail.Name
	}
	return a.Snapshot
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
		for _, e := range log.Items {
			page.Entries = append(page.Entries, activity{e, did(e), auditIcon(e.Action)})
		}
		if log.NextCursor != "" {
			page.Next = activityURL(v, log.NextCursor)
		}
	}
	page.Page = s.page(r, "Activity", "/activity")
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

// did says in words what happened; an action this version does not know keeps
// its name.
func did(e snap.AuditEntry) string {
	d := e.Detail
	switch e.Action {
	case snap.AuditPushed:
		return "pushed"
	case snap.AuditPullStarted:
		return "began to pull"
	case snap.AuditPulled:
		return "pulled"
	case snap.AuditShared:
		text := "shared with " + audience(d)
		if d.Expires != nil {
			text += " until " + look.Exact(*d.Expires)
		}
		return text
	case snap.AuditUnshared:
		return "stopped sharing with " + audience(d)
	case snap.AuditShareRefused:
		return "was refused sharing with " + audience(d) + " (" + string(d.Code) + ")"
	case snap.AuditDeclined:
		return "declined"
	case snap.AuditDeleted:
		return "deleted"
	case snap.AuditUserChanged:
		return "changed the user " + d.User
	case snap.AuditKeyMade:
		return "made the key"
	case snap.AuditKeyRevoked:
		return "revoked the key"
	case snap.AuditSessionBegan:
		return "signed in by"
	case snap.AuditSessionEnded:
		return "signed out of"
	}
	return string(e.Action)
}

func audience(d snap.AuditDetail) string {
	switch {
	case d.Group != "":
		return "the group " + d.Group
	case d.Organization != "":
		return d.Organization
	}
	return "everyone"
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
