package engine

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Program prepares a run of a database program such as pg_dump. It returns the command and the
// buffer that collects its standard error. The program is interrupted when ctx is done, and
// receives no signals from the terminal.
func Program(ctx context.Context, path string, args ...string) (*exec.Cmd, *Stderr) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	ownGroup(cmd)
	stderr := &Stderr{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// Stderr holds the first 64 KiB that a program wrote to standard error.
type Stderr struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *Stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := 64<<10 - s.b.Len(); room > 0 {
		s.b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// FirstError returns the first message after ERROR:, or else after FATAL:, or else after error:. If
// there is none, it returns the output's first line.
func (s *Stderr) FirstError() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.b.String()
	for _, mark := range []string{"ERROR:", "FATAL:", "error:"} {
		if _, after, ok := strings.Cut(text, mark); ok {
			line, _, _ := strings.Cut(after, "\n")
			return strings.TrimSpace(line)
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Warnings returns the warnings in the output, at most 20.
func (s *Stderr) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for line := range strings.Lines(s.b.String()) {
		if _, after, ok := strings.Cut(line, "warning:"); ok && len(all) < 20 {
			all = append(all, strings.TrimSpace(after))
		}
	}
	return all
}

// Reader returns a reader that stops when the context is done.
func Reader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx: ctx, r: r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
