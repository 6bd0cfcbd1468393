package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Version names a committed state of the whole database. Two reads that return
// equal states mean that nothing was committed between them, by any process:
// whoever worked something out after the first read may use it after the
// second, as if they had asked again.
//
// What is told by the clock changes all the same: of the shares, at Next at
// the earliest.
type Version struct {
	State string
	At    time.Time // by the store's clock, not after the state was read
	Next  time.Time // when the next share ends by itself, after At; zero if none does
}

// Version returns the state of the database at some moment after the call, so
// that whatever was answered before is in it. Calls that wait at the same time
// share one read. It fails when the database cannot tell: then nothing worked
// out earlier may be used.
func (s *Store) Version(ctx context.Context) (Version, error) { return s.version.get(ctx) }

// stateReader reads versions by a connection of its own that never writes and is in
// no transaction between two reads. It is used by one goroutine at a time.
type stateReader struct {
	store  *Store
	db     *sql.DB
	conn   *sql.Conn
	stmt   *sql.Stmt
	opened int // connections so far
	never  bool
}

// versionTimeout bounds one read, which others wait for.
const versionTimeout = 5 * time.Second

// The state is told by SQLite's data_version, which counts, for one connection,
// the commits of all others; and by PostgreSQL's set of transactions that have
// ended, which grows with each commit. (A position in the write-ahead log would
// not do: a commit stands there before anyone can see it.) Both hold for one
// connection only: what a crash of the server undid, it may number again. The
// next end of a share belongs to the same state, being of the same statement.
const (
	nextEnd       = `(SELECT min(g.expires_at) FROM grants g WHERE g.expires_at > $1)`
	stateSQLite   = `SELECT v.data_version, ` + nextEnd + ` FROM pragma_data_version v`
	statePostgres = `SELECT pg_backend_pid()::text || ' ' || pg_current_snapshot()::text, ` + nextEnd
)

var errNoVersion = errors.New("the database does not tell its state")

func (r *stateReader) read() (Version, error) {
	if r.never {
		return Version{}, errNoVersion
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	if r.conn == nil {
		if err := r.open(ctx); err != nil {
			r.close()
			return Version{}, err
		}
	}
	v, err := r.ask(ctx)
	if err != nil {
		r.close()
	}
	return v, err
}

func (r *stateReader) ask(ctx context.Context) (v Version, err error) {
	var next sql.NullInt64
	v.At = r.store.now()
	if err := r.stmt.QueryRowContext(ctx, v.At.UnixMilli()).Scan(&v.State, &next); err != nil {
		return Version{}, err
	}
	v.State = fmt.Sprint(r.opened, " ", v.State)
	v.Next = timeOf(next)
	return v, nil
}

// open connects, and tries whether the database tells its state as it should.
func (r *stateReader) open(ctx context.Context) (err error) {
	r.opened++
	if r.conn, err = r.db.Conn(ctx); err != nil {
		return err
	}
	text := stateSQLite
	if r.store.dialect == postgres {
		text = statePostgres
		if err := r.isPostgres(ctx); err != nil {
			return err
		}
	}
	if r.stmt, err = r.conn.PrepareContext(ctx, text); err != nil {
		r.never = r.store.dialect == postgres && !Unavailable(err) // PostgreSQL before 13
	}
	if err != nil || r.store.dialect == sqlite {
		return err
	}
	return r.try(ctx)
}

// isPostgres refuses databases that speak PostgreSQL's protocol and keep their
// versions otherwise.
func (r *stateReader) isPostgres(ctx context.Context) error {
	var product string
	if err := r.conn.QueryRowContext(ctx, `SELECT version()`).Scan(&product); err != nil {
		return err
	}
	if !strings.HasPrefix(product, "PostgreSQL ") || strings.Contains(product, "-YB-") {
		r.never = true
		return errNoVersion
	}
	return nil
}

// try commits a transaction that changes nothing. The state must be another
// one afterwards.
func (r *stateReader) try(ctx context.Context) error {
	before, err := r.ask(ctx)
	if err != nil {
		return err
	}
	var id string
	if err := r.store.write.QueryRowContext(ctx, `SELECT pg_current_xact_id()::text`).Scan(&id); err != nil {
		return err
	}
	after, err := r.ask(ctx)
	if err == nil && after.State == before.State {
		r.never, err = true, errNoVersion
	}
	return err
}

func (r *stateReader) close() {
	if r.stmt != nil {
		r.stmt.Close()
	}
	if r.conn != nil {
		r.conn.Close()
	}
	r.stmt, r.conn = nil, nil
}
