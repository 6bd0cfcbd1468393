package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"snap"
)

// TestStoppedPromptRestoresTheTerminal: when a review or a prompt for a passphrase is stopped while
// it waits for a key, the terminal gets its former settings back.
func TestStoppedPromptRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*app) error{
		"review":     func(a *app) error { return second(a.key(a.ctx)) },
		"passphrase": func(a *app) error { return second(a.passphrase()("id_ed25519")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stoppedPromptRestores(t, wait)
		})
	}
}

func second[T any](_ T, err error) error { return err }

func stoppedPromptRestores(t *testing.T, wait func(*app) error) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs /dev/ptmx: ", err)
	}
	defer keyboard.Close()
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(terminal.Fd())
	state := func() *term.State {
		s, err := term.GetState(fd)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := state()
	a, _ := asking(terminal)
	var stop context.CancelFunc
	a.ctx, stop = context.WithCancel(t.Context())
	a.io.Err = io.Discard
	stopped := make(chan error, 1)
	go func() { stopped <- wait(a) }()
	for reflect.DeepEqual(state(), before) {
		select {
		case err := <-stopped:
			t.Fatalf("the prompt ended before it changed the terminal: %v", err)
		default:
			runtime.Gosched()
		}
	}
	stop()
	if err := <-stopped; snap.CodeOf(err) != snap.CodeInterrupted {
		t.Error(err)
	}
	if !reflect.DeepEqual(state(), before) {
		t.Error("the terminal still has the settings of the prompt")
	}
}
