//go:build linux

package soak

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"snap/internal/cloud"
)

// The test program is a replica when these are set.
const (
	serveEnv = "SNAP_SOAK_SERVE" // its configuration
	everyEnv = "SNAP_SOAK_EVERY" // how often background work is done
)

func TestMain(m *testing.M) {
	if path := os.Getenv(serveEnv); path != "" {
		os.Exit(serve(path))
	}
	os.Exit(m.Run())
}

// serve is `snapcloud serve`, with background work that is due more often.
func serve(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	every, err := time.ParseDuration(os.Getenv(everyEnv))
	if err == nil {
		var config cloud.Config
		if config, err = cloud.LoadConfig(path, nil); err == nil {
			err = cloud.Run(ctx, config, cloud.Options{CollectEvery: every}, func(net.Addr) {})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server that is killed, stopped, frozen and started again.
type process struct {
	name    string
	command func() *exec.Cmd
	log     string // path of its output

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{}
	err     error // of the one that ended last
	started time.Time
}

func newProcess(t *testing.T, dir, name string, command func() *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, command: command, log: filepath.Join(dir, name+".log")}
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.kill()
	})
	return p
}

// start starts the program without waiting until it serves.
func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.started = cmd, ended, time.Now()
	p.mu.Unlock()
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // fails only when it has ended
	}
}

// kill ends the program as a power cut would, and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	if ended := p.end(); ended != nil {
		<-ended
	}
}

// end returns a channel that is closed when the program has ended; nil before its first start.
func (p *process) end() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// alive reports whether the program runs.
func (p *process) alive() bool {
	ended := p.end()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// stop asks the program to end, and returns how it ended. It must end within the bound.
func (p *process) stop(within time.Duration) error {
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.end():
	case <-timer.C:
		return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, within)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("%s ended badly after SIGTERM: %w", p.name, p.err)
	}
	return nil
}

// files returns how many files the program has open.
func (p *process) files() int {
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all)
}

// wrote returns the lines of the log that contain one of these words.
func (p *process) wrote(words ...string) (found []string) {
	text, _ := os.ReadFile(p.log)
	for line := range strings.Lines(string(text)) {
		for _, w := range words {
			if strings.Contains(line, w) {
				found = append(found, strings.TrimSpace(line))
				break
			}
		}
	}
	return found
}
