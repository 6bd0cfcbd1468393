package cloud

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"snap/internal/store"
)

// tracing sends spans of requests, statements, requests to S3 and background work to an
// OpenTelemetry collector. It is nil when no collector is configured.
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// check returns an error if a setting is not valid.
func (t Tracing) check() error {
	if sample := t.sample(); !(sample >= 0 && sample <= 1) { // also if it is not a number
		return fmt.Errorf("tracing.sample %v is not between 0 and 1", sample)
	}
	if t.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(t.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("tracing.endpoint is not a URL like http://127.0.0.1:4318")
	}
	return nil
}

// sample returns the fraction of traces to send. The default is all of them.
func (t Tracing) sample() float64 {
	if t.Sample == nil {
		return 1
	}
	return *t.Sample
}

// endpoint returns the URL for the spans. Its default path comes from the OTLP specification.
func (t Tracing) endpoint() string {
	u, err := url.Parse(t.Endpoint)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.Endpoint
}

// newTracing prepares to send spans; it does not connect yet. Spans are sent in batches in the
// background, and dropped while the collector does not accept them.
func newTracing(ctx context.Context, c Tracing, version string, log *slog.Logger) (*tracing, error) {
	if c.Endpoint == "" {
		return nil, nil //nolint:nilnil // not configured
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.endpoint()))
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "snapcloud"), attribute.String("service.version", version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces: %w", err)
	}
	// A client may choose the trace that its request belongs to, but not whether it is recorded.
	sample := anyTrace{sdktrace.TraceIDRatioBased(c.sample())}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(quietExporter{exporter, log}), sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.ParentBased(sample, sdktrace.WithRemoteParentSampled(sample))),
	)
	return &tracing{p, p.Tracer("snap/internal/cloud")}, nil
}

// anyTrace samples by a random ID instead of the trace's ID, which a client may have chosen.
type anyTrace struct{ sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (s anyTrace) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	_, _ = rand.Read(p.TraceID[:]) // never fails
	return s.Sampler.ShouldSample(p)
}

// close sends the remaining spans.
func (t *tracing) close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// quietExporter reports failed exports in the service's log instead of the library's.
type quietExporter struct {
	sdktrace.SpanExporter
	log *slog.Logger
}

// ExportSpans implements sdktrace.SpanExporter.
func (e quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.log.WarnContext(ctx, "traces were not sent", "spans", len(spans), "error", err)
	}
	return nil
}

// request begins the span of a request, in the trace that its traceparent names (W3C Trace
// Context). The span has no path, because a path may hold a token.
func (t *tracing) request(r *http.Request) (context.Context, func(route string, status int)) {
	if t == nil {
		return r.Context(), func(string, int) {}
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method(r.Method)),
		attribute.String("snapcloud.request_id", requestID(r.Context()))))
	return ctx, func(route string, status int) {
		span.SetName(route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// method returns the request's method if it is a common one, otherwise "_OTHER".
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return m
	}
	return "_OTHER"
}

// within begins a span below the span in ctx. It begins no span when ctx has none, so that work
// that polls the database every second creates no traces.
func (t *tracing) within(ctx context.Context, name string, kind trace.SpanKind,
	about ...attribute.KeyValue) (context.Context, func(error)) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	return t.begin(ctx, name, kind, about...)
}

func (t *tracing) begin(ctx context.Context, name string, kind trace.SpanKind,
	about ...attribute.KeyValue) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(about...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "failed") // the error's text may hold values
		}
		span.End()
	}
}

// traceID returns the ID of the trace in ctx, or "".
func traceID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// watchStatement measures a statement and traces its text, which has placeholders instead of
// values.
func (s *Service) watchStatement(ctx context.Context, statement string) (context.Context, func(error)) {
	kind, started := store.StatementKind(statement), time.Now()
	end := func(error) {}
	if s.telemetry.tracing != nil {
		ctx, end = s.telemetry.tracing.within(ctx, kind, trace.SpanKindClient,
			attribute.String("db.operation.name", kind),
			attribute.String("db.query.text", strings.Join(strings.Fields(statement), " ")))
	}
	return ctx, func(err error) {
		s.telemetry.metrics.queries.WithLabelValues(kind).Observe(time.Since(started).Seconds())
		if err != nil && ctx.Err() == nil {
			s.telemetry.metrics.queryErrors.WithLabelValues(kind).Inc()
		}
		end(err)
	}
}

// watchS3 measures and traces requests to S3. The spans do not hold the URLs of the requests,
// because the URLs are signed.
func (s *Service) watchS3(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		started := time.Now()
		ctx, end := s.telemetry.tracing.within(r.Context(), "S3 "+r.Method, trace.SpanKindClient,
			attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()))
		res, err := next.RoundTrip(r.WithContext(ctx))
		status := 0
		if res != nil {
			status = res.StatusCode
		}
		s.telemetry.metrics.s3.WithLabelValues(r.Method).Observe(time.Since(started).Seconds())
		s.telemetry.metrics.s3Requests.WithLabelValues(r.Method, strconv.Itoa(status)).Inc()
		end(err)
		return res, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
