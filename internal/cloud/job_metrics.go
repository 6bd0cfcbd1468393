package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// jobRecordInterval limits how often a success of the same kind of work is recorded.
const jobRecordInterval = time.Minute

// jobTimes reports when each kind of background work last succeeded in any process. The times are
// kept in the database, so they survive the replacement of every process.
type jobTimes struct {
	service *Service
	done    *prometheus.Desc

	mu       sync.Mutex
	recorded map[string]time.Time
	have     map[string]time.Time
}

func newJobTimes(s *Service) *jobTimes {
	return &jobTimes{service: s, recorded: map[string]time.Time{}, done: prometheus.NewDesc(
		"snapcloud_job_last_success_timestamp_seconds",
		"Time of the last success in any process, up to a minute late; without one, the time of the first start.",
		[]string{"work"}, nil)}
}

// begin records the kinds of work that this service does.
func (j *jobTimes) begin(ctx context.Context) error {
	for _, name := range jobNames() {
		if err := j.service.store.JobBegun(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// succeeded records a success, at most once a minute for each kind of work.
func (j *jobTimes) succeeded(ctx context.Context, name string) error {
	now := j.service.now()
	j.mu.Lock()
	recent := now.Sub(j.recorded[name]) < jobRecordInterval
	if !recent {
		j.recorded[name] = now
	}
	j.mu.Unlock()
	if recent {
		return nil
	}
	return j.service.store.JobDone(ctx, name)
}

// Describe implements [prometheus.Collector].
func (j *jobTimes) Describe(to chan<- *prometheus.Desc) { to <- j.done }

// Collect implements [prometheus.Collector]. While the database does not answer, it reports the
// previous times.
func (j *jobTimes) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	have, err := j.service.store.JobsDone(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.have = have
	}
	for name, at := range j.have {
		to <- prometheus.MustNewConstMetric(j.done, prometheus.GaugeValue, float64(at.UnixMilli())/1000, name)
	}
}
