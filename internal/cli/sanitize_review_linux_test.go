package cli

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"snap"
)

// TestStoppedReviewRestoresTheTerminal: when a review is stopped while it waits for a key, the
// terminal gets its former settings back.
func TestStoppedReviewRestoresTheTerminal(t *testing.T) {
	t.Parallel()
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
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		_, err := a.key(ctx)
		stopped <- err
	}()
	for reflect.DeepEqual(state(), before) {
		runtime.Gosched()
	}
	stop()
	if err := <-stopped; snap.CodeOf(err) != snap.CodeInterrupted {
		t.Error(err)
	}
	if !reflect.DeepEqual(state(), before) {
		t.Error("the terminal still has the settings of the review")
	}
}
