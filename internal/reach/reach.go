// Package reach connects to database servers through an SSH server, and gets their passwords from
// programs that print them.
//
// It opens no port on this machine: a connection through SSH exists only inside this process, so
// no other user of the machine can use it.
package reach

import (
	"context"
	"net"
	"net/url"
)

// Way describes how to reach a server. A nil Way is a direct connection with the password in the
// URL.
type Way struct {
	tunnel   *Tunnel
	password *Command
}

// NewWay returns the way through a tunnel, with the password that a command prints. Either may be
// nil; if both are, the way is nil.
func NewWay(t *Tunnel, c *Command) *Way {
	if t == nil && c == nil {
		return nil
	}
	return &Way{t, c}
}

// Prepare opens the tunnel, so that [Way.Dial] takes no longer than a direct connection. It returns
// the password for the next connection: the one that the command prints or, without a command, the
// argument urlPassword. Call it before every new connection.
func (w *Way) Prepare(ctx context.Context, urlPassword string) (password string, err error) {
	if w == nil {
		return urlPassword, nil
	}
	if w.tunnel != nil {
		if err := w.tunnel.Open(ctx); err != nil {
			return "", err
		}
	}
	if w.password == nil {
		return urlPassword, nil
	}
	return w.password.Run(ctx)
}

// WithoutCommand returns the same way without its password command, for another user whose password
// is known.
func (w *Way) WithoutCommand() *Way {
	if w == nil || w.tunnel == nil {
		return nil
	}
	return &Way{tunnel: w.tunnel}
}

// Dial connects to an address. If there is an SSH server, that server looks up the address.
func (w *Way) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if w.Through() == "" {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return w.tunnel.Dial(ctx, network, address)
}

// Through returns the SSH server as host:port, or "" if there is none.
func (w *Way) Through() string {
	if w == nil || w.tunnel == nil {
		return ""
	}
	return w.tunnel.address
}

// Host returns the host of the SSH server, or "" if there is none.
func (w *Way) Host() string {
	host, _, _ := net.SplitHostPort(w.Through())
	return host
}

// HasPasswordCommand reports whether a command prints the password.
func (w *Way) HasPasswordCommand() bool { return w != nil && w.password != nil }

// Suffix returns a text for messages, such as " through ssh://me@bastion.example", or "".
func (w *Way) Suffix() string {
	if w.Through() == "" {
		return ""
	}
	return " through " + (&url.URL{Scheme: "ssh", User: url.User(w.tunnel.user), Host: w.tunnel.shown}).String()
}
