package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"snap"
	"snap/internal/store"
)

// collectEvery is how often unfinished uploads and rows that no longer count
// are looked for; abandonedAfter is how long no one has touched an upload that
// is collected; deliverEvery is how often due webhooks are looked for, and recheckEvery
// how often an identity provider is asked about one person.
const (
	collectEvery   = 10 * time.Minute
	abandonedAfter = 48 * time.Hour
	deliverEvery   = time.Second
	recheckEvery   = time.Second
	indexEvery     = time.Minute // what an earlier release wrote, for searches
)

// startBackground does the service's background work until ctx is done. Each
// kind is done by one replica at a time; when that one dies, another takes
// over. The returned function waits until all has stopped.
func (s *Service) startBackground(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	holder := rand.Text()
	leased := func(name string, every time.Duration, work func(context.Context) error) {
		running.Go(func() {
			s.repeat(ctx, name, every, func(ctx context.Context) error {
				held, err := s.store.Lease(ctx, name, holder, 3*every)
				s.metrics.lease(name, held)
				if err != nil || !held {
					return err
				}
				return s.job(ctx, name, work)
			})
		})
	}
	running.Go(s.sayRunning(ctx, holder))
	leased("collect", s.collectEvery, func(ctx context.Context) error {
		n, err := s.Collect(ctx)
		if n > 0 {
			s.log.Info("collected abandoned uploads", "count", n)
		}
		return err
	})
	leased("index", indexEvery, s.store.Index)
	leased("retention", retentionEvery, s.expireAll)
	leased("audit", sequenceEvery, s.Sequence)
	leased("recheck", recheckEvery, func(ctx context.Context) error {
		_, err := s.signin.Recheck(ctx)
		return err
	})
	running.Go(func() { // each delivery is leased by itself
		s.repeat(ctx, "webhooks", deliverEvery, func(ctx context.Context) error {
			return s.job(ctx, "webhooks", func(ctx context.Context) error {
				_, err := s.Deliver(ctx)
				return err
			})
		})
	})
	return running.Wait
}

// often are the kinds of work that are looked for every second or more often.
// They are not traced and logged as a whole.
func often(name string) bool { return name == "webhooks" || name == "audit" || name == "recheck" }

// job does background work once, counted.
func (s *Service) job(ctx context.Context, name string, work func(context.Context) error) error {
	end := func(error) {}
	if !often(name) {
		ctx, end = s.tracing.begin(ctx, name, trace.SpanKindInternal)
	}
	started := time.Now()
	err := work(ctx)
	took := time.Since(started)
	s.metrics.ran(name, err, s.now(), took)
	if !often(name) {
		s.log.DebugContext(ctx, "background work", "job", name, "took", took)
	}
	end(err)
	return err
}

func (s *Service) repeat(ctx context.Context, name string, every time.Duration, work func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("background work failed; trying again", "work", name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepBatch is how many rows that no longer count go in one transaction.
const sweepBatch = 1000

// Collect removes uploads that no one has touched for two days, with their
// bytes, and returns how many; and rows of the database that no longer count.
// It is safe to run on several replicas at once.
func (s *Service) Collect(ctx context.Context) (collected int, err error) {
	for {
		swept, err := s.store.Sweep(ctx, sweepBatch)
		if err != nil {
			return 0, err
		}
		if swept < sweepBatch {
			break
		}
	}
	if err := s.store.SweepRates(ctx); err != nil {
		return 0, err
	}
	before := s.now().Add(-abandonedAfter)
	for {
		stale, err := s.store.StaleUploads(ctx, before, collectBatch)
		if err != nil {
			return collected, err
		}
		for _, u := range stale {
			given, err := s.store.Abandon(ctx, u, before)
			if err != nil {
				return collected, err
			}
			if given {
				collected++
			}
		}
		if len(stale) < collectBatch {
			break
		}
	}
	return collected, errors.Join(s.removeGarbage(ctx), s.abortUnknown(ctx))
}

// collectBatch is how many rows of uploads or garbage are looked at together.
const collectBatch = 100

// removeGarbage removes the objects that no row needs any more.
func (s *Service) removeGarbage(ctx context.Context) error {
	for {
		all, err := s.store.Garbage(ctx, collectBatch)
		if err != nil {
			return err
		}
		for _, g := range all {
			if err := s.remove(ctx, g); err != nil {
				return err
			}
		}
		if len(all) < collectBatch {
			return nil
		}
	}
}

func (s *Service) remove(ctx context.Context, g store.Garbage) error {
	if g.BlobUpload != "" {
		if err := s.blobs.Abort(ctx, g.Blob, g.BlobUpload); err != nil && snap.CodeOf(err) != snap.CodeNotFound {
			return err
		}
	}
	if err := s.blobs.Delete(ctx, g.Blob); err != nil {
		return err
	}
	return s.store.Removed(ctx, g)
}

// dropPatience is how long a deletion waits for the storage to remove the bytes.
const dropPatience = 10 * time.Second

// dropBytes removes the bytes of a deleted snapshot; an empty key is of bytes
// that another snapshot still has. What fails is collected later.
func (s *Service) dropBytes(ctx context.Context, key string) {
	if key == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
	defer cancel()
	if err := s.remove(ctx, store.Garbage{Blob: key}); err != nil {
		s.log.WarnContext(ctx, "the bytes of a deleted snapshot are removed later", "error", err)
	}
}
