package cloud

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
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

func (s *Service) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	doc, err := s.OpenAPI()
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(doc)
}

// OpenAPI returns the OpenAPI 3.1 document, made from the routes' own types.
func (s *Service) OpenAPI() ([]byte, error) {
	doc, err := json.MarshalIndent(s.openAPI, "", "  ")
	return append(doc, '\n'), err
}

// newLogHandler returns a handler for the format and level of the
// configuration; what it does not know is text and info.
func newLogHandler(c Log, w io.Writer) slog.Handler {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}
