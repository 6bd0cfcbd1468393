package mysql

import (
	"net"

	"snap/internal/engine"
)

var _ engine.Locator = Engine{}

// Located implements [engine.Locator]. It reads the user's option file. With a socket, the location
// has the host and port of the URL or the file, by default 127.0.0.1:3306.
func (e Engine) Located(raw string) ([]engine.Location, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	return []engine.Location{{From: e.Way.Host(), Host: net.JoinHostPort(d.host, d.port), Database: d.name}}, nil
}
