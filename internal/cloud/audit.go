package cloud

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type auditInput struct {
	Snapshot string           `query:"snapshot" maxLength:"64" doc:"only entries about this snapshot, by its whole ID"`
	Actor    string           `query:"actor" maxLength:"320" doc:"only actions of this user, by e-mail"`
	Action   snap.AuditAction `query:"action" maxLength:"64" doc:"only this action"`
	Since    time.Time        `query:"since" doc:"from this time on"`
	Until    time.Time        `query:"until" doc:"before this time"`
	Order    string           `query:"order" enum:"newest,oldest" default:"newest"`
	Limit    int              `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor   string           `query:"cursor" maxLength:"40"`
}

func (s *Service) listAudit(ctx context.Context, in *auditInput) (*body[api.AuditPage], error) {
	// A query for an unknown action would list nothing, as if the action had never happened.
	if in.Action != "" && !slices.Contains(snap.AuditActions(), in.Action) {
		return nil, snap.Invalid(fmt.Sprintf("%q is not an action of the audit log", in.Action),
			"the actions are "+joinActions(snap.AuditActions()))
	}
	if err := s.sequence(ctx, callOf(ctx).caller.Org.ID); err != nil {
		return nil, err
	}
	page, err := s.store.Audit(ctx, callOf(ctx).caller, store.AuditQuery{
		Snapshot: in.Snapshot, Actor: in.Actor, Action: in.Action, Since: in.Since, Until: in.Until,
		OldestFirst: in.Order == "oldest", Limit: in.Limit, Cursor: in.Cursor,
	})
	if err != nil {
		return nil, err
	}
	return &body[api.AuditPage]{api.AuditPage{Items: append([]api.AuditEntry{}, page.Items...), NextCursor: page.Next}},
		nil
}

func joinActions(actions []snap.AuditAction) string {
	return strings.Join(each(actions, func(a snap.AuditAction) string { return string(a) }), ", ")
}

type pulledInput struct {
	ByID
	Body api.PulledRequest
}

// pulled records that a pull has completed. The client reports this, because the bytes do not
// necessarily pass through the service.
func (s *Service) pulled(ctx context.Context, in *pulledInput) (*empty, error) {
	c := callOf(ctx)
	if err := s.store.CountPull(ctx, c.caller, c.snapshot); err != nil {
		return nil, err
	}
	return &empty{}, s.store.Note(ctx, c.caller, c.snapshot, snap.AuditPulled, snap.AuditDetail{Bytes: in.Body.Bytes})
}

type thenInput struct {
	Snapshot string    `query:"snapshot" required:"true" maxLength:"64" doc:"whole ID of the snapshot"`
	At       time.Time `query:"at" required:"true" example:"2099-01-01T00:00:00Z" doc:"the time in the past"`
	Limit    int       `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"users on a page"`
	Cursor   string    `query:"cursor" maxLength:"40" doc:"next_cursor of the previous page"`
}

// audienceThen derives from the audit log who could see a snapshot at a time in the past.
func (s *Service) audienceThen(ctx context.Context, in *thenInput) (*body[api.AudienceThen], error) {
	c := callOf(ctx).caller
	if err := s.sequence(ctx, c.Org.ID); err != nil {
		return nil, err
	}
	lines, err := s.store.History(ctx, c, in.Snapshot, in.At)
	if err != nil {
		return nil, err
	}
	past := snap.ReadHistory(lines, in.Snapshot, in.At)
	if !past.Known {
		return nil, snap.ErrNotFound
	}
	out := api.AudienceThen{Snapshot: in.Snapshot, At: in.At.UTC(), Existed: past.Existed, Through: []string{},
		Closed: past.Closed, Users: []api.ThenMember{}, Keys: []api.AccessKey{}}
	if !past.Existed {
		return &body[api.AudienceThen]{out}, nil
	}
	out.Through = through(past)
	if out.Users, out.NextCursor, err = in.page(past); err != nil {
		return nil, err
	}
	for _, k := range past.Keys {
		if past.SeenBy(k) {
			out.Keys = append(out.Keys, api.AccessKey{Kind: snap.CredentialKind(k.Kind), Name: k.Name,
				Scopes: k.Scopes})
		}
	}
	return &body[api.AudienceThen]{out}, nil
}

// page returns the users of one page. The cursor is the number of users before the page. That is
// enough, because the list for a time in the past does not change.
func (in *thenInput) page(past snap.PastAccess) (users []api.ThenMember, next string, err error) {
	from := 0
	if in.Cursor != "" {
		if from, err = strconv.Atoi(in.Cursor); err != nil || from < 0 {
			return nil, "", snap.Invalid("the cursor belongs to another listing", "start again without a cursor")
		}
	}
	users = []api.ThenMember{}
	for _, u := range past.Users {
		if why := past.Why(u); why != "" {
			users = append(users, api.ThenMember{Email: u.User, Account: u.Account, Why: why})
		}
	}
	from = min(from, len(users))
	if len(users)-from > in.Limit {
		next = strconv.Itoa(from + in.Limit)
	}
	return users[from:min(from+in.Limit, len(users))], next, nil
}

// through describes the grants that let people see the snapshot. While the organization is closed,
// only shares with other organizations do.
func through(past snap.PastAccess) []string {
	out := []string{}
	if !past.Closed {
		if past.Owner != "" {
			out = append(out, "its owner "+past.Owner)
		}
		if past.OrgWide {
			out = append(out, "shared org-wide")
		}
		for _, g := range past.Groups {
			out = append(out, "shared with the group "+g)
		}
	}
	for slug, until := range past.Orgs {
		text := "shared with the organization " + slug
		if until != nil {
			text += " until " + snap.UTC(*until)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	if !past.Closed {
		out = slices.Insert(out, 0, "owners and admins of the organization")
	}
	return out
}
