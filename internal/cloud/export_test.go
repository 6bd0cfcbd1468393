package cloud

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"snap/internal/blob"
)

// ClaimKey is the object that every object store has.
const ClaimKey = claimKey

// DeliverLease is how long a replica holds the lease of a webhook to which it sends.
const DeliverLease = deliverLease

// Routes returns the patterns of every route that needs a caller, for tests
// that walk the route table.
func (s *Service) Routes() []string {
	var out []string
	for _, rt := range s.web.table {
		out = append(out, rt.pattern)
	}
	return out
}

// Described returns the OpenAPI document.
func (s *Service) Described() *huma.OpenAPI { return s.web.openAPI }

// Deltas returns the folder of this replica's deltas.
func (s *Service) Deltas() string { return s.transfers.deltas.dir }

// DeltaTakes limits the work on one delta.
func (s *Service) DeltaTakes(most time.Duration) { s.transfers.deltas.timeLimit = most }

// DeltaStalls sets how long a delta that is being received may go without a byte.
func (s *Service) DeltaStalls(most time.Duration) { s.transfers.deltas.maxStall = most }

// Steady returns a request's body as the service reads a delta from it.
func Steady(w http.ResponseWriter, r *http.Request, stall time.Duration) io.Reader {
	return &timedBody{ReadCloser: r.Body, control: http.NewResponseController(w), maxStall: stall}
}

// ExpireDeltas removes old deltas, as the background work does.
func (s *Service) ExpireDeltas() { s.transfers.deltas.expire() }

// ExpireAll applies retention as the background work does.
func (s *Service) ExpireAll(ctx context.Context) error { return s.expireAll(ctx) }

// Wrapped returns a handler behind the middleware that every request passes.
func (s *Service) Wrapped(h http.Handler) http.Handler { return s.wrap(h) }

// Registry returns the metrics.
func (s *Service) Registry() *prometheus.Registry { return s.telemetry.metrics.registry }

// Private returns the handler of the private listener.
func (s *Service) Private() http.Handler { return s.private() }

// WarnOfPlain warns as a start with these addresses does. It connects to none of them.
func WarnOfPlain(t *testing.T, log *slog.Logger, publicURL, blobURL string) {
	s := &Service{log: log, config: Config{PublicURL: publicURL}}
	if blobURL != "" {
		objects, err := blob.OpenS3(t.Context(), blobURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.transfers.blobs = objects
	}
	s.warnUnencrypted(t.Context())
}

// Ran runs a function as background work of this name.
func (s *Service) Ran(ctx context.Context, name string, work func(context.Context) error) error {
	return s.job(ctx, name, work)
}

// BeginJobs records the kinds of background work, as a start does.
func (s *Service) BeginJobs(ctx context.Context) error { return s.telemetry.jobTimes.begin(ctx) }

// LogHandler returns the handler of the service's log.
func LogHandler(c Log, w io.Writer) slog.Handler { return newLogHandler(c, w) }

// ExampleOf is exampleOf. The tests send its examples in requests.
var ExampleOf = exampleOf
