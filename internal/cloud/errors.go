package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"snap"
	"snap/api"
	"snap/internal/scim"
	"snap/internal/store"
)

// problem is the body of every error. Clients read it as an [api.Problem].
type problem struct {
	api.Problem
	after time.Duration // how long to wait before the next attempt; 0 is the status's default
}

// Error implements huma's error interface, as do GetStatus and ContentType.
func (p *problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *problem) GetStatus() int { return p.Status }

// ContentType returns the media type of RFC 9457.
func (p *problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders returns the headers that go with the status.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="snapcloud"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", seconds(cmp.Or(p.after, time.Second)))
	case http.StatusTooManyRequests:
		h.Set("Retry-After", seconds(cmp.Or(p.after, time.Minute)))
	}
	return h
}

// seconds formats a duration for Retry-After: in whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// problemOf converts any error to the problem that is sent. An error that is not a *snap.Error
// becomes unavailable if the database failed or the request was canceled. Otherwise it becomes
// internal: the request's log line has the error, and the client gets only the request's ID.
func problemOf(ctx context.Context, o *outages, err error) *problem {
	e, ok := errors.AsType[*snap.Error](err)
	if !ok {
		e = &snap.Error{Code: snap.CodeInternal, Cause: err}
		if store.Unavailable(err) {
			o.failed(ctx, database, err)
			e = store.ErrUnavailable(err)
		}
		if ctx.Err() != nil {
			e = &snap.Error{Code: snap.CodeUnavailable, Detail: "the request was canceled before it was done",
				Cause: err}
		}
	}
	if e.Code == snap.CodeInternal {
		if !noteError(ctx, err) {
			o.log.ErrorContext(ctx, "request failed", "error", err)
		}
		e = &snap.Error{
			Code:   snap.CodeInternal,
			Detail: "an unexpected error occurred in the service",
			Hint:   "try again; if it happens again, give the operator the request ID",
		}
	}
	info := e.Code.Info()
	if info.Status == 0 { // a code of the command line, which the service never sends
		info = snap.CodeInternal.Info()
	}
	return &problem{after: e.RetryAfter, Problem: api.Problem{
		Type:      e.Code.Type(),
		Title:     info.Title,
		Status:    info.Status,
		Detail:    e.Error(),
		Code:      e.Code,
		Hint:      e.Hint,
		RequestID: requestID(ctx),
		Errors:    e.Fields,
	}}
}

// writeError responds with an error, for code that is not a handler of huma.
func (s *Service) writeError(w http.ResponseWriter, r *http.Request, err error) {
	if strings.HasPrefix(r.URL.Path, scim.Prefix) {
		s.writeSCIMError(w, r, err)
		return
	}
	p := problemOf(r.Context(), s.telemetry.outages, err)
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p.Problem)
}

// useOwnErrors makes huma use our form of errors and match fields by their exact names only. The
// hooks are global variables of huma, so they are set only once.
var useOwnErrors = sync.OnceFunc(func() {
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaProblem(context.Background(), status, msg, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return humaProblem(ctx.Context(), status, msg, errs)
	}
})

// humaProblem converts the errors that huma found in a request's input.
func humaProblem(ctx context.Context, status int, msg string, errs []error) *problem {
	e := &snap.Error{Code: snap.CodeInternal, Detail: msg}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		e.Code = snap.CodeTooLarge
	case status == http.StatusUnsupportedMediaType:
		e.Code, e.Detail, e.Hint = snap.CodeMediaType, "", "send application/json"
	case status == 0 || status >= 400 && status < 500:
		e.Code, e.Detail = snap.CodeInvalid, "the request is not valid: "+msg
	}
	for _, err := range errs {
		field := snap.FieldError{Detail: fmt.Sprint(err)}
		if d, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			field = snap.FieldError{Field: strings.TrimPrefix(d.Location, "body."), Detail: d.Message}
		}
		e.Fields = append(e.Fields, field)
	}
	if len(e.Fields) > 0 && e.Code == snap.CodeInvalid {
		e.Detail = strings.TrimPrefix(fmt.Sprintf("%s: %s", e.Fields[0].Field, e.Fields[0].Detail), ": ")
	}
	return problemOf(ctx, newOutages(slog.Default(), time.Now), e)
}
