package transfer

import (
	"context"
	"net"
	"time"
)

// refusalWait is how long a failed write waits for data that can still be read.
const refusalWait = time.Second

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// receivingRefusals opens a connection that still receives a refusal after a write has failed. An
// object store that refuses a part early responds and closes the connection. If net/http notices
// the failed write first, it drops the response. Linux keeps data that arrived before the
// connection was reset. On systems that do not keep it, the part is retried.
func (d dialer) receivingRefusals(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	read, end := context.WithCancel(context.WithoutCancel(ctx))
	return &refusalConn{Conn: conn, read: read, end: end}, nil
}

// refusalConn delays the error of a failed write until nothing is left to be read.
type refusalConn struct {
	net.Conn
	read context.Context // done when nothing is left to be read
	end  context.CancelFunc
}

func (c *refusalConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *refusalConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		select {
		case <-c.read.Done():
		case <-time.After(refusalWait):
		}
	}
	return n, err
}

func (c *refusalConn) Close() error {
	c.end()
	return c.Conn.Close()
}
