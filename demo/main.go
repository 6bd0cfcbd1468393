// Demo shows the whole product at work. It starts bin/snapcloud with two organizations on SQLite
// and a folder, and creates a sample database. Then the people of the organizations work with real
// bin/snapcli commands: build, sanitize, sign in, push, list, share, pull, load, unshare. Every
// command is shown with its output, and every promise is checked. The demo ends with exit code 1 at
// the first promise that does not hold.
//
// The demo keeps its files in a temporary folder, which it removes at the end. It does not build
// the programs: `make demo` builds and runs everything. After the story, the service and the web UI
// keep running until Ctrl-C, unless --exit is given.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the demo at once
	os.Exit(run(ctx))
}

// run is the whole demo. It returns the exit code.
func run(ctx context.Context) int {
	exit := flag.Bool("exit", false, "end after the story; do not keep the service running")
	bin := flag.String("bin", "bin", "folder of snapcli and snapcloud")
	flag.Parse()
	out := newScreen(os.Stdout)
	programs, err := filepath.Abs(*bin)
	if err != nil {
		out.fail(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "snap-demo-")
	if err != nil {
		out.fail(err)
		return 1
	}
	defer os.RemoveAll(dir)
	w, err := newWorld(dir, programs, out)
	if err != nil {
		out.fail(err)
		return 1
	}
	defer w.end()
	if err := w.play(ctx); err != nil {
		if ctx.Err() != nil {
			return 130
		}
		out.fail(err)
		out.line("the last lines of the service's log:\n%s", w.serviceLog())
		return 1
	}
	if *exit {
		return 0
	}
	if err := w.keepRunning(ctx); err != nil {
		out.fail(fmt.Errorf("keep the service running: %w", err))
		return 1
	}
	return 0
}
