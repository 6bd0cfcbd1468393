package cloud

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/store"
)

type keysInput struct {
	All     bool  `query:"all" doc:"for owners and admins: every key of the organization"`
	IdleFor int64 `query:"idle_for" minimum:"1" maximum:"3153600000" doc:"seconds since last use or creation"`
}

type createKeyInput struct {
	Body api.KeyRequest
}

func (s *Service) listKeys(ctx context.Context, in *keysInput) (*body[api.KeyList], error) {
	keys, err := s.store.Keys(ctx, callOf(ctx).caller, store.KeyQuery{All: in.All,
		Idle: time.Duration(in.IdleFor) * time.Second})
	if err != nil {
		return nil, err
	}
	return &body[api.KeyList]{api.KeyList{Items: each(keys, wireKey)}}, nil
}

// createKey creates a user-scoped key for the caller or, for owners and admins, an
// organization-level key.
func (s *Service) createKey(ctx context.Context, in *createKeyInput) (*body[api.NewKey], error) {
	c, r := callOf(ctx).caller, in.Body
	spec := auth.KeySpec{OrgID: c.Org.ID, Kind: r.Kind, Name: r.Name, Scopes: r.Scopes, CreatedBy: c.User.ID}
	if r.Kind.OrgLevel() {
		if err := snap.Allowed(c, snap.ActAdminister, snap.Snapshot{}); err != nil {
			return nil, err
		}
		if len(r.Scopes) == 0 {
			return nil, snap.Invalid("an organization-level key needs scopes", "give any of pull, push and private")
		}
	} else {
		spec.UserID = c.User.ID
		if len(r.Scopes) > 0 {
			return nil, snap.Invalid("a user-scoped key has no scopes",
				"it may do everything that its user's role allows")
		}
	}
	for _, scope := range r.Scopes {
		if !slices.Contains(snap.Scopes(), scope) {
			return nil, snap.Invalid("unknown scope "+strconv.Quote(string(scope)),
				"the scopes are pull, push and private")
		}
	}
	var err error
	if spec.Expires, err = s.expiry(r.ExpiresAt, r.ExpiresIn); err != nil {
		return nil, err
	}
	if spec.Networks, err = snap.ParseNetworks(r.From); err != nil {
		return nil, err
	}
	secret, key, err := s.auth.NewKey(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &body[api.NewKey]{api.NewKey{Key: wireKey(key), Secret: secret}}, nil
}

func (s *Service) revokeKey(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.RevokeKey)
}

type sessionsInput struct {
	All bool `query:"all" doc:"for owners and admins: the sessions of everybody in the organization"`
}

func (s *Service) listSessions(ctx context.Context, in *sessionsInput) (*body[api.SessionList], error) {
	c := callOf(ctx).caller
	list, emails := s.store.Sessions, map[int64]string{}
	if in.All {
		if err := snap.Allowed(c, snap.ActAdminister, snap.Snapshot{}); err != nil {
			return nil, err
		}
		members, err := s.store.Members(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			emails[m.ID] = m.Email
		}
		list = s.store.OrgSessions
	}
	sessions, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	return &body[api.SessionList]{api.SessionList{Items: each(sessions, func(x store.Session) api.Session {
		return api.Session{
			ID: strconv.FormatInt(x.ID, 10), Kind: string(x.Kind), Name: x.Name, Address: x.Address,
			CreatedAt: x.Created, LastUsed: x.LastUsed, ExpiresAt: x.Expires, User: emails[x.UserID],
			Current: x.ID == c.Credential.ID && x.Kind == c.Credential.Kind,
		}
	})}}, nil
}

func (s *Service) endSession(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.EndSession)
}

func wireKey(k store.Key) api.Key {
	return api.Key{
		ID: strconv.FormatInt(k.ID, 10), Kind: k.Kind, Name: k.Name, Hint: k.Hint, User: k.User, Scopes: k.Scopes,
		From:      each(k.Networks, netip.Prefix.String),
		CreatedAt: k.Created, CreatedBy: k.CreatedBy, ExpiresAt: optional(k.Expires), LastUsed: optional(k.LastUsed),
	}
}
