package cloud

import (
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"snap/internal/store"
)

// metrics holds the metrics of one service, in a registry of their own. docs/operations.md lists
// each metric; a test compares the two. No label has a value that a client chooses.
type metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec
	panics   prometheus.Counter
	ready    *prometheus.GaugeVec

	queries     *prometheus.HistogramVec
	queryErrors *prometheus.CounterVec
	s3          *prometheus.HistogramVec
	s3Requests  *prometheus.CounterVec

	transferred *prometheus.CounterVec
	pushes      prometheus.Counter
	pushedBytes prometheus.Counter
	pulls       prometheus.Counter
	logins      *prometheus.CounterVec

	jobs       *prometheus.CounterVec
	jobSeconds *prometheus.HistogramVec
	clockSkew  *prometheus.GaugeVec
	leases     *prometheus.GaugeVec
	deliveries *prometheus.CounterVec
	pruned     *prometheus.CounterVec
}

// metricFactory creates and registers metrics.
type metricFactory struct{ registry *prometheus.Registry }

func (f metricFactory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

func (f metricFactory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.registry.MustRegister(v)
	return v
}

// histogram returns a histogram whose first bucket ends at shortest. Each further bucket ends at
// 2.5 times the end of the previous bucket.
func (f metricFactory) histogram(name, help string, shortest time.Duration, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest.Seconds(), 2.5, 12),
	}, labels)
	f.registry.MustRegister(v)
	return v
}

func newMetrics(version string) *metrics {
	r := prometheus.NewRegistry()
	create := metricFactory{r}
	m := &metrics{
		registry: r,

		requests: create.counter("snapcloud_http_requests_total", "Requests answered, by route and status.", "route",
			"status"),
		refused: create.counter("snapcloud_http_refused_total", "Requests and connections refused because of a limit.",
			"reason"),
		seconds: create.histogram("snapcloud_http_request_duration_seconds", "Time to answer, by route.",
			500*time.Microsecond, "route"),
		inFlight: create.gauge("snapcloud_http_requests_in_flight", "Requests being answered now.").WithLabelValues(),
		panics:   create.counter("snapcloud_panics_total", "Requests that ended in a panic.").WithLabelValues(),
		ready:    create.gauge("snapcloud_ready", "1 if this part worked at the last check for /readyz.", "what"),

		queries: create.histogram("snapcloud_database_query_duration_seconds", "Time of a statement, by kind.",
			50*time.Microsecond, "kind"),
		queryErrors: create.counter("snapcloud_database_query_errors_total", "Statements that failed, by kind.",
			"kind"),
		s3: create.histogram("snapcloud_s3_request_duration_seconds",
			"Time from a request to S3 until the headers of the response, by method.", time.Millisecond, "method"),
		s3Requests: create.counter("snapcloud_s3_requests_total",
			"Requests to S3, by method and status; the status is 0 without a response.", "method", "status"),

		transferred: create.counter("snapcloud_transfer_bytes_total",
			"Bytes of snapshots and deltas sent through this process; with S3, only deltas.", "direction"),
		pushes: create.counter("snapcloud_pushes_total", "Completed pushes.").WithLabelValues(),
		pushedBytes: create.counter("snapcloud_pushed_bytes_total",
			"Bytes of the snapshots of completed pushes.").WithLabelValues(),
		pulls: create.counter("snapcloud_pulls_total", "Started pulls: download links handed out.").WithLabelValues(),
		logins: create.counter("snapcloud_logins_total",
			"Sign-ins, refreshes, token exchanges and logouts that a provider requested, by door and outcome.", "door",
			"outcome"),

		jobs: create.counter("snapcloud_job_runs_total", "Runs of background work by this process, by outcome.", "work",
			"outcome"),
		jobSeconds: create.histogram("snapcloud_job_duration_seconds", "Time of a run of background work.",
			time.Millisecond, "work"),
		clockSkew: create.gauge("snapcloud_clock_skew_seconds",
			"Largest difference between the clocks of running replicas."),
		leases: create.gauge("snapcloud_lease_held", "1 if this process does the background work now.", "work"),
		deliveries: create.counter("snapcloud_webhook_deliveries_total", "Attempts to deliver a webhook, by outcome.",
			"outcome"),
		pruned: create.counter("snapcloud_pruned_principals_total",
			"Accounts and groups deleted because nothing refers to them, by kind.", "kind"),
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	create.gauge("snapcloud_build_info", "1, with the version of the program and of Go.", "version", "go_version").
		WithLabelValues(version, runtime.Version()).Set(1)
	m.initSeries()
	return m
}

// initSeries creates the series that dashboards and alerts read. A counter that first appears with
// an event hides that event, because a rate needs an earlier value.
func (m *metrics) initSeries() {
	zero := func(c *prometheus.CounterVec, labels ...string) { c.WithLabelValues(labels...) }
	for _, direction := range []string{"up", "down"} {
		zero(m.transferred, direction)
	}
	for _, outcome := range []string{"delivered", "retried", "given_up"} {
		zero(m.deliveries, outcome)
	}
	for _, kind := range []string{"account", "group"} {
		zero(m.pruned, kind)
	}
	for _, reason := range []string{"rate", "overload", "connections"} {
		zero(m.refused, reason)
	}
	for _, kind := range []string{"select", "insert", "update", "delete", "begin", "commit", "rollback", "other"} {
		zero(m.queryErrors, kind)
		m.queries.WithLabelValues(kind)
	}
	for _, door := range []string{"password", "provider", "device", "exchange", "refresh", "logout"} {
		for _, outcome := range []string{"ok", "wrong", "limited", "refused", "expired", "reused", "unavailable",
			"failed"} {
			zero(m.logins, door, outcome)
		}
	}
	for _, work := range jobNames() {
		zero(m.jobs, work, "ok")
		zero(m.jobs, work, "failed")
	}
	m.initRequestSeries("none")
}

func (m *metrics) initS3Series() {
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE"} {
		for _, status := range []string{"0", "200", "500", "503"} {
			m.s3Requests.WithLabelValues(method, status)
		}
	}
}

func (m *metrics) initRouteSeries(paths map[string]*huma.PathItem) {
	for path, item := range paths {
		for method := range methods(item) {
			m.initRequestSeries(method + " " + path)
		}
	}
}

func (m *metrics) initRequestSeries(route string) {
	for _, status := range []string{"200", "500", "503"} {
		m.requests.WithLabelValues(route, status)
	}
}

// watchPools adds the metrics of the database's connection pools.
func (m *metrics) watchPools(s *store.Store) {
	for name, db := range s.Pools() {
		m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// countLogin implements Count of signin.Options.
func (m *metrics) countLogin(door, outcome string) { m.logins.WithLabelValues(door, outcome).Inc() }

func (m *metrics) recordJob(job string, err error, took time.Duration) {
	m.jobSeconds.WithLabelValues(job).Observe(took.Seconds())
	if err != nil {
		m.jobs.WithLabelValues(job, "failed").Inc()
		return
	}
	m.jobs.WithLabelValues(job, "ok").Inc()
}

func (m *metrics) recordLease(job string, held bool) {
	m.leases.WithLabelValues(job).Set(zeroOrOne(held))
}

func zeroOrOne(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *metrics) recordRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// countUp counts the bytes of parts and deltas that this process receives.
func (s *Service) countUp(next http.Handler) http.Handler {
	up := s.telemetry.metrics.transferred.WithLabelValues("up")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &countedBody{ReadCloser: r.Body}
		r.Body = body
		defer func() { up.Add(float64(body.n)) }()
		next.ServeHTTP(w, r)
	})
}

type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}
