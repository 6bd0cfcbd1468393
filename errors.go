package snap

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// Code names a kind of failure. Codes are stable: scripts and clients act on them, and the service
// sends them unchanged.
type Code string

// The codes. [Codes] gives the HTTP status and exit code of each.
const (
	CodeUsage                   Code = "usage"
	CodeInvalid                 Code = "invalid"
	CodeUnauthenticated         Code = "unauthenticated"
	CodeNotSignedIn             Code = "not_signed_in"
	CodeForbidden               Code = "forbidden"
	CodeUserAttributionRequired Code = "user_attribution_required"
	CodePolicy                  Code = "policy_refused"
	CodeConfirm                 Code = "confirmation_required"
	CodeNotFound                Code = "not_found"
	CodeOrganizationNotFound    Code = "organization_not_found"
	CodeGroupNotFound           Code = "group_not_found"
	CodeMethodNotAllowed        Code = "method_not_allowed"
	CodeConflict                Code = "conflict"
	CodeUploadIncomplete        Code = "upload_incomplete"
	CodeChecksumMismatch        Code = "checksum_mismatch"
	CodeTooLarge                Code = "too_large"
	CodeMediaType               Code = "unsupported_media_type"
	CodeRateLimited             Code = "rate_limited"
	CodeStorageFull             Code = "storage_full"
	CodeQuota                   Code = "quota_exceeded"
	CodeUnavailable             Code = "unavailable"
	CodeVerifying               Code = "still_verifying"
	CodeUnreachable             Code = "unreachable"
	CodeCorrupt                 Code = "corrupt_snapshot"
	CodeNoIdentity              Code = "identity_missing"
	CodeNoTool                  Code = "tool_missing"
	CodeDatabase                Code = "database_error"
	CodeInterrupted             Code = "interrupted"
	CodeInternal                Code = "internal"
)

// Exit codes of snapcli and snapcloud, as documented in docs/errors.md.
const (
	ExitOK          = 0
	ExitInternal    = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitNotSignedIn = 4
	ExitForbidden   = 5
	ExitConflict    = 6
	ExitUnreachable = 7
	ExitInterrupted = 130
)

// CodeInfo is one row of the error table.
type CodeInfo struct {
	Code   Code
	Status int    // HTTP status; 0 when the service never sends the code
	Exit   int    // exit code of the programs
	Title  string // the meaning, in a few words
}

// Codes returns the error table, in the order in which it is documented.
func Codes() []CodeInfo {
	return []CodeInfo{
		{CodeUsage, 0, ExitUsage, "the command or its flags are not valid"},
		{CodeInvalid, http.StatusBadRequest, ExitUsage, "the input is not valid"},
		{CodeUnauthenticated, http.StatusUnauthorized, ExitNotSignedIn,
			"the credential is missing, wrong, expired or revoked"},
		{CodeNotSignedIn, 0, ExitNotSignedIn, "there is no login session or API key"},
		{CodeForbidden, http.StatusForbidden, ExitForbidden, "the caller is not allowed to do this"},
		{CodeUserAttributionRequired, http.StatusForbidden, ExitForbidden,
			"the action needs a user, and the credential is an organization-level key"},
		{CodePolicy, http.StatusForbidden, ExitForbidden, "the organization's policy forbids this"},
		{CodeConfirm, http.StatusPreconditionRequired, ExitUsage,
			"the organization's policy asks for a confirmation, and none was given"},
		{CodeNotFound, http.StatusNotFound, ExitNotFound, "it does not exist, or the caller has no access to it"},
		{CodeOrganizationNotFound, http.StatusNotFound, ExitNotFound, "no organization has this slug"},
		{CodeGroupNotFound, http.StatusNotFound, ExitNotFound, "the organization has no such group"},
		{CodeMethodNotAllowed, http.StatusMethodNotAllowed, ExitInternal, "the path does not support this method"},
		{CodeConflict, http.StatusConflict, ExitConflict, "it conflicts with existing data"},
		{CodeUploadIncomplete, http.StatusConflict, ExitConflict, "parts of the upload are missing"},
		{CodeChecksumMismatch, http.StatusUnprocessableEntity, ExitConflict,
			"the bytes do not have the announced checksum"},
		{CodeTooLarge, http.StatusRequestEntityTooLarge, ExitUsage, "it is larger than the limit"},
		{CodeMediaType, http.StatusUnsupportedMediaType, ExitInternal,
			"the body has an unsupported media type"},
		{CodeRateLimited, http.StatusTooManyRequests, ExitUnreachable, "too many requests"},
		{CodeStorageFull, http.StatusInsufficientStorage, ExitInternal, "there is not enough storage space"},
		{CodeQuota, http.StatusForbidden, ExitForbidden, "the user's or the organization's quota is used up"},
		{CodeUnavailable, http.StatusServiceUnavailable, ExitUnreachable,
			"the service, or another service that it needs, is not available"},
		{CodeVerifying, http.StatusServiceUnavailable, ExitUnreachable,
			"the bytes have arrived and are still being verified"},
		{CodeUnreachable, 0, ExitUnreachable, "the service cannot be reached"},
		{CodeCorrupt, 0, ExitInternal, "the snapshot file is damaged or not a snapshot"},
		{CodeNoIdentity, 0, ExitForbidden, "the snapshot is encrypted and no key on this machine opens it"},
		{CodeNoTool, 0, ExitInternal, "a required database program is not installed"},
		{CodeDatabase, 0, ExitInternal, "the database refused the request or failed"},
		{CodeInterrupted, 0, ExitInterrupted, "interrupted"},
		{CodeInternal, http.StatusInternalServerError, ExitInternal, "an unexpected error occurred"},
	}
}

