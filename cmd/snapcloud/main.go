// Command snapcloud is the service where teams share database snapshots.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"snap/internal/operator"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(operator.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ(), version))
}
