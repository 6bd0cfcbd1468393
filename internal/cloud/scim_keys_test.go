package cloud_test

import (
	"slices"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// Owners and admins see the SCIM key of their organization with its expiry, and can revoke it. A
// key that was just used is not among the unused keys. Nothing that SCIM reported counts after the
// key has ended by max_key_age.
func TestSCIMKeysAreListedAndAge(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		p := provision(t, c, "acme")
		p.group("eng") // without mia, whose sign-ins say that she is in it
		owner := c.SignedIn("alice@acme.test")
		scim := func(f api.KeyFilter) (found []api.Key) {
			keys, err := owner.Keys(t.Context(), f)
			must(t, err)
			return slices.DeleteFunc(keys, func(k api.Key) bool { return k.Kind != snap.SCIMKey })
		}
		keys := scim(api.KeyFilter{All: true})
		if len(keys) != 1 || keys[0].LastUsed == nil || keys[0].ExpiresAt != nil {
			t.Errorf("all keys: %+v", keys)
		}
		if keys := scim(api.KeyFilter{All: true, Idle: time.Hour}); len(keys) != 0 {
			t.Errorf("a key that was just used is among the unused ones: %+v", keys)
		}
		mia := p.user("mia@acme.test")
		if got := groupsOf(t, c, "mia@acme.test"); slices.Contains(got, "eng") {
			t.Errorf("groups that SCIM does not report: %v", got)
		}
		org, err := c.Store.OrgBySlug(t.Context(), "acme")
		must(t, err)
		_, err = c.Store.ApplyOrg(t.Context(), org.Slug, org.Name, snap.Policy{MaxKeyAge: time.Millisecond})
		must(t, err)
		p.do("PATCH", "/Users/"+mia, patched(`{"op": "replace", "value": {"active": false}}`), 401)
		if keys := scim(api.KeyFilter{All: true}); len(keys) != 1 || keys[0].ExpiresAt == nil {
			t.Errorf("all keys with max_key_age: %+v", keys)
		}
		me, err := c.SignedIn("mia@acme.test").Me(t.Context())
		if err != nil || len(me.Groups) != 1 || me.Groups[0].GroupID != "eng" {
			t.Errorf("a sign-in after the last SCIM key ended: %+v, %v", me.Groups, err)
		}
		must(t, owner.RevokeKey(t.Context(), scim(api.KeyFilter{All: true})[0].ID))
		if keys := scim(api.KeyFilter{All: true}); len(keys) != 0 {
			t.Errorf("after it was revoked: %+v", keys)
		}
	})
}
