package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/store"
)

// SPEC 5.3 rules 1 and 2: after any history, the store lists, finds and pulls for every caller
// exactly the snapshots for which snap.Visible is true with a plain list of grants, by every
// filter, page by page.
func TestStoreIsTheAccessRule(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		histories := 0
		rapid.Check(t, func(rt *rapid.T) {
			histories++
			h := newHistory(rt, w, histories)
			rt.Repeat(map[string]func(*rapid.T){
				"":              h.compareSome,
				"sign in":       h.signIn,
				"set role":      h.setRole,
				"push":          h.push,
				"share":         h.share,
				"unshare":       h.unshare,
				"share group":   h.shareGroup,
				"unshare group": h.unshareGroup,
				"share org":     h.shareOrg,
				"unshare org":   h.unshareOrg,
				"delete":        h.delete,
				"let time pass": h.advance,
				"sweep":         h.sweep,
			})
			h.compare(rt, h.allCallers(rt))
		})
	})
}

// history is a model of the events in two organizations: every person's role and groups, and a list
// of grants for every snapshot.
type history struct {
	*world
	n     int
	orgs  []snap.OrgRef
	users []*person
	snaps []*pushed
}

type person struct {
	org     snap.OrgRef
	name    string
	id      int64
	role    snap.Role
	groups  []string
	unknown bool
}

type pushed struct {
	snap.Snapshot
	grants map[snap.Audience]time.Time
}

var (
	roles   = []snap.Role{snap.RoleOwner, snap.RoleAdmin, snap.RoleMember, snap.RoleViewer}
	targets = []string{"shop", "Shop eu", "orders"}
	// manyGroups are too many groups for a listing to read a range for each.
	manyGroups = []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}
)

func newHistory(rt *rapid.T, w *world, n int) *history {
	h := &history{world: w, n: n}
	for _, slug := range []string{"acme", "globex"} {
		org, err := w.ApplyOrg(w.ctx, fmt.Sprintf("%s-%d", slug, n), slug, snap.Policy{})
		must(rt, err)
		h.orgs = append(h.orgs, org)
		for i, role := range []snap.Role{snap.RoleAdmin, snap.RoleMember, snap.RoleMember, snap.RoleViewer} {
			p := &person{org: org, name: fmt.Sprintf("user%d", i), role: role, groups: []string{"g0", "g1", "g2"}[:i]}
			h.users = append(h.users, p)
			h.apply(rt, p)
		}
	}
	h.begin(rt)
	return h
}

// begin pushes enough snapshots to fill several pages, and shares some with groups and org-wide.
func (h *history) begin(rt *rapid.T) {
	for i := range 8 {
		c := h.callers(rt)[i%2*4+1]
		h.pushOne(rt, c, targets[i%2], snap.TypeSnapshot)
		p := h.snaps[len(h.snaps)-1]
		groups, err := h.Groups(h.ctx, c)
		must(rt, err)
		for _, g := range groups {
			if rapid.Bool().Draw(rt, "shared with a group") {
				h.shareGroupWith(rt, p, c, g.Group)
			}
		}
		if rapid.IntRange(0, 2).Draw(rt, "shared org-wide") == 0 {
			h.shareWith(rt, p, c)
		}
	}
}

func must(rt *rapid.T, err error) {
	if err != nil {
		rt.Fatalf("%+v", err)
	}
}

func (h *history) apply(rt *rapid.T, p *person) {
	in := store.SignIn{OrgID: p.org.ID, Issuer: "i", Subject: p.name, Email: p.name, Role: p.role,
		GroupsUnknown: p.unknown}
	for _, g := range p.groups {
		in.Groups = append(in.Groups, snap.Group{GroupID: g, Name: strings.ToUpper(g)})
	}
	var err error
	p.id, err = h.ApplySignIn(h.ctx, in)
	must(rt, err)
}

func (h *history) signIn(rt *rapid.T) {
	p := rapid.SampledFrom(h.users).Draw(rt, "user")
	p.role = rapid.SampledFrom(roles).Draw(rt, "role")
	p.groups = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g0", "g1", "g2", "g3"}), 0, 4,
		rapid.ID[string]).Draw(rt, "groups")
	if rapid.IntRange(0, 2).Draw(rt, "in many") == 0 {
		p.groups = append(p.groups, manyGroups...)
	}
	p.unknown = rapid.Bool().Draw(rt, "unknown")
	h.apply(rt, p)
	if p.unknown {
		p.groups = nil
	}
}

