// Command snapcli takes, masks, shares and loads database snapshots.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"snap/internal/cli"
)

// main cancels the context on SIGTERM and Ctrl-C. The running command then cleans up and ends.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Stdio(), os.Getenv))
}
