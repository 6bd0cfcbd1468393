package cloud

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// healthz reports that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"status":"ok"}`+"\n")
}

// readyz reports whether the database and the object store answer. The status depends on the
// database alone: without the object store, a replica can still list and unshare, and a load
// balancer must not remove all replicas.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	checks := map[string]error{database: s.store.Ping(ctx), "storage": s.transfers.blobs.Ping(ctx)}
	answer := map[string]string{}
	status := http.StatusOK
	for name, err := range checks {
		answer[name] = "ok"
		s.telemetry.metrics.ready.WithLabelValues(name).Set(number(err == nil))
		if err != nil {
			s.telemetry.outages.failed(ctx, name, err)
			answer[name] = "unavailable"
		} else {
			s.telemetry.outages.worked(ctx, name)
		}
	}
	if checks[database] != nil {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}
