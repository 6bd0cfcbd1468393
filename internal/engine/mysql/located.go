package mysql

import (
	"net"

	"snap/internal/engine"
)

var _ engine.Locator = Engine{}

// Located implements [engine.Locator]. It reads the user's option file. A socket is located on this
// machine, because a connection to it does not use the host in the URL.
func (e Engine) Located(raw string) ([]engine.Location, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	if d.socket != "" {
		d.host = "127.0.0.1"
	}
	return []engine.Location{{From: e.Way.Host(), Host: net.JoinHostPort(d.host, d.port), Database: d.name}}, nil
}
