package cloud_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// BenchmarkPullsOfOneOrganization measures how fast clients of one organization pull from one
// service on PostgreSQL. Each pull writes a line to the audit log.
func BenchmarkPullsOfOneOrganization(b *testing.B) {
	hotOrganization(b, "pulls/s", func(c *api.Client, id string, _ int) error {
		_, err := c.Pull(b.Context(), id)
		return err
	})
}

// BenchmarkSharesOfOneOrganization measures how fast clients of one organization share and unshare
// snapshots. Each client has its own snapshot.
func BenchmarkSharesOfOneOrganization(b *testing.B) {
	hotOrganization(b, "shares/s", func(c *api.Client, id string, turn int) error {
		if turn%2 == 1 {
			return c.Unshare(b.Context(), id)
		}
		_, err := c.Share(b.Context(), id)
		return err
	})
}

// hotOrganization measures a request of 1, 8 and 32 clients of one organization. PostgreSQL syncs
// every commit, and a second goroutine numbers the lines as the service does.
func hotOrganization(b *testing.B, unit string, request func(c *api.Client, id string, turn int) error) {
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			c := cloudtest.Start(b, cloudtest.Options{DatabaseURL: synced(b)})
			mia := c.As("mia@acme.test")
			ids := make([]string, clients)
			for i := range ids {
				ids[i] = c.Push(mia, "shop", fmt.Append(nil, i)).ID
			}
			ctx, stop := context.WithCancel(b.Context())
			var sequencing sync.WaitGroup
			sequencing.Go(func() { sequence(ctx, b, c) })
			var left atomic.Int64
			left.Store(int64(b.N))
			took := make([][]time.Duration, clients)
			var asking sync.WaitGroup
			b.ResetTimer()
			for i := range clients {
				asking.Go(func() {
					for turn := 0; left.Add(-1) >= 0; turn++ {
						began := time.Now()
						if err := request(mia, ids[i], turn); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(began))
					}
				})
			}
			asking.Wait()
			b.StopTimer()
			stop()
			sequencing.Wait()
			if b.Failed() {
				return
			}
			all := slices.Sorted(slices.Values(slices.Concat(took...)))
			b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), unit)
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// synced returns a database on a server that syncs every commit.
func synced(b *testing.B) string {
	url, _ := servertest.CrashingPostgres(b)
	db, err := sql.Open("pgx", url)
	must(b, err)
	defer db.Close()
	for _, text := range []string{`ALTER SYSTEM SET fsync = on`, `SELECT pg_reload_conf()`} {
		_, err := db.ExecContext(b.Context(), text)
		must(b, err)
	}
	return url
}

// sequence does the work that the service does in the background.
func sequence(ctx context.Context, b *testing.B, c *cloudtest.Cloud) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.Service.Sequence(ctx); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		}
	}
}
