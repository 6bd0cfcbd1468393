package cloud_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// K4: organization-level keys change no share of any kind; user-scoped keys do,
// as far as their user's role goes.
func TestKeyKindsAndShares(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	owner := c.As("mia@acme.test")
	sn := c.Push(owner, "shop", []byte("content"))
	calls := map[string]func(context.Context, *api.Client) error{
		"share":   func(ctx context.Context, a *api.Client) error { _, err := a.Share(ctx, sn.ID); return err },
		"unshare": func(ctx context.Context, a *api.Client) error { return a.Unshare(ctx, sn.ID) },
		"share-group": func(ctx context.Context, a *api.Client) error {
			_,
				err := a.ShareGroup(ctx, sn.ID, "eng")
			return err
		},
		"unshare-group": func(ctx context.Context, a *api.Client) error { return a.UnshareGroup(ctx, sn.ID, "eng") },
		"share-org": func(ctx context.Context, a *api.Client) error {
			_, err := a.ShareOrg(ctx, sn.ID, "globex", nil)
			return err
		},
		"unshare-org": func(ctx context.Context, a *api.Client) error { return a.UnshareOrg(ctx, sn.ID, "globex") },
	}
	for _, tc := range []struct {
		name   string
		client *api.Client
		want   map[string]snap.Code // by call; an absent call is allowed
	}{
		{"admin's key", c.As("adam@acme.test"), nil},
		{"owner's key", owner, map[string]snap.Code{"share-org": snap.CodeForbidden,
			"unshare-org": snap.CodeForbidden}},
		{"pipeline key", c.Client(c.OrgKey("acme", snap.PipelineKey, snap.ScopePull, snap.ScopePush)),
			all(calls, snap.CodeUserAttributionRequired)},
		{"agent key", c.Client(c.OrgKey("acme", snap.AgentKey, snap.ScopePull, snap.ScopePush)),
			all(calls, snap.CodeUserAttributionRequired)},
		{"other organization's key", c.Client(c.OrgKey("globex", snap.PipelineKey, snap.ScopePull)),
			all(calls, snap.CodeUserAttributionRequired)}, // whether or not it could see the snapshot
	} {
		for _, call := range []string{"share", "share-group", "share-org", "unshare", "unshare-group", "unshare-org"} {
			if err := calls[call](t.Context(), tc.client); snap.CodeOf(err) != tc.want[call] {
				t.Errorf("%s, %s: %v, want %q", tc.name, call, err, tc.want[call])
			}
		}
	}
}

// An organization-level key sees org-wide and received snapshots and the pushes of such keys; with the
// scope private, it sees everything of its organization. Access names the keys that can see a
// snapshot, and a refused share looks the same whether the snapshot exists or not.
func TestWhatKeysSee(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	plainKey := c.OrgKey("acme", snap.PipelineKey, snap.ScopePull, snap.ScopePush)
	plain, private := c.Client(plainKey), c.Client(c.OrgKey("acme", snap.AgentKey, snap.ScopePull, snap.ScopePrivate))
	own, byKey := c.Push(mia, "own", []byte("a")), c.Push(plain, "nightly", []byte("b"))
	received := c.Push(c.As("gail@globex.test"), "theirs", []byte("c"))
	_, err := c.As("gail@globex.test").ShareOrg(ctx, received.ID, "acme", nil)
	must(t, err)
	sees := func(who *api.Client, want ...api.Snapshot) {
		t.Helper()
		page, err := who.Snapshots(ctx, api.ListOptions{})
		must(t, err)
		var got, ids []string
		for _, s := range page.Items {
			got = append(got, s.ID)
		}
		for _, s := range want {
			ids = append(ids, s.ID)
		}
		slices.Sort(got)
		slices.Sort(ids)
		if !slices.Equal(got, ids) {
			t.Errorf("lists %v, want %v", got, ids)
		}
		for _, s := range []api.Snapshot{own, byKey, received} {
			if _, err := who.Pull(ctx, s.ID); (err == nil) != slices.Contains(ids, s.ID) {
				t.Errorf("pulls %s: %v", s.Name, err)
			}
		}
	}
	named := func(want ...snap.CredentialKind) {
		t.Helper()
		access, err := mia.Access(ctx, own.ID, "")
		must(t, err)
		var got []snap.CredentialKind
		for _, k := range access.Keys {
			got = append(got, k.Kind)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("access names %v, want %v", got, want)
		}
	}
	sees(plain, byKey, received)
	sees(private, own, byKey, received)
	named(snap.AgentKey)
	_, err = mia.Share(ctx, own.ID)
	must(t, err)
	sees(plain, own, byKey, received)
	named(snap.PipelineKey, snap.AgentKey)
	must(t, mia.Unshare(ctx, own.ID))
	sees(plain, byKey, received)
	if _, err := alice.Snapshot(ctx, byKey.ID); err != nil {
		t.Errorf("an owner and what a key pushed: %v", err)
	}
	path := c.URL + api.MountAgent + "/snapshots/%s/share"
	_, hidden := send(t, http.MethodPost, fmt.Sprintf(path, own.ID), "", plainKey)
	_, absent := send(t, http.MethodPost, fmt.Sprintf(path, snap.NewSnapshotID()), "", plainKey)
	if string(hidden) != string(absent) || !strings.Contains(string(hidden), "user_attribution_required") {
		t.Errorf("hidden: %s\nabsent: %s", hidden, absent)
	}
}

func all[V any](calls map[string]V, code snap.Code) map[string]snap.Code {
	m := map[string]snap.Code{}
	for name := range calls {
		m[name] = code
	}
	return m
}