// Info returns the code's row of the table. For an unknown code it returns the row of CodeInternal.
func (c Code) Info() CodeInfo {
	rows := Codes()
	for _, row := range rows {
		if row.Code == c {
			return row
		}
	}
	return rows[len(rows)-1]
}

// Type returns the URN that names the code as a problem type (RFC 9457).
func (c Code) Type() string { return "urn:snapcloud:error:" + strings.ReplaceAll(string(c), "_", "-") }

// FieldError describes what is wrong with one field of the input. Field is its path, such as
// "expires_at".
type FieldError struct {
	Field  string `json:"field" doc:"path of the field"`
	Detail string `json:"detail" doc:"what is wrong with it"`
}

// Error is a failure to show to a person. Detail says what happened in one sentence, lower case and
// without a period. Hint, if any, says what to do next. Neither contains a secret or anything
// internal. Cause is for logs and is never sent.
type Error struct {
	Code      Code
	Detail    string
	Hint      string
	Fields    []FieldError
	RequestID string // of the failed request, if the service responded
	// RetryAfter is how long to wait before the next attempt, for rate_limited and unavailable. The
	// service sends it as the header Retry-After. Zero means the code's default.
	RetryAfter time.Duration
	Cause      error
}

// Error returns the detail, or the code's title.
func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Code.Info().Title
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an *Error of the same code, so that errors.Is(err, ErrNotFound) does
// not depend on the detail.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ErrNotFound is the error both for a snapshot that does not exist and for one that the caller is
// not allowed to see. It is the same in both cases, so that they cannot be distinguished.
var ErrNotFound = &Error{
	Code:   CodeNotFound,
	Detail: "no such snapshot, or you have no access to it",
	Hint:   "list the snapshots that you can see: `snapcli cloud snapshots`",
}

// ErrUnauthenticated is the error for every credential that is missing, malformed, unknown, expired
// or revoked.
var ErrUnauthenticated = &Error{
	Code:   CodeUnauthenticated,
	Detail: "the credential is missing, wrong, expired or revoked",
	Hint:   "sign in again with `snapcli login`, or check cloud.api_key",
}

// CodeOf returns the code of the first *Error in err's chain, internal if there is none, and "" if
// err is nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Usage returns an error for an invalid command line.
func Usage(detail, hint string) *Error { return &Error{Code: CodeUsage, Detail: detail, Hint: hint} }

// Invalid returns an error for invalid input.
func Invalid(detail, hint string) *Error {
	return &Error{Code: CodeInvalid, Detail: detail, Hint: hint}
}

// Forbidden returns an error for an action that the caller is not allowed to take.
func Forbidden(detail, hint string) *Error {
	return &Error{Code: CodeForbidden, Detail: detail, Hint: hint}
}
