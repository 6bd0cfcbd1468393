package cloud_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// building is a service whose doors are tried, and the plain model of its history: every person's
// role and groups, and a list of grants for every snapshot.
type building struct {
	*cloudtest.Cloud
	clock  *clocktest.Clock
	orgs   []snap.OrgRef
	groups map[string]snap.Group // by organization and ID
	people []*visitor            // users, then the organizations' keys, then nobody
	things []*thing
}

// visitor is one caller: a user, an organization's key, or nobody.
type visitor struct {
	caller   snap.Caller
	groups   []string // of a user, by ID; none while they are unknown
	disabled bool
	secret   string
	client   *api.Client
}

func (v *visitor) name() string {
	switch {
	case v.caller.User != nil:
		return v.caller.User.Email
	case v.caller.Org.Slug == "":
		return "nobody"
	}
	return fmt.Sprintf("key of %s with %v", v.caller.Org.Slug, v.caller.Credential.Scopes)
}

// thing is one snapshot.
type thing struct {
	api.Snapshot
	org      snap.OrgRef
	owner    *snap.User
	grants   map[snap.Audience]time.Time
	declined []string          // slugs
	log      map[string]string // the expected lines about it in each organization's audit log
	urls     map[*visitor]api.PullResponse
}

// inside sends requests to a handler without a network in between. Each comes from an address of
// its own, because failures are counted by address (AUTH K6).
type inside struct{ http.Handler }

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	n := requests.Add(1)
	r.RemoteAddr, r.RequestURI = "127.0.0.1:1", r.URL.RequestURI()
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", n>>8&255, n&255))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result(), nil
}

func check(rt *rapid.T, err error) {
	if err != nil {
		rt.Helper()
		rt.Fatalf("%+v", err)
	}
}

// newBuilding makes two organizations that only one history uses.
func newBuilding(rt *rapid.T, c *cloudtest.Cloud, clock *clocktest.Clock, n int) *building {
	b := &building{Cloud: c, clock: clock, groups: map[string]snap.Group{}}
	ctx := context.Background()
	for _, name := range []string{"red", "blue"} {
		org, err := c.Store.ApplyOrg(ctx, fmt.Sprintf("%s-%d", name, n), name, snap.Policy{})
		check(rt, err)
		b.orgs = append(b.orgs, org)
		for i, role := range []snap.Role{snap.RoleAdmin, snap.RoleMember, snap.RoleViewer} {
			v := &visitor{groups: []string{"g0", "g1"}[:2-i]}
			v.caller = snap.Caller{Org: org, User: &snap.User{Email: fmt.Sprintf("user%d@%s.test", i, org.Slug)},
				Role: role}
			b.signIn(rt, v)
			b.people = append(b.people, b.withKey(rt, v, auth.KeySpec{Kind: snap.UserKey, UserID: v.caller.User.ID}))
		}
	}
	for _, org := range b.orgs {
		for _, scopes := range [][]snap.Scope{{snap.ScopePull, snap.ScopePush}, snap.Scopes()} {
			v := &visitor{caller: snap.Caller{Org: org, Credential: snap.Credential{Scopes: scopes}}}
			b.people = append(b.people, b.withKey(rt, v, auth.KeySpec{Kind: snap.PipelineKey, Scopes: scopes}))
		}
	}
	b.people = append(b.people, &visitor{client: b.clientOf(rt, "")})
	return b
}

func (b *building) withKey(rt *rapid.T, v *visitor, spec auth.KeySpec) *visitor {
	spec.OrgID, spec.Name = v.caller.Org.ID, "test"
	secret, _, err := b.Service.Auth().NewKey(context.Background(), spec)
	check(rt, err)
	v.caller.Credential.Kind = spec.Kind
	v.secret, v.client = secret, b.clientOf(rt, secret)
	return v
}

func (b *building) clientOf(rt *rapid.T, secret string) *api.Client {
	client, err := api.New(api.Options{BaseURL: b.URL, Mount: api.MountAgent, Token: api.StaticToken(secret),
		HTTP: &http.Client{Transport: inside{b.Service.Handler()}}})
	check(rt, err)
	return client
}

