package scim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"snap"
)

// Error is a mistake in a request, with its scimType (RFC 7644 section 3.12).
type Error struct {
	Type  string // such as invalidFilter
	cause *snap.Error
}

// Error implements the error interface.
func (e *Error) Error() string { return e.cause.Error() }

// Unwrap returns the underlying [snap.Error].
func (e *Error) Unwrap() error { return e.cause }

func invalid(kind, format string, args ...any) error {
	return &Error{kind, &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf(format, args...)}}
}

// WriteError responds to a request with an error in the form of RFC 7644 section 3.12. detail is
// for the provider's administrator.
func WriteError(w http.ResponseWriter, status int, detail string, err error) {
	body := map[string]any{"schemas": []string{schemaError}, "status": strconv.Itoa(status), "detail": detail}
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok:
		body["scimType"] = e.Type
	case status == http.StatusConflict:
		body["scimType"] = "uniqueness"
	case status == http.StatusBadRequest:
		body["scimType"] = "invalidValue"
	}
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/scim+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client is gone
}
