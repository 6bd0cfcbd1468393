package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
)

// If nobody agreed to replace content, a load may replace only a database that is empty at the
// moment of the exchange. No session can connect to a database that has been renamed in a
// transaction that is still open. So one session, the watcher, stays connected to the database
// while another session renames it. For the rename, the server first locks the database, which
// keeps new sessions out, and then waits up to five seconds for the connected sessions to end. Once
// the watcher is alone, it sees everything that others have committed, and nobody can add anything.
// It then either disconnects, which lets the rename continue, or cancels the rename.

// requireEmpty returns an error if the database has content. The session must be connected to it.
func (d database) requireEmpty(ctx context.Context, conn *pgx.Conn) error {
	empty, err := isEmpty(ctx, conn)
	if err == nil && !empty {
		err = engine.Filled(strconv.Quote(d.name()))
	}
	return err
}

// moveAway runs the statement that renames the old database. If only an empty database may be
// replaced, the watcher must be connected to the old database. moveAway closes that connection.
func (s *scratch) moveAway(ctx context.Context, tx pgx.Tx, watcher *pgx.Conn, statement string) error {
	if !s.o.OnlyIfEmpty {
		_, err := tx.Exec(ctx, statement)
		return err
	}
	watchCtx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() { watched <- s.leaveIfEmpty(watchCtx, watcher, tx.Conn().PgConn().PID()) }()
	_, err := tx.Exec(ctx, statement)
	stop()
	watchErr := <-watched
	var refused *snap.Error
	if err == nil || errors.As(watchErr, &refused) {
		return watchErr
	}
	return err
}

// leaveIfEmpty waits until conn is the only session in the database that a server process is about
// to rename. It then disconnects if the database is empty, and otherwise cancels the rename.
// renaming is the process's ID.
func (s *scratch) leaveIfEmpty(ctx context.Context, conn *pgx.Conn, renaming uint32) error {
	defer conn.Close(context.WithoutCancel(ctx))
	for alone := false; !alone; {
		if err := conn.QueryRow(ctx, aloneInRenamed, renaming).Scan(&alone); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	err := s.dest.requireEmpty(ctx, conn)
	if err != nil {
		_, _ = conn.Exec(ctx, "SELECT pg_cancel_backend($1)", renaming) // if this fails, the rename times out
	}
	return err
}

// aloneInRenamed selects whether process $1 has locked the current database against new sessions
// and no other session is connected to it.
const aloneInRenamed = `
SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND granted AND mode = 'AccessExclusiveLock'
		AND locktype = 'object' AND classid = 'pg_database'::regclass
		AND objid = (SELECT oid FROM pg_database WHERE datname = current_database()))
	AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL
		AND pid <> pg_backend_pid())`
