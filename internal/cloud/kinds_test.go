package cloud_test

import (
	"context"
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
		want   map[string]snap.Code // by call; absent is allowed
	}{
		{"admin's key", c.As("adam@acme.test"), nil},
		{"owner's key", owner, map[string]snap.Code{"share-org": snap.CodeForbidden,
			"unshare-org": snap.CodeForbidden}},
		{"pipeline key", c.Client(c.OrgKey("acme", snap.PipelineKey, snap.ScopePull, snap.ScopePush)),
			all(calls, snap.CodeUserAttributionRequired)},
		{"agent key", c.Client(c.OrgKey("acme", snap.AgentKey, snap.ScopePull, snap.ScopePush)),
			all(calls, snap.CodeUserAttributionRequired)},
		{"other organization's key", c.Client(c.OrgKey("globex", snap.PipelineKey, snap.ScopePull)),
			all(calls, snap.CodeNotFound)},
	} {
		for _, call := range []string{"share", "share-group", "share-org", "unshare", "unshare-group", "unshare-org"} {
			if err := calls[call](t.Context(), tc.client); snap.CodeOf(err) != tc.want[call] {
				t.Errorf("%s, %s: %v, want %q", tc.name, call, err, tc.want[call])
			}
		}
	}
}

func all[V any](calls map[string]V, code snap.Code) map[string]snap.Code {
	m := map[string]snap.Code{}
	for name := range calls {
		m[name] = code
	}
	return m
}
