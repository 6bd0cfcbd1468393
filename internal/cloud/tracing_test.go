package cloud_test

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// spanReceiver is a small OpenTelemetry collector.
type spanReceiver struct {
	mu    sync.Mutex
	spans []*otlp.Span
	raw   []byte
}

func (c *spanReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	var all collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(raw, &all) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for _, resource := range all.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

const traceOfTheClient = "4bf92f3577b34da6a3ce929d0e0e4736"

// TestTraces: a request's span belongs to the trace its traceparent names (W3C
// Trace Context); statements and requests to S3 are below it; no value, key,
// path or URL is in any of them.
func TestTraces(t *testing.T) {
	t.Parallel()
	t.Run("sqlite",
		func(t *testing.T) { t.Parallel(); testTraces(t, cloudtest.Options{}, "select", "begin", "commit") })
	t.Run("postgres and s3", func(t *testing.T) {
		t.Parallel()
		testTraces(t, cloudtest.Options{DatabaseURL: cloudtest.Postgres(t), BlobURL: servertest.S3(t)}, "select",
			"begin",
			"commit", "S3 POST")
	})
}

func testTraces(t *testing.T, o cloudtest.Options, below ...string) {
	to := &spanReceiver{}
	server := httptest.NewServer(to)
	defer server.Close()
	o.Config = func(c *cloud.Config) { c.Tracing = cloud.Tracing{Endpoint: server.URL} }
	c := cloudtest.Start(t, o)
	key := c.Key("alice@acme.test")
	client, err := api.New(api.Options{
		BaseURL: c.URL, Mount: api.MountAgent, Token: api.StaticToken(key), TraceParent: "00-" + traceOfTheClient +
			"-00f067aa0ba902b7-01",
	})
	if err != nil {
		t.Fatal(err)
	}
	sn := c.Push(client, "a-target-of-mine", []byte("rows"))
	pull, err := client.Pull(t.Context(), sn.ID)
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, http.MethodGet, pull.URL, "")
	if err := c.Service.Close(); err != nil { // sends the remaining spans
		t.Fatal(err)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	const push = "POST /api/v1/agents/snapshots"
	var request *otlp.Span
	for _, s := range to.spans {
		if s.Name == push {
			request = s
		}
	}
	if request == nil {
		t.Fatalf("no span of the push among %d", len(to.spans))
	}
	if got := hex.EncodeToString(request.TraceId); got != traceOfTheClient ||
		hex.EncodeToString(request.ParentSpanId) != "00f067aa0ba902b7" {
		t.Errorf("the request's span is in the trace %s below %x", got, request.ParentSpanId)
	}
	found := map[string]bool{}
	for _, s := range to.spans {
		if string(s.ParentSpanId) == string(request.SpanId) {
			found[s.Name] = true
		}
	}
	for _, name := range below {
		if !found[name] {
			t.Errorf("no span %q below the request, only %v", name, found)
		}
	}
	for _, secret := range []string{key, "a-target-of-mine", "alice", strings.TrimPrefix(pull.URL, c.URL), sn.SHA256,
		sn.ID, "Signature"} {
		if strings.Contains(string(to.raw), secret) {
			t.Errorf("a span holds %q", secret)
		}
	}
}

// TestTracesOfOthersAreNotForced: neither a client's sampled flag nor the ID of its trace makes the
// service record a trace that tracing.sample leaves out. A sample of 0 records none.
func TestTracesOfOthersAreNotForced(t *testing.T) {
	t.Parallel()
	for _, share := range []string{"0", "0.000000001"} {
		t.Run(share, func(t *testing.T) { t.Parallel(); testTracesAreNotForced(t, share) })
	}
}

func testTracesAreNotForced(t *testing.T, share string) {
	to := &spanReceiver{}
	server := httptest.NewServer(to)
	defer server.Close()
	config, err := cloud.LoadConfig("", []string{"SNAPCLOUD_TRACING__SAMPLE=" + share})
	must(t, err)
	c := cloudtest.Start(t, cloudtest.Options{Config: func(c *cloud.Config) {
		c.Tracing = cloud.Tracing{Endpoint: server.URL, Sample: config.Tracing.Sample}
	}})
	for range 20 {
		req, err := http.NewRequest(http.MethodGet, c.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		// OpenTelemetry's TraceIDRatioBased records every trace whose ID ends with zeros.
		req.Header.Set("Traceparent", "00-"+traceOfTheClient[:16]+"0000000000000000-00f067aa0ba902b7-01")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if err := c.Service.Close(); err != nil {
		t.Fatal(err)
	}
	if len(to.spans) > 0 {
		t.Errorf("%d spans were recorded because a client asked", len(to.spans))
	}
}

// TestTracingDelaysNoRequest: a request succeeds while the collector is down, and the log line of
// the request names its trace.
func TestTracingDelaysNoRequest(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := cloudtest.Start(t, cloudtest.Options{Log: &log, Config: func(c *cloud.Config) {
		c.Tracing = cloud.Tracing{Endpoint: "http://127.0.0.1:1"}
	}})
	if _, err := c.As("alice@acme.test").Snapshots(t.Context(), api.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "trace_id=") {
		t.Error("the log does not name the request's trace")
	}
}