func (h *history) setRole(rt *rapid.T) {
	p := rapid.SampledFrom(h.users).Draw(rt, "user")
	p.role = rapid.SampledFrom(roles).Draw(rt, "role")
	must(rt, h.SetRole(h.ctx, p.id, p.role))
}

func (h *history) push(rt *rapid.T) {
	c := rapid.SampledFrom(h.callers(rt)).Draw(rt, "caller")
	target := rapid.SampledFrom(targets).Draw(rt, "target")
	typ := rapid.SampledFrom([]snap.Type{snap.TypeSnapshot, snap.TypeSanitized}).Draw(rt, "type")
	for range rapid.IntRange(1, 3).Draw(rt, "many") {
		h.pushOne(rt, c, target, typ)
	}
}

func (h *history) pushOne(rt *rapid.T, c snap.Caller, target string, typ snap.Type) {
	h.clock.Advance(time.Duration(rapid.IntRange(0, 1).Draw(rt, "ms")) * time.Millisecond)
	u := h.upload(target, typ)
	must(rt, h.BeginUpload(h.ctx, c, u))
	sn, err := h.CompleteUpload(h.ctx, c, u)
	must(rt, err)
	p := &pushed{Snapshot: sn, grants: map[snap.Audience]time.Time{snap.AudienceOf(snap.KindAdmins, c.Org.ID): {}}}
	if c.User != nil {
		p.grants[snap.AudienceOf(snap.KindUser, c.User.ID)] = time.Time{}
	} else {
		p.grants[snap.AudienceOf(snap.KindKeys, c.Org.ID)] = time.Time{}
	}
	h.snaps = append(h.snaps, p)
}

// pick draws a snapshot and the key of its organization, which sees it.
func (h *history) pick(rt *rapid.T) (*pushed, snap.Caller) {
	there := slices.DeleteFunc(slices.Clone(h.snaps), func(p *pushed) bool { return len(p.grants) == 0 })
	if len(there) == 0 {
		rt.Skip("nothing pushed")
	}
	p := rapid.SampledFrom(there).Draw(rt, "snapshot")
	c, err := h.CallerOfOrg(h.ctx, p.Org.ID)
	must(rt, err)
	return p, c
}

func (h *history) share(rt *rapid.T) {
	p, c := h.pick(rt)
	h.shareWith(rt, p, c)
}

func (h *history) shareWith(rt *rapid.T, p *pushed, c snap.Caller) {
	until := h.until(rt)
	must(rt, h.ShareUntil(h.ctx, c, p.Snapshot, snap.Shares{OrgWide: true, Expires: until}))
	p.grants[snap.AudienceOf(snap.KindMembers, p.Org.ID)] = until
}

// until draws when a share ends: never, in a few milliseconds, soon, or later.
func (h *history) until(rt *rapid.T) (end time.Time) {
	if ms := rapid.IntRange(0, 10).Draw(rt, "lasts ms"); ms > 0 {
		unit := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Millisecond, 12 * time.Hour}).Draw(rt, "of")
		end = h.clock.Now().Add(time.Duration(ms) * unit)
	}
	return end
}

func (h *history) unshare(rt *rapid.T) {
	p, c := h.pick(rt)
	must(rt, h.Unshare(h.ctx, c, p.Snapshot))
	delete(p.grants, snap.AudienceOf(snap.KindMembers, p.Org.ID))
}

func (h *history) group(rt *rapid.T, c snap.Caller) snap.Group {
	groups, err := h.Groups(h.ctx, c)
	must(rt, err)
	return rapid.SampledFrom(groups).Draw(rt, "group").Group
}

func (h *history) shareGroup(rt *rapid.T) {
	p, c := h.pick(rt)
	h.shareGroupWith(rt, p, c, h.group(rt, c))
}

func (h *history) shareGroupWith(rt *rapid.T, p *pushed, c snap.Caller, g snap.Group) {
	until := h.until(rt)
	must(rt, h.ShareUntil(h.ctx, c, p.Snapshot, snap.Shares{Groups: []string{g.GroupID}, Expires: until}))
	p.grants[snap.AudienceOf(snap.KindGroup, g.ID)] = until
}

func (h *history) unshareGroup(rt *rapid.T) {
	p, c := h.pick(rt)
	g := h.group(rt, c)
	must(rt, h.UnshareGroup(h.ctx, c, p.Snapshot, g.GroupID))
	delete(p.grants, snap.AudienceOf(snap.KindGroup, g.ID))
}

func (h *history) other(p *pushed) snap.OrgRef {
	if h.orgs[0].ID == p.Org.ID {
		return h.orgs[1]
	}
	return h.orgs[0]
}

