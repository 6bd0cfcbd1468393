package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"snap/internal/clocktest"
	"snap/internal/limit"
	"snap/internal/store"
)

// newClock returns a clock that only the test moves.
func newClock() *clocktest.Clock {
	return clocktest.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// replicas are limiters over one database, and how often they asked it.
func replicas(t *testing.T, c *clocktest.Clock, n int) (all []*limit.Limiter, takes *int) {
	s, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir(), Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var mu sync.Mutex
	takes = new(int)
	for range n {
		all = append(all,
			limit.New(func(ctx context.Context, bucket string, cost, window time.Duration) (time.Duration, error) {
				mu.Lock()
				*takes++
				mu.Unlock()
				return s.Spend(ctx, bucket, cost, window)
			}, c.Now))
	}
	return all, takes
}

// However requests are spread over replicas, the limit holds for all replicas together, give or
// take a twentieth of it for each replica; a flood of requests is not a flood of writes; and a
// refused client is let in again after the announced time.
func TestLimitIsShared(t *testing.T) {
	t.Parallel()
	const rate, n, flood = 200, 3, 3000
	c := newClock()
	all, takes := replicas(t, c, n)
	var mu sync.Mutex
	got, longest := 0, time.Duration(0)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range flood / 8 {
				wait := all[(worker+i)%n].Allow(t.Context(), "key:1", rate)
				mu.Lock()
				if wait == 0 {
					got++
				}
				longest = max(longest, wait)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if least, most := rate-n*rate/20, rate+n*rate/20; got < least || got > most {
		t.Errorf("%d of %d were let through, want %d to %d", got, flood, least, most)
	}
	if *takes > 20+2*n {
		t.Errorf("the database was asked %d times for %d requests", *takes, flood)
	}
	if longest <= 0 || longest > time.Minute {
		t.Errorf("told to wait %s", longest)
	}
	if wait := all[0].Allow(t.Context(), "key:2", rate); wait != 0 {
		t.Errorf("another key has to wait %s", wait)
	}
	c.Advance(longest)
	if wait := all[0].Allow(t.Context(), "key:1", rate); wait != 0 {
		t.Errorf("after the announced time, it has to wait %s more", wait)
	}
}

// A client that disconnects before its requests are counted cannot exceed the limit.
func TestLimitCountsCanceledRequests(t *testing.T) {
	t.Parallel()
	const rate = 40
	all, _ := replicas(t, newClock(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := 0
	for range 10 * rate {
		if all[0].Allow(ctx, "key:1", rate) == 0 {
			got++
		}
	}
	if got != rate {
		t.Errorf("%d requests were let through, want %d", got, rate)
	}
}

// A subject below the limit is never refused, and one with few requests costs no write.
func TestLimitLetsThroughWhatIsWithin(t *testing.T) {
	t.Parallel()
	c := newClock()
	all, takes := replicas(t, c, 2)
	for i := range 1000 {
		if wait := all[i%2].Allow(t.Context(), "steady", 100); wait != 0 {
			t.Fatalf("request %d at half the rate has to wait %s", i, wait)
		}
		c.Advance(time.Minute / 50)
	}
	*takes = 0
	for i := range 100 {
		all[0].Allow(t.Context(), "little", 100)
		if i%5 == 4 {
			c.Advance(time.Minute)
		}
	}
	if *takes != 0 {
		t.Errorf("the database was asked %d times for 5 requests a minute of 100", *takes)
	}
	if wait := all[0].Allow(t.Context(), "x", 0); wait != 0 {
		t.Errorf("no limit: wait %s", wait)
	}
}

// While the database is down, nobody is refused because of that.
func TestLimitWithoutDatabase(t *testing.T) {
	t.Parallel()
	l := limit.New(func(context.Context, string, time.Duration, time.Duration) (time.Duration, error) {
		return 0, errors.New("away")
	}, newClock().Now)
	for i := range 1000 {
		if wait := l.Allow(t.Context(), "key", 20); wait != 0 {
			t.Fatalf("request %d has to wait %s", i, wait)
		}
	}
}

// Invented addresses take a bounded amount of memory, and requests that were counted in the
// database stay counted.
func TestLimitForgets(t *testing.T) {
	t.Parallel()
	c := newClock()
	all, _ := replicas(t, c, 1)
	for all[0].Allow(t.Context(), "guilty", 20) == 0 {
	}
	for i := range 100_001 {
		all[0].Allow(t.Context(), fmt.Sprint("address:", i), 20)
	}
	if n := all[0].Len(); n > 100_000 {
		t.Errorf("%d buckets are kept", n)
	}
	got := 0
	for range 20 {
		if all[0].Allow(t.Context(), "guilty", 20) == 0 {
			got++
		}
	}
	if got > 1 {
		t.Errorf("after it was forgotten, %d were let through, want a twentieth of 20 at most", got)
	}
}
