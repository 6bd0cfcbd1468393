package cloud_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// BenchmarkPullsOfOneOrganization is how fast clients of one organization pull
// from one service on PostgreSQL, where each pull is a line of the audit log.
func BenchmarkPullsOfOneOrganization(b *testing.B) {
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			c := cloudtest.Start(b, cloudtest.Options{DatabaseURL: servertest.Postgres(b)})
			mia := c.As("mia@acme.test")
			sn := c.Push(mia, "shop", []byte("x"))
			ctx, stop := context.WithCancel(b.Context())
			var sequencing sync.WaitGroup
			sequencing.Go(func() { sequence(ctx, b, c) })
			var left atomic.Int64
			left.Store(int64(b.N))
			took := make([][]time.Duration, clients)
			var pulling sync.WaitGroup
			b.ResetTimer()
			for i := range clients {
				pulling.Go(func() {
					for left.Add(-1) >= 0 {
						began := time.Now()
						if _, err := mia.Pull(b.Context(), sn.ID); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(began))
					}
				})
			}
			pulling.Wait()
			b.StopTimer()
			stop()
			sequencing.Wait()
			all := slices.Sorted(slices.Values(slices.Concat(took...)))
			b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "pulls/s")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// sequence does what the service does in the background.
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
