package postgres

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"snap/internal/engine"
)

// relay is a proxy between pg_dump and the server that keeps the rows of tables. pg_dump requests
// them in its one transaction like everything else, and the relay replies that they have been sent.
// Forwarding them would take a third of the time that the server takes to send them, and reading
// them from pg_dump as much again.
type relay struct {
	listener net.Listener
	dir      string // of the socket; only this user can enter it
	server   *pgconn.HijackedConn

	rows  chan []byte // chunks of rows; nil at the end of each table
	free  chan []byte // chunks to reuse
	ended chan struct{}
	done  chan struct{} // closed when the reader of the rows has stopped
}

// relayed is the maximum number of chunks that wait for the reader.
const relayed = 16

// relay starts a relay, which listens for pg_dump on a socket and connects to the server.
func (d database) relay(ctx context.Context) (*relay, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := &relay{rows: make(chan []byte, relayed), free: make(chan []byte, relayed), ended: make(chan struct{}),
		done: make(chan struct{})}
	if err = conn.PgConn().SyncConn(ctx); err == nil {
		r.server, err = conn.PgConn().Hijack()
	}
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, d.failure(err)
	}
	if err := r.listen(ctx); err != nil {
		r.server.Conn.Close()
		return nil, err
	}
	go r.run()
	return r, nil
}

const relayPort = "5432"

// errNoRelay reports that this machine cannot run a relay.
var errNoRelay = errors.New("a relay is not possible on this machine")

func (r *relay) listen(ctx context.Context) (err error) {
	sweepSockets(os.TempDir())
	if r.dir, err = os.MkdirTemp("", socketPrefix); err != nil {
		return errors.Join(errNoRelay, err)
	}
	if r.listener, err = (&net.ListenConfig{}).Listen(ctx, "unix",
		filepath.Join(r.dir, ".s.PGSQL."+relayPort)); err != nil {
		os.RemoveAll(r.dir)
		return errors.Join(errNoRelay, err)
	}
	return nil
}

// socketPrefix begins the name of a socket's folder.
const socketPrefix = "snapcli-socket-"

// sweepSockets removes the socket folders of builds that were killed before pg_dump connected.
// Running builds need theirs only for a moment.
func sweepSockets(temp string) {
	left, _ := filepath.Glob(filepath.Join(temp, socketPrefix+"*"))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.RemoveAll(dir)
		}
	}
}

// command prepares a run of pg_dump against the relay. Environment variables for connecting apply
// to the relay's own connection instead.
func (r *relay) command(ctx context.Context, t tool, args ...string) (*exec.Cmd, *engine.Speech) {
	config := r.server.Config
	u := url.URL{Scheme: "postgres", RawQuery: url.Values{"host": {r.dir}, "port": {relayPort}}.Encode()}
	place := database{raw: u.String(),
		config: &pgx.ConnConfig{Config: pgconn.Config{Database: config.Database, User: config.User}}}
	cmd, said := t.command(ctx, place, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }),
		place.environment()...)
	return cmd, said
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
	if r.welcome(client) != nil {
		return
	}
	go func() {
		_, _ = io.Copy(r.server.Conn, client)
		r.server.Conn.Close()
	}()
	a := answers{relay: r, from: bufio.NewReaderSize(r.server.Conn, 256<<10), to: bufio.NewWriter(client)}
	for err == nil {
		err = a.pass()
	}
}

// welcome starts the protocol with pg_dump, with the values that the server sent to the relay.
func (r *relay) welcome(client net.Conn) error {
	b := pgproto3.NewBackend(client, client)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range r.server.ParameterStatuses {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: r.server.PID, SecretKey: r.server.SecretKey})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: r.server.TxStatus})
	return b.Flush()
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

// close ends the relay. After a failure, close also cancels the server's current statement, which
// may be waiting for a lock without noticing the closed connection.
func (r *relay) close(ctx context.Context, failed bool) {
	close(r.done)
	r.listener.Close()
	r.server.Conn.Close()
	<-r.ended
	if !failed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if conn, err := pgconn.Construct(r.server); err == nil {
		_ = conn.CancelRequest(ctx)
	}
}

// answers are the messages from the server.
type answers struct {
	*relay
	from   *bufio.Reader
	to     *bufio.Writer
	chunk  []byte
	padded bool // pg_dump got padding instead of the table's rows
}

// messageHead is the size of a message's kind and length.
const messageHead = 5

// pass forwards a message to pg_dump, or keeps it if it is a row.
func (a *answers) pass() error {
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
func (a *answers) row(size int) error {
	if _, err := a.from.Discard(messageHead); err != nil {
		return err
	}
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

func (a *answers) unused() []byte {
	select {
	case chunk := <-a.free:
		return chunk
	default:
		return make([]byte, 0, chunkSize)
	}
}

// end offers the last rows of a table and marks the table's end.
func (a *answers) end() error {
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
func (a *answers) put() error {
	err := a.offer(a.chunk)
	a.chunk = nil
	return err
}

// offer blocks until the reader can accept a chunk. The reader first waits for the table in
// pg_dump's output, which may still be in pg_dump's buffers. offer sends padding, a row longer than
// those buffers, to flush them.
func (a *answers) offer(chunk []byte) error {
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

func (a *answers) pad() error {
	message, err := (&pgproto3.CopyData{Data: make([]byte, padding)}).Encode(nil)
	if err == nil {
		_, err = a.to.Write(message)
	}
	return errors.Join(err, a.to.Flush())
}
