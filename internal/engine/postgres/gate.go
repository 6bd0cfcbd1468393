package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"snap/internal/disk"
	"snap/internal/engine"
)

// A private socket is a Unix socket in a folder that only this user can enter. pg_dump and
// pg_restore connect to the socket instead of the server, and snapcli connects to the server. So
// the programs need neither the server's address nor the password, and no port is open that other
// users of this machine could connect to.

const socketPort = "5432"

// errNoSocket reports that this machine cannot have a private socket.
var errNoSocket = errors.New("a private socket cannot be created on this machine")

// socketPrefix is the beginning of the name of a socket's folder.
const socketPrefix = "snapcli-socket-"

// privateSocket listens on a new private socket. The caller must close the listener and remove the
// folder.
func privateSocket(ctx context.Context) (l net.Listener, dir string, err error) {
	sweepSockets(ctx, os.TempDir())
	if dir, err = os.MkdirTemp("", socketPrefix); err != nil {
		return nil, "", errors.Join(errNoSocket, err)
	}
	if l, err = (&net.ListenConfig{}).Listen(ctx, "unix", socketIn(dir)); err != nil {
		os.RemoveAll(dir)
		return nil, "", errors.Join(errNoSocket, err)
	}
	return l, dir, nil
}

func socketIn(dir string) string { return filepath.Join(dir, ".s.PGSQL."+socketPort) }

// sweepSockets removes the folders of private sockets of killed commands.
func sweepSockets(ctx context.Context, temp string) {
	for _, dir := range disk.Glob(temp, socketPrefix+"*") {
		if info, err := os.Lstat(dir); err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socketIn(dir)); err == nil {
			conn.Close() // a long load still uses it
			continue
		}
		os.RemoveAll(dir)
	}
}

// socketCommand prepares a run of a program that connects to a private socket. The program does not
// inherit the environment variables that begin with PG, because they are for snapcli's own
// connection.
func socketCommand(ctx context.Context, t tool, dir, name, user string, args ...string) (*exec.Cmd,
	*engine.Stderr) {
	u := url.URL{Scheme: "postgres", RawQuery: url.Values{"host": {dir}, "port": {socketPort}}.Encode()}
	config := &pgx.ConnConfig{Config: pgconn.Config{Database: name, User: user}}
	place := database{raw: u.String(), config: config}
	cmd, stderr := t.command(ctx, place, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }),
		place.environment()...)
	return cmd, stderr
}

// completeStartup completes the start of a program's session, with the values that the server sent
// to snapcli.
func completeStartup(b *pgproto3.Backend, server *pgconn.HijackedConn) error {
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range server.ParameterStatuses {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: server.PID, SecretKey: server.SecretKey})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: server.TxStatus})
	return b.Flush()
}

// hijack takes over a connection whose session is ready for statements.
func hijack(ctx context.Context, conn *pgx.Conn) (*pgconn.HijackedConn, error) {
	var server *pgconn.HijackedConn
	err := conn.PgConn().SyncConn(ctx)
	if err == nil {
		server, err = conn.PgConn().Hijack()
	}
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
	}
	return server, err
}

// gate connects the sessions of a program to a server that the program cannot reach itself, or
// whose password a command prints for each connection.
type gate struct {
	d        database
	dir      string
	listener net.Listener
	sessions sync.WaitGroup
	runCtx   context.Context //nolint:containedctx // the context of the program's run; done if the run was stopped
	stop     context.CancelFunc

	mu   sync.Mutex
	open map[uint32]*pgconn.HijackedConn // by the process ID of the session on the server
	err  error                           // the first failure to connect
}

// program prepares a run of a program against the database. The caller must call done after the
// run. done returns an error if a connection of the program failed.
func (d database) program(ctx context.Context, t tool, args ...string) (cmd *exec.Cmd, stderr *engine.Stderr,
	done func() error, err error) {
	if d.way == nil {
		cmd, stderr = t.command(ctx, d, args...)
		return cmd, stderr, func() error { return nil }, nil
	}
	g := &gate{d: d, open: map[uint32]*pgconn.HijackedConn{}}
	if g.listener, g.dir, err = privateSocket(ctx); err != nil {
		return nil, nil, nil, err
	}
	cmd, stderr = socketCommand(ctx, t, g.dir, d.name(), d.config.User, args...)
	g.runCtx = ctx
	ctx, g.stop = context.WithCancel(ctx)
	g.sessions.Go(func() { g.accept(ctx) })
	return cmd, stderr, g.close, nil
}

func (g *gate) accept(ctx context.Context) {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.sessions.Go(func() {
			defer client.Close()
			g.serve(ctx, client)
		})
	}
}

// serve connects one session of the program, or cancels a statement of another session.
func (g *gate) serve(ctx context.Context, client net.Conn) {
	keepClient := context.AfterFunc(ctx, func() { client.Close() })
	defer keepClient()
	b := pgproto3.NewBackend(client, client)
	first, err := b.ReceiveStartupMessage()
	if err != nil {
		return
	}
	if request, ok := first.(*pgproto3.CancelRequest); ok {
		g.cancel(ctx, request.ProcessID)
		return
	}
	server, err := g.connect(ctx)
	if err != nil {
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08001", Message: err.Error()})
		_ = b.Flush()
		return
	}
	defer g.forget(server)
	keepServer := context.AfterFunc(ctx, func() { server.Conn.Close() })
	defer keepServer()
	if completeStartup(b, server) == nil {
		splice(client, server.Conn)
	}
	if g.runCtx.Err() != nil { // a long statement would not notice that its program was stopped
		cancelOn(ctx, server)
	}
}

// splice copies in both directions until one side ends.
func splice(client, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(client, server)
	client.Close()
	<-done
}

func (g *gate) connect(ctx context.Context) (*pgconn.HijackedConn, error) {
	conn, err := g.d.connect(ctx)
	var server *pgconn.HijackedConn
	if err == nil {
		server, err = hijack(ctx, conn)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if g.err == nil {
			g.err = g.d.failure(err)
		}
		return nil, err
	}
	g.open[server.PID] = server
	return server, nil
}

func (g *gate) forget(server *pgconn.HijackedConn) {
	g.mu.Lock()
	delete(g.open, server.PID)
	g.mu.Unlock()
	server.Conn.Close()
}

// cancel cancels the current statement of a session. A program requests this when it is
// interrupted.
func (g *gate) cancel(ctx context.Context, pid uint32) {
	g.mu.Lock()
	server := g.open[pid]
	g.mu.Unlock()
	if server != nil {
		cancelOn(ctx, server)
	}
}

// cancelOn cancels the current statement of a session.
func cancelOn(ctx context.Context, server *pgconn.HijackedConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if conn, err := pgconn.Construct(server); err == nil {
		_ = conn.CancelRequest(ctx)
	}
}

func (g *gate) close() error {
	g.listener.Close()
	g.stop()
	g.sessions.Wait()
	os.RemoveAll(g.dir)
	return g.err
}