func (h *history) shareOrg(rt *rapid.T) {
	p, c := h.pick(rt)
	to := h.other(p)
	until := h.until(rt)
	_, _, err := h.ShareOrg(h.ctx, c, p.Snapshot, to.Slug, until)
	must(rt, err)
	p.grants[snap.AudienceOf(snap.KindRecipients, to.ID)] = until
}

func (h *history) unshareOrg(rt *rapid.T) {
	p, c := h.pick(rt)
	to := h.other(p)
	must(rt, h.UnshareOrg(h.ctx, c, p.Snapshot, to.Slug))
	delete(p.grants, snap.AudienceOf(snap.KindRecipients, to.ID))
}

func (h *history) delete(rt *rapid.T) {
	p, c := h.pick(rt)
	_, err := h.Delete(h.ctx, c, p.Snapshot)
	must(rt, err)
	clear(p.grants)
}

// advance lets time pass. Most shares that end last only a few milliseconds.
func (h *history) advance(rt *rapid.T) {
	h.clock.Advance(time.Duration(rapid.IntRange(1, 5).Draw(rt, "ms")) * time.Millisecond)
}

func (h *history) sweep(rt *rapid.T) {
	_, err := h.Sweep(h.ctx, 2)
	must(rt, err)
}

// callers are all users, and for each organization a key without the scope private and one with it.
func (h *history) callers(rt *rapid.T) (all []snap.Caller) {
	for _, p := range h.users {
		c, err := h.CallerOfUser(h.ctx, p.id)
		must(rt, err)
		c.Credential.Kind = snap.LoginToken
		all = append(all, c)
		var groups []string
		for _, g := range c.Groups {
			groups = append(groups, g.GroupID)
		}
		slices.Sort(groups)
		slices.Sort(p.groups)
		if c.Role != p.role || !slices.Equal(groups, p.groups) {
			rt.Fatalf("%s is %s of %v, want %s of %v", p.name, c.Role, groups, p.role, p.groups)
		}
	}
	for _, org := range h.orgs {
		c, err := h.CallerOfOrg(h.ctx, org.ID)
		must(rt, err)
		c.Credential = snap.Credential{Kind: snap.AgentKey, Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush}}
		all = append(all, c)
		c.Credential.Scopes = append(c.Credential.Scopes, snap.ScopePrivate)
		all = append(all, c)
	}
	return all
}

// compareSome compares for three callers after each step. The end of a history compares for all.
func (h *history) compareSome(rt *rapid.T) {
	all := h.allCallers(rt)
	first := rapid.IntRange(0, len(all)-1).Draw(rt, "caller")
	h.compare(rt, slices.Concat(all, all)[first:first+3])
}

// allCallers returns every caller, including the anonymous one.
func (h *history) allCallers(rt *rapid.T) []snap.Caller { return append(h.callers(rt), snap.Caller{}) }

// compare checks every way of reading for these callers.
func (h *history) compare(rt *rapid.T, callers []snap.Caller) {
	for i, c := range callers {
		var sees []snap.Snapshot
		for _, p := range h.snaps {
			want, ok := h.expect(c, p)
			got, err := h.Snapshot(h.ctx, c, p.ID)
			if ok != (err == nil) || !ok && !errors.Is(err, snap.ErrNotFound) {
				rt.Fatalf("caller %d, snapshot %s: %v, want visible = %v", i, p.ID, err, ok)
			}
			if _, bytes := h.Bytes(h.ctx, c, p.ID); snap.CodeOf(bytes) != snap.CodeOf(err) {
				rt.Fatalf("caller %d, snapshot %s: found %v, its bytes %v", i, p.ID, err, bytes)
			}
			if ok {
				got, err = h.WithShareNames(h.ctx, c, got)
				must(rt, err)
				equal(rt, []snap.Snapshot{got}, []snap.Snapshot{want})
				sees = append(sees, want)
			}
		}
		slices.SortFunc(sees, func(a, b snap.Snapshot) int { return cmp.Compare(b.Key, a.Key) })
		h.compareList(rt, c, store.Query{Limit: 200}, sees)
		h.compareList(rt, c, h.query(rt), sees)
	}
}

