// Package limit enforces rate limits that all replicas share, without a database write for every
// request.
//
// Each counted subject (a credential, an address) may make a number of requests a minute. A replica
// takes a twentieth of that from the database at a time and grants it locally. It grants the first
// twentieth without asking the database, so light users cost no write. It remembers subjects that
// are over the limit and refuses them without asking the database. Across all replicas, a subject
// gets on average at most the limit plus a twentieth of it for each replica, and a flood of requests
// costs few writes.
package limit

import (
	"context"
	"sync"
	"time"
)

// Per is the period of a [Rate].
const Per = time.Minute

// Rate is how often something may be done in a minute. All uses may come in one burst. Zero or less
// means no limit.
type Rate int

// share returns how many uses a replica takes from the database at a time.
func (r Rate) share() int { return max(1, int(r)/20) }

// cost returns how much of a bucket's allowance n uses take. The allowance is measured in time: Per
// is enough for the uses of a minute.
func (r Rate) cost(n int) time.Duration { return Per * time.Duration(n) / time.Duration(r) }

// Spend spends cost from the allowance of a bucket, which all replicas share. The allowance of a
// full bucket is window, and it grows as time passes. Spend returns 0 on success, and otherwise how
// long to wait until the allowance is enough.
type Spend func(ctx context.Context, bucket string, cost, window time.Duration) (wait time.Duration, err error)

// Limiter counts uses by bucket. It is safe for concurrent use.
type Limiter struct {
	spend Spend
	now   func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
}

// maxBuckets limits the memory that invented addresses and credentials can occupy. A bucket takes
// about 200 bytes.
const maxBuckets = 100_000

// New returns a limiter that takes its shares with spend.
func New(spend Spend, now func() time.Time) *Limiter {
	return &Limiter{spend: spend, now: now, buckets: map[string]*bucket{}}
}

// bucket is what this replica remembers about a bucket of the database.
type bucket struct {
	mu    sync.Mutex
	since time.Time // beginning of the bucket's current minute
	left  int       // uses that may still be granted
	paid  bool      // the first share was taken from the database
	until time.Time // every use is refused until then
}

// Allow counts one use of a bucket. It returns 0 when the use is within the limit, and otherwise
// how long to wait. While the database does not answer, it allows the use.
func (l *Limiter) Allow(ctx context.Context, name string, r Rate) (wait time.Duration) {
	if r <= 0 {
		return 0
	}
	b := l.bucket(name, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := l.now()
	if now.Before(b.until) {
		return b.until.Sub(now)
	}
	if now.Sub(b.since) >= Per {
		b.since, b.left, b.paid = now, r.share(), false
	}
	if b.left > 0 {
		b.left--
		return 0
	}
	return l.takeShare(ctx, name, r, b)
}

// takeShare takes another share from the database, even if the client has disconnected. If the
// first share was granted without asking the database, takeShare takes that one too.
func (l *Limiter) takeShare(ctx context.Context, name string, r Rate, b *bucket) (wait time.Duration) {
	n := r.share()
	if !b.paid {
		n *= 2
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendTimeout)
	defer cancel()
	wait, err := l.spend(ctx, name, r.cost(n), Per)
	if err == nil && wait > 0 {
		b.until = l.now().Add(wait)
		return wait
	}
	b.left, b.paid = r.share()-1, b.paid || err == nil
	return 0
}

// spendTimeout is how long a request waits for a share.
const spendTimeout = time.Second

func (l *Limiter) bucket(name string, r Rate) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[name]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets {
		l.forget()
	}
	b := &bucket{since: l.now(), left: r.share()}
	l.buckets[name] = b
	return b
}

// forget frees memory. It drops the subjects that were not counted recently or, if too many remain,
// all subjects. Shares that were taken from the database stay taken.
func (l *Limiter) forget() {
	now := l.now()
	for name, b := range l.buckets {
		if !b.mu.TryLock() {
			continue // it is in use
		}
		if now.Sub(b.since) >= Per && !now.Before(b.until) {
			delete(l.buckets, name)
		}
		b.mu.Unlock()
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
