package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"snap"
)

// AccessRequestRequest is the body of POST access-requests.
type AccessRequestRequest struct {
	Snapshot string `json:"snapshot" minLength:"1" maxLength:"64" example:"snap_7h2k9m4qw8xvbn3t" doc:"its whole ID"`
	Reason   string `json:"reason,omitempty" maxLength:"500" example:"To reproduce bug 412" doc:"for those who answer"`
}

// AccessRequest is a request for access to a snapshot. The fields after CreatedAt are set only for
// callers who may answer it.
type AccessRequest struct {
	ID        string    `json:"id"`
	Snapshot  string    `json:"snapshot" doc:"ID in the request"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"`

	Target       string    `json:"target,omitempty"`
	Name         string    `json:"name,omitempty" doc:"name of the snapshot"`
	Type         snap.Type `json:"type,omitempty" enum:"snapshot,sanitized"`
	Email        string    `json:"email,omitempty" doc:"e-mail of the person who asks"`
	Person       string    `json:"person,omitempty" doc:"name of the person who asks"`
	Organization string    `json:"organization,omitempty" doc:"slug of the organization of the person who asks"`
	Groups       []MyGroup `json:"groups,omitempty" doc:"groups of the person who asks, in the snapshot's organization"`
}

// AccessRequestList is the body of GET access-requests.
type AccessRequestList struct {
	Items []AccessRequest `json:"items"`
}

// RequestAccess asks a snapshot's owner and the admins of its organization for access. The response
// is the same whether the snapshot exists or not. A repeated request changes nothing. RequestAccess
// fails with code conflict if the caller can see the snapshot.
func (c *Client) RequestAccess(ctx context.Context, r AccessRequestRequest) error {
	return c.do(ctx, http.MethodPost, "/access-requests", r, nil)
}

// AccessRequests lists the open requests that the caller may answer, the oldest first.
func (c *Client) AccessRequests(ctx context.Context) ([]AccessRequest, error) {
	list, err := call[AccessRequestList](ctx, c, http.MethodGet, "/access-requests", nil)
	return list.Items, err
}

// OwnAccessRequests lists the caller's own requests, the newest first. A refused request looks like
// an open one.
func (c *Client) OwnAccessRequests(ctx context.Context) ([]AccessRequest, error) {
	list, err := call[AccessRequestList](ctx, c, http.MethodGet, "/access-requests?mine=true", nil)
	return list.Items, err
}

// WithdrawAccessRequest withdraws one of the caller's requests.
func (c *Client) WithdrawAccessRequest(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/access-requests/"+url.PathEscape(id), nil, nil)
}

// RefuseAccess refuses a request that the caller may answer. To grant a request, share the
// snapshot.
func (c *Client) RefuseAccess(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, "/access-requests/"+url.PathEscape(id)+"/refuse", nil, nil)
}
