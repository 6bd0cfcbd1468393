// Command snapcloud is the service where teams share database snapshots.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"snap"
	"snap/internal/operator"
)

// main cancels the context on SIGTERM and Ctrl-C. cloud.Run then gives running requests 20 seconds
// to finish.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(operator.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ(), snap.Version()))
}
