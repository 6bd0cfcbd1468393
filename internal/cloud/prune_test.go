package cloud_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// Keys are deleted 90 days after they were revoked. A working key is kept, however old it is.
func TestOldKeysArePruned(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		o.Clock = clock
		w := watch(t, o)
		vic := w.Key("vic@acme.test")
		w.exec(`UPDATE api_keys SET revoked_at = $1 `+
			`WHERE user_id = (SELECT id FROM users WHERE email = 'vic@acme.test')`,
			clock.Now().UnixMilli())
		count := func(what string) (n int) {
			must(t, w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+what).Scan(&n))
			return n
		}
		keys := count("api_keys")
		for _, step := range []struct {
			after time.Duration
			keys  int
		}{{89 * 24 * time.Hour, 0}, {2 * 24 * time.Hour, 1}} {
			clock.Advance(step.after)
			_, err := w.Service.Collect(t.Context())
			must(t, err)
			if got := keys - count("api_keys"); got != step.keys {
				t.Errorf("%s: %d keys are gone, want %d", clock.Now(), got, step.keys)
			}
		}
		if _, err := w.Client(vic).Me(t.Context()); err == nil {
			t.Error("the pruned key works")
		}
		_, err := w.As("mia@acme.test").Me(t.Context())
		must(t, err)
	})
}

// The account of a person is deleted, and counted, when nothing refers to it. The audit log
// stays sound, and still shows the snapshots that they could see before.
func TestAccountsArePruned(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		ctx := t.Context()
		clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		o.Clock = clock
		o.Config = func(c *cloud.Config) { c.Accounts.PruneAfter = "31d" }
		w := watch(t, o)
		w.keep()
		before := clock.Now()
		clock.Advance(time.Hour)
		w.exec(`UPDATE users SET disabled = 1, away = 1, signed_out_at = $1 WHERE email = 'max@acme.test'`,
			clock.Now().UnixMilli())
		w.exec(`DELETE FROM sessions WHERE user_id = (SELECT id FROM users WHERE email = 'max@acme.test')`)
		clock.Advance(31*24*time.Hour + time.Minute)
		must(t, w.Service.Prune(ctx))
		if !strings.Contains(metrics(t, w.Cloud), `snapcloud_pruned_principals_total{kind="account"} 1`) {
			t.Errorf("the metrics are %s", metrics(t, w.Cloud))
		}
		w.keep()
		alice := w.As("alice@acme.test")
		page, err := alice.Audit(ctx, api.AuditOptions{Action: snap.AuditUserPruned})
		must(t, err)
		if len(page.Items) != 1 || page.Items[0].Detail.User != "max@acme.test" ||
			page.Items[0].By() != "retention of acme" {
			t.Errorf("the log says %+v", page.Items)
		}
		then, err := alice.AudienceAt(ctx, w.pushed, before)
		must(t, err)
		if !strings.Contains(fmt.Sprint(then.Users), "max@acme.test") {
			t.Errorf("%+v could see it", then)
		}
	})
}
