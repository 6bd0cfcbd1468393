package login_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"snap/internal/cloudtest"
	"snap/internal/login"
	"snap/internal/servertest"
)

// The environment of a child process: the cloud URL and the configuration
// directory whose session it refreshes again and again.
const (
	childURL = "SNAP_TEST_REFRESH_URL"
	childDir = "SNAP_TEST_REFRESH_DIR"
)

const (
	processes = 10
	refreshes = 15
)

func TestMain(m *testing.M) {
	if cloudURL := os.Getenv(childURL); cloudURL != "" {
		os.Exit(refreshAgain(cloudURL, os.Getenv(childDir)))
	}
	os.Exit(m.Run())
}

// refreshAgain is the child process. It writes a line before each refresh.
func refreshAgain(cloudURL, dir string) int {
	f := login.OpenFile(dir)
	for i := range refreshes {
		fmt.Println(i)
		if _, err := f.Refresh(context.Background(), cloudURL, http.DefaultClient); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// U9, T4, A1: ten processes refresh one session fifteen times each, and half of them are killed at any
// point. The session is never lost, the file is never damaged, and no partial files remain.
// SNAP_TEST_ROUNDS repeats the test.
func TestKilledProcessesLoseNoSession(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rounds, _ := strconv.Atoi(os.Getenv("SNAP_TEST_ROUNDS"))
	for range max(rounds, 2) {
		// The last request of a killed process is handled before the next process sends one. If it
		// were delayed until after the next two refreshes, it would look like that of a thief.
		d := newDeskNow(t, cloudtest.Options{InOrder: true})
		d.login("mia@acme.test")
		stop := d.readAllTheTime()
		var wg sync.WaitGroup
		for i := range processes {
			kill := -1
			if i%2 == 0 {
				kill = rand.IntN(refreshes)
			}
			wg.Go(func() { d.child(kill) })
		}
		wg.Wait()
		stop()
		f := login.OpenFile(d.dir)
		if _, err := f.Refresh(t.Context(), d.cloud.URL, http.DefaultClient); err != nil {
			t.Fatalf("the session was lost: %v", err)
		}
		s, ok, err := f.Session(d.cloud.URL)
		if err != nil || !ok || d.status(s.AccessToken) != http.StatusOK {
			t.Fatalf("the session does not work: %v, %v", ok, err)
		}
		left, err := filepath.Glob(filepath.Join(d.dir, ".*"))
		if err != nil || len(left) != 0 {
			t.Errorf("a killed process left %v, %v", left, err)
		}
	}
}

// child runs a child process and, unless kill is negative, kills it during its
// refresh of that number.
func (d *desk) child(kill int) {
	cmd := exec.CommandContext(d.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+d.cloud.URL, childDir+"="+d.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		d.t.Error(err)
		return
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == kill {
			linger()
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err != nil && kill < 0 {
		d.t.Errorf("a process that nobody killed failed: %v", err)
	}
}

// linger lets up to a few milliseconds pass, so that the kill hits the refresh at any place. It
// does not wait for anything.
func linger() {
	for range rand.IntN(2_000_000) {
		_ = rand.Uint32()
	}
}

// readAllTheTime reads the file repeatedly until it is stopped, and reports every read of an
// incomplete file.
func (d *desk) readAllTheTime() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, ok, err := login.OpenFile(d.dir).Session(d.cloud.URL); !ok || err != nil {
				d.t.Errorf("the file was not whole: %v, %v", ok, err)
				return
			}
			<-time.After(time.Millisecond)
		}
	})
	return func() { close(done); wg.Wait() }
}
