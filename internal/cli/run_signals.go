package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
)

// signalRelay passes to a running command the signals that this process receives. They do not end
// this process.
type signalRelay struct {
	signals chan os.Signal
	done    chan struct{}
}

// relaySignals catches signals until stop is called, and holds them until pass is called. Signals
// that this process ignores, such as SIGHUP under nohup, stay ignored here and in the command.
func relaySignals() *signalRelay {
	r := &signalRelay{signals: make(chan os.Signal, 16), done: make(chan struct{})}
	signal.Notify(r.signals, slices.DeleteFunc(slices.Clone(relayedSignals), signal.Ignored)...)
	return r
}

// pass sends the caught signals to a process, except those that the terminal itself sends to the
// process.
func (r *signalRelay) pass(to *os.Process, terminal bool) {
	go func() {
		for {
			select {
			case s := <-r.signals:
				if !terminal || !slices.Contains(fromTerminal, s) {
					_ = to.Signal(s) // the process may have ended
				}
			case <-r.done:
				return
			}
		}
	}()
}

func (r *signalRelay) stop() {
	signal.Stop(r.signals)
	close(r.done)
}

// fromTerminal are the signals that keys such as Ctrl-C send.
var fromTerminal = []os.Signal{os.Interrupt, syscall.SIGQUIT}

// exitCode returns the exit code of a command as a shell reports it: 128 plus the signal's number
// if a signal ended it.
func exitCode(e *exec.ExitError) int {
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return e.ExitCode()
}
