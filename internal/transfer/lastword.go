package transfer

import (
	"context"
	"net"
	"time"
)

// lastWord is how long a write that failed waits for what is still to be read.
const lastWord = time.Second

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// hearing connects so that a refusal is heard: a storage that refuses a part
// before it has come whole answers and hangs up, and net/http drops the answer
// if it sees first that no more can be written. Linux keeps what came before a
// connection was reset; where a system does not, the part is tried again.
func (d dialer) hearing(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	read, end := context.WithCancel(context.WithoutCancel(ctx))
	return &hearingConn{Conn: conn, read: read, end: end}, nil
}

// hearingConn tells that a write failed when nothing is left to be read.
type hearingConn struct {
	net.Conn
	read context.Context // ends when nothing is left
	end  context.CancelFunc
}

func (c *hearingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *hearingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		select {
		case <-c.read.Done():
		case <-time.After(lastWord):
		}
	}
	return n, err
}

func (c *hearingConn) Close() error {
	c.end()
	return c.Conn.Close()
}
