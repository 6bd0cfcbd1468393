package cloud_test

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// replicasOf are two services over one database, and their clock.
type replicasOf struct {
	*testing.T
	a, b  *cloudtest.Cloud
	clock *clocktest.Clock
}

// keptOnBoth runs a test on each database: on two replicas over PostgreSQL, and
// on the one process that SQLite is for.
func keptOnBoth(t *testing.T, f func(r replicasOf)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
		f(replicasOf{t, c, c, clock})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		o := cloudtest.Options{Clock: clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), DatabaseURL: servertest.Postgres(t)}
		f(replicasOf{t, cloudtest.Start(t, o), cloudtest.Start(t, o), o.Clock})
	})
}

var keptListings = regexp.MustCompile(`(?m)^snapcloud_listings_kept_total (\d+)$`)

func listingsKept(t *testing.T, c *cloudtest.Cloud) int {
	t.Helper()
	found := keptListings.FindStringSubmatch(metrics(t, c))
	if found == nil {
		t.Fatal("no metric of kept listings")
	}
	n, err := strconv.Atoi(found[1])
	must(t, err)
	return n
}

// lists reports whether the credential's listing at replica b has the snapshot,
// and fails unless b answers from memory when the same is asked again.
func (r replicasOf) lists(mount, credential, id string) bool {
	r.Helper()
	seen := r.look(mount, credential, id)
	r.fromMemory(func() {
		if again := r.look(mount, credential, id); again != seen {
			r.Fatalf("%s is listed: %v, and then %v", id, seen, again)
		}
	})
	return seen
}

// fromMemory asks until a listing was answered from memory. PostgreSQL counts
// the commits of all its databases together, so those of other tests, and of
// its own vacuum, come between.
func (r replicasOf) fromMemory(ask func()) {
	r.Helper()
	for began := time.Now(); time.Since(began) < servertest.Patience; {
		before := listingsKept(r.T, r.b)
		ask()
		if listingsKept(r.T, r.b) > before {
			return
		}
	}
	r.Fatal("nothing was answered from memory")
}

// look asks replica b once.
func (r replicasOf) look(mount, credential, id string) bool {
	r.Helper()
	c, err := api.New(api.Options{BaseURL: r.b.URL, Mount: mount, Token: api.StaticToken(credential)})
	must(r.T, err)
	page, err := c.Snapshots(context.Background(), api.ListOptions{})
	if snap.CodeOf(err) == snap.CodeUnauthenticated {
		return false
	}
	must(r.T, err)
	return slices.ContainsFunc(page.Items, func(s api.Snapshot) bool { return s.ID == id })
}

// A listing that is answered from memory is what the database would answer:
// whatever ends somebody's right at one replica, the next listing at another
// does not have the snapshot any more (SPEC 3, 5.3 rule 4).
func TestKeptListingsEndWithTheRight(t *testing.T) {
	t.Parallel()
	keptOnBoth(t, func(r replicasOf) {
		for _, l := range r.revocations() {
			if !r.lists(l.mount, l.credential, l.id) {
				r.Errorf("%s: not listed before it ended", l.name)
			}
			must(r.T, l.end())
			if r.look(l.mount, l.credential, l.id) {
				r.Errorf("%s: listed after it ended", l.name)
			}
		}
	})
}

// The test above would find an answer that is given again without asking the
// database.
func TestKeptListingsWouldBeStaleUnproven(t *testing.T) {
	t.Parallel()
	keptOnBoth(t, func(r replicasOf) {
		l := r.revocations()[0]
		r.look(l.mount, l.credential, l.id)
		r.b.Service.KeepUnproven()
		r.look(l.mount, l.credential, l.id)
		must(r.T, l.end())
		if !r.look(l.mount, l.credential, l.id) {
			r.Error("an answer was not given again though nothing was to be proven")
		}
	})
}

// revocation is a way to see a snapshot, and its end.
type revocation struct {
	name, mount, credential, id string
	end                         func() error
}

