package reach_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"snap"
	"snap/internal/reach"
	"snap/internal/servertest"
)

// echo starts a server that sends back what it gets.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	servertest.Answer(t, l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	return l.Addr().String()
}

func wayThrough(t *testing.T, via string, env func(string) string) *reach.Way {
	t.Helper()
	tunnel, err := (&reach.Tunnels{Env: env, Idle: time.Hour}).To(via)
	if err != nil {
		t.Fatal(err)
	}
	return reach.NewWay(tunnel, nil)
}

// send sends a string to an echo server and compares what comes back.
func send(t *testing.T, w *reach.Way, network, address string) net.Conn {
	t.Helper()
	c, err := w.Dial(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	const text = "hello"
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v", got, err)
	}
	return c
}

// TestTunnel connects to a port and to a socket over one SSH connection, and again after that
// connection broke.
func TestTunnel(t *testing.T) {
	t.Parallel()
	s := servertest.StartSSH(t)
	port, socket := echo(t, "tcp", "127.0.0.1:0"), echo(t, "unix", filepath.Join(s.Home, "echo"))
	w := wayThrough(t, s.URL, s.Env)
	send(t, w, "tcp", port)
	c := send(t, w, "unix", socket)
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d SSH connections", n)
	}
	s.Break()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection survives the SSH connection")
	}
	send(t, w, "tcp", port)
	if n := s.Sessions(); n != 2 {
		t.Errorf("%d SSH connections", n)
	}
}

// A caller whose context ends does not wait for another caller that still connects.
func TestWaitingIsCanceled(t *testing.T) {
	t.Parallel()
	s := servertest.StartSSH(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connecting, ended := make(chan struct{}), t.Context().Done()
	servertest.Answer(t, silent, func(net.Conn) {
		close(connecting)
		<-ended
	})
	w := wayThrough(t, "ssh://me@"+silent.Addr().String(), s.Env)
	first := make(chan error, 1)
	go func() {
		_, err := w.Dial(t.Context(), "tcp", "127.0.0.1:1")
		first <- err
	}()
	<-connecting
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case err := <-first:
		t.Errorf("the first caller failed before the second: %v", err)
	default:
	}
}

// TestSilentServer: the error of a sign-in that takes too long does not say that the server ended
// the connection.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	s := servertest.StartSSH(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx := limited{t.Context(), make(chan struct{})}
	servertest.Answer(t, silent, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1)) // the client is connected
		close(ctx.over)
		_, _ = io.Copy(io.Discard, c)
	})
	_, err = wayThrough(t, "ssh://me@"+silent.Addr().String(), s.Env).Prepare(ctx, "")
	if err == nil || !strings.Contains(err.Error(), "did not complete the sign-in in time") {
		t.Error(err)
	}
}

// limited is a context whose deadline passes when over is closed.
type limited struct {
	context.Context

	over chan struct{}
}

// Done implements context.Context.
func (l limited) Done() <-chan struct{} { return l.over }

// Err implements context.Context.
func (l limited) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestDeadline checks that a deadline ends a read, on which the drivers of databases rely.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := servertest.StartSSH(t)
	c := send(t, wayThrough(t, s.URL, s.Env), "tcp", echo(t, "tcp", "127.0.0.1:0"))
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestRefusals checks the error of every reason for which there is no connection.
func TestRefusals(t *testing.T) {
	t.Parallel()
	another := servertest.StartSSH(t)
	port := echo(t, "tcp", "127.0.0.1:0")
	for name, c := range map[string]struct {
		change  func(s *servertest.SSH)
		url     string // instead of the server's
		address string // instead of the port's
		want    []string
	}{
		"a server without a known key": {
			change: func(s *servertest.SSH) { s.Know(t, "") },
			want:   []string{"SHA256:", "not in known_hosts", "connecting once: ssh -p "},
		},
		"a server with another key": {
			change: func(s *servertest.SSH) { s.Know(t, knownhosts.Line([]string{s.Address}, another.Key)) },
			want:   []string{"SHA256:", "line 1 of", "somebody may be intercepting", "ssh-keygen -R '[127.0.0.1]:"},
		},
		"a server with a key of another kind": {
			change: func(s *servertest.SSH) {
				s.Know(t, knownhosts.Normalize(s.Address)+" ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI"+
					"bmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/+"+
					"+Tpockg=")
			},
			want: []string{"does not have the key that known_hosts has", "somebody may be intercepting"},
		},
		"a revoked key": {
			change: func(s *servertest.SSH) {
				s.Know(t, "@revoked "+knownhosts.Line([]string{s.Address}, s.Key))
			},
			want: []string{"marks as revoked", "do not connect"},
		},
		"a broken known_hosts": {
			change: func(s *servertest.SSH) { s.Know(t, "example ssh-ed25519 AAAA") },
			want:   []string{"cannot be read", "known_hosts:1"},
		},
		"no agent": {
			change: func(s *servertest.SSH) { s.Socket = "" },
			want:   []string{"no SSH agent", "ssh-add"},
		},
		"an agent that is gone": {
			change: func(s *servertest.SSH) { s.Socket += "x" },
			want:   []string{"does not respond", "ssh-add"},
		},
		"an agent without keys": {
			change: func(s *servertest.SSH) {
				if err := s.Keys.RemoveAll(); err != nil {
					t.Error(err)
				}
			},
			want: []string{"the SSH agent has none", "ssh-add"},
		},
		"a key that is not let in": {
			change: func(s *servertest.SSH) { s.Keys, s.Socket = another.Keys, another.Socket },
			want:   []string{`refused the user "me"`, "ssh-add -l"},
		},
		"no SSH server":          {url: "ssh://me@127.0.0.1:1", want: []string{"127.0.0.1:1 cannot be reached"}},
		"another kind of server": {url: "ssh://me@" + port, want: []string{"ended the connection before"}},
		"no database server": {
			address: "127.0.0.1:1",
			want:    []string{"cannot reach 127.0.0.1:1", "as the SSH server sees them"},
		},
		"a server that forwards nothing": {
			change: func(s *servertest.SSH) { s.Refuses = func(string) bool { return true } },
			want:   []string{"does not allow connections to " + port, "AllowTcpForwarding"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servertest.StartSSH(t)
			if c.change != nil {
				c.change(s)
			}
			url, address := s.URL, port
			if c.url != "" {
				url = c.url
			}
			if c.address != "" {
				address = c.address
			}
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			_, err := wayThrough(t, url, s.Env).Dial(ctx, "tcp", address)
			var said *snap.Error
			if !errors.As(err, &said) || said.Code != snap.CodeDatabase {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(said.Detail+"\n"+said.Hint, want) {
					t.Errorf("%q is not in %s\n%s", want, said.Detail, said.Hint)
				}
			}
		})
	}
}

// TestAddresses rejects addresses that could be misread.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"bastion", "me@bastion", "http://bastion", "ssh://", "ssh://me:secret@bastion",
		"ssh://bastion/path", "ssh://bastion?x=y", "ssh://-oProxyCommand=x:y"} {
		_, err := new(reach.Tunnels).To(raw)
		if snap.CodeOf(err) != snap.CodeUsage || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
