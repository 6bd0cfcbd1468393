package cloud_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// A request for access reveals nothing about the snapshot. Requests for hidden and absent ones get
// the same responses, byte for byte, count against the same limit, and cost the database the same
// statements.
func TestRequestsForAccessRevealNothing(t *testing.T) {
	t.Parallel()
	database, statements := counted(t, cloudtest.Postgres(t))
	c := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, Clock: clocktest.New(time.Now())})
	s := newScene(t, c)
	ask := func(key, id string) (answer, int64) {
		before := statements.Load()
		res, data := send(t, http.MethodPost, c.URL+api.MountAgent+"/access-requests",
			fmt.Sprintf(`{"snapshot":%q}`, id), key)
		res.Header.Del("Date")
		return answer{res.StatusCode, res.Header, string(data)}, statements.Load() - before
	}
	for _, email := range []string{"max@acme.test", "vic@acme.test", "ian@initech.test"} {
		key := c.Key(email)
		ask(key, snap.NewSnapshotID()) // the first use of a key is recorded
		hidden, work := ask(key, s.id)
		again, workAgain := ask(key, s.id)
		never := snap.NewSnapshotID()
		absent, workAbsent := ask(key, never)
		absentAgain, workAbsentAgain := ask(key, never)
		if hidden.status != http.StatusNoContent || !reflect.DeepEqual(hidden, absent) ||
			!reflect.DeepEqual(again, absentAgain) || work != workAbsent || workAgain != workAbsentAgain || work == 0 {
			t.Errorf("%s: %v (%d statements), again %v (%d) for a hidden snapshot; %v (%d), again %v (%d) for one "+
				"that never was", email, hidden, work, again, workAgain, absent, workAbsent, absentAgain,
				workAbsentAgain)
		}
		mine, err := c.As(email).OwnAccessRequests(context.Background())
		must(t, err)
		if len(mine) != 3 || mine[0].Target != "" || mine[1].Target != "" || mine[1].Email != mine[0].Email {
			t.Errorf("%s's own requests: %+v", email, mine)
		}
	}
}

// The owner of a snapshot and the admins get the requests, and nobody else. A share of any kind
// answers a request; a refusal is not disclosed to the person who asked.
func TestRequestsForAccessReachTheirPeople(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	ctx := context.Background()
	s := newScene(t, c)
	max, ian := c.As("max@acme.test"), c.As("ian@initech.test")
	must(t, max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id, Reason: "bug\n412 "}))
	must(t, ian.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id}))
	for _, sees := range []string{"gus@acme.test", "gary@globex.test"} {
		err := c.As(sees).RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id})
		if snap.CodeOf(err) != snap.CodeConflict {
			t.Errorf("%s can see it already: %v", sees, err)
		}
	}
	reported, err := c.Store.ReportRequests(ctx)
	must(t, err)
	if again, err := c.Store.ReportRequests(ctx); err != nil || again != 0 || reported > 2 {
		t.Errorf("reported %d, then %d, %v", reported, again, err)
	}
	lists := func(email string) []api.AccessRequest {
		t.Helper()
		found, err := c.As(email).AccessRequests(ctx)
		must(t, err)
		return found
	}
	for email, want := range map[string]int{"alice@acme.test": 2, "adam@acme.test": 2, "mia@acme.test": 2,
		"gus@acme.test": 0, "max@acme.test": 0, "vic@acme.test": 0, "gail@globex.test": 0, "ian@initech.test": 0} {
		if got := lists(email); len(got) != want {
			t.Errorf("%s may answer %d requests, want %d", email, len(got), want)
		}
	}
	first, second := lists("mia@acme.test")[0], lists("mia@acme.test")[1]
	if first.Email != "max@acme.test" || first.Reason != "bug 412" || first.Snapshot != s.id ||
		second.Organization != "initech" || len(second.Groups) > 0 {
		t.Errorf("the requests are %+v and %+v", first, second)
	}
	for _, other := range []string{"gus@acme.test", "gail@globex.test", "ian@initech.test", "max@acme.test"} {
		if err := c.As(other).RefuseAccess(ctx, second.ID); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("%s refuses a request that is none of theirs: %v", other, err)
		}
		if other != "ian@initech.test" {
			if err := c.As(other).WithdrawAccessRequest(ctx, second.ID); snap.CodeOf(err) != snap.CodeNotFound {
				t.Errorf("%s withdraws the request of somebody else: %v", other, err)
			}
		}
	}
	must(t, c.As("mia@acme.test").RefuseAccess(ctx, second.ID))
	if mine, err := ian.OwnAccessRequests(ctx); err != nil || len(mine) != 1 {
		t.Errorf("a refusal is disclosed: %+v, %v", mine, err)
	}
	must(t, ian.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id})) // a repetition, so nobody is asked again
	own, err := ian.OwnAccessRequests(ctx)
	must(t, err)
	must(t, ian.WithdrawAccessRequest(ctx, own[0].ID))
	must(t, ian.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id}))
	if got := lists("mia@acme.test"); len(got) != 1 || got[0].Email != "max@acme.test" {
		t.Errorf("a refused request came back: %+v", got)
	}
	_, err = c.As("mia@acme.test").Share(ctx, s.id)
	must(t, err)
	if got := lists("alice@acme.test"); len(got) != 0 {
		t.Errorf("after a share and a refusal: %+v", got)
	}
	_, err = c.Store.ReportRequests(ctx)
	must(t, err)
	must(t, c.As("mia@acme.test").Unshare(ctx, s.id))
	if got := lists("alice@acme.test"); len(got) != 0 {
		t.Errorf("an answered request came back: %+v", got)
	}
	log, err := c.As("alice@acme.test").Audit(ctx, api.AuditOptions{Snapshot: s.id})
	must(t, err)
	count := map[string]int{}
	for _, e := range log.Items {
		count[string(e.Action)+" "+e.Actor]++
	}
	for _, want := range []string{"snapshot.access_requested max@acme.test",
		"snapshot.access_requested ian@initech.test", "snapshot.access_refused mia@acme.test"} {
		if count[want] != 1 {
			t.Errorf("%d lines %s: %v", count[want], want, count)
		}
	}
	me, err := c.As("mia@acme.test").Me(ctx)
	must(t, err)
	if len(me.Notices) < 2 {
		t.Errorf("the owner has the notices %+v", me.Notices)
	}
}

