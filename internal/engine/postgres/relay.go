package postgres

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"snap/internal/engine"
)

// relay is a proxy between pg_dump and the server that intercepts the rows of tables. pg_dump
// requests the rows in its one transaction, like everything else. The relay passes the rows to
// snapcli and reports to pg_dump that they have been sent. This saves the time to send the rows
// through pg_dump.
type relay struct {
	listener net.Listener
	dir      string // of the private socket
	server   *pgconn.HijackedConn

	rows  chan []byte // chunks of rows; nil at the end of each table
	free  chan []byte // chunks to reuse
	ended chan struct{}
	done  chan struct{} // closed when the reader of the rows has stopped
}

// maxWaiting is the maximum number of chunks that wait for the reader of the rows.
const maxWaiting = 16

// relay starts a relay. It connects to the server and listens for pg_dump on a private socket.
func (d database) relay(ctx context.Context) (*relay, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := &relay{rows: make(chan []byte, maxWaiting), free: make(chan []byte, maxWaiting), ended: make(chan struct{}),
		done: make(chan struct{})}
	if r.server, err = hijack(ctx, conn); err != nil {
		return nil, d.failure(err)
	}
	if r.listener, r.dir, err = privateSocket(ctx); err != nil {
		r.server.Conn.Close()
		return nil, err
	}
	go r.run()
	return r, nil
}

// command prepares a run of pg_dump that connects to the relay.
func (r *relay) command(ctx context.Context, t tool, args ...string) (*exec.Cmd, *engine.Stderr) {
	return socketCommand(ctx, t, r.dir, r.server.Config.Database, r.server.Config.User, args...)
}

// run relays until either side ends.
func (r *relay) run() {
	defer close(r.ended)
	defer close(r.rows)
	client, err := r.listener.Accept()
	r.listener.Close()
	os.RemoveAll(r.dir)
	if err != nil {
		return
	}
	defer client.Close()
	b := pgproto3.NewBackend(client, client)
	if _, err := b.ReceiveStartupMessage(); err != nil || completeStartup(b, r.server) != nil {
		return
	}
	go func() {
		_, _ = io.Copy(r.server.Conn, client)
		r.server.Conn.Close()
	}()
	a := responses{relay: r, from: bufio.NewReaderSize(r.server.Conn, 256<<10), to: bufio.NewWriter(client)}
	for err == nil {
		err = a.pass()
	}
}

// nextTable calls see for each chunk of the next table's rows. A chunk is valid until see returns.
func (r *relay) nextTable(see func(chunk []byte) error) error {
	for chunk := range r.rows {
		if chunk == nil {
			return nil
		}
		if err := see(chunk); err != nil {
			return err
		}
		select {
		case r.free <- chunk[:0]:
		default:
		}
	}
	return io.ErrUnexpectedEOF
}

// close ends the relay. After a failure, close also cancels the server's current statement, because
// a statement that waits for a lock does not notice the closed connection.
func (r *relay) close(ctx context.Context, failed bool) {
	close(r.done)
	r.listener.Close()
	r.server.Conn.Close()
	<-r.ended
	if failed {
		cancelOn(ctx, r.server)
	}
}

// responses forwards the messages from the server to pg_dump and intercepts the rows.
type responses struct {
	*relay
	from   *bufio.Reader
	to     *bufio.Writer
	chunk  []byte
	padded bool // whether pg_dump received padding for the current table
}

// messageHead is the size of a message's kind and length.
const messageHead = 5

// pass forwards a message to pg_dump, unless the message is a row, which is added to the current
// chunk.
func (a *responses) pass() error {
	head, err := a.from.Peek(messageHead)
	if err != nil {
		return err
	}
	kind, size := head[0], int(binary.BigEndian.Uint32(head[1:]))+1
	switch kind {
	case 'd': // CopyData: a row
		return a.row(size)
	case 'c': // CopyDone
		if err := a.end(); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(a.to, a.from, int64(size)); err != nil {
		return err
	}
	if a.from.Buffered() == 0 {
		return a.to.Flush()
	}
	return nil
}

// row adds a row to the current chunk. Only a row that is larger than a chunk is split.
func (a *responses) row(size int) error {
	_, _ = a.from.Discard(messageHead) // cannot fail after Peek
	for left := size - messageHead; left > 0; {
		if len(a.chunk) > 0 && len(a.chunk)+left > cap(a.chunk) {
			if err := a.put(); err != nil {
				return err
			}
		}
		if a.chunk == nil {
			a.chunk = a.unused()
		}
		at := len(a.chunk)
		a.chunk = a.chunk[:min(at+left, cap(a.chunk))]
		n, err := io.ReadFull(a.from, a.chunk[at:])
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (a *responses) unused() []byte {
	select {
	case chunk := <-a.free:
		return chunk
	default:
		return make([]byte, 0, chunkSize)
	}
}

// end offers the last rows of a table and marks the table's end.
func (a *responses) end() error {
	if len(a.chunk) > 0 {
		if err := a.put(); err != nil {
			return err
		}
	}
	err := a.offer(nil)
	a.padded = false
	return err
}

// put offers the current chunk to the reader.
func (a *responses) put() error {
	err := a.offer(a.chunk)
	a.chunk = nil
	return err
}

// offer blocks until the reader can accept a chunk. The reader first waits for the beginning of the
// table's block, which may still be in pg_dump's buffers. To flush them, offer sends padding to
// pg_dump: a row that is longer than the buffers.
func (a *responses) offer(chunk []byte) error {
	select {
	case a.rows <- chunk:
		return nil
	default:
	}
	if !a.padded {
		a.padded = true
		if err := a.pad(); err != nil {
			return err
		}
	}
	select {
	case a.rows <- chunk:
		return nil
	case <-a.done:
		return errors.New("the reader of the rows has stopped")
	}
}

// padding is longer than the buffers of pg_dump.
const padding = 256 << 10

func (a *responses) pad() error {
	message, err := (&pgproto3.CopyData{Data: make([]byte, padding)}).Encode(nil)
	if err == nil {
		_, err = a.to.Write(message)
	}
	return errors.Join(err, a.to.Flush())
}
