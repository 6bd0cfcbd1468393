package blob

import (
	"encoding/json"
	"errors"
	"net/http"

	"snap"
)

// writeProblem responds with an error in the API's form (RFC 9457). An error that is not a
// *snap.Error is reported as internal, without details.
func writeProblem(w http.ResponseWriter, err error) {
	e := &snap.Error{Code: snap.CodeInternal}
	errors.As(err, &e)
	info := e.Code.Info()
	if info.Status == 0 {
		info = snap.CodeInternal.Info()
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if info.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(info.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": info.Code.Type(), "title": info.Title, "status": info.Status,
		"detail": e.Error(), "code": info.Code, "hint": e.Hint,
	})
}
