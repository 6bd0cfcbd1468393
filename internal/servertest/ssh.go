package servertest

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH is an SSH server that forwards connections, as sshd does for `ssh -L`, with the home and the
// agent of a user who may sign in to it.
type SSH struct {
	URL     string // ssh://me@host:port
	Address string // host:port
	Home    string // has .ssh/known_hosts with the server's key
	Socket  string // of the agent, for SSH_AUTH_SOCK
	Key     ssh.PublicKey
	Keys    agent.Agent

	// Refuses reports whether the server refuses to connect to an address. It may be nil.
	Refuses func(address string) bool

	config   *ssh.ServerConfig
	mu       sync.Mutex
	open     map[net.Conn]bool
	sessions int
}

// Env returns a variable of the user's environment, which has only HOME and SSH_AUTH_SOCK.
func (s *SSH) Env(name string) string {
	return map[string]string{"HOME": s.Home, "SSH_AUTH_SOCK": s.Socket}[name]
}

// StartSSH starts an SSH server, which ends with the test.
func StartSSH(t testing.TB) *SSH {
	t.Helper()
	host, err := ssh.NewSignerFromKey(ed25519Key(t))
	if err != nil {
		t.Fatal(err)
	}
	user := ed25519Key(t)
	mine, err := ssh.NewPublicKey(user.Public())
	if err != nil {
		t.Fatal(err)
	}
	s := &SSH{Key: host.PublicKey(), Keys: agent.NewKeyring(), open: map[net.Conn]bool{}}
	if err := s.Keys.Add(agent.AddedKey{PrivateKey: user}); err != nil {
		t.Fatal(err)
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions,
		error) {
		if c.User() != "me" || string(key.Marshal()) != string(mine.Marshal()) {
			return nil, errors.New("no such user or key")
		}
		return &ssh.Permissions{}, nil
	}}
	s.config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = l.Addr().String()
	s.URL = "ssh://me@" + s.Address
	Answer(t, l, s.serve)
	s.makeHome(t)
	return s
}

// makeHome creates the user's home, and starts the agent. The path is short because systems limit
// the length of a socket's path.
func (s *SSH) makeHome(t testing.TB) {
	t.Helper()
	home, err := os.MkdirTemp("", "ssh-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	s.Home, s.Socket = home, filepath.Join(home, "agent")
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Know(t, knownhosts.Line([]string{s.Address}, s.Key))
	l, err := net.Listen("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	Answer(t, l, func(c net.Conn) { _ = agent.ServeAgent(s.Keys, c) })
}

// Answer calls answer for each connection to l, until the test ends. It closes the connection when
// answer returns.
func Answer(t testing.TB, l net.Listener, answer func(net.Conn)) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
}

// Know replaces the content of the user's known_hosts with a line.
func (s *SSH) Know(t testing.TB, line string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Home, ".ssh", "known_hosts"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Sessions returns the number of SSH connections so far.
func (s *SSH) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Break ends the SSH connections, as a server that restarts does.
func (s *SSH) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

func (s *SSH) serve(raw net.Conn) {
	_, channels, requests, err := ssh.NewServerConn(raw, s.config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.open[raw] = true
	s.sessions++
	s.mu.Unlock()
	go ssh.DiscardRequests(requests)
	for c := range channels {
		go s.forward(c)
	}
	s.mu.Lock()
	delete(s.open, raw)
	s.mu.Unlock()
}

// forward connects a channel to the server that it asks for (RFC 4254, section 7.2, and OpenSSH's
// PROTOCOL, section 2.4).
func (s *SSH) forward(c ssh.NewChannel) {
	network, address := "tcp", ""
	switch c.ChannelType() {
	case "direct-tcpip":
		var to struct {
			Host string
			Port uint32
			From string
			At   uint32
		}
		if ssh.Unmarshal(c.ExtraData(), &to) == nil {
			address = net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10))
		}
	case "direct-streamlocal@openssh.com":
		var to struct {
			Path, Reserved string
			Unused         uint32
		}
		network = "unix"
		if ssh.Unmarshal(c.ExtraData(), &to) == nil {
			address = to.Path
		}
	}
	if address == "" || s.Refuses != nil && s.Refuses(address) {
		_ = c.Reject(ssh.Prohibited, "administratively prohibited")
		return
	}
	server, err := net.Dial(network, address)
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer server.Close()
	client, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	go ssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
}

func ed25519Key(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
