package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"snap"
)

// Tunnels are the SSH servers that this process uses, each with at most one connection at a time.
type Tunnels struct {
	// Env reads the environment: SSH_AUTH_SOCK and HOME.
	Env func(string) string
	// Idle is how long an SSH connection stays open when nothing uses it; zero means a minute.
	Idle time.Duration

	mu  sync.Mutex
	all map[string]*Tunnel
}

// Tunnel opens connections through an SSH server. It connects when it is first used and ends the
// SSH connection when nothing has used it for a while; see [Tunnels.Idle].
type Tunnel struct {
	user, address string // address is host:port
	shown         string // the host as in the URL
	env           func(string) string
	idle          time.Duration

	connecting chan struct{} // a lock of acquire; a channel, so that waiting can end with a context

	mu         sync.Mutex
	client     *ssh.Client
	open       int         // connections through client
	closeTimer *time.Timer // closes client
}

// connectTime limits signing in to the SSH server. A person may have to touch a hardware key.
const connectTime = time.Minute

// To returns the tunnel for a URL such as ssh://user@bastion.example:22, or nil for "". It does not
// connect.
func (t *Tunnels) To(raw string) (*Tunnel, error) {
	if raw == "" {
		return nil, nil //nolint:nilnil // there is no tunnel
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "ssh" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, snap.Usage("the address of the SSH server is invalid",
			"use ssh://user@host or ssh://user@host:port")
	}
	if _, has := u.User.Password(); has {
		return nil, snap.Usage("the address of the SSH server has a password",
			"remove it: keys come from the SSH agent, see `ssh-add -l`")
	}
	name, port := u.User.Username(), u.Port()
	if name == "" {
		me, err := user.Current()
		if err != nil {
			return nil, snap.Usage("the address of the SSH server has no user", "use ssh://user@host")
		}
		name = me.Username
	}
	if port == "" {
		port = "22"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &Tunnel{user: name, address: net.JoinHostPort(u.Hostname(), port), shown: u.Host, env: t.Env,
		idle: cmp.Or(t.Idle, time.Minute), connecting: make(chan struct{}, 1)}
	key := one.user + "\x00" + one.address
	if known, ok := t.all[key]; ok {
		return known, nil
	}
	if t.all == nil {
		t.all = map[string]*Tunnel{}
	}
	t.all[key] = one
	return one, nil
}

// Open connects to the SSH server if there is no connection.
func (t *Tunnel) Open(ctx context.Context) error {
	_, err := t.acquire(ctx)
	if err == nil {
		t.release()
	}
	return err
}

// Dial asks the SSH server to connect to an address. The network is tcp or unix.
func (t *Tunnel) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	for again := false; ; again = true {
		client, err := t.acquire(ctx)
		if err != nil {
			return nil, err
		}
		inner, err := client.DialContext(ctx, network, address)
		if err == nil {
			return &conn{Conn: inner, to: remote{network, address}, done: t.release}, nil
		}
		t.release()
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &refused):
			return nil, t.forwardingError(address, refused)
		case again:
			return nil, t.failed("ended the connection", "try again", err)
		}
		t.forget(client) // the connection ended while it was idle
	}
}

// acquire returns the connection to the SSH server. The caller must release it. While another
// caller connects, acquire waits, but only until its own context ends.
func (t *Tunnel) acquire(ctx context.Context) (*ssh.Client, error) {
	select {
	case t.connecting <- struct{}{}:
		defer func() { <-t.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if client := t.reuse(); client != nil {
		return client, nil
	}
	client, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.client = client
	t.open++
	return client, nil
}

// reuse counts a new use of the current connection and returns it, or nil if there is none.
func (t *Tunnel) reuse() *ssh.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closeTimer != nil {
		t.closeTimer.Stop()
	}
	if t.client != nil {
		t.open++
	}
	return t.client
}

func (t *Tunnel) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 {
		t.closeTimer = time.AfterFunc(t.idle, t.end)
	}
}

// end ends the SSH connection if nothing uses it.
func (t *Tunnel) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == 0 && t.client != nil {
		_ = t.client.Close()
		t.client = nil
	}
}

func (t *Tunnel) forget(broken *ssh.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client == broken {
		_ = broken.Close()
		t.client = nil
	}
}

func (t *Tunnel) connect(ctx context.Context) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	keys, err := t.keys(ctx)
	if err != nil {
		return nil, err
	}
	defer keys.Close()
	config := &ssh.ClientConfig{User: t.user, Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(keys.Signers)}}
	if err := t.requireKnownHost(config); err != nil {
		return nil, err
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, t.failed("cannot be reached",
			"check that it is running, and check its host and port in the configuration", err)
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	session, channels, requests, err := ssh.NewClientConn(raw, t.address, config)
	if err != nil {
		raw.Close()
		return nil, t.sessionError(errors.Join(ctx.Err(), err))
	}
	return ssh.NewClient(session, channels, requests), nil
}

// failed returns an error about the SSH server.
func (t *Tunnel) failed(how, hint string, cause error) error {
	return &snap.Error{Code: snap.CodeDatabase, Detail: fmt.Sprintf("the SSH server %s %s", t.address, how), Hint: hint,
		Cause: cause}
}

// forwardingError describes why the SSH server did not connect to an address.
func (t *Tunnel) forwardingError(address string, err *ssh.OpenChannelError) error {
	if err.Reason == ssh.ConnectionFailed {
		return t.failed(fmt.Sprintf("cannot reach %s", address),
			"check the host and port, or the socket, in the URL, as the SSH server sees them", err)
	}
	return t.failed(fmt.Sprintf("does not allow connections to %s", address),
		"allow them in its sshd_config: AllowTcpForwarding and PermitOpen, or for a socket AllowStreamLocalForwarding",
		err)
}

// conn is a connection through a tunnel. It is closed when a deadline is reached, because SSH
// channels do not support deadlines.
type conn struct {
	net.Conn

	to   remote
	once sync.Once
	done func()

	mu      sync.Mutex
	timer   *time.Timer
	reached bool
}

// remote is the address of a server behind the SSH server.
type remote struct{ network, address string }

// Network implements net.Addr.
func (r remote) Network() string { return r.network }

// String implements net.Addr.
func (r remote) String() string { return r.address }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.to }

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.done)
	return err
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	if !at.IsZero() {
		c.timer = time.AfterFunc(time.Until(at), c.expire)
	}
	return nil
}

func (c *conn) expire() {
	c.mu.Lock()
	c.reached = true
	c.mu.Unlock()
	c.Conn.Close()
}

// SetReadDeadline implements net.Conn. The deadline also applies to writes.
func (c *conn) SetReadDeadline(at time.Time) error { return c.SetDeadline(at) }

// SetWriteDeadline implements net.Conn. The deadline also applies to reads.
func (c *conn) SetWriteDeadline(at time.Time) error { return c.SetDeadline(at) }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.explain(err)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.explain(err)
}

// explain replaces the error of a connection that was closed because a deadline was reached.
func (c *conn) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.reached {
		return os.ErrDeadlineExceeded
	}
	return err
}
