package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"charm.land/huh/v2"

	"snap"
	"snap/internal/command"
	"snap/internal/disk"
)

// report prints an error to standard error and returns its exit code. The form is:
//
//	snapcli: <detail>
//	  hint: <what to do>
//
// With --json, the form is one object, {"error": {"code", "detail", "hint", "exit"}}. report prints
// each of several joined errors; the code of the first one determines the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return snap.ExitOK
	}
	if run, ok := errors.AsType[exited](err); ok { // the command has already reported the error
		return int(run)
	}
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, huh.ErrUserAborted) {
		err = interrupted(err)
	}
	exit := 0
	for _, one := range split(err) {
		e := asError(one)
		if exit == 0 {
			exit = e.Code.Info().Exit
		}
		a.log.Debug("failed", "code", e.Code, "cause", causes(one))
		if a.flags.json || a.jsonErrors {
			a.writeErrorJSON(e)
		} else {
			a.writeError(e)
		}
	}
	return exit
}

// interrupted returns the [snap.Error] of an interruption if it has a detail or a hint, otherwise a
// plain error with code interrupted.
func interrupted(err error) error {
	if e, ok := errors.AsType[*snap.Error](err); ok && e.Code == snap.CodeInterrupted && e.Detail+e.Hint != "" {
		return e
	}
	return &snap.Error{Code: snap.CodeInterrupted, Cause: err}
}

// stopped returns an error of code interrupted if the context of an action ended. The argument what
// names the action, and hint describes the state that it left. Other errors are returned unchanged.
func stopped(ctx context.Context, err error, what, hint string) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &snap.Error{Code: snap.CodeInterrupted, Detail: what + " was interrupted", Hint: hint, Cause: err}
}

// split returns the errors joined by errors.Join, or the error alone.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// asError converts any error to a [snap.Error] and describes the causes that a user can fix.
func asError(err error) *snap.Error {
	e := command.Fault(err)
	switch {
	case e.Code != snap.CodeInternal:
		return e
	case disk.Full(err):
		return &snap.Error{Code: snap.CodeStorageFull, Detail: err.Error(),
			Hint: "free some space, or set SNAPCLI_DATA_DIR to a folder on a larger disk, and run the command again"}
	case errors.Is(err, os.ErrPermission):
		return &snap.Error{Code: snap.CodeForbidden, Detail: err.Error(),
			Hint: "check the owner and permissions of that file or folder"}
	}
	if e.Hint == "" {
		e.Hint = "run the command again with --debug to see more"
	}
	return e
}

func (a *app) writeError(e *snap.Error) {
	a.say("%s %s", raw(a.paintErr(red, "snapcli:")), a.secrets.redact(e.Error()))
	for _, f := range e.Fields {
		a.say("  %s: %s", f.Field, f.Detail)
	}
	if e.Hint != "" {
		a.say("  %s %s", raw(a.paintErr(faint, "hint:")), e.Hint)
	}
	if e.RequestID != "" && (a.flags.debug || forSupport(e.Code)) {
		a.say("  %s %s", raw(a.paintErr(faint, "request:")), e.RequestID)
	}
}

// forSupport reports whether a failure should be reported to the service's operator, who can find
// it by the request ID.
func forSupport(c snap.Code) bool {
	exit := c.Info().Exit
	return exit == snap.ExitInternal || exit == snap.ExitUnreachable
}

// errorObject is the JSON form of an error.
type errorObject struct {
	Error struct {
		Code      snap.Code         `json:"code"`
		Detail    string            `json:"detail"`
		Hint      string            `json:"hint,omitempty"`
		Exit      int               `json:"exit"`
		Fields    []snap.FieldError `json:"fields,omitempty"`
		RequestID string            `json:"request_id,omitempty"`
	} `json:"error"`
}

func (a *app) writeErrorJSON(e *snap.Error) {
	var out errorObject
	out.Error.Code, out.Error.Detail, out.Error.Hint = e.Code, a.secrets.redact(e.Error()), e.Hint
	out.Error.Exit, out.Error.Fields, out.Error.RequestID = e.Code.Info().Exit, e.Fields, e.RequestID
	_ = encodeJSON(a.io.Err, out, "  ") // a failure to write the error cannot be reported anywhere
}

// causes formats the chain of wrapped errors for the log.
func causes(err error) string {
	var chain []string
	for ; err != nil; err = errors.Unwrap(err) {
		chain = append(chain, err.Error())
	}
	return strings.Join(chain, " <- ")
}

// noSuch replaces a not-found error with one that names the missing object, such as a group.
func noSuch(err error, what, id, hint string) error {
	if snap.CodeOf(err) != snap.CodeNotFound {
		return err
	}
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no %s %q", what, id), Hint: hint,
		Cause: err}
}

// didYouMean returns a hint that names the candidate closest to a mistyped word. If no candidate is
// close, it returns the argument otherwise.
func didYouMean(typed string, candidates []string, otherwise string) string {
	if c := snap.Closest(typed, candidates); c != "" {
		return "did you mean " + c + "?"
	}
	return otherwise
}
