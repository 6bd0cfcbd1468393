package cloud

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are those of one service, in a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "snapcloud_http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "snapcloud_http_request_seconds", Help: "Time to answer, by route.", Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// healthz says that the process answers.
func (s *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"status":"ok"}`+"\n")
}

// readyz says whether database and storage answer; a load balancer sends no
// requests to a replica that says 503.
func (s *Service) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	checks := map[string]error{"database": s.store.Ping(ctx), "storage": s.blobs.Ping(ctx)}
	answer := map[string]string{}
	status := http.StatusOK
	for name, err := range checks {
		answer[name] = "ok"
		if err != nil {
			s.log.WarnContext(ctx, "not ready", "what", name, "error", err)
			answer[name], status = "unavailable", http.StatusServiceUnavailable
		}
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
