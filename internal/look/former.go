package look

import (
	"context"
	"slices"
	"time"

	"snap/api"
)

// FormerShare is a share before a change.
type FormerShare struct {
	with   api.SharesRequest // names its recipient
	until  *time.Time
	schema bool
}

// LiveShare returns the live share of a snapshot with a recipient, or nil. The parameter with must
// name exactly one recipient.
func LiveShare(ctx context.Context, c *api.Client, id string, with api.SharesRequest) (*FormerShare, error) {
	switch {
	case with.OrgWide:
		sn, err := c.Snapshot(ctx, id)
		if err != nil || !sn.Shared {
			return nil, err
		}
		return &FormerShare{with: with, until: sn.ExpiresAt}, nil
	case len(with.GroupIDs) > 0:
		all, err := c.GroupShares(ctx, id)
		i := slices.IndexFunc(all, func(g api.GroupShare) bool { return g.GroupID == with.GroupIDs[0] })
		if err != nil || i < 0 {
			return nil, err
		}
		return &FormerShare{with: with, until: all[i].ExpiresAt}, nil
	}
	all, err := c.OrgShares(ctx, id)
	i := slices.IndexFunc(all, func(o api.OrgShare) bool {
		return o.OrgSlug == with.OrgSlugs[0] && o.DeclinedAt == nil
	})
	if err != nil || i < 0 {
		return nil, err
	}
	return &FormerShare{with, all[i].ExpiresAt, all[i].WithSchema}, nil
}

// Fields returns the fields of the Undo form, which restores the former share with exactly the same
// expiry time. A nil share has no fields.
func (f *FormerShare) Fields() (fields []Hidden) {
	if f == nil {
		return nil
	}
	if f.until != nil {
		fields = Fields("expires", f.until.UTC().Format(time.RFC3339Nano))
	}
	if f.schema {
		fields = append(fields, Fields("schema", "yes")...)
	}
	switch {
	case f.with.OrgWide:
		return append(fields, Fields("shared", "true")...)
	case len(f.with.GroupIDs) > 0:
		return append(fields, Fields("grant", f.with.GroupIDs[0])...)
	}
	return append(fields, Fields("slug", f.with.OrgSlugs[0])...)
}
