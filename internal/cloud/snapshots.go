package cloud

import (
	"context"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

// ListFilter selects snapshots of a listing.
type ListFilter struct {
	Filter      snap.Filter `query:"filter" enum:"all,shared,mine,received" default:"all" doc:"shared: those whose field shared is true; mine: pushed by the caller; received: shared with the caller's organization by another"`
	Target      string      `query:"target" maxLength:"100" doc:"only this target"`
	Type        snap.Type   `query:"type" enum:"snapshot,sanitized" doc:"only this type"`
	Q           string      `query:"q" maxLength:"100" doc:"beginnings of the ID, or of words in any text field"`
	IDPrefix    string      `query:"id_prefix" maxLength:"64" doc:"only IDs that begin with this"`
	IDs         []string    `query:"ids" maxItems:"100" doc:"only those with one of these IDs, separated by commas"`
	Owner       string      `query:"owner" maxLength:"320" doc:"beginning of the owner's e-mail or organization's slug"`
	Since       time.Time   `query:"since" doc:"only those pushed at this time or later, RFC 3339"`
	Until       time.Time   `query:"until" doc:"only those pushed before this time, RFC 3339"`
	ExpiresSoon bool        `query:"expires_soon" doc:"only those with a share that ends within three days"`
}

func (f ListFilter) query() store.Query {
	return store.Query{Filter: f.Filter, Target: f.Target, Type: f.Type, Q: f.Q, IDPrefix: f.IDPrefix,
		IDs: f.IDs, Owner: f.Owner, Since: f.Since, Until: f.Until, ExpiresSoon: f.ExpiresSoon}
}

type listInput struct {
	ListFilter
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"items per page"`
	Cursor string `query:"cursor" maxLength:"200" doc:"next_cursor of the previous page"`
	Sort   string `query:"sort" enum:"-created" default:"-created" doc:"newest first, the only order"`
}

func (s *Service) listSnapshots(ctx context.Context, in *listInput) (*body[api.SnapshotPage], error) {
	q := in.query()
	q.Limit, q.Cursor = in.Limit, in.Cursor
	page, err := s.store.Snapshots(ctx, callOf(ctx).caller, q)
	if err != nil {
		return nil, err
	}
	return &body[api.SnapshotPage]{api.SnapshotPage{Items: each(page.Items, wireSnapshot), NextCursor: page.Next}}, nil
}

func (s *Service) countSnapshots(ctx context.Context, in *ListFilter) (*body[api.Count], error) {
	n, more, err := s.store.Count(ctx, callOf(ctx).caller, in.query())
	return &body[api.Count]{api.Count{Count: n, More: more}}, err
}

func (s *Service) getSnapshot(ctx context.Context, _ *ByID) (*body[api.Snapshot], error) {
	out, err := s.singleSnapshot(ctx, callOf(ctx))
	return &body[api.Snapshot]{out}, err
}

// singleSnapshot returns the call's snapshot with the fields that only the response for a single
// snapshot has.
func (s *Service) singleSnapshot(ctx context.Context, c *call) (api.Snapshot, error) {
	named, err := s.store.WithShareNames(ctx, c.caller, c.snapshot)
	if err != nil {
		return api.Snapshot{}, err
	}
	out := wireSnapshot(named)
	out.Can = wireCan(c.caller, c.snapshot)
	found, err := s.store.Certificate(ctx, c.caller, c.snapshot)
	if err != nil || found.State == snap.CertificateMissing {
		return out, err
	}
	if c.snapshot.Org.ID != c.caller.Org.ID {
		found.KeyName = ""
	}
	state := api.CertificateState(found)
	out.Certificate = &state
	return out, nil
}

// deleteSnapshot first deletes the record and every grant, so that nobody can see the snapshot
// anymore, and then deletes the bytes.
func (s *Service) deleteSnapshot(ctx context.Context, _ *ByID) (*empty, error) {
	c := callOf(ctx)
	key, err := s.store.Delete(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	s.dropBytes(ctx, store.Garbage{Blob: key})
	return &empty{}, nil
}
