package loadcontrol

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Connections limits the number of open connections. When the limit is reached, it closes the
// connection that has waited longest for a request, so clients that send nothing, or a header byte
// by byte, cannot keep other clients out.
type Connections struct {
	limit   int // 0 means no limit
	refused func()

	mu   sync.Mutex
	all  map[net.Conn]*list.Element // the element is nil while a request is being handled
	idle *list.List                 // of net.Conn; the connection that has waited longest is first
}

// NewConnections returns Connections with this limit; 0 means no limit. It calls refused for every
// connection that it closes.
func NewConnections(limit int, refused func()) *Connections {
	return &Connections{limit: limit, refused: refused, all: map[net.Conn]*list.Element{}, idle: list.New()}
}

// Changed records the new state of a connection. Set it as the ConnState of the [http.Server].
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.all[conn]; at != nil {
		c.idle.Remove(at)
	}
	switch state {
	case http.StateNew:
		if c.limit > 0 && len(c.all) >= c.limit && !c.makeRoom() {
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

// makeRoom closes the connection that has waited longest. It returns false if no connection waits.
func (c *Connections) makeRoom() bool {
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
