package cli

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"snap/api"
	"snap/internal/command"
	"snap/internal/login"
)

// IO holds the streams of one run of the program and records which of them are terminals.
type IO struct {
	In       io.Reader
	Out, Err io.Writer

	InTerminal, OutTerminal, ErrTerminal bool
	Width                                func() int // columns of the terminal; 0 or less is unknown
}

// Stdio returns the process's own streams.
func Stdio() IO {
	terminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: terminal(os.Stdin), OutTerminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr),
		Width: func() int {
			width, _, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0
			}
			return width
		},
	}
}

// Main runs the program with these arguments (without its name) and returns its exit code (see
// [snap.Codes]). It ends soon after ctx does, with exit code 130.
func Main(ctx context.Context, args []string, stdio IO, env func(string) string) int {
	return run(ctx, args, stdio, env, defaultTimeouts())
}

// run is like [Main], with the given timeouts.
func run(ctx context.Context, args []string, stdio IO, env func(string) string, t timeouts) int {
	direct, out := stdio.Out, command.NewResult(stdio.Out)
	stdio.Out = out
	a := &app{ctx: ctx, stdout: direct, io: stdio, env: env, now: time.Now, log: slog.New(slog.DiscardHandler),
		timeouts: t}
	a.jsonErrors = asksForJSON(args)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.Err()
	}
	a.sweepAfter(ctx)
	return a.report(ctx, err)
}

// app is the state that all commands of one run of the program share.
type app struct {
	ctx        context.Context // of the run, for callbacks that get no context
	io         IO
	env        func(string) string
	now        func() time.Time
	flags      globals
	log        *slog.Logger // writes to standard error with --debug, otherwise nowhere
	secrets    secrets      // values that no log line may contain
	timeouts   timeouts
	roots      *x509.CertPool // certificate authorities for the service; nil uses the system's
	sessions   *login.File    // the sessions of credentials.json, opened when first needed
	contacted  *api.Client    // the service, if this command connected to it
	stdout     io.Writer      // standard output itself, for the output of other programs
	jsonErrors bool           // the command line contains --json, even if it cannot be parsed
}

// globals are the flags that every command accepts: those of SPEC 4.5, and also --org and --utc.
// Only commands that print a result accept --json.
type globals struct {
	config string
	org    string
	debug  bool
	quiet  bool
	width  int
	utc    bool
	json   bool
}

// asksForJSON reports whether errors are written as JSON. It works on the raw arguments, because
// they may not parse.
func asksForJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--json", "--json=true":
			return true
		case "--":
			return false
		}
	}
	return false
}
