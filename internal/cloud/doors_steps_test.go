package cloud_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/api"
)

// In each step one visitor does one thing through the API. The step checks that the response
// follows the rule, and records the change in the model.

func (b *building) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"sign in": b.newSignIn, "set role": b.newRole, "disable": b.disable, "let time pass": b.pass,
		"push": b.push, "delete": b.remove,
		"share": b.share, "unshare": b.unshare,
		"share group": b.shareGroup, "unshare group": b.unshareGroup,
		"share org": b.shareOrg, "share org again": b.shareOrg, "unshare org": b.unshareOrg, "decline": b.decline,
	}
}

func (b *building) drawUser(rt *rapid.T) *visitor {
	all := append(b.users(b.orgs[0]), b.users(b.orgs[1])...)
	return rapid.SampledFrom(all).Draw(rt, "user")
}

// drawAct draws a thing and a visitor who acts on it, mostly one who may.
func (b *building) drawAct(rt *rapid.T, do snap.Action) (*thing, *visitor) {
	if len(b.things) == 0 {
		rt.Skip("nothing pushed")
	}
	t := rapid.SampledFrom(b.things).Draw(rt, "thing")
	able := slices.DeleteFunc(slices.Clone(b.people), func(v *visitor) bool { return b.may(v, t, do) != "" })
	if len(able) == 0 || rapid.IntRange(0, 4).Draw(rt, "anyone") == 0 {
		able = b.people
	}
	return t, rapid.SampledFrom(able).Draw(rt, "who")
}

// answered checks the response to an act, and reports whether it was done.
func (b *building) answered(rt *rapid.T, v *visitor, t *thing, do snap.Action, err error) bool {
	want := b.may(v, t, do)
	if v.caller.User == nil && want == snap.CodeNotFound && (do == snap.ActShare || do == snap.ActShareOrg) {
		want = snap.CodeUserAttributionRequired // before anything is looked up
	}
	if snap.CodeOf(err) != want && (err != nil || want != "") {
		rt.Fatalf("%s wants to %s %s: %v, want %q", v.name(), do, t.ID, err, want)
	}
	refused := want == snap.CodeForbidden || want == snap.CodeUserAttributionRequired
	switch {
	case refused && do == snap.ActDelete:
		t.note(v, snap.AuditDeleteRefused, string(want))
	case refused && do == snap.ActDecline:
		t.note(v, snap.AuditDeclineRefused, string(want))
	case do == snap.ActShare || do == snap.ActShareOrg:
		switch want {
		case snap.CodeForbidden:
			t.note(v, snap.AuditShareRefused, string(want))
		case snap.CodeUserAttributionRequired: // the owner of the snapshot was not looked up
			t.log[v.caller.Org.Slug] += fmt.Sprintf(" %s %s\n", snap.AuditShareRefused, want)
		}
	}
	return want == ""
}

func (b *building) newSignIn(rt *rapid.T) {
	v := b.drawUser(rt)
	v.caller.Role = rapid.SampledFrom([]snap.Role{snap.RoleOwner, snap.RoleAdmin, snap.RoleMember,
		snap.RoleViewer}).Draw(rt, "role")
	v.groups = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g0", "g1", "g2"}), 0, 3, rapid.ID[string]).Draw(rt,
		"groups")
	v.caller.GroupsUnknown = rapid.IntRange(0, 3).Draw(rt, "unknown") == 0
	if v.caller.GroupsUnknown {
		v.groups = nil
	}
	b.signIn(rt, v)
}

func (b *building) newRole(rt *rapid.T) {
	v := b.drawUser(rt)
	v.caller.Role = rapid.SampledFrom([]snap.Role{snap.RoleAdmin, snap.RoleMember, snap.RoleViewer}).Draw(rt, "role")
	check(rt, b.Store.SetRole(context.Background(), v.caller.User.ID, v.caller.Role))
}

func (b *building) disable(rt *rapid.T) {
	v := b.drawUser(rt)
	v.disabled = !v.disabled
	check(rt, b.Store.SetDisabled(context.Background(), v.caller.User.ID, v.disabled))
}

func (b *building) pass(rt *rapid.T) {
	b.clock.Advance(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, 6 * time.Minute}).Draw(rt, "time"))
}

func (b *building) push(rt *rapid.T) {
	if len(b.things) == 4 {
		rt.Skip("enough")
	}
	v := rapid.SampledFrom(b.people[:len(b.people)-1]).Draw(rt, "who")
	b.clock.Advance(time.Millisecond)
	content := fmt.Append(nil, snap.NewSnapshotID())
	if code := refused(v, snap.ActPush, snap.Snapshot{}); code != "" || v.disabled {
		if v.disabled {
			code = snap.CodeUnauthenticated
		}
		if _, err := v.client.Push(context.Background(), pushOf("shop", content)); snap.CodeOf(err) != code {
			rt.Fatalf("%s pushes: %v, want %s", v.name(), err, code)
		}
		return
	}
	t := &thing{
		Snapshot: b.Push(v.client, "shop", content), org: v.caller.Org,
		grants: map[snap.Audience]time.Time{snap.AudienceOf(snap.KindAdmins, v.caller.Org.ID): {}},
		log:    map[string]string{}, urls: map[*visitor]api.PullResponse{},
	}
	if v.caller.User != nil {
		t.owner = v.caller.User
		t.grants[snap.AudienceOf(snap.KindUser, v.caller.User.ID)] = time.Time{}
	} else {
		t.grants[snap.AudienceOf(snap.KindKeys, v.caller.Org.ID)] = time.Time{}
	}
	t.note(v, snap.AuditPushed, "")
	b.things = append(b.things, t)
}

