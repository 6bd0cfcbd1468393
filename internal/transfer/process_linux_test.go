package transfer_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"snap/internal/servertest"
)

// process is a child process. It keeps the first line of output.
type process struct {
	cmd   *exec.Cmd
	first chan string
	ended chan struct{}
	ok    bool
}

// startProcess runs a command, which is ended with the test at the latest.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, first: make(chan string, 1), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == 0 {
				p.first <- strings.TrimSpace(lines.Text())
			}
		}
		close(p.first)
		p.ok = cmd.Wait() == nil
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it has already ended
	<-p.ended
}

// awaitLine returns the first line of output.
func (p *process) awaitLine(t testing.TB) string {
	t.Helper()
	select {
	case line, ok := <-p.first:
		if !ok {
			t.Fatal("the process ended without output")
		}
		return line
	case <-time.After(servertest.Patience):
		t.Fatal("the process printed nothing")
	}
	return ""
}

// endsWithin reports whether the process ends by itself in this time.
func (p *process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// wait reports whether the process succeeded.
func (p *process) wait() bool {
	<-p.ended
	return p.ok
}

// line returns the first line of output of a process that has ended.
func (p *process) line() string { return <-p.first }
