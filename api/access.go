package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"snap"
)

// Access describes who can see a snapshot now, and through which grants.
type Access struct {
	Snapshot string         `json:"snapshot"`
	Ways     []AccessWay    `json:"ways" doc:"every live grant"`
	Counts   map[string]int `json:"counts" doc:"live grants by kind, such as owner, org_wide and group"`
	People   int            `json:"people" doc:"users of the organization who can see it"`
	Keys     []AccessKey    `json:"keys" doc:"organization-level keys that can list and pull it"`
	User     *AccessVerdict `json:"user,omitempty" doc:"only if the request names a user"`
}

// AccessKey is an organization-level key that can list and pull a snapshot.
type AccessKey struct {
	Kind   snap.CredentialKind `json:"kind" enum:"clt,sak"`
	Name   string              `json:"name"`
	Scopes []snap.Scope        `json:"scopes"`
}

// AccessWay is one grant that lets people see a snapshot.
type AccessWay struct {
	Kind         string     `json:"kind" enum:"owner,admins,keys,org_wide,group,organization"`
	Through      string     `json:"through" doc:"how it lets people see the snapshot, in words"`
	Owner        string     `json:"owner,omitempty"`
	GroupID      string     `json:"group_id,omitempty"`
	Organization string     `json:"organization,omitempty" doc:"slug of the recipient"`
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
	Since        time.Time  `json:"since"`
	GrantedBy    string     `json:"granted_by,omitempty"`
	People       int        `json:"people" doc:"users whom the grant covers; 0 for another organization"`
}

// AccessVerdict explains why one user of the organization can or cannot see a snapshot.
type AccessVerdict struct {
	Email   string `json:"email"`
	Visible bool   `json:"visible"`
	Why     string `json:"why"`
}

// Why lists the grants through which the caller sees a snapshot.
type Why struct {
	Ways []AccessWay `json:"ways" doc:"live grants that name the caller, a role, a group or the organization"`
}

// Newcomers are the users who cannot see a snapshot now but could see it after a share.
type Newcomers struct {
	Users []string `json:"users" doc:"e-mails, at most 50"`
	Count int      `json:"count"`
}

// Access returns who can see a snapshot and why. With an e-mail, it also explains why that user can
// or cannot see it. Only the snapshot's owner and the organization's owners and admins may call it.
func (c *Client) Access(ctx context.Context, id, email string) (Access, error) {
	path := snapshotPath(id, "/access")
	if email != "" {
		path += "?" + url.Values{"user": {email}}.Encode()
	}
	return call[Access](ctx, c, http.MethodGet, path, nil)
}

// Why returns the grants through which the caller sees a snapshot.
func (c *Client) Why(ctx context.Context, id string) ([]AccessWay, error) {
	out, err := call[Why](ctx, c, http.MethodGet, snapshotPath(id, "/why"), nil)
	return out.Ways, err
}

// Newcomers returns the users who cannot see a snapshot now but could if it were shared org-wide
// or, with a group's ID, with that group. It requires the right to share the snapshot.
func (c *Client) Newcomers(ctx context.Context, id, groupID string) (Newcomers, error) {
	path := snapshotPath(id, "/newcomers")
	if groupID != "" {
		path += "?" + url.Values{"group_id": {groupID}}.Encode()
	}
	return call[Newcomers](ctx, c, http.MethodGet, path, nil)
}
