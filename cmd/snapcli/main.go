// Command snapcli takes, masks, shares and loads database snapshots.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"snap/internal/cli"
)

// main cancels the context on SIGTERM and Ctrl-C. The running command then cleans up and ends. If a
// shell started snapcli in the background with SIGINT ignored, Ctrl-C does not end it.
func main() {
	caught := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM}, signal.Ignored)
	ctx, stop := signal.NotifyContext(context.Background(), caught...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Stdio(), os.Getenv))
}
