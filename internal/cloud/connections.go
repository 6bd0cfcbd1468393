package cloud

import (
	"container/list"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// newServer returns the HTTP server. It limits the number of connections, and what a connection may
// send before its request is complete.
func (s *Service) newServer() *http.Server {
	c := newConnections(bound(s.config.Limits.Connections, defaultConnections),
		func() { s.metrics.refused.WithLabelValues("connections").Inc() })
	return &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         c.changed,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// connections limits the number of open connections. When the limit is reached, it closes the
// connection that has waited longest for a request, so clients that send nothing, or a header byte
// by byte, cannot keep others out.
type connections struct {
	most    int // 0 is no limit
	refused func()

	mu   sync.Mutex
	all  map[net.Conn]*list.Element // nil while a request is being answered
	idle *list.List                 // of net.Conn; the one that has waited longest is first
}

func newConnections(most int, refused func()) *connections {
	return &connections{most: most, refused: refused, all: map[net.Conn]*list.Element{}, idle: list.New()}
}

// changed is called by the server when a connection changes its state.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.all[conn]; at != nil {
		c.idle.Remove(at)
	}
	switch state {
	case http.StateNew:
		if c.most > 0 && len(c.all) >= c.most && !c.makeRoom() {
			c.refused()
			conn.Close()
			return
		}
		c.all[conn] = c.idle.PushBack(conn)
	case http.StateIdle:
		c.all[conn] = c.idle.PushBack(conn)
	case http.StateActive:
		c.all[conn] = nil
	case http.StateClosed, http.StateHijacked:
		delete(c.all, conn)
	}
}

// makeRoom closes the connection that has waited longest.
func (c *connections) makeRoom() bool {
	first := c.idle.Front()
	if first == nil {
		return false
	}
	conn, _ := c.idle.Remove(first).(net.Conn)
	delete(c.all, conn)
	c.refused()
	conn.Close()
	return true
}
