package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/jackc/pgx/v5"
	modernc "modernc.org/sqlite"
)

// Watch is called when a statement begins, with its SQL, which has placeholders but never values.
// The returned context becomes the statement's. The returned function is called when the statement
// has returned its last row (PostgreSQL) or its first row (SQLite).
type Watch func(ctx context.Context, statement string) (context.Context, func(error))

// Pools returns the connection pools by name, for their statistics.
func (s *Store) Pools() map[string]*sql.DB {
	if s.read == s.write {
		return map[string]*sql.DB{"all": s.write}
	}
	return map[string]*sql.DB{"write": s.write, "read": s.read}
}

// StatementKind returns the kind of a statement by its first word: select, insert, update, delete,
// begin, commit, rollback, or other. WITH counts as select.
func StatementKind(statement string) string {
	statement = strings.TrimLeft(statement, " \t\n(")
	first := statement
	if end := strings.IndexAny(statement, " \t\n"); end >= 0 {
		first = statement[:end]
	}
	switch first = strings.ToLower(first); first {
	case "select", "insert", "update", "delete", "begin", "commit", "rollback":
		return first
	case "with":
		return "select"
	}
	return "other"
}

// pgWatch adapts a [Watch] to pgx.
type pgWatch struct{ watch Watch }

type pgWatchKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (w pgWatch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	ctx, done := w.watch(ctx, q.SQL)
	return context.WithValue(ctx, pgWatchKey{}, done)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w pgWatch) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if done, ok := ctx.Value(pgWatchKey{}).(func(error)); ok {
		done(q.Err)
	}
}

// openWatched opens SQLite like sql.Open, and calls watch for each statement unless watch is nil.
func openWatched(name string, watch Watch) (*sql.DB, error) {
	db, err := sql.Open("sqlite", name)
	if err != nil || watch == nil {
		return db, err
	}
	d := db.Driver()
	if err := db.Close(); err != nil { // it has opened nothing yet
		return nil, err
	}
	return sql.OpenDB(liteConnector{d, name, watch}), nil
}

type liteConnector struct {
	driver driver.Driver
	name   string
	watch  Watch
}

// Connect implements driver.Connector.
func (c liteConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(liteDriverConn)
	if !ok { // an older or newer version of the driver works without the watch
		return conn, nil
	}
	return &liteConn{full, c.watch}, nil
}

// Driver implements driver.Connector.
func (c liteConnector) Driver() driver.Driver { return c.driver }

// liteDriverConn has every optional interface of the driver's connections, so that a watched
// connection keeps them.
type liteDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	NewBackup(to string) (*modernc.Backup, error)
	NewRestore(from string) (*modernc.Backup, error)
}

type liteConn struct {
	liteDriverConn
	watch Watch
}

// ExecContext implements driver.ExecerContext.
func (c *liteConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	ctx, done := c.watch(ctx, text)
	result, err := c.liteDriverConn.ExecContext(ctx, text, args)
	done(err)
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *liteConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, done := c.watch(ctx, text)
	rows, err := c.liteDriverConn.QueryContext(ctx, text, args)
	done(err)
	return rows, err
}

// BeginTx implements driver.ConnBeginTx.
func (c *liteConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	began, done := c.watch(ctx, "begin")
	tx, err := c.liteDriverConn.BeginTx(began, o)
	done(err)
	if err != nil {
		return nil, err
	}
	return &liteTx{tx, ctx, c.watch}, nil
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *liteConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.liteDriverConn.PrepareContext(ctx, text)
	full, ok := stmt.(liteDriverStmt)
	if err != nil || !ok {
		return stmt, err
	}
	return &liteStmt{full, text, c.watch}, nil
}

type liteTx struct {
	driver.Tx
	began context.Context //nolint:containedctx // driver.Tx has no context
	watch Watch
}

// Commit implements driver.Tx.
func (t *liteTx) Commit() error {
	_, done := t.watch(t.began, "commit")
	err := t.Tx.Commit()
	done(err)
	return err
}

type liteDriverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type liteStmt struct {
	liteDriverStmt
	text  string
	watch Watch
}

// ExecContext implements driver.StmtExecContext.
func (s *liteStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	ctx, done := s.watch(ctx, s.text)
	result, err := s.liteDriverStmt.ExecContext(ctx, args)
	done(err)
	return result, err
}

// QueryContext implements driver.StmtQueryContext.
func (s *liteStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	ctx, done := s.watch(ctx, s.text)
	rows, err := s.liteDriverStmt.QueryContext(ctx, args)
	done(err)
	return rows, err
}