// A person has at most 20 open requests, even for absent snapshots. Withdrawing one makes room, and
// a request lapses.
func TestRequestsForAccessAreLimited(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	ctx := context.Background()
	max := c.As("max@acme.test")
	ask := func() error {
		return max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: snap.NewSnapshotID()})
	}
	must(t, max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: newScene(t, c).id}))
	refused, err := c.As("mia@acme.test").AccessRequests(ctx)
	must(t, err)
	must(t, c.As("mia@acme.test").RefuseAccess(ctx, refused[0].ID))
	for range 19 {
		must(t, ask())
	}
	if err := ask(); snap.CodeOf(err) != snap.CodeRateLimited {
		t.Errorf("the 21st request: %v", err)
	}
	mine, err := max.OwnAccessRequests(ctx)
	must(t, err)
	must(t, max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: mine[3].Snapshot})) // a repetition
	must(t, max.WithdrawAccessRequest(ctx, mine[0].ID))
	must(t, ask())
	clock.Advance(15 * 24 * time.Hour)
	must(t, ask())
	for _, wrong := range []string{"snap_", "x", "snap_7h2k", "../../etc"} {
		err := max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: wrong})
		if snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// A share that was made for more than three days is reported three days before its end, once, in
// the log and to the owner of the snapshot. An owner who is not an admin gets no notice of a share
// with another organization.
func TestSharesThatExpireSoonAreReported(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	ctx := context.Background()
	sn := c.Push(c.As("mia@acme.test"), "shop", []byte("expires"))
	alice := c.As("alice@acme.test")
	week := int64(7 * 24 * 3600)
	for _, r := range []api.SharesRequest{
		{OrgWide: true, GroupIDs: []string{"eng"}, OrgSlugs: []string{"globex"}, ExpiresIn: week},
		{GroupIDs: []string{"dba"}, ExpiresIn: 3600}} {
		if _, err := alice.ShareWith(ctx, sn.ID, r, false); err != nil {
			t.Fatal(err)
		}
	}
	report := func(want int) {
		t.Helper()
		if got, err := c.Store.ReportExpiring(ctx); err != nil || got != want {
			t.Errorf("%d reported, %v; want %d", got, err, want)
		}
	}
	report(0)
	clock.Advance(4*24*time.Hour + time.Minute)
	report(3)
	report(0)
	_, err := alice.ShareWith(ctx, sn.ID, api.SharesRequest{GroupIDs: []string{"eng"}, ExpiresIn: week}, false)
	must(t, err)
	clock.Advance(4*24*time.Hour + time.Minute) // the others have ended
	report(1)
	log, err := alice.Audit(ctx, api.AuditOptions{Action: snap.AuditShareExpires})
	must(t, err)
	if len(log.Items) != 4 || log.Items[0].Detail.Group != "eng" || log.Items[0].By() != "expiry of acme" {
		t.Errorf("the log has %+v", log.Items)
	}
	me, err := c.As("mia@acme.test").Me(ctx)
	must(t, err)
	soon := 0
	for _, n := range me.Notices {
		if n.Action == snap.AuditShareExpires {
			soon++
		}
	}
	if soon != 3 {
		t.Errorf("the owner has %d such notices, want 3: %+v", soon, me.Notices)
	}
}

// A request that is made again after a withdrawal has the new reason and a new end, and is
// reported.
func TestRequestsForAccessThatAreMadeAgain(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	ctx := context.Background()
	s, max, alice := newScene(t, c), c.As("max@acme.test"), c.As("alice@acme.test")
	must(t, max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id, Reason: "typo"}))
	mine, err := max.OwnAccessRequests(ctx)
	must(t, err)
	must(t, max.WithdrawAccessRequest(ctx, mine[0].ID))
	if n, err := c.Store.ReportRequests(ctx); err != nil || n != 0 {
		t.Errorf("a withdrawn request: %d, %v", n, err)
	}
	clock.Advance(10 * 24 * time.Hour)
	must(t, max.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: s.id, Reason: "bug 412"}))
	if n, err := c.Store.ReportRequests(ctx); err != nil || n != 1 {
		t.Errorf("asked again: %d reported, %v; want 1", n, err)
	}
	clock.Advance(5 * 24 * time.Hour)
	all, err := alice.AccessRequests(ctx)
	if err != nil || len(all) != 1 || all[0].Reason != "bug 412" {
		t.Errorf("five days later: %+v, %v", all, err)
	}
}
