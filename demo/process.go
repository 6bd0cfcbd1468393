package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// environment returns the environment of a person's programs. It sets that person's home and leaves
// out the snapcli and snapcloud settings of the user who runs the demo.
func (w *world) environment(p person) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "SNAPCLI_") && !strings.HasPrefix(name, "SNAPCLOUD_") && name != "HOME" {
			env = append(env, entry)
		}
	}
	return append(env,
		"HOME="+w.home(p),
		"SNAPCLI_CONFIG_DIR="+filepath.Join(w.home(p), "config"),
		"SNAPCLI_DATA_DIR="+filepath.Join(w.home(p), "data"),
	)
}

// prepare returns a command that runs one of the two programs as a person. When ctx ends, the
// command gets an interrupt and some time to end cleanly.
func (w *world) prepare(ctx context.Context, p person, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, program), args...)
	cmd.Env = w.environment(p)
	cmd.Dir = w.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// show runs a snapcli command of a person and shows it with its output. If the demo's output is a
// terminal, the program writes to it directly, with colors and progress.
func (w *world) show(ctx context.Context, p person, args ...string) error {
	code, err := w.attempt(ctx, p, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("snapcli %s ended with exit code %d", strings.Join(args, " "), code)
	}
	return err
}

// attempt is like [world.show], for a command that may fail. It returns the exit code.
func (w *world) attempt(ctx context.Context, p person, args ...string) (int, error) {
	w.out.command(p, "snapcli", args)
	cmd := w.prepare(ctx, p, "snapcli", args...)
	cmd.Stdout, cmd.Stderr = w.out.file, w.out.file
	return exitCode(cmd.Run())
}

// outputOf runs a command without showing it and returns its standard output.
func (w *world) outputOf(ctx context.Context, p person, program string, args ...string) (string, error) {
	cmd := w.prepare(ctx, p, program, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// exitCode returns a command's exit code, or an error if the command did not run or was killed.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// process is a program that runs in the background.
type process struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // why the program ended; set before ended is closed
}

// start runs a program in the background. An interrupt of the demo does not stop the program, so
// that the demo can stop its programs in order.
func (w *world) start(p person, out io.Writer, program string, args ...string) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := w.prepare(ctx, p, program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	r := &process{cancel: cancel, ended: make(chan struct{})}
	go func() {
		r.err = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// stop ends the process and waits until it has ended.
func (r *process) stop() {
	r.cancel()
	<-r.ended
}

// startService runs snapcloud and waits until it is ready.
func (w *world) startService(ctx context.Context) error {
	log, err := os.Create(w.log)
	if err != nil {
		return err
	}
	w.service, err = w.start(operator, log, "snapcloud", "serve", "--config", w.config)
	log.Close()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return w.service.ready(ctx, w.url+"/readyz")
}

// ready waits until a URL responds with status 200.
func (r *process) ready(ctx context.Context, url string) error {
	return r.await(ctx, func() bool { return responds(ctx, url) })
}

// listening waits until something listens at an address.
func (r *process) listening(ctx context.Context, address string) error {
	return r.await(ctx, func() bool {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// await waits until a condition holds, or the process or ctx ends.
func (r *process) await(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-r.ended:
			return errors.Join(errors.New("it ended before it was ready"), r.err)
		case <-ctx.Done():
			return fmt.Errorf("it was not ready in time: %w", ctx.Err())
		}
	}
	return nil
}

// responds reports whether a URL responds with status 200.
func responds(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// serviceLog returns the last lines of the service's log.
func (w *world) serviceLog() string {
	data, err := os.ReadFile(w.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