// expect returns the form in which the caller must see a snapshot, and whether they may see it.
func (h *history) expect(c snap.Caller, p *pushed) (snap.Snapshot, bool) {
	now := h.clock.Now()
	sn := p.Snapshot
	sn.Shared, sn.Groups, sn.Orgs, sn.Outside = false, 0, 0, false
	sn.FirstGroup, sn.NextExpiry, sn.Through = "", time.Time{}, ""
	owner := sn.Org.ID == c.Org.ID && (c.IsAdmin() || c.User != nil && sn.Owner != nil && sn.Owner.ID == c.User.ID)
	var grants []snap.Grant
	var through string
	for a, until := range p.grants {
		g := snap.Grant{Audience: a, Until: until}
		grants = append(grants, g)
		if g.Live(now) {
			h.expectNames(c, &sn, g, &through)
		}
		switch {
		case !g.Live(now):
		case a == snap.AudienceOf(snap.KindMembers, c.Org.ID):
			sn.Shared, sn.Expires = true, until
		case a == snap.AudienceOf(snap.KindRecipients, c.Org.ID):
			sn.Shared, sn.Received, sn.Expires = true, true, until
		case a.Kind() == snap.KindGroup && snap.Allowed(c, snap.ActShare, sn) == nil:
			sn.Groups++
		case a.Kind() == snap.KindRecipients && owner:
			sn.Outside = true
			if snap.Allowed(c, snap.ActShareOrg, sn) == nil {
				sn.Orgs++
			}
		}
	}
	if !owner && c.User != nil && sn.Org.ID == c.Org.ID && !sn.Shared {
		sn.Through = through
	}
	if c.Org.ID != sn.Org.ID {
		sn.Owner = nil
	}
	return sn, snap.Visible(c, grants, now)
}

// expectNames adds the facts about a live grant that people who may manage it see, and the first of
// the caller's groups among the grants.
func (h *history) expectNames(c snap.Caller, sn *snap.Snapshot, g snap.Grant, through *string) {
	first := func(into *string, name string) {
		if *into == "" || name < *into {
			*into = name
		}
	}
	manages := snap.ActShareOrg
	var name string
	switch g.Audience.Kind() {
	case snap.KindGroup:
		manages, name = snap.ActShare, h.groupName(sn.Org, g.Audience)
		if slices.Contains(c.Audiences(), g.Audience) {
			first(through, name)
		}
	case snap.KindRecipients:
	default:
		return
	}
	if snap.Allowed(c, manages, *sn) != nil {
		return
	}
	if name != "" {
		first(&sn.FirstGroup, name)
	}
	if !g.Until.IsZero() && (sn.NextExpiry.IsZero() || g.Until.Before(sn.NextExpiry)) {
		sn.NextExpiry = g.Until
	}
}

// groupName returns the name of the group in an audience.
func (h *history) groupName(org snap.OrgRef, a snap.Audience) string {
	groups, err := h.Groups(h.ctx, snap.Caller{Org: org})
	h.ok(err)
	for _, g := range groups {
		if g.ID == a.Subject() {
			return cmp.Or(g.Name, g.GroupID)
		}
	}
	return ""
}

// expiresSoon reports whether a share that the caller may know about ends soon.
func (h *history) expiresSoon(c snap.Caller, id string) bool {
	now := h.clock.Now()
	for _, p := range h.snaps {
		if p.ID != id {
			continue
		}
		for a, until := range p.grants {
			if until.IsZero() || !now.Before(until) || until.After(now.Add(snap.SoonExpiring)) {
				continue
			}
			own := p.Org.ID == c.Org.ID
			mine := own && c.User != nil && p.Owner != nil && p.Owner.ID == c.User.ID
			if slices.Contains(c.Audiences(), a) || own && c.IsAdmin() || mine && a.Kind() != snap.KindRecipients {
				return true
			}
		}
	}
	return false
}

