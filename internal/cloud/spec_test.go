package cloud_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// SPEC 2.1: the fields in that section's table for a snapshot, and the meaning of Shared. A name is
// <target>-<timestamp>.
func TestSnapshotFields(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	sn := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("four"))
	if sn.Target != "shop" || sn.Type != snap.TypeSanitized || sn.Size != 4 || sn.Shared ||
		time.Since(sn.Created) > time.Hour {
		t.Errorf("pushed: %+v", sn)
	}
	if sn.Name[:5] != "shop-" {
		t.Errorf("the name %q is not <target>-<timestamp>", sn.Name)
	}
	shared, err := mia.Share(ctx, sn.ID)
	if err != nil || !shared.Shared {
		t.Errorf("shared org-wide: %+v, %v", shared, err)
	}
	for _, email := range []string{"mia@acme.test", "vic@acme.test"} {
		if seen, err := c.As(email).Snapshot(ctx, sn.ID); err != nil || !seen.Shared {
			t.Errorf("%s sees Shared = %v, %v", email, seen.Shared, err)
		}
	}
}

// SPEC 2.2 and 4.1: a group share names a group by its ID; GET /org/sso/groups lists the IDs.
func TestGroupShares(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	groups, err := mia.Groups(ctx)
	must(t, err)
	var ids []string
	for _, g := range groups {
		ids = append(ids, g.GroupID)
	}
	if !slices.Contains(ids, "eng") || !slices.Contains(ids, "dba") || len(ids) != 2 {
		t.Errorf("groups: %v", ids)
	}
	sn := c.Push(mia, "shop", []byte("x"))
	_, err = mia.ShareGroup(ctx, sn.ID, "dba")
	must(t, err)
	shares, err := mia.GroupShares(ctx, sn.ID)
	if err != nil || len(shares) != 1 || shares[0].GroupID != "dba" || shares[0].SharedBy != "mia@acme.test" {
		t.Errorf("group shares: %+v, %v", shares, err)
	}
	res, data := send(t, "GET", c.URL+api.MountAgent+"/snapshots/"+sn.ID+"/group-shares", "", c.Key("mia@acme.test"))
	var raw struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(data, &raw); err != nil || res.StatusCode != 200 || raw.Items[0]["group_id"] != "dba" {
		t.Errorf("on the wire: %s", data)
	}
}

// SPEC 2.4: the service reports one of the four roles to each caller.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	for email, want := range map[string]snap.Role{
		"alice@acme.test": snap.RoleOwner, "adam@acme.test": snap.RoleAdmin, "mia@acme.test": snap.RoleMember,
		"vic@acme.test": snap.RoleViewer,
	} {
		me, err := c.As(email).Me(context.Background())
		if err != nil || me.Role != want || me.Organization != "acme" || me.Email != email {
			t.Errorf("%s is %+v, %v", email, me, err)
		}
	}
}

// SPEC 4.3: the login client finds the auth service and its own client ID without signing in.
func TestAuthDiscovery(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	anonymous, err := api.New(api.Options{BaseURL: c.URL})
	must(t, err)
	found, err := anonymous.AuthConfig(context.Background())
	if err != nil || found.AuthURL != c.URL+"/auth" || found.ClientID != "snapcli" ||
		!slices.Contains(found.Scopes, "offline_access") {
		t.Errorf("auth config: %+v, %v", found, err)
	}
}

// SPEC 9: every path of the API carries the version.
func TestPathsCarryTheVersion(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	for path := range c.Service.Described().Paths {
		if path[:8] != "/api/v1/" {
			t.Errorf("%s does not begin with /api/v1/", path)
		}
	}
}
