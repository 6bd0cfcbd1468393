package cloud_test

import (
	"context"
	"net/http"
	"reflect"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// A bulk change is decided for each snapshot as the snapshot's own route decides it. A hidden
// snapshot gets the same result as one that does not exist, and if one change is refused, the
// others are still made.
func TestBulkChangesObeyTheAccessRule(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	ctx := context.Background()
	s := newScene(t, c)
	own := c.Push(c.As("max@acme.test"), "own", []byte("max's own"))
	never := snap.NewSnapshotID()
	share := api.BulkRequest{IDs: []string{s.id, never, own.ID}, Share: &api.SharesRequest{OrgWide: true}}

	got, err := c.As("max@acme.test").Bulk(ctx, share, false)
	must(t, err)
	hidden, absent, made := got.Items[0], got.Items[1], got.Items[2]
	if hidden.ID != s.id || absent.ID != never || !reflect.DeepEqual(hidden.Error, absent.Error) ||
		hidden.Error.Code != snap.CodeNotFound || hidden.Error.Detail != snap.ErrNotFound.Detail {
		t.Errorf("hidden %+v and absent %+v", hidden.Error, absent.Error)
	}
	if made.Error != nil || len(made.Changes) != 1 || !made.Changes[0].Changed {
		t.Errorf("his own: %+v", made)
	}
	for _, door := range []struct {
		name string
		as   *api.Client
		ask  api.BulkRequest
		want snap.Code
	}{
		{"a reader shares", c.As("gus@acme.test"), share, snap.CodeForbidden},
		{"a reader deletes", c.As("gus@acme.test"), api.BulkRequest{Delete: true}, snap.CodeForbidden},
		{"the pusher shares outside", c.As("mia@acme.test"),
			api.BulkRequest{Share: &api.SharesRequest{OrgSlugs: []string{"initech"}}}, snap.CodeForbidden},
		{"the pusher deletes", c.As("mia@acme.test"), api.BulkRequest{Delete: true}, snap.CodeForbidden},
		{"a recipient unshares", c.As("gail@globex.test"), api.BulkRequest{Unshare: &api.UnshareRequest{All: true}},
			snap.CodeForbidden},
		{"an outsider deletes", c.As("ian@initech.test"), api.BulkRequest{Delete: true}, snap.CodeNotFound},
		{"a key shares", c.Client(c.OrgKey("acme", snap.PipelineKey, snap.Scopes()...)), share,
			snap.CodeUserAttributionRequired},
		{"a key deletes", c.Client(c.OrgKey("acme", snap.PipelineKey, snap.Scopes()...)), api.BulkRequest{Delete: true},
			snap.CodeUserAttributionRequired},
	} {
		door.ask.IDs = []string{s.id}
		got, err := door.as.Bulk(ctx, door.ask, false)
		must(t, err)
		if e := got.Items[0].Error; e == nil || e.Code != door.want {
			t.Errorf("%s: %+v, want %s", door.name, got.Items[0], door.want)
		}
	}
	if shares, err := c.As("alice@acme.test").GroupShares(ctx, s.id); err != nil || len(shares) != 1 {
		t.Errorf("after refusals: %v, %v", shares, err)
	}
	refused, err := c.As("alice@acme.test").Audit(ctx, api.AuditOptions{Action: snap.AuditShareRefused})
	must(t, err)
	if len(refused.Items) != 4 { // attempts of the reader, the pusher, the recipient and the key
		t.Errorf("%d refusals in the log: %+v", len(refused.Items), refused.Items)
	}
}

// A bulk request shares, unshares or deletes several snapshots, and an invalid request changes
// none.
func TestBulkChangesAndTheirErrors(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	ctx := context.Background()
	alice := c.As("alice@acme.test")
	one := c.Push(c.As("mia@acme.test"), "shop", []byte("the first"))
	two := c.Push(c.As("mia@acme.test"), "shop", []byte("the second"))
	ids := []string{one.ID, two.ID}
	results := func(r api.BulkResults, err error) []api.BulkResult {
		t.Helper()
		must(t, err)
		for _, item := range r.Items {
			if item.Error != nil {
				t.Errorf("%s: %+v", item.ID, item.Error)
			}
		}
		return r.Items
	}
	results(alice.Bulk(ctx, api.BulkRequest{IDs: ids, Share: &api.SharesRequest{GroupIDs: []string{"eng", "dba"},
		OrgSlugs: []string{"globex"}, ExpiresIn: 3600}}, false))
	list, err := alice.Snapshots(ctx, api.ListOptions{ExpiresSoon: true})
	must(t, err)
	if len(list.Items) != 2 || list.Items[0].FirstGroup != "dba" || list.Items[0].Groups != 2 ||
		list.Items[0].NextExpiry == nil {
		t.Errorf("expiring: %+v", list.Items)
	}
	results(alice.Bulk(ctx, api.BulkRequest{IDs: ids, Unshare: &api.UnshareRequest{All: true}}, false))
	for _, item := range results(alice.Bulk(ctx, api.BulkRequest{IDs: ids, Delete: true}, false)) {
		if !item.Deleted {
			t.Errorf("%s was not deleted", item.ID)
		}
	}
	for _, body := range []string{`{"ids":["x"]}`, `{"ids":["x"],"delete":true,"unshare":{"all":true}}`,
		`{"ids":[],"delete":true}`} {
		res, data := send(t, http.MethodPost, c.URL+api.MountAgent+"/bulk", body, c.Key("alice@acme.test"))
		if p := problemIn(t, res, data); p.Code != snap.CodeInvalid {
			t.Errorf("%s: %s", body, p.Code)
		}
	}
}

// People learn through which of their groups they see a snapshot, and nothing about other groups or
// organizations. Only those who may manage a share learn when it ends.
func TestPartialSharingRevealsNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	ctx := context.Background()
	sn := c.Push(c.As("mia@acme.test"), "shop", []byte("shared in part"))
	_, err := c.As("alice@acme.test").ShareWith(ctx, sn.ID,
		api.SharesRequest{GroupIDs: []string{"dba"}, OrgSlugs: []string{"globex"}, ExpiresIn: 7200}, false)
	must(t, err)
	for email, want := range map[string][4]any{ // first group, number of organizations, next expiry, through
		"alice@acme.test": {"dba", 1, true, ""}, "adam@acme.test": {"dba", 1, true, ""},
		"mia@acme.test": {"dba", 0, true, ""}, "gus@acme.test": {"", 0, false, "dba"},
		"gary@globex.test": {"", 0, false, ""},
	} {
		list, err := c.As(email).Snapshots(ctx, api.ListOptions{})
		must(t, err)
		shown, err := c.As(email).Snapshot(ctx, sn.ID)
		must(t, err)
		for _, got := range append(list.Items, shown) {
			if have := [4]any{got.FirstGroup, got.Orgs, got.NextExpiry != nil, got.Through}; have != want {
				t.Errorf("%s: %v, want %v", email, have, want)
			}
		}
		soon, err := c.As(email).Snapshots(ctx, api.ListOptions{ExpiresSoon: true})
		must(t, err)
		if len(soon.Items) != 1 {
			t.Errorf("%s: %d expire soon, want 1", email, len(soon.Items))
		}
	}
	must(t, c.As("alice@acme.test").UnshareGroup(ctx, sn.ID, "dba"))
	soon, err := c.As("mia@acme.test").Snapshots(ctx, api.ListOptions{ExpiresSoon: true})
	must(t, err)
	if len(soon.Items) != 0 { // when a share with another organization ends, only owners and admins know
		t.Errorf("the pusher, who is no admin, sees that a share outside ends: %+v", soon.Items)
	}
}