// revocations shares and signs in in every way.
func (r replicasOf) revocations() []revocation {
	ctx := context.Background()
	alice := r.a.As("alice@acme.test")
	push := func(content string) string { return r.a.Push(alice, "shop", []byte(content)).ID }
	wide, group, org, ended, deleted, open := push("wide"), push("group"), push("org"), push("ended"), push("deleted"), push("open")
	for _, id := range []string{wide, open} {
		_, err := alice.Share(ctx, id)
		must(r.T, err)
	}
	_, err := alice.ShareGroup(ctx, group, "eng")
	must(r.T, err)
	for _, slug := range []string{"globex", "initech"} {
		_, err = alice.ShareOrg(ctx, org, slug, nil)
		must(r.T, err)
	}
	until := r.clock.Now().Add(20 * time.Second)
	_, err = alice.ShareOrg(ctx, ended, "globex", &until)
	must(r.T, err)

	grace, signIn := r.person("grace", snap.RoleMember, "eng")
	roy, _ := r.person("roy", snap.RoleAdmin)
	dan, _ := r.person("dan", snap.RoleMember)
	kim, _ := r.person("kim", snap.RoleMember)
	graces, _ := r.keyOf(grace, time.Time{})
	roys, _ := r.keyOf(roy, time.Time{})
	dans, _ := r.keyOf(dan, time.Time{})
	kims, kimsID := r.keyOf(kim, time.Time{})
	short, _ := r.keyOf(kim, until.Add(20*time.Second))
	agent := api.MountAgent
	return []revocation{
		{"the org-wide share", agent, r.b.Key("max@acme.test"), wide, func() error { return alice.Unshare(ctx, wide) }},
		{"the group, at a sign-in", agent, graces, group, func() error { return signIn("dba") }},
		{"the group share", agent, r.b.Key("mia@acme.test"), group, func() error { return alice.UnshareGroup(ctx, group, "eng") }},
		{"the cross-org share", agent, r.b.Key("gary@globex.test"), org, func() error { return alice.UnshareOrg(ctx, org, "globex") }},
		{"the organization", agent, r.b.Key("ian@initech.test"), org, func() error { return r.a.Store.CloseAllBut(ctx, []string{"acme", "globex"}) }},
		{"the role", agent, roys, deleted, func() error { return r.a.Store.SetRole(ctx, roy.ID, snap.RoleMember) }},
		{"the account", agent, dans, open, func() error { return r.a.Store.SetDisabled(ctx, dan.ID, true) }},
		{"the key", agent, kims, open, func() error { return r.a.Store.RevokeOrgKey(ctx, r.acme(), kimsID) }},
		{"the session", api.MountUser, r.b.Token("max@acme.test"), open, func() error { return r.endSessions("max@acme.test") }},
		{"the snapshot", agent, r.b.Key("alice@acme.test"), deleted, func() error { return alice.Delete(ctx, deleted) }},
		{"the time of the share", agent, r.b.Key("gail@globex.test"), ended, func() error { r.clock.Advance(20 * time.Second); return nil }},
		{"the time of the key", agent, short, open, func() error { r.clock.Advance(20 * time.Second); return nil }},
		{"the time of the token", api.MountUser, r.b.Token("alice@acme.test"), open, func() error { r.clock.Advance(auth.AccessLife + time.Minute); return nil }},
	}
}

func (r replicasOf) acme() int64 {
	org, err := r.a.Store.OrgBySlug(context.Background(), "acme")
	must(r.T, err)
	return org.ID
}

// person makes a user of acme, and returns how they sign in again with other
// groups.
func (r replicasOf) person(name string, role snap.Role, groups ...string) (snap.User, func(groups ...string) error) {
	r.Helper()
	u := snap.User{Email: name + "@acme.test"}
	signIn := func(groups ...string) (err error) {
		in := store.SignIn{OrgID: r.acme(), Issuer: "test", Subject: name, Email: u.Email, Role: role}
		for _, g := range groups {
			in.Groups = append(in.Groups, snap.Group{GroupID: g, Name: g})
		}
		u.ID, err = r.a.Store.ApplySignIn(context.Background(), in)
		return err
	}
	must(r.T, signIn(groups...))
	return u, signIn
}

func (r replicasOf) keyOf(u snap.User, expires time.Time) (secret string, id int64) {
	r.Helper()
	secret, k, err := r.a.Service.Auth().NewKey(context.Background(), auth.KeySpec{OrgID: r.acme(), UserID: u.ID, Kind: snap.UserKey, Name: "test", Expires: expires})
	must(r.T, err)
	return secret, k.ID
}

// endSessions signs a user out everywhere.
func (r replicasOf) endSessions(email string) error {
	ctx := context.Background()
	m, err := r.a.Store.UserByEmail(ctx, r.acme(), email)
	must(r.T, err)
	all, err := r.a.Store.UserSessions(ctx, m.ID)
	must(r.T, err)
	for _, n := range all {
		if err := r.a.Store.EndSession(ctx, snap.Caller{User: &m.User}, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// An answer from memory is the same as one from the database, in its headers
// and for the log, and is counted for its credential.
func TestKeptListingsAreTheSameAnswer(t *testing.T) {
	t.Parallel()
	keptOnBoth(t, func(r replicasOf) {
		r.a.Push(r.a.As("max@acme.test"), "shop", []byte("one"))
		ask := func(path string, head ...string) (http.Header, string) {
			req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.b.URL+path, nil)
			must(r.T, err)
			for i := 0; i < len(head); i += 2 {
				req.Header.Set(head[i], head[i+1])
			}
			res, err := http.DefaultClient.Do(req)
			must(r.T, err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			must(r.T, err)
			for _, own := range []string{"X-Request-Id", "Date", "Content-Length"} {
				res.Header.Del(own)
			}
			res.Header.Set("Status", res.Status)
			return res.Header, string(body)
		}
		bearer := "Bearer " + r.b.Key("max@acme.test")
		path := api.MountAgent + "/snapshots"
		ask(path, "Authorization", bearer) // its first use is written down
		header, body := ask(path, "Authorization", bearer)
		var kept http.Header
		var keptBody string
		r.fromMemory(func() { kept, keptBody = ask(path, "Authorization", bearer) })
		if body != keptBody || !reflect.DeepEqual(header, kept) || header.Get("Status") != "200 OK" {
			r.Errorf("from the database:\n%v\n%s\nfrom memory:\n%v\n%s", header, body, kept, keptBody)
		}
		before := listingsKept(r.T, r.b)
		for _, other := range [][]string{
			{path}, {path, "Authorization", bearer + "x"}, {path + "?limit=0", "Authorization", bearer}, {path + "?limit=0", "Authorization", bearer},
			{path + "?api_key=1", "Authorization", bearer}, {path + "?api_key=1", "Authorization", bearer}, {api.MountUser + "/snapshots", "Authorization", bearer},
		} {
			if header, _ := ask(other[0], other[1:]...); header.Get("Status") == "200 OK" {
				r.Errorf("%v is answered", other[:1])
			}
		}
		if listingsKept(r.T, r.b) != before {
			r.Error("a refusal was answered from memory")
		}
	})
}
