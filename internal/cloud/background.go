package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"snap"
	"snap/internal/store"
)

// The intervals of background work, and the age of abandoned uploads.
const (
	collectEvery   = 10 * time.Minute // how often abandoned uploads and obsolete rows are collected
	abandonedAfter = 48 * time.Hour   // an upload is abandoned when nobody has touched it for this long
	deliverEvery   = time.Second      // how often due webhooks are delivered
	recheckEvery   = time.Second      // how often each identity provider is asked about one person
	archiveEvery   = 10 * time.Minute
	reportEvery    = time.Minute     // how often overdue channels and expiring shares are reported
	requestsEvery  = 5 * time.Second // how often people are notified of requests for access
	indexEvery     = time.Minute     // how often rows that are not yet indexed for searches are indexed
)

// startBackground runs the service's background work until ctx is done. Each kind of work that is
// leased runs on one replica at a time; when that replica stops, another takes over. The returned
// function waits until all work has stopped.
func (s *Service) startBackground(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	holder := rand.Text()
	if err := s.telemetry.jobTimes.begin(ctx); err != nil {
		s.log.WarnContext(ctx, "the times of background work were not recorded", "error", err)
	}
	leased := func(name string, every time.Duration, work func(context.Context) error) {
		running.Go(func() {
			s.repeat(ctx, name, every, func(ctx context.Context) error {
				held, err := s.store.Lease(ctx, name, holder, 3*every)
				s.telemetry.metrics.recordLease(name, held)
				if err != nil || !held {
					return err
				}
				return s.job(ctx, name, work)
			})
		})
	}
	running.Go(s.recordRunning(ctx, holder))
	leased("collect", s.background.collectEvery, func(ctx context.Context) error {
		n, err := s.Collect(ctx)
		if n > 0 {
			s.log.Info("collected abandoned uploads", "count", n)
		}
		return err
	})
	leased("index", indexEvery, s.store.Index)
	leased("retention", retentionEvery, s.expireAll)
	leased("prune", pruneEvery, s.Prune)
	leased("audit", sequenceEvery, s.Sequence)
	leased("archive", archiveEvery, s.ArchiveLogs)
	leased("checkpoints", checkpointsEvery, s.KeepCheckpoints)
	withoutCount := func(work func(context.Context) (int, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := work(ctx)
			return err
		}
	}
	leased("expect", reportEvery, withoutCount(s.store.ReportOverdue))
	leased("expiry", reportEvery, withoutCount(s.store.ReportExpiring))
	leased("requests", requestsEvery, withoutCount(s.store.ReportRequests))
	leased("recheck", recheckEvery, withoutCount(s.signin.Recheck))
	running.Go(func() { // each replica has its own deltas
		s.repeat(ctx, "deltas", collectEvery, func(context.Context) error { s.transfers.deltas.expire(); return nil })
	})
	running.Go(func() { s.newLanes().run(ctx) }) // each webhook has its own lease
	return running.Wait
}

// jobNames returns the names of the kinds of background work that [Service.job] runs.
func jobNames() []string {
	return []string{"collect", "index", "retention", "prune", "audit", "archive", "checkpoints", "expect", "expiry",
		"requests", "recheck", "webhooks"}
}

// isFrequent reports whether a kind of work runs every second or more often. Such frequent runs are
// not traced or logged individually.
func isFrequent(name string) bool { return name == "webhooks" || name == "audit" || name == "recheck" }

// job runs background work once, with metrics and, unless the work is frequent, a trace and a log
// line.
func (s *Service) job(ctx context.Context, name string, work func(context.Context) error) error {
	end := func(error) {}
	if !isFrequent(name) {
		ctx, end = s.telemetry.tracing.begin(ctx, name, trace.SpanKindInternal)
	}
	started := time.Now()
	err := work(ctx)
	took := time.Since(started)
	if !isFrequent(name) {
		s.log.DebugContext(ctx, "background work", "job", name, "took", took)
	}
	s.telemetry.metrics.recordJob(name, err, took)
	if err == nil {
		s.telemetry.outages.worked(ctx, database)
		err = s.telemetry.jobTimes.succeeded(ctx, name)
	}
	end(err)
	return err
}

