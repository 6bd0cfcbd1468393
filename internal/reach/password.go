package reach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"snap"
	"snap/internal/engine"
)

// Command is a program that prints a password. It runs without a shell.
type Command struct {
	Setting string   // its key in the configuration, for messages
	Words   []string // the program and its arguments
}

// The limits of a run.
const (
	commandTime = 30 * time.Second
	maxPassword = 64 << 10
)

// Run runs the program and returns the line that it prints. Errors contain neither its output nor
// its arguments, which may be secret.
func (c Command) Run(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd, _ := engine.Program(limited, c.Words[0], c.Words[1:]...)
	cmd.WaitDelay = time.Second // a program that ignores the interrupt is killed after this time
	out := &cappedBuffer{}
	cmd.Stdout = out
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(out.b), "\n"), "\r")
	switch {
	case limited.Err() != nil:
		return "", c.failed(fmt.Sprintf("did not end within %s", commandTime), nil)
	case err != nil:
		return "", c.failed("failed: "+reason(err), err)
	case out.over:
		return "", c.failed(fmt.Sprintf("printed more than %d bytes", maxPassword), nil)
	case password == "":
		return "", c.failed("printed nothing", nil)
	case strings.ContainsAny(password, "\n\r\x00"):
		return "", c.failed("printed more than one line", nil)
	}
	return password, nil
}

// reason describes an error without the program's arguments.
func reason(err error) string {
	var exit *exec.ExitError
	var start *exec.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &exit):
		return exit.String()
	case errors.As(err, &start):
		return start.Err.Error()
	case errors.As(err, &file):
		return file.Err.Error()
	}
	return err.Error()
}

func (c Command) failed(how string, cause error) error {
	return &snap.Error{Code: snap.CodeDatabase,
		Detail: fmt.Sprintf("the program %s, which prints the password, %s", filepath.Base(c.Words[0]), how),
		Hint:   "run it in a terminal to see its messages; it is " + c.Setting + " in the configuration", Cause: cause}
}

// cappedBuffer keeps the first maxPassword bytes of an output.
type cappedBuffer struct {
	b    []byte
	over bool
}

// Write implements io.Writer.
func (c *cappedBuffer) Write(p []byte) (int, error) {
	room := min(len(p), maxPassword-len(c.b))
	c.over = c.over || room < len(p)
	c.b = append(c.b, p[:room]...)
	return len(p), nil
}
