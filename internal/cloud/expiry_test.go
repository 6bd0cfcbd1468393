package cloud_test

import (
	"net/http"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// TestSharesWithinTheOrganizationEnd: an org-wide share and a share with a group end at exactly their
// time, at every door.
func TestSharesWithinTheOrganizationEnd(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]api.SharesRequest{
		"org-wide": {OrgWide: true}, "group": {GroupIDs: []string{"dba"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
			mia, gus := c.As("mia@acme.test"), c.As("gus@acme.test")
			sn := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("bytes"))
			end := clock.Now().Add(time.Hour)
			with.ExpiresAt = &end
			_, err := mia.ShareWith(t.Context(), sn.ID, with, false)
			must(t, err)
			clock.Advance(time.Hour - time.Millisecond)
			link, err := gus.Pull(t.Context(), sn.ID)
			must(t, err)
			seen, err := mia.Snapshot(t.Context(), sn.ID)
			must(t, err)
			if with.OrgWide && (!seen.Shared || seen.ExpiresAt == nil || !seen.ExpiresAt.Equal(end)) ||
				!with.OrgWide && seen.Groups != 1 {
				t.Errorf("before the end: %+v", seen)
			}
			clock.Advance(time.Millisecond)
			checkEnded(t, gus, mia, sn.ID, link.URL)
			then, err := c.As("alice@acme.test").AudienceAt(t.Context(), sn.ID, clock.Now())
			if err != nil || len(then.Users) != 3 { // alice, adam and mia
				t.Errorf("the audit log: %+v, %v", then.Users, err)
			}
			with.ExpiresAt = nil // until further notice
			_, err = mia.ShareWith(t.Context(), sn.ID, with, false)
			must(t, err)
			clock.Advance(24 * time.Hour)
			if !sees(t, gus, sn.ID) {
				t.Error("a share that was made again does not last")
			}
		})
	}
}

// checkEnded checks that no door opens to a member whose share has ended, and that the owner no
// longer sees a share.
func checkEnded(t *testing.T, member, owner *api.Client, id, link string) {
	t.Helper()
	if sees(t, member, id) {
		t.Error("it is still listed")
	}
	if _, err := member.Snapshot(t.Context(), id); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("its record: %v", err)
	}
	if _, err := member.Pull(t.Context(), id); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a pull: %v", err)
	}
	if res, _ := get(t, link); res.StatusCode != http.StatusNotFound {
		t.Errorf("the link from before: %d", res.StatusCode)
	}
	now, err := owner.Snapshot(t.Context(), id)
	if err != nil || now.Shared || now.Groups != 0 || now.ExpiresAt != nil {
		t.Errorf("its owner: %+v, %v", now, err)
	}
	if groups, err := owner.GroupShares(t.Context(), id); err != nil || len(groups) != 0 {
		t.Errorf("its group shares: %+v, %v", groups, err)
	}
	why, err := owner.Access(t.Context(), id, "gus@acme.test")
	if err != nil || why.User == nil || why.User.Visible {
		t.Errorf("why: %+v, %v", why.User, err)
	}
}
