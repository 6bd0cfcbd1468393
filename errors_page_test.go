package snap_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"snap"
)

var update = flag.Bool("update", false, "write the generated pages below docs/")

const errorsPage = "docs/errors.md"

// TestErrorsPage compares docs/errors.md with the error table. Update the page with `make
// generate`.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	want := renderErrors()
	if *update {
		if err := os.WriteFile(errorsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(errorsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table in errors.go says; run `make generate`", errorsPage)
	}
}

// TestCodes checks the table itself: no code is in it twice, every exit code is documented as that
// of a failure, and every status is one of an error.
func TestCodes(t *testing.T) {
	t.Parallel()
	exits := map[int]bool{}
	for _, e := range exitCodes() {
		exits[e.code] = true
	}
	seen := map[snap.Code]bool{}
	for _, row := range snap.Codes() {
		if seen[row.Code] {
			t.Errorf("%s is in the table twice", row.Code)
		}
		seen[row.Code] = true
		if !exits[row.Exit] || row.Exit == snap.ExitOK {
			t.Errorf("%s has the exit code %d, which is not a documented failure", row.Code, row.Exit)
		}
		if row.Status != 0 && (row.Status < 400 || row.Status > 599) {
			t.Errorf("%s has the status %d", row.Code, row.Status)
		}
		if row.Title == "" || row.Code.Info() != row {
			t.Errorf("%s: Info gives %v", row.Code, row.Code.Info())
		}
	}
	if got := snap.Code("never heard of").Info().Code; got != snap.CodeInternal {
		t.Errorf("an unknown code is taken for %s, not internal", got)
	}
}

type exitCode struct {
	code int
	says string
}

func exitCodes() []exitCode {
	return []exitCode{
		{snap.ExitOK, "success"},
		{snap.ExitInternal, "an unexpected error occurred, or a database or its tools failed"},
		{snap.ExitUsage, "the command or its input is not valid"},
		{snap.ExitNotFound, "it does not exist, or you have no access to it"},
		{snap.ExitNotSignedIn, "not signed in, or the credential is not valid"},
		{snap.ExitForbidden, "you are not allowed to do this"},
		{snap.ExitConflict, "it conflicts with existing data"},
		{snap.ExitUnreachable, "the service cannot be reached, or is overloaded"},
		{snap.ExitInterrupted, "interrupted with Ctrl-C"},
	}
}

func renderErrors() string {
	var b strings.Builder
	b.WriteString(`# Errors and exit codes

<!-- Written by ` + "`make generate`" + ` from errors.go. -->

Every failure has a code. Codes are stable: check the code, not the text.
The service sends errors as RFC 9457 ` + "`application/problem+json`" + `:

` + "```json" + `
{
  "type": "urn:snapcloud:error:not-found",
  "title": "it does not exist, or the caller has no access to it",
  "status": 404,
  "detail": "no such snapshot, or you have no access to it",
  "code": "not_found",
  "hint": "list the snapshots that you can see: ` + "`snapcli cloud snapshots`" + `",
  "request_id": "..."
}
` + "```" + `

` + "`detail`" + ` says what happened, ` + "`hint`" + ` says what to do next, and ` + "`errors`" + ` names the fields of
invalid input. Something that does not exist and something that you have no access to
get the same response, except for the request ID.

snapcli writes the detail and the hint to standard error. With ` + "`--json`" + `, it writes one
object instead: ` + "`{\"error\": {\"code\", \"detail\", \"hint\", \"exit\"}}`" + `.

## Exit codes

| exit | meaning |
|---|---|
`)
	for _, e := range exitCodes() {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.says)
	}
	b.WriteString("\n## Codes\n\nCodes without a status come only from snapcli, never from the service.\n\n| " +
		"code | HTTP status | exit | meaning |\n|---|---|---|---|\n")
	for _, row := range snap.Codes() {
		status := "-"
		if row.Status != 0 {
			status = fmt.Sprint(row.Status)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", row.Code, status, row.Exit, row.Title)
	}
	return b.String()
}
