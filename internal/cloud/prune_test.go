package cloud_test

import (
	"testing"
	"time"

	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// Keys go 90 days after they were revoked. A key that works stays however old it is.
func TestOldKeysArePruned(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		o.Clock = clock
		w := watch(t, o)
		vic := w.Key("vic@acme.test")
		w.exec(`UPDATE api_keys SET revoked_at = $1 WHERE user_id = (SELECT id FROM users WHERE email = 'vic@acme.test')`,
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
