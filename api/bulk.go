package api

import (
	"context"
	"net/http"

	"snap"
)

// BulkRequest is the body of POST bulk: one change to several snapshots. Exactly one of Share,
// Unshare and Delete is set. Each snapshot is changed separately: if the caller is not allowed to
// change one of them, the others are still changed.
type BulkRequest struct {
	IDs     []string        `json:"ids" minItems:"1" maxItems:"100" doc:"IDs" example:"[\"snap_7h2k9m4qw8xvbn3t\"]"`
	Share   *SharesRequest  `json:"share,omitempty" doc:"share each snapshot with these recipients"`
	Unshare *UnshareRequest `json:"unshare,omitempty" doc:"end these shares of each snapshot"`
	Delete  bool            `json:"delete,omitempty" doc:"delete each snapshot"`
}

// BulkResult is the result for one snapshot.
type BulkResult struct {
	ID      string        `json:"id"`
	Changes []ShareChange `json:"changes,omitempty" doc:"changes of its shares"`
	Warning string        `json:"warning,omitempty" doc:"who can now see unmasked data; only after sharing"`
	Deleted bool          `json:"deleted,omitempty"`
	Error   *BulkError    `json:"error,omitempty" doc:"why it was not changed"`
}

// BulkError is the reason why one snapshot was not changed.
type BulkError struct {
	Code   snap.Code `json:"code" example:"not_found"`
	Detail string    `json:"detail"`
	Hint   string    `json:"hint,omitempty"`
}

// BulkResults is the response to POST bulk, in the order of the request.
type BulkResults struct {
	Items []BulkResult `json:"items"`
}

// Bulk changes several snapshots. confirmed states that a person agreed to share data that is not
// sanitized; the policy may require that.
func (c *Client) Bulk(ctx context.Context, r BulkRequest, confirmed bool) (BulkResults, error) {
	return call[BulkResults](ctx, c, http.MethodPost, "/bulk"+confirmQuery(confirmed), r)
}
