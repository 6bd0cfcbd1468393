package cloud_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// fewHistories is how many histories the test tries unless -rapid.checks sets a number. Each makes
// about a thousand requests.
const fewHistories = 3

// SPEC 5.3: after any history, every door of the service (list, get, pull, download URLs given out
// before, group-shares, org-shares, access, the audit log now and at earlier times) opens for every
// caller exactly as the access rule says for a plain list of grants. Three callers try the doors
// after each step, and everybody tries them at the end of a history: what a step did wrongly stays
// in the database.
func TestEveryDoorIsTheAccessRule(t *testing.T) {
	for _, db := range []string{"sqlite", "postgres"} {
		t.Run(db, func(t *testing.T) {
			t.Parallel()
			clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			o := cloudtest.Options{Clock: clock, Config: behindProxy}
			if db == "postgres" {
				o.DatabaseURL = cloudtest.Postgres(t)
			}
			c := cloudtest.Start(t, o)
			histories, all := 0, chosen("rapid.checks")
			rapid.Check(t, func(rt *rapid.T) {
				if histories++; histories > fewHistories && !all {
					return
				}
				b := newBuilding(rt, c, clock, histories)
				for range 2 {
					b.push(rt)
				}
				steps := b.steps()
				steps[""] = b.tryForSome
				rt.Repeat(steps)
				b.tryDoors(rt, b.people)
				b.readLogs(rt)
			})
		})
	}
}

