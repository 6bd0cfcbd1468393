package cloud

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// healthz says that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"status":"ok"}`+"\n")
}

// readyz says whether database and storage answer. Its status is about the
// database alone: without the storage, a replica still lists and unshares, and
// a load balancer that takes every replica out would end that.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	checks := map[string]error{"database": s.store.Ping(ctx), "storage": s.blobs.Ping(ctx)}
	answer := map[string]string{}
	status := http.StatusOK
	for name, err := range checks {
		answer[name] = "ok"
		s.metrics.ready.WithLabelValues(name).Set(number(err == nil))
		if err != nil {
			s.log.WarnContext(ctx, "not ready", "what", name, "error", err)
			answer[name] = "unavailable"
		}
	}
	if checks["database"] != nil {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}
