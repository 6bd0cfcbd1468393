package cloud

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// healthz reports that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"status":"ok"}`+"\n")
}

// readiness is the last result of the checks for /readyz. All requests share it, because no limit
// applies to them.
type readiness struct {
	mu     sync.Mutex
	at     time.Time
	checks map[string]error // nil for a part that answered
}

// readyFor is how long a result of the checks is used. storageWait is how long they wait for the
// object store, which is shorter than load balancers usually wait for /readyz.
const (
	readyFor    = time.Second
	storageWait = 2 * time.Second
)

// checkReady checks whether the database and the object store answer, at most once a second. Until
// the next check it returns the previous results.
func (s *Service) checkReady(ctx context.Context) map[string]error {
	r := &s.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.now().Sub(r.at) < readyFor {
		return r.checks
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	stored := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, storageWait)
		defer cancel()
		stored <- s.transfers.blobs.Ping(ctx)
	}()
	r.checks = map[string]error{database: s.store.Ping(ctx), "storage": <-stored}
	r.at = s.now()
	for name, err := range r.checks {
		s.telemetry.metrics.ready.WithLabelValues(name).Set(zeroOrOne(err == nil))
		if err != nil {
			s.telemetry.outages.failed(ctx, name, err)
		} else {
			s.telemetry.outages.worked(ctx, name)
		}
	}
	return r.checks
}

// readyz reports whether the database and the object store answer. The status depends on the
// database alone: without the object store, a replica can still list and unshare, and a load
// balancer must not remove all replicas.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	checks := s.checkReady(r.Context())
	answer := map[string]string{}
	for name, err := range checks {
		answer[name] = "ok"
		if err != nil {
			answer[name] = "unavailable"
		}
	}
	status := http.StatusOK
	if checks[database] != nil {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}
