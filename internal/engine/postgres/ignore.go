package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"snap"
	"snap/internal/engine"
)

// unknownSetting is a setting that pg_restore 17 and later set in every session. Servers before 17
// do not know it and refuse only the statement that sets it.
const unknownSetting = "transaction_timeout"

func setsUnknown(t tool, server int) bool { return major(t.version) >= 17 && server < 17 }

// errorFilter receives the standard error of a pg_restore that does not stop at errors. It forwards
// the output to stderr, without the errors about unknownSetting, and calls failed at the first
// other error.
type errorFilter struct {
	stderr *engine.Stderr
	failed func()
	found  bool   // failed was called
	line   []byte // the beginning of a line whose end has not been written yet
}

// Write implements io.Writer.
func (i *errorFilter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		i.line = append(i.line, line...)
		if rest = after; !whole {
			break
		}
		i.see(string(i.line) + "\n")
		i.line = i.line[:0]
	}
	return len(p), nil
}

func (i *errorFilter) see(line string) {
	if strings.Contains(line, unknownSetting) || strings.Contains(line, "warning: errors ignored on restore") {
		return
	}
	_, _ = i.stderr.Write([]byte(line))
	if !i.found && strings.Contains(line, "error:") {
		i.found = true
		i.failed()
	}
}

// onlyIgnored reports whether pg_restore completed and exited with status 1 only because of ignored
// errors.
func (i *errorFilter) onlyIgnored(err error) bool {
	var exit *exec.ExitError
	return !i.found && errors.As(err, &exit) && exit.ExitCode() == 1
}

// olderServer adds the likely reason to a failure if the destination's server is older than the
// server that the snapshot was built from.
func olderServer(err error, built, server string) error {
	var failed *snap.Error
	if major(built) <= major(server) || !errors.As(err, &failed) || failed.Code != snap.CodeDatabase {
		return err
	}
	e := *failed
	e.Detail = fmt.Sprintf("the snapshot is from PostgreSQL %s, and the destination's server, %s, is older and "+
		"does not support all of it: %s", built, server, failed.Detail)
	e.Hint = fmt.Sprintf("load it into a server of version %d or newer; nothing was replaced", major(built))
	return &e
}
