package cloud_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/store"
)

// levers makes everything whose end is tested. There are several of each lever that cannot be
// restored.
func (s *site) levers() []*lever {
	s.owner = s.Key("alice@acme.test")
	alice := s.Client(s.owner)
	hidden := s.Push(alice, "shop", []byte("hidden")).ID
	open := s.Push(alice, "shop", []byte("shared for good")).ID
	_, err := alice.Share(context.Background(), open)
	must(s.t, err)
	levers := []*lever{s.orgWide(), s.role(hidden), s.disabled(open)}
	for i := range 4 {
		levers = append(levers, s.key(open), s.session(open), s.expiry(time.Duration(i+1)*time.Second))
	}
	for _, l := range levers {
		l.began = s.began
	}
	return levers
}

// user makes a user of acme and a key of theirs. The user is not in the configuration, which each
// process applies when it starts.
func (s *site) user() (id int64, key store.Key, secret string) {
	ctx := context.Background()
	s.users++
	org, err := s.Store.OrgBySlug(ctx, "acme")
	must(s.t, err)
	name := fmt.Sprintf("user%d@acme.test", s.users)
	id, err = s.Store.ApplySignIn(ctx, store.SignIn{OrgID: org.ID, Issuer: "test", Subject: name, Email: name,
		Role: snap.RoleMember})
	must(s.t, err)
	secret, key, err = s.Service.Auth().NewKey(ctx,
		auth.KeySpec{OrgID: org.ID, UserID: id, Kind: snap.UserKey, Name: "test"})
	must(s.t, err)
	return id, key, secret
}

// looker looks for a snapshot through the doors, with a credential.
func looker(mount, secret, id string) func(*replica, int) error {
	return func(r *replica, door int) (err error) {
		ctx, c := context.Background(), r.client(mount, secret)
		switch door {
		case 0:
			_, err = c.Snapshot(ctx, id)
		case 1:
			_, err = c.Pull(ctx, id)
		case 2:
			for sn, err := range c.AllSnapshots(ctx, api.ListOptions{}) {
				if err != nil || sn.ID == id {
					return err
				}
			}
			err = snap.ErrNotFound
		}
		return err
	}
}

// orgWide is the org-wide share, set through any process.
func (s *site) orgWide() *lever {
	id := s.Push(s.Client(s.owner), "shop", []byte("shared and unshared")).ID
	_, _, secret := s.user()
	return &lever{name: "org-wide share", look: looker(api.MountAgent, secret, id),
		set: func(r *replica, on bool) error {
			if !on {
				return r.client(api.MountAgent, s.owner).Unshare(context.Background(), id)
			}
			_, err := r.client(api.MountAgent, s.owner).Share(context.Background(), id)
			return err
		}}
}

// role is the role admin, which sees everything.
func (s *site) role(id string) *lever {
	user, _, secret := s.user()
	return &lever{name: "role", look: looker(api.MountAgent, secret, id), set: func(_ *replica, on bool) error {
		role := snap.RoleMember
		if on {
			role = snap.RoleAdmin
		}
		return s.Store.SetRole(context.Background(), user, role)
	}}
}

// disabled is an account that starts disabled and can be enabled.
func (s *site) disabled(id string) *lever {
	user, _, secret := s.user()
	must(s.t, s.Store.SetDisabled(context.Background(), user, true))
	return &lever{name: "account", look: looker(api.MountAgent, secret, id), set: func(_ *replica, on bool) error {
		return s.Store.SetDisabled(context.Background(), user, !on)
	}}
}

// key is an API key until it is revoked.
func (s *site) key(id string) *lever {
	_, key, secret := s.user()
	return &lever{name: "key", once: true, look: looker(api.MountAgent, secret, id), set: func(*replica, bool) error {
		return s.Store.RevokeOrgKey(context.Background(), key.Org.ID, key.ID)
	}}
}

// session is a device login until it is ended.
func (s *site) session(id string) *lever {
	ctx := context.Background()
	user, _, secret := s.user()
	sum := sha256.Sum256([]byte(secret))
	end := time.Now().Add(time.Hour)
	n, err := s.Store.AddTokenSession(ctx, store.Session{UserID: user, Kind: snap.LoginToken, Name: "laptop",
		ClientID: "snapcli", Idle: end, Expires: end}, sum[:])
	must(s.t, err)
	token, err := auth.NewTokens(s.Store, s.URL+"/auth", s.URL, nil, time.Now).Access(ctx,
		auth.Claims{Session: n.ID, Subject: strconv.FormatInt(user, 10), ClientID: "snapcli"})
	must(s.t, err)
	return &lever{name: "session", once: true, look: looker(api.MountUser, token, id), set: func(*replica, bool) error {
		return s.Store.EndSession(ctx, snap.Caller{User: &snap.User{ID: user}}, n.ID)
	}}
}

// expiry is a share with another organization that ends by itself: after this
// time, or later if making it takes longer.
func (s *site) expiry(after time.Duration) *lever {
	id := s.Push(s.Client(s.owner), "shop", fmt.Append(nil, "for ", after)).ID
	var end time.Time
	for ; ; after *= 2 {
		end = time.Now().Add(after).Truncate(time.Millisecond)
		_, err := s.Client(s.owner).ShareOrg(context.Background(), id, "globex", &end)
		if snap.CodeOf(err) != snap.CodeInvalid {
			must(s.t, err)
			break
		}
	}
	return &lever{name: "cross-org share", end: end, look: looker(api.MountAgent, s.Key("gary@globex.test"), id)}
}
