package cloud_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/cloudtest"
)

// The response about access agrees with everyone's listing, and a share adds exactly the people
// whom its preview names.
func TestAccessAgreesWithListings(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	alice, mia := c.As("alice@acme.test"), c.As("mia@acme.test")
	agree := func() {
		t.Helper()
		people := 0
		for _, name := range []string{"alice", "adam", "mia", "gus", "max", "vic"} {
			email := name + "@acme.test"
			report, err := alice.Access(ctx, s.id, email)
			must(t, err)
			if seen := sees(t, c.As(email), s.id); report.User.Visible != seen || report.User.Why == "" {
				t.Errorf("%s sees it: %v; access says %+v", email, seen, report.User)
			} else if seen {
				people++
			}
			if report.People != people && name == "vic" {
				t.Errorf("access counts %d people, there are %d", report.People, people)
			}
		}
	}
	agree()
	report, err := alice.Access(ctx, s.id, "")
	must(t, err)
	var kinds []string
	for _, way := range report.Ways {
		kinds = append(kinds, way.Kind)
	}
	if got := strings.Join(kinds, " "); got != "owner admins group organization" || report.Counts["group"] != 1 {
		t.Errorf("ways: %s, counts %v", got, report.Counts)
	}
	owners, err := mia.Access(ctx, s.id, "")
	must(t, err)
	if last := owners.Ways[len(owners.Ways)-1]; owners.Counts["organization"] != 1 || last.Organization != "" ||
		last.ExpiresAt != nil || last.GrantedBy != "" {
		t.Errorf("an owner who is not an admin sees other organizations: %+v", last)
	}
	before := audience(t, c, s.id)
	added, err := mia.Newcomers(ctx, s.id, "")
	must(t, err)
	_, err = mia.Share(ctx, s.id)
	must(t, err)
	var now []string
	for _, name := range strings.Fields(audience(t, c, s.id)) {
		if !slices.Contains(strings.Fields(before), name) {
			now = append(now, name+"@acme.test")
		}
	}
	slices.Sort(now)
	if !slices.Equal(added.Users, now) || added.Count != len(now) {
		t.Errorf("would add %v, added %v", added, now)
	}
	agree()
	if _, err := mia.Newcomers(ctx, s.id, "nobody"); snap.CodeOf(err) != snap.CodeGroupNotFound {
		t.Errorf("an unknown group: %v", err)
	}
	if _, err := alice.Access(ctx, s.id, "nobody@acme.test"); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("an unknown user: %v", err)
	}
}
