package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snap"
)

// keepRunning keeps the service and Alice's web UI running until ctx ends. It shows how to sign in.
func (w *world) keepRunning(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	w.out.chapter("Look around")
	args := []string{"serve", "--listen", address}
	w.out.command(alice, "snapcli", args)
	page, err := w.start(alice, w.out.file, "snapcli", args...)
	if err != nil {
		return err
	}
	defer page.stop()
	waiting, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := page.listening(waiting, address); err != nil {
		return fmt.Errorf("snapcli serve: %w", err)
	}
	w.out.line("\nthe service        %s", w.url)
	w.out.line("the API's page     %s/docs", w.url)
	w.out.line("sign in there as   with the password")
	for _, p := range everybody() {
		w.out.line("  %-16s %-15s %s of %s", p.email(), p.password(), p.role, p.org)
	}
	w.out.line("to be Alice in another terminal, run:")
	w.out.line("  export PATH=%s:$PATH", snap.ShellWord(w.bin))
	w.out.line("  export SNAPCLI_CONFIG_DIR=%s/config SNAPCLI_DATA_DIR=%[1]s/data", snap.ShellWord(w.home(alice)))
	w.out.line("%s", bold.Render("Press Ctrl-C to stop everything and remove its files."))
	select {
	case <-ctx.Done():
		return nil
	case <-page.ended:
		return errors.Join(errors.New("snapcli serve ended"), page.err)
	case <-w.service.ended:
		return errors.Join(errors.New("snapcloud ended"), w.service.err)
	}
}