func (s *Service) repeat(ctx context.Context, name string, every time.Duration, work func(context.Context) error) {
	s.repeatWhen(ctx, name, every, nil, work)
}

// repeatWhen is like repeat, but also does the work when a value arrives on wake.
func (s *Service) repeatWhen(ctx context.Context, name string, every time.Duration, wake <-chan struct{},
	work func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := work(ctx); err == nil {
			s.telemetry.outages.worked(ctx, "work "+name)
		} else if ctx.Err() == nil {
			s.telemetry.outages.failed(ctx, "work "+name, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wake:
		}
	}
}

// sweepBatch is how many obsolete rows one transaction removes.
const sweepBatch = 1000

// Collect removes uploads that no one has touched for two days, with their bytes, and obsolete rows
// of the database. It returns how many uploads it removed. Several replicas may run it at once.
func (s *Service) Collect(ctx context.Context) (collected int, err error) {
	ctx = store.AllowReserve(ctx) // it frees space
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
			abandoned, err := s.store.Abandon(ctx, u, before)
			if err != nil {
				return collected, err
			}
			if abandoned {
				collected++
			}
		}
		if len(stale) < collectBatch {
			break
		}
	}
	return collected, errors.Join(s.removeGarbage(ctx), s.abortUnknown(ctx))
}

// collectBatch is how many rows of uploads or garbage are read at once.
const collectBatch = 100

// removeGarbage removes the objects that are recorded as garbage. After an error, it continues with
// the next object, unless the object store no longer responds. It returns the first error.
func (s *Service) removeGarbage(ctx context.Context) (failed error) {
	for after := ""; ; {
		all, err := s.store.Garbage(ctx, after, collectBatch)
		if err != nil {
			return err
		}
		for _, g := range all {
			after = g.Blob
			err := s.remove(ctx, g)
			failed = cmp.Or(failed, err)
			if err != nil && s.transfers.blobs.Ping(ctx) != nil {
				return failed
			}
		}
		if len(all) < collectBatch {
			return failed
		}
	}
}

// remove removes an object, its unfinished upload, and this replica's deltas that use it.
func (s *Service) remove(ctx context.Context, g store.Garbage) error {
	if err := s.transfers.deltas.forget(g.Blob); err != nil {
		return err
	}
	if g.BlobUpload != "" {
		err := s.transfers.blobs.Abort(ctx, g.Blob, g.BlobUpload)
		if err != nil && snap.CodeOf(err) != snap.CodeNotFound {
			return err
		}
	}
	if err := s.transfers.blobs.Delete(ctx, g.Blob); err != nil {
		return err
	}
	return s.store.RecordRemoved(ctx, g)
}

// dropTimeout is how long a deletion waits for the object store to remove the bytes.
const dropTimeout = 10 * time.Second

// dropBytes removes the bytes of a deleted snapshot or an aborted upload, and this replica's deltas
// that use them. Other replicas remove their deltas within a day. It does nothing if the name of
// the object is empty, which means that another snapshot has the same bytes. Objects that cannot be
// removed now are collected later.
func (s *Service) dropBytes(ctx context.Context, g store.Garbage) {
	if g.Blob == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := s.remove(ctx, g); err != nil {
		s.log.WarnContext(ctx, "cannot remove the bytes of a deleted snapshot or upload; they will be removed later",
			"error", err)
	}
}

// dropUnused removes the bytes of a push that ended while its object was being written. It does
// nothing while a push or a snapshot uses the object.
func (s *Service) dropUnused(ctx context.Context, key string) {
	ctx = context.WithoutCancel(ctx)
	unused, err := s.store.DiscardUnused(ctx, key)
	if err != nil {
		s.log.WarnContext(ctx, "cannot look up whether an object is used", "object", key, "error", err)
	} else if unused {
		s.dropBytes(ctx, store.Garbage{Blob: key})
	}
}
