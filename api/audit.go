package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"snap"
)

// AuditEntry is one line of the organization's audit log.
type AuditEntry = snap.AuditEntry

// AuditPage is one page of the audit log.
type AuditPage struct {
	Items      []AuditEntry `json:"items"`
	NextCursor string       `json:"next_cursor" doc:"empty on the last page"`
}

// AuditOptions selects lines of the audit log. The zero value selects the newest page of all lines.
type AuditOptions struct {
	Snapshot, Actor string
	Action          snap.AuditAction
	Since, Until    time.Time
	OldestFirst     bool
	Limit           int
	Cursor          string
}

// PulledRequest reports that a pull has completed.
type PulledRequest struct {
	Bytes int64 `json:"bytes" minimum:"0" example:"1048576" doc:"bytes that were transferred"`
}

// AudienceThen describes who could see a snapshot at a time in the past.
type AudienceThen struct {
	Snapshot   string       `json:"snapshot"`
	At         time.Time    `json:"at"`
	Existed    bool         `json:"existed" doc:"the snapshot had been pushed and was not deleted yet"`
	Through    []string     `json:"through" doc:"how it was visible: to its owner, to owners and admins, by shares"`
	Closed     bool         `json:"closed" doc:"the organization was closed, so none of its members could see anything"`
	Users      []ThenMember `json:"users" doc:"the organization's users who could see it, one page of them"`
	Keys       []AccessKey  `json:"keys" doc:"organization-level keys that could list and pull it"`
	NextCursor string       `json:"next_cursor,omitempty" doc:"cursor of the next page; absent on the last page"`
}

// ThenMember is a user who could see a snapshot, and why.
type ThenMember struct {
	Email   string `json:"email"`
	Account int64  `json:"account,omitempty" doc:"number of the account; e-mails can change or repeat"`
	Why     string `json:"why"`
}

// Pulled reports to the service, for its audit log, that a pull has completed.
func (c *Client) Pulled(ctx context.Context, id string, bytes int64) error {
	return c.do(ctx, http.MethodPost, snapshotPath(id, "/pulled"), PulledRequest{Bytes: bytes}, nil)
}

// Audit returns one page of the organization's audit log, the newest lines first unless
// o.OldestFirst is set. Only owners and admins may call it.
func (c *Client) Audit(ctx context.Context, o AuditOptions) (AuditPage, error) {
	q := url.Values{}
	for name, value := range map[string]string{"snapshot": o.Snapshot, "actor": o.Actor, "action": string(o.Action),
		"cursor": o.Cursor, "since": stamp(o.Since), "until": stamp(o.Until)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.OldestFirst {
		q.Set("order", "oldest")
	}
	return call[AuditPage](ctx, c, http.MethodGet, "/audit?"+q.Encode(), nil)
}

// SharedWith returns the slugs of the organizations with which the caller's organization has shared
// snapshots, the most recent first. It considers only the newest 200 shares in the audit log. Only
// owners and admins may call it.
func (c *Client) SharedWith(ctx context.Context) (slugs []string, err error) {
	lines, err := c.Audit(ctx, AuditOptions{Action: snap.AuditShared, Limit: 200})
	for _, line := range lines.Items {
		if slug := line.Detail.Organization; slug != "" && !slices.Contains(slugs, slug) {
			slugs = append(slugs, slug)
		}
	}
	return slugs, err
}

// SuggestOrg adds a suggestion to the error for a share with an organization that does not exist: a
// similar slug from [Client.SharedWith]. If no other slug is similar, or err is another error, it
// returns err unchanged.
func (c *Client) SuggestOrg(ctx context.Context, slug string, err error) error {
	if snap.CodeOf(err) != snap.CodeOrganizationNotFound && snap.CodeOf(err) != snap.CodeNotFound {
		return err
	}
	known, knownErr := c.SharedWith(ctx)
	meant := snap.Closest(slug, known)
	if knownErr != nil || meant == "" || meant == slug {
		return err
	}
	return &snap.Error{Code: snap.CodeOrganizationNotFound, Detail: fmt.Sprintf("there is no organization %q", slug),
		Hint: fmt.Sprintf("did you mean %s?", meant)}
}

// stamp formats a time for a query. The zero time is "".
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// AllAudit yields every line that o selects, fetching page after page. It stops after the first
// error.
func (c *Client) AllAudit(ctx context.Context, o AuditOptions) iter.Seq2[AuditEntry, error] {
	pages := Pages(o.Cursor, func(cursor string) (AuditPage, string, error) {
		o.Cursor = cursor
		page, err := c.Audit(ctx, o)
		return page, page.NextCursor, err
	})
	return rows(pages, func(page AuditPage) []AuditEntry { return page.Items })
}

// AudienceAt returns who could see a snapshot at a time in the past, even if the snapshot has been
// deleted since. It fetches all pages of users. id is the whole ID. Only owners and admins may call
// it.
func (c *Client) AudienceAt(ctx context.Context, id string, at time.Time) (then AudienceThen, err error) {
	pages := Pages("", func(cursor string) (AudienceThen, string, error) {
		q := url.Values{"snapshot": {id}, "at": {stamp(at)}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		page, err := call[AudienceThen](ctx, c, http.MethodGet, "/audit/access?"+q.Encode(), nil)
		return page, page.NextCursor, err
	})
	for page, err := range pages {
		if err != nil {
			return AudienceThen{}, err
		}
		page.Users = append(then.Users, page.Users...)
		then = page
	}
	return then, nil
}
