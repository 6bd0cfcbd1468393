package cloud

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

func (s *Service) listPeople(ctx context.Context, _ *noInput) (*body[api.PersonList], error) {
	people, err := s.store.People(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.PersonList]{api.PersonList{Items: each(people, wirePerson)}}, nil
}

func wirePerson(p store.Person) api.Person {
	return api.Person{ID: strconv.FormatInt(p.ID, 10), Email: p.Email, Name: p.Name, Role: p.Role,
		Groups:     each(p.Groups, func(g snap.Group) string { return cmp.Or(g.Name, g.GroupID) }),
		GroupsAsOf: optional(p.GroupsAsOf), GroupsUnknown: p.GroupsUnknown, Disabled: p.Disabled,
		LastSeen: optional(p.LastSeen), Sessions: p.Sessions, Keys: p.Keys, Snapshots: p.Snapshots, Bytes: p.Bytes}
}

func (s *Service) signOutPerson(ctx context.Context, in *ByNumber) (*body[api.SignedOut], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	ended, err := s.store.SignOutUser(ctx, callOf(ctx).caller, id)
	if err != nil {
		return nil, err
	}
	return &body[api.SignedOut]{api.SignedOut{Sessions: ended}}, nil
}

type liveSharesInput struct {
	GroupID string `query:"group_id" maxLength:"512" doc:"shares with this SSO group; otherwise with organizations"`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"items per page"`
	Cursor  string `query:"cursor" maxLength:"60" doc:"next_cursor of the previous page"`
}

func (s *Service) listLiveShares(ctx context.Context, in *liveSharesInput) (*body[api.LiveSharePage], error) {
	shares, next, err := s.store.LiveShares(ctx, callOf(ctx).caller, store.ShareQuery(*in))
	if err != nil {
		return nil, err
	}
	return &body[api.LiveSharePage]{api.LiveSharePage{Items: each(shares, wireLiveShare), NextCursor: next}}, nil
}

func wireLiveShare(l store.LiveShare) api.LiveShare {
	out := api.LiveShare{Snapshot: l.Snapshot.ID, Target: l.Snapshot.Target, Name: l.Snapshot.Name,
		Type: l.Snapshot.Type, Size: l.Snapshot.Size, Created: l.Snapshot.Created}
	if g := l.Group; g != nil {
		share := wireGroupShare(*g)
		out.GroupID, out.With, out.ExpiresAt = share.GroupID, cmp.Or(share.Name, share.GroupID), share.ExpiresAt
		out.SharedBy, out.SharedAt, out.Channel = share.SharedBy, share.SharedAt, share.Channel
	} else if o := l.Org; o != nil {
		share := wireOrgShare(*o)
		out.OrgSlug, out.With, out.ExpiresAt = share.OrgSlug, cmp.Or(share.Name, share.OrgSlug), share.ExpiresAt
		out.SharedBy, out.SharedAt = share.SharedBy, share.SharedAt
	}
	return out
}

func (s *Service) storage(ctx context.Context, _ *noInput) (*body[api.Storage], error) {
	c, q := callOf(ctx).caller, s.config.Limits.quotas()
	targets, err := s.store.TargetUsages(ctx, c)
	if err != nil {
		return nil, err
	}
	usage, err := s.store.OrgUsage(ctx, c.Org.ID)
	if err != nil {
		return nil, err
	}
	return &body[api.Storage]{api.Storage{
		Targets: each(targets, func(u store.TargetUsage) api.TargetUsage { return api.TargetUsage(u) }),
		Usage:   *wireUsage(usage, q.OrgBytes, q.OrgUploads),
		PerUser: api.Usage{BytesMax: q.UserBytes, UploadsMax: q.UserUploads},
	}}, nil
}

type overviewInput struct {
	Days int `query:"days" minimum:"1" maximum:"90" default:"30" doc:"number of days, up to today in UTC"`
}

// overview reports each of the last days. From the current values, it computes how much was stored
// at the end of each day: it subtracts the snapshots pushed since then and adds the snapshots
// deleted since then.
func (s *Service) overview(ctx context.Context, in *overviewInput) (*body[api.Overview], error) {
	c := callOf(ctx).caller
	if err := s.sequence(ctx, c.Org.ID); err != nil {
		return nil, err
	}
	today := s.now().UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-in.Days)
	found, err := s.store.Days(ctx, c, first)
	if err != nil {
		return nil, err
	}
	usage, err := s.store.OrgUsage(ctx, c.Org.ID)
	if err != nil {
		return nil, err
	}
	days := make([]api.Day, in.Days)
	for i := range days {
		days[i].Start = first.AddDate(0, 0, i)
	}
	count, bytes, next := usage.Snapshots, usage.Bytes, len(found)-1
	for i := len(days) - 1; i >= 0; i-- {
		days[i].Snapshots, days[i].Bytes = max(count, 0), max(bytes, 0)
		if next >= 0 && found[next].Start.Equal(days[i].Start) {
			d := found[next]
			days[i].Pushed, days[i].Deleted, days[i].Pulls, days[i].People = d.Pushed, d.Deleted, d.Pulls, d.People
			count += d.Deleted - d.Pushed
			bytes += d.DeletedBytes - d.PushedBytes
			next--
		}
	}
	return &body[api.Overview]{api.Overview{Days: days}}, nil
}
