package cloud

import (
	"context"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type listInput struct {
	Filter      snap.Filter `query:"filter" enum:"all,shared,mine,received" default:"all" doc:"shared: those whose Shared column says Yes; mine: pushed by the caller; received: shared with the caller's organization by another"`
	Target      string      `query:"target" maxLength:"100" doc:"only this target"`
	Type        snap.Type   `query:"type" enum:"snapshot,sanitized" doc:"only this type"`
	Q           string      `query:"q" maxLength:"100" doc:"only those that match these words: each is the beginning of a word of the name, the target or the owner, or of the ID"`
	IDPrefix    string      `query:"id_prefix" maxLength:"64" doc:"only IDs that begin with this"`
	Owner       string      `query:"owner" maxLength:"320" doc:"only those that the user with this e-mail pushed"`
	Since       time.Time   `query:"since" doc:"only those pushed at this time or later, RFC 3339"`
	Until       time.Time   `query:"until" doc:"only those pushed before this time, RFC 3339"`
	ExpiresSoon bool        `query:"expires_soon" doc:"only those with a share that ends within three days and that the caller may know about"`
	Limit       int         `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"items per page"`
	Cursor      string      `query:"cursor" maxLength:"200" doc:"next_cursor of the previous page"`
	Sort        string      `query:"sort" enum:"-created" default:"-created" doc:"newest first, the only order"`
}

func (s *Service) listSnapshots(ctx context.Context, in *listInput) (*body[api.SnapshotPage], error) {
	page, err := s.store.Snapshots(ctx, callOf(ctx).caller, store.Query{
		Filter: in.Filter, Target: in.Target, Type: in.Type, Q: in.Q, IDPrefix: in.IDPrefix,
		Owner: in.Owner, Since: in.Since, Until: in.Until, ExpiresSoon: in.ExpiresSoon,
		Limit: in.Limit, Cursor: in.Cursor,
	})
	if err != nil {
		return nil, err
	}
	return &body[api.SnapshotPage]{api.SnapshotPage{Items: each(page.Items, wireSnapshot), NextCursor: page.Next}}, nil
}

func (s *Service) getSnapshot(ctx context.Context, _ *ByID) (*body[api.Snapshot], error) {
	out, err := s.describeOne(ctx, callOf(ctx))
	return &body[api.Snapshot]{out}, err
}

// deleteSnapshot first removes the record and every grant, so that no one can see the snapshot any
// more, and then the bytes.
func (s *Service) deleteSnapshot(ctx context.Context, _ *ByID) (*empty, error) {
	c := callOf(ctx)
	key, err := s.store.Delete(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	s.dropBytes(ctx, key)
	return &empty{}, nil
}