// signIn signs a user in with their role and groups.
func (b *building) signIn(rt *rapid.T, v *visitor) {
	ctx := context.Background()
	in := store.SignIn{OrgID: v.caller.Org.ID, Issuer: "i", Subject: v.caller.User.Email, Email: v.caller.User.Email,
		Role: v.caller.Role, GroupsUnknown: v.caller.GroupsUnknown}
	for _, id := range v.groups {
		in.Groups = append(in.Groups, snap.Group{GroupID: id, Name: "the " + id})
	}
	id, err := b.Store.ApplySignIn(ctx, in)
	check(rt, err)
	v.caller.User.ID = id
	groups, err := b.Store.Groups(ctx, v.caller)
	check(rt, err)
	v.caller.Groups = nil
	for _, g := range groups {
		b.groups[v.caller.Org.Slug+" "+g.GroupID] = g.Group
		if slices.Contains(v.groups, g.GroupID) {
			v.caller.Groups = append(v.caller.Groups, g.Group)
		}
	}
}

// list are the grants on a thing.
func (t *thing) list() (all []snap.Grant) {
	for a, until := range t.grants {
		all = append(all, snap.Grant{Audience: a, Until: until})
	}
	return all
}

// record is the thing in the words of the access rule.
func (t *thing) record() snap.Snapshot {
	return snap.Snapshot{ID: t.ID, Org: t.org, Owner: t.owner}
}

// sees is the rule: it reports whether the visitor sees the thing now.
func (b *building) sees(v *visitor, t *thing) bool {
	return !v.disabled && snap.Visible(v.caller, t.list(), b.clock.Now())
}

// may returns the code that a visitor gets who wants to do something with a thing; empty if it is
// allowed.
func (b *building) may(v *visitor, t *thing, do snap.Action) snap.Code {
	switch {
	case v.disabled || v.caller.Principal() == 0:
		return snap.CodeUnauthenticated
	case !b.sees(v, t):
		return snap.CodeNotFound
	}
	return refused(v, do, t.record())
}

func refused(v *visitor, do snap.Action, sn snap.Snapshot) snap.Code {
	if err := snap.Allowed(v.caller, do, sn); err != nil {
		return snap.CodeOf(err)
	}
	return ""
}

// note adds a line to the logs of the organizations that a visitor's act on a thing concerns.
func (t *thing) note(v *visitor, action snap.AuditAction, what string) {
	by := ""
	if v.caller.User != nil {
		by = v.caller.User.Email
	}
	t.log[t.org.Slug] += fmt.Sprintf("%s %s %s\n", by, action, what)
	if v.caller.Org.ID != t.org.ID {
		t.log[v.caller.Org.Slug] += fmt.Sprintf("%s %s %s\n", by, action, what)
	}
}

// told returns the fields of a thing that its listing is expected to show the visitor.
func (b *building) told(v *visitor, t *thing) string {
	now, sn := b.clock.Now(), t.record()
	var shared, received bool
	var expires time.Time
	var groups, orgs int
	for _, g := range t.list() {
		switch {
		case !g.Live(now):
		case g.Audience == snap.AudienceOf(snap.KindMembers, v.caller.Org.ID):
			shared, expires = true, g.Until
		case g.Audience == snap.AudienceOf(snap.KindRecipients, v.caller.Org.ID):
			shared, received, expires = true, true, g.Until
		case g.Audience.Kind() == snap.KindGroup && refused(v, snap.ActShare, sn) == "":
			groups++
		case g.Audience.Kind() == snap.KindRecipients && refused(v, snap.ActShareOrg, sn) == "":
			orgs++
		}
	}
	owner := ""
	if t.owner != nil && !received {
		owner = t.owner.Email
	}
	return fmt.Sprintln(t.ID, t.org.Slug, owner, shared, received, expires.UnixMilli(), groups, orgs)
}

// heard returns the same fields from the service's response.
func heard(s api.Snapshot) string {
	var expires time.Time
	if s.ExpiresAt != nil {
		expires = *s.ExpiresAt
	}
	return fmt.Sprintln(s.ID, s.Organization, s.Owner, s.Shared, s.Received, expires.UnixMilli(), s.Groups, s.Orgs)
}

// users are the users of an organization.
func (b *building) users(org snap.OrgRef) (all []*visitor) {
	for _, v := range b.people {
		if v.caller.User != nil && v.caller.Org.ID == org.ID {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *visitor) int { return cmp.Compare(a.name(), b.name()) })
	return all
}