func (b *building) remove(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActDelete)
	if b.answered(rt, v, t, snap.ActDelete, v.client.Delete(context.Background(), t.ID)) {
		clear(t.grants)
		t.note(v, snap.AuditDeleted, "")
	}
}

func (b *building) share(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShare)
	until, expires := b.until(rt)
	var err error
	if expires == nil {
		_, err = v.client.Share(context.Background(), t.ID)
	} else {
		with := api.SharesRequest{OrgWide: true, ExpiresAt: expires}
		_, err = v.client.ShareWith(context.Background(), t.ID, with, true)
	}
	if b.answered(rt, v, t, snap.ActShare, err) {
		b.grant(v, t, snap.AudienceOf(snap.KindMembers, t.org.ID), until, "org-wide")
	}
}

// until draws when a share ends. If it never ends, until is zero and expires is nil.
func (b *building) until(rt *rapid.T) (until time.Time, expires *time.Time) {
	d := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 2 * time.Minute}).Draw(rt, "lasts")
	if d == 0 {
		return until, nil
	}
	until = b.clock.Now().Add(d)
	return until, &until
}

func (b *building) unshare(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShare)
	if b.answered(rt, v, t, snap.ActShare, v.client.Unshare(context.Background(), t.ID)) {
		b.ungrant(v, t, snap.AudienceOf(snap.KindMembers, t.org.ID), "org-wide")
	}
}

func (b *building) drawGroup(rt *rapid.T, t *thing) snap.Group {
	return b.groups[t.org.Slug+" "+rapid.SampledFrom([]string{"g0", "g1"}).Draw(rt, "group")]
}

func (b *building) shareGroup(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShare)
	g := b.drawGroup(rt, t)
	until, expires := b.until(rt)
	_, err := v.client.ShareWith(context.Background(), t.ID,
		api.SharesRequest{GroupIDs: []string{g.GroupID}, ExpiresAt: expires}, true)
	if b.answered(rt, v, t, snap.ActShare, err) {
		b.grant(v, t, snap.AudienceOf(snap.KindGroup, g.ID), until, g.GroupID)
	}
}

func (b *building) unshareGroup(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShare)
	g := b.drawGroup(rt, t)
	if b.answered(rt, v, t, snap.ActShare, v.client.UnshareGroup(context.Background(), t.ID, g.GroupID)) {
		b.ungrant(v, t, snap.AudienceOf(snap.KindGroup, g.ID), g.GroupID)
	}
}

// other is the organization that a thing can be shared with.
func (b *building) other(t *thing) snap.OrgRef {
	if b.orgs[0].ID == t.org.ID {
		return b.orgs[1]
	}
	return b.orgs[0]
}

func (b *building) shareOrg(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShareOrg)
	to := b.other(t)
	until, expires := b.until(rt)
	_, err := v.client.ShareOrg(context.Background(), t.ID, to.Slug, expires)
	if b.answered(rt, v, t, snap.ActShareOrg, err) {
		b.grant(v, t, snap.AudienceOf(snap.KindRecipients, to.ID), until, to.Slug)
		t.declined = nil
	}
}

func (b *building) unshareOrg(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActShareOrg)
	to := b.other(t)
	if b.answered(rt, v, t, snap.ActShareOrg, v.client.UnshareOrg(context.Background(), t.ID, to.Slug)) {
		b.ungrant(v, t, snap.AudienceOf(snap.KindRecipients, to.ID), to.Slug)
	}
}

func (b *building) decline(rt *rapid.T) {
	t, v := b.drawAct(rt, snap.ActDecline)
	if b.answered(rt, v, t, snap.ActDecline, v.client.Decline(context.Background(), t.ID)) {
		delete(t.grants, snap.AudienceOf(snap.KindRecipients, v.caller.Org.ID))
		t.declined = []string{v.caller.Org.Slug}
		t.note(v, snap.AuditDeclined, v.caller.Org.Slug)
	}
}

// grant records a share. A share that already holds with the same end is not recorded again.
func (b *building) grant(v *visitor, t *thing, a snap.Audience, until time.Time, what string) {
	old, had := t.grants[a]
	t.grants[a] = until
	if had && (snap.Grant{Until: old}).Live(b.clock.Now()) && old.Equal(until) {
		return
	}
	t.note(v, snap.AuditShared, what)
	if a.Kind() == snap.KindRecipients {
		t.log[t.org.Slug] += fmt.Sprintf(" %s %s\n", snap.AuditReceipt, what)
	}
}

func (b *building) ungrant(v *visitor, t *thing, a snap.Audience, what string) {
	old, had := t.grants[a]
	delete(t.grants, a)
	if had && (snap.Grant{Until: old}).Live(b.clock.Now()) {
		t.note(v, snap.AuditUnshared, what)
	}
}
