package postgres

import (
	"net"
	"strconv"

	"snap/internal/engine"
)

var _ engine.Locator = Engine{}

// Located implements [engine.Locator]. It reads service files and environment variables, and
// returns one location for each host.
func (e Engine) Located(raw string) ([]engine.Location, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	at := func(host string, port uint16) engine.Location {
		return engine.Location{From: e.Way.Host(),
			Host: net.JoinHostPort(host, strconv.Itoa(int(port))), Database: d.name()}
	}
	all := []engine.Location{at(d.config.Host, d.config.Port)}
	for _, other := range d.config.Fallbacks {
		all = append(all, at(other.Host, other.Port))
	}
	return all, nil
}