// chosen reports whether a flag was given on the command line.
func chosen(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// tryForSome tries every door for three people.
func (b *building) tryForSome(rt *rapid.T) {
	first := rapid.IntRange(0, len(b.people)-1).Draw(rt, "first of three")
	b.tryDoors(rt, slices.Concat(b.people, b.people)[first:first+3])
}

// tryDoors tries every door for these people.
func (b *building) tryDoors(rt *rapid.T, people []*visitor) {
	for _, v := range people {
		b.tryList(rt, v)
		for _, t := range b.things {
			b.tryGet(rt, v, t)
			b.tryBytes(rt, v, t)
			b.tryPull(rt, v, t)
			b.tryShares(rt, v, t)
			b.tryAccess(rt, v, t)
		}
	}
	for _, v := range people { // after all pulls, which are reported
		for _, t := range b.things {
			b.tryAudit(rt, v, t)
			b.tryThen(rt, v, t)
		}
	}
}

// opened compares a door's response with the expected code, and reports whether the door opened.
func opened(rt *rapid.T, door string, v *visitor, t *thing, want snap.Code, err error) bool {
	got := snap.Code("")
	if err != nil {
		got = snap.CodeOf(err)
	}
	if got != want {
		rt.Fatalf("%s of %s for %s answers %q (%v), want %q", door, t.ID, v.name(), got, err, want)
	}
	return want == ""
}

func same(rt *rapid.T, door string, v *visitor, got, want string) {
	if got != want {
		rt.Fatalf("%s for %s\n%s\nwant\n%s", door, v.name(), got, want)
	}
}

func (b *building) tryList(rt *rapid.T, v *visitor) {
	page, err := v.client.Snapshots(context.Background(), api.ListOptions{})
	if v.disabled || v.caller.Principal() == 0 {
		if snap.CodeOf(err) != snap.CodeUnauthenticated {
			rt.Fatalf("list for %s: %v", v.name(), err)
		}
		return
	}
	check(rt, err)
	var got, want string
	for _, s := range page.Items {
		got += heard(s)
	}
	for _, t := range slices.Backward(b.things) {
		if b.sees(v, t) {
			want += b.told(v, t)
		}
	}
	same(rt, "list", v, got, want)
}

func (b *building) tryGet(rt *rapid.T, v *visitor, t *thing) {
	s, err := v.client.Snapshot(context.Background(), t.ID)
	if !opened(rt, "get", v, t, b.may(v, t, snap.ActView), err) {
		return
	}
	may := func(do snap.Action) bool { return refused(v, do, t.record()) == "" }
	can := api.Can{Pull: may(snap.ActPull), Delete: may(snap.ActDelete), Share: may(snap.ActShare),
		ShareOrg: may(snap.ActShareOrg), Explain: may(snap.ActExplain), Describe: may(snap.ActDescribe)}
	same(rt, "get", v, heard(s)+fmt.Sprint(*s.Can), b.told(v, t)+fmt.Sprint(can))
}

// tryPull pulls, and keeps the URL for later.
func (b *building) tryPull(rt *rapid.T, v *visitor, t *thing) {
	answer, err := v.client.Pull(context.Background(), t.ID)
	if !opened(rt, "pull", v, t, b.may(v, t, snap.ActPull), err) {
		return
	}
	t.note(v, snap.AuditPullStarted, "")
	if old, held := t.urls[v]; !held || !b.clock.Now().Before(old.Expires) {
		t.urls[v] = answer
	}
}

// tryBytes asks for the bytes by a URL that was issued earlier.
func (b *building) tryBytes(rt *rapid.T, v *visitor, t *thing) {
	held, ok := t.urls[v]
	if !ok {
		return
	}
	want := http.StatusOK
	switch {
	case !b.clock.Now().Before(held.Expires):
		want = http.StatusForbidden
	case !b.sees(v, t):
		want = http.StatusNotFound
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, held.URL, nil)
	check(rt, err)
	res, err := inside{b.Service.Handler()}.RoundTrip(req)
	check(rt, err)
	if res.StatusCode != want {
		rt.Fatalf("bytes of %s for %s: status %d, want %d", t.ID, v.name(), res.StatusCode, want)
	}
}

func (b *building) tryShares(rt *rapid.T, v *visitor, t *thing) {
	ctx := context.Background()
	groups, err := v.client.GroupShares(ctx, t.ID)
	if opened(rt, "group-shares", v, t, b.may(v, t, snap.ActListGroupShares), err) {
		var got, want []string
		for _, g := range groups {
			got = append(got, g.GroupID)
		}
		for _, id := range []string{"g0", "g1", "g2"} {
			until, ok := t.grants[snap.AudienceOf(snap.KindGroup, b.groups[t.org.Slug+" "+id].ID)]
			if ok && (snap.Grant{Until: until}).Live(b.clock.Now()) {
				want = append(want, id)
			}
		}
		same(rt, "group-shares", v, fmt.Sprint(got), fmt.Sprint(want))
	}
	orgs, err := v.client.OrgShares(ctx, t.ID)
	if opened(rt, "org-shares", v, t, b.may(v, t, snap.ActShareOrg), err) {
		var got, want []string
		for _, o := range orgs {
			got = append(got, fmt.Sprint(o.OrgSlug, o.DeclinedAt != nil))
		}
		to := b.other(t)
		if until, ok := t.grants[snap.AudienceOf(snap.KindRecipients, to.ID)]; ok &&
			(snap.Grant{Until: until}).Live(b.clock.Now()) {
			want = append(want, fmt.Sprint(to.Slug, false))
		}
		for _, slug := range t.declined {
			want = append(want, fmt.Sprint(slug, true))
		}
		same(rt, "org-shares", v, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// tryAccess asks who can see the thing, and why one user can or cannot.
func (b *building) tryAccess(rt *rapid.T, v *visitor, t *thing) {
	users := b.users(t.org)
	about := rapid.SampledFrom(users).Draw(rt, "about")
	report, err := v.client.Access(context.Background(), t.ID, about.name())
	if !opened(rt, "access", v, t, b.may(v, t, snap.ActExplain), err) {
		return
	}
	people, ways, outside := 0, 0, 0
	for _, u := range users {
		if b.sees(u, t) {
			people++
		}
	}
	for _, g := range t.list() {
		switch {
		case !g.Live(b.clock.Now()):
		case g.Audience.Kind() != snap.KindRecipients || v.caller.IsAdmin():
			ways++
		default:
			outside = 1 // the snapshot's owner sees one way for all other organizations, without their names
		}
	}
	same(rt, "access", v, fmt.Sprint(report.People, len(report.Ways), report.User.Visible),
		fmt.Sprint(people, ways+outside, b.sees(about, t)))
}

// recentLines is more lines about one thing than a step and the doors after it write.
const recentLines = 60

// tryAudit reads the newest lines about the thing in the log of the visitor's organization. Later,
// [building.readLogs] reads all of them.
func (b *building) tryAudit(rt *rapid.T, v *visitor, t *thing) {
	page, err := v.client.Audit(context.Background(), api.AuditOptions{Snapshot: t.ID, Limit: recentLines})
	if !opened(rt, "audit", v, t, b.administers(v), err) {
		return
	}
	var got []string
	for _, e := range slices.Backward(page.Items) {
		got = append(got, lineOf(e))
	}
	want := slices.Collect(strings.Lines(t.log[v.caller.Org.Slug]))
	want = want[max(0, len(want)-recentLines):]
	same(rt, "audit of "+t.ID, v, strings.Join(got, ""), strings.Join(want, ""))
}

// readLogs reads all lines about every thing in the logs of both organizations.
func (b *building) readLogs(rt *rapid.T) {
	for _, v := range b.people {
		if b.administers(v) != "" {
			continue
		}
		for _, t := range b.things {
			var got strings.Builder
			for e, err := range v.client.AllAudit(context.Background(),
				api.AuditOptions{Snapshot: t.ID, OldestFirst: true, Limit: 200}) {
				check(rt, err)
				got.WriteString(lineOf(e))
			}
			same(rt, "the whole audit of "+t.ID, v, got.String(), t.log[v.caller.Org.Slug])
		}
	}
}

// lineOf returns a line as a thing's log has it.
func lineOf(e api.AuditEntry) string {
	what := e.Detail.Group + e.Detail.Organization + string(e.Detail.Code)
	if e.Detail.OrgWide {
		what = "org-wide"
	}
	return fmt.Sprintf("%s %s %s\n", e.Actor, e.Action, what)
}

func (b *building) administers(v *visitor) snap.Code {
	if v.disabled || v.caller.Principal() == 0 {
		return snap.CodeUnauthenticated
	}
	return refused(v, snap.ActAdminister, snap.Snapshot{})
}

// tryThen asks the log who can see the thing at this moment.
func (b *building) tryThen(rt *rapid.T, v *visitor, t *thing) {
	then, err := v.client.AudienceAt(context.Background(), t.ID, b.clock.Now())
	want := b.administers(v)
	if want == "" && v.caller.Org.ID != t.org.ID {
		want = snap.CodeNotFound
	}
	if !opened(rt, "audit/access", v, t, want, err) {
		return
	}
	var got, see []string
	for _, u := range then.Users {
		got = append(got, u.Email)
	}
	for _, u := range b.users(t.org) {
		if b.sees(u, t) {
			see = append(see, u.name())
		}
	}
	same(rt, "audit/access of "+t.ID, v, fmt.Sprint(got), fmt.Sprint(see))
}
