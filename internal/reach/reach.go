// Package reach opens connections to database servers that cannot be reached directly, or whose
// password has to be asked for: through an SSH server, and with passwords that a program prints.
//
// It needs no port on this machine: a connection through SSH exists only inside this process, so
// no other user of the machine can use it.
package reach

import (
	"context"
	"net"
	"net/url"
)

// Way is how a server is reached. A nil Way is the direct way, with the password in the URL.
type Way struct {
	tunnel   *Tunnel
	password *Command
}

// NewWay returns the way through a tunnel and with the password of a command. Each of them may be
// nil.
func NewWay(t *Tunnel, c *Command) *Way {
	if t == nil && c == nil {
		return nil
	}
	return &Way{t, c}
}

// Prepare opens the tunnel, so that [Way.Dial] takes no longer than a direct connection, and returns
// the password for the next connection, or known if no command prints it. Every new connection
// should begin with it.
func (w *Way) Prepare(ctx context.Context, known string) (password string, err error) {
	if w == nil {
		return known, nil
	}
	if w.tunnel != nil {
		if err := w.tunnel.Open(ctx); err != nil {
			return "", err
		}
	}
	if w.password == nil {
		return known, nil
	}
	return w.password.Run(ctx)
}

// WithPassword returns the same way for another user, whose password is known.
func (w *Way) WithPassword() *Way {
	if w == nil || w.tunnel == nil {
		return nil
	}
	return &Way{tunnel: w.tunnel}
}

// Dial connects to an address, which the SSH server looks up if there is one.
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

// AsksPassword reports whether a command prints the password.
func (w *Way) AsksPassword() bool { return w != nil && w.password != nil }

// Says returns a text for messages, such as " through ssh://me@bastion.example", or "".
func (w *Way) Says() string {
	if w.Through() == "" {
		return ""
	}
	return " through " + (&url.URL{Scheme: "ssh", User: url.User(w.tunnel.user), Host: w.tunnel.shown}).String()
}