// query draws a query.
func (h *history) query(rt *rapid.T) store.Query {
	q := store.Query{
		Filter: rapid.SampledFrom([]snap.Filter{"", snap.FilterAll, snap.FilterShared, snap.FilterMine,
			snap.FilterReceived}).Draw(rt, "filter"),
		Target: rapid.SampledFrom([]string{"", "", "shop", "orders", "no such"}).Draw(rt, "target"),
		Type:   rapid.SampledFrom([]snap.Type{"", "", snap.TypeSanitized}).Draw(rt, "type"),
		Q: rapid.SampledFrom([]string{"", "", "", "SHOP", "eu", "orders-2026", "zzz", "20", "2026 shop",
			"acme", "a", "alice", "03"}).Draw(rt, "q"),
		Owner: rapid.SampledFrom([]string{"", "", "", "", "nobody@acme.test", h.orgs[0].Slug,
			strings.ToUpper(h.orgs[1].Slug[:2])}).Draw(rt, "owner"),
		ExpiresSoon: rapid.IntRange(0, 4).Draw(rt, "ends soon") == 0,
		Limit:       rapid.SampledFrom([]int{1, 1, 2, 10}).Draw(rt, "limit"),
	}
	if len(h.snaps) > 0 && rapid.IntRange(0, 3).Draw(rt, "by owner") == 0 {
		if owner := rapid.SampledFrom(h.snaps).Draw(rt, "of the owner of").Owner; owner != nil {
			q.Owner = strings.ToUpper(owner.Email)
			q.Owner = q.Owner[:rapid.SampledFrom([]int{1, 3, len(q.Owner), len(q.Owner)}).Draw(rt, "letters")]
		}
	}
	if len(h.snaps) > 0 && rapid.IntRange(0, 3).Draw(rt, "by time") == 0 {
		q.Since = rapid.SampledFrom(h.snaps).Draw(rt, "since").Created
	}
	if len(h.snaps) > 0 && rapid.IntRange(0, 3).Draw(rt, "before a time") == 0 {
		q.Until = rapid.SampledFrom(h.snaps).Draw(rt, "until").Created
	}
	if len(h.snaps) > 0 && rapid.IntRange(0, 5).Draw(rt, "by id") == 0 {
		id := rapid.SampledFrom(h.snaps).Draw(rt, "id").ID
		q.IDPrefix = id[:rapid.IntRange(6, len(id)).Draw(rt, "long")]
	}
	if len(h.snaps) > 0 && rapid.IntRange(0, 5).Draw(rt, "by several ids") == 0 {
		for _, sn := range rapid.SliceOfN(rapid.SampledFrom(h.snaps), 1, 5).Draw(rt, "ids") {
			q.IDs = append(q.IDs, sn.ID, after(sn.ID))
		}
	}
	return q
}

// ownedAs reports whether the owner of a snapshot matches the text of a query.
func (h *history) ownedAs(c snap.Caller, sn snap.Snapshot, text string) bool {
	text = strings.ToLower(text)
	exact := false
	for _, u := range h.users {
		exact = exact || u.org.ID == c.Org.ID && strings.ToLower(u.name) == text
	}
	switch {
	case text == "":
		return true
	case sn.Received:
		return !exact && strings.HasPrefix(strings.ToLower(sn.Org.Slug), text)
	case sn.Owner == nil:
		return false
	case exact:
		return strings.ToLower(sn.Owner.Email) == text
	}
	return strings.HasPrefix(strings.ToLower(sn.Owner.Email), text)
}

// compareList goes through all pages of a query.
func (h *history) compareList(rt *rapid.T, c snap.Caller, q store.Query, sees []snap.Snapshot) {
	var want, got []snap.Snapshot
	for _, sn := range sees {
		if store.FilterMatches(c, sn, q.Filter) && (q.Target == "" || q.Target == sn.Target) &&
			(q.Type == "" || q.Type == sn.Type) &&
			(q.Q == "" || store.Matches(sn, q.Q)) && strings.HasPrefix(sn.ID, q.IDPrefix) &&
			h.ownedAs(c, sn, q.Owner) && (q.IDs == nil || slices.Contains(q.IDs, sn.ID)) &&
			(q.Since.IsZero() || !sn.Created.Before(q.Since)) && (q.Until.IsZero() || sn.Created.Before(q.Until)) &&
			(!q.ExpiresSoon || h.expiresSoon(c, sn.ID)) {
			want = append(want, sn)
		}
	}
	for {
		page, err := h.Snapshots(h.ctx, c, q)
		must(rt, err)
		if len(page.Items) > q.Limit || page.Next != "" && len(page.Items) < q.Limit {
			rt.Fatalf("%+v: a page of %d items, next %q", q, len(page.Items), page.Next)
		}
		got = append(got, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	equal(rt, got, want)
	n, more, err := h.Count(h.ctx, c, q)
	if must(rt, err); n != len(want) || more {
		rt.Fatalf("%+v: counted %d, more %v, want %d", q, n, more, len(want))
	}
}

func equal(rt *rapid.T, got, want []snap.Snapshot) {
	rt.Helper()
	text := func(all []snap.Snapshot) string {
		var b strings.Builder
		for _, sn := range all {
			var owner snap.User
			if sn.Owner != nil {
				owner = *sn.Owner
			}
			sn.Owner = nil
			fmt.Fprintf(&b, "%+v by %+v\n", sn, owner)
		}
		return b.String()
	}
	if g, w := text(got), text(want); g != w {
		rt.Fatalf("got\n%swant\n%s", g, w)
	}
}
