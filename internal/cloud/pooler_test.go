package cloud_test

import (
	"fmt"
	"sync"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Two replicas work behind a pooler that gives every transaction another connection, from the first
// migration on. Without the setting database.transaction_pooling, the database cannot be opened
// there.
func TestTransactionPooling(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	direct := servertest.Postgres(t)
	pooler := servertest.PgBouncer(t, direct)
	if s, err := store.Open(ctx, store.Options{URL: pooler}); err == nil {
		s.Close()
		t.Error("the database opened with startup parameters, which the pooler refuses")
	}
	o := cloudtest.Options{DatabaseURL: pooler, DataDir: t.TempDir(), Config: func(c *cloud.Config) {
		allowPrivate(c)
		c.Database.TransactionPooling, c.Database.Connections = true, 12
	}}
	replicas := []*cloudtest.Cloud{cloudtest.Start(t, o), cloudtest.Start(t, o)}
	r := newReceiver(t)
	_, err := replicas[0].As("alice@acme.test").AddWebhook(ctx, api.WebhookRequest{URL: r.URL,
		Events: []snap.AuditAction{snap.AuditShared, snap.AuditUnshared}})
	must(t, err)
	const clients, rounds = 8, 5
	var all sync.WaitGroup
	for i := range clients {
		alice, max := replicas[i%2].As("alice@acme.test"), replicas[(i+1)%2].As("max@acme.test")
		all.Go(func() {
			for n := range rounds {
				sn := replicas[i%2].Push(alice, "shop", fmt.Append(nil, "snapshot ", i, " ", n))
				if _, err := alice.Share(ctx, sn.ID); err != nil {
					t.Errorf("share: %v", err)
				}
				if _, err := max.Pull(ctx, sn.ID); err != nil {
					t.Errorf("pull: %v", err)
				}
				if err := alice.Unshare(ctx, sn.ID); err != nil {
					t.Errorf("unshare: %v", err)
				}
				if _, err := max.Pull(ctx, sn.ID); snap.CodeOf(err) != snap.CodeNotFound {
					t.Errorf("pull after the unshare: %v", err)
				}
			}
		})
	}
	all.Wait()
	alice := replicas[1].As("alice@acme.test")
	if n, err := replicas[1].Service.Deliver(ctx); err != nil || n != 2*clients*rounds {
		t.Errorf("delivered %d, %v; want %d", n, err, 2*clients*rounds)
	}
	if page, err := alice.Snapshots(ctx, api.ListOptions{Limit: 200, Q: "shop"}); err != nil ||
		len(page.Items) != clients*rounds {
		t.Errorf("listed %d, %v", len(page.Items), err)
	}
	if _, err := alice.VerifyAudit(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := replicas[0].Service.Collect(ctx); err != nil {
		t.Error(err)
	}
	if i, err := store.Inspect(ctx, replicas[0].Config.StoreOptions()); err != nil || i.Schema != i.Newest {
		t.Errorf("inspected: %+v, %v", i, err)
	}
}
