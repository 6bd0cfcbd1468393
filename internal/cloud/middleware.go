package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"snap"
	"snap/internal/loadcontrol"
	"snap/internal/store"
)

// requestInfo collects the fields of a request's log line.
type requestInfo struct {
	id     string
	caller snap.Caller
	err    error // the cause if the response is an internal error
}

type infoKey struct{}

// requestID returns the ID of the request, which is also in the response.
func requestID(ctx context.Context) string {
	if i, ok := ctx.Value(infoKey{}).(*requestInfo); ok {
		return i.id
	}
	return ""
}

// noteCaller records the caller for the log line.
func noteCaller(ctx context.Context, c snap.Caller) {
	if i, ok := ctx.Value(infoKey{}).(*requestInfo); ok {
		i.caller = c
	}
}

// noteError records an internal error for the log line. It returns false outside a request.
func noteError(ctx context.Context, err error) bool {
	i, ok := ctx.Value(infoKey{}).(*requestInfo)
	if ok {
		i.err = err
	}
	return ok
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// apiDeadline limits the time of a request that is not a transfer. The request's context ends
// earlier, after contextDeadline, so that there is time to send an error.
const (
	apiDeadline     = 60 * time.Second
	contextDeadline = 50 * time.Second
)

// wrap is the middleware of every request: it sets the request ID, a time limit and headers,
// recovers panics, and writes a log line and metrics. The log line names the route's pattern
// instead of the path, so it contains neither a query nor a download token.
func (s *Service) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		i := &requestInfo{id: r.Header.Get("X-Request-Id")}
		if !requestIDPattern.MatchString(i.id) {
			i.id = rand.Text()
		}
		w.Header().Set("X-Request-Id", i.id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// If the request also has a Content-Length, which net/http does not show, the
			// connection must be closed (RFC 9112 section 6.3).
			w.Header().Set("Connection", "close")
		}
		if !strings.HasPrefix(r.URL.Path, "/blobs/") {
			w.Header().Set("Cache-Control", "no-store") // assets override this
		}
		if classOf(r) != loadcontrol.Transfer {
			deadline := started.Add(apiDeadline)
			control := http.NewResponseController(w)
			control.SetReadDeadline(deadline)
			control.SetWriteDeadline(deadline)
			bounded, cancel := context.WithDeadline(r.Context(), started.Add(contextDeadline))
			defer cancel()
			r = r.WithContext(bounded)
		}
		r = mayUseReserve(r)
		ctx := snap.WithOrigin(r.Context(), snap.Origin{Address: s.address(r), RequestID: i.id})
		r = r.WithContext(context.WithValue(ctx, infoKey{}, i))
		ctx, endSpan := s.telemetry.tracing.request(r)
		r = r.WithContext(ctx)
		out := &loadcontrol.Response{ResponseWriter: w}
		s.telemetry.metrics.inFlight.Inc()
		defer s.telemetry.metrics.inFlight.Dec()
		defer func() {
			p := recover()
			aborted := p == http.ErrAbortHandler //nolint:errorlint // it is a panic's value
			if p != nil && !aborted {
				s.telemetry.metrics.panics.Inc()
				s.log.ErrorContext(r.Context(), "panic", "request_id", i.id, "panic", p, "stack", string(debug.Stack()))
				if out.Status == 0 {
					s.writeError(out, r, &snap.Error{Code: snap.CodeInternal})
				}
			}
			endSpan(s.observe(r, i, out, time.Since(started)), out.Status)
			if aborted {
				panic(p) // net/http breaks the connection
			}
		}()
		next.ServeHTTP(out, r)
	})
}

// mayUseReserve lets a request that takes access away use the database's reserve on a full disk.
func mayUseReserve(r *http.Request) *http.Request {
	if reducesAccess(r) {
		return r.WithContext(store.AllowReserve(r.Context()))
	}
	return r
}

func reducesAccess(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/unshare") ||
		strings.HasSuffix(r.URL.Path, "/sign-out"))
}

// observe records the metrics and the log line of a response, and returns the route that handled
// the request.
func (s *Service) observe(r *http.Request, i *requestInfo, out *loadcontrol.Response,
	took time.Duration) (route string) {
	route = cmp.Or(r.Pattern, "none")
	s.telemetry.metrics.recordRequest(route, out.Status, took)
	if strings.HasPrefix(route, "GET /blobs/") {
		s.telemetry.metrics.transferred.WithLabelValues("down").Add(float64(out.Bytes))
	}
	level := slog.LevelInfo
	if strings.HasSuffix(route, "/healthz") || strings.HasSuffix(route, "/readyz") {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("request_id", i.id), slog.String("route", route), slog.Int("status", out.Status),
		slog.Int64("bytes", out.Bytes), slog.Duration("took", took),
	}
	if i.caller.Principal() != 0 {
		attrs = append(attrs, slog.String("org", i.caller.Org.Slug),
			slog.String("credential", string(i.caller.Credential.Kind)))
	}
	if i.caller.User != nil {
		attrs = append(attrs, slog.String("user", i.caller.User.Email))
	}
	if id := traceID(r.Context()); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if i.err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.Any("error", i.err))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
	return route
}
