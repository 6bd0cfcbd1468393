package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"snap"
)

// Person is an account of the organization as its owners and admins see it.
type Person struct {
	ID            string     `json:"id"`
	Email         string     `json:"email"`
	Name          string     `json:"name"`
	Role          snap.Role  `json:"role"`
	Groups        []string   `json:"groups" doc:"names of their groups"`
	GroupsAsOf    *time.Time `json:"groups_as_of,omitempty" doc:"when the groups were read from the identity provider"`
	GroupsUnknown bool       `json:"groups_unknown" doc:"the identity provider sent no usable groups"`
	Disabled      bool       `json:"disabled" doc:"the account cannot sign in, and its keys are refused"`
	LastSeen      *time.Time `json:"last_seen_at,omitempty" doc:"last use of any of their sessions and keys"`
	Sessions      int        `json:"sessions" doc:"signed-in devices and browsers"`
	Keys          int        `json:"keys" doc:"usable API keys that act as them"`
	Snapshots     int        `json:"snapshots" doc:"snapshots that they own"`
	Bytes         int64      `json:"bytes" doc:"of these snapshots"`
}

// PersonList is the body of GET /org/people.
type PersonList struct {
	Items []Person `json:"items"`
}

// SignedOut is how many sessions of a person were ended.
type SignedOut struct {
	Sessions int `json:"sessions"`
}

// LiveShare is a share that is in force: one of the organization's snapshots is shared with a group
// or with another organization.
type LiveShare struct {
	Snapshot  string     `json:"snapshot" doc:"public ID"`
	Target    string     `json:"target"`
	Name      string     `json:"name" doc:"name of the snapshot"`
	Type      snap.Type  `json:"type" enum:"snapshot,sanitized"`
	Size      int64      `json:"size" doc:"bytes of the file"`
	Created   time.Time  `json:"created_at" doc:"of the snapshot"`
	GroupID   string     `json:"group_id,omitempty"`
	OrgSlug   string     `json:"org_slug,omitempty"`
	With      string     `json:"with" doc:"name of the group or organization"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"absent means never"`
	SharedBy  string     `json:"shared_by,omitempty"`
	SharedAt  time.Time  `json:"shared_at"`
	Channel   string     `json:"channel,omitempty" doc:"ID of the channel that made it, if one did"`
}

// LiveSharePage is one page of live shares, those of the newest snapshots first.
type LiveSharePage struct {
	Items      []LiveShare `json:"items"`
	NextCursor string      `json:"next_cursor" doc:"empty on the last page"`
}

// TargetUsage is the storage that the snapshots of one target use.
type TargetUsage struct {
	Target    string    `json:"target"`
	Snapshots int       `json:"snapshots"`
	Bytes     int64     `json:"bytes"`
	Newest    time.Time `json:"newest_at" doc:"when the newest snapshot of the target was pushed"`
}

// Storage reports how much the organization stores for each target, the largest target first.
type Storage struct {
	Targets []TargetUsage `json:"targets"`
	Usage   Usage         `json:"usage" doc:"of the whole organization"`
	PerUser Usage         `json:"user_limits" doc:"what one user may store; only bytes_max and uploads_max are set"`
}

// Day is one day of an organization, in UTC.
type Day struct {
	Start     time.Time `json:"start"`
	Snapshots int       `json:"snapshots" doc:"stored at the end of the day"`
	Bytes     int64     `json:"bytes" doc:"stored at the end of the day"`
	Pushed    int       `json:"pushed" doc:"snapshots that were pushed"`
	Deleted   int       `json:"deleted" doc:"snapshots that were deleted"`
	Pulls     int       `json:"pulls" doc:"pulls that were completed"`
	People    int       `json:"people" doc:"different people who did something that the audit log records"`
}

// Overview summarizes the events of an organization by day, for its most recent days, oldest first.
type Overview struct {
	Days []Day `json:"days"`
}

// People lists the organization's accounts with their use of the service. Only owners and admins
// may call it and the methods below.
func (c *Client) People(ctx context.Context) ([]Person, error) {
	list, err := call[PersonList](ctx, c, http.MethodGet, "/org/people", nil)
	return list.Items, err
}

// SignOutPerson ends all sessions of a person immediately. Their keys keep working.
func (c *Client) SignOutPerson(ctx context.Context, id string) (SignedOut, error) {
	return call[SignedOut](ctx, c, http.MethodPost, "/org/people/"+url.PathEscape(id)+"/sign-out", nil)
}

// LiveShares returns one page of the organization's live shares: those with one group or, when
// groupID is empty, those with other organizations.
func (c *Client) LiveShares(ctx context.Context, groupID, cursor string, limit int) (LiveSharePage, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if groupID != "" {
		q.Set("group_id", groupID)
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return call[LiveSharePage](ctx, c, http.MethodGet, "/org/shares?"+q.Encode(), nil)
}

// Storage returns how much the organization stores.
func (c *Client) Storage(ctx context.Context) (Storage, error) {
	return call[Storage](ctx, c, http.MethodGet, "/org/storage", nil)
}

// Overview returns a summary of the organization's most recent days, at most 90.
func (c *Client) Overview(ctx context.Context, days int) (Overview, error) {
	return call[Overview](ctx, c, http.MethodGet, "/org/overview?days="+strconv.Itoa(days), nil)
}

// AllSessions lists the signed-in devices and browsers of everybody in the organization.
func (c *Client) AllSessions(ctx context.Context) ([]Session, error) {
	list, err := call[SessionList](ctx, c, http.MethodGet, "/sessions?all=true", nil)
	return list.Items, err
}
