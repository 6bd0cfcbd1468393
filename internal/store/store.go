// Package store contains all SQL of the service. It stores organizations, users, groups, snapshots,
// grants, uploads, keys and sessions in SQLite (the embedded default) or in PostgreSQL, depending
// on the URL given to [Open].
//
// The data of the access rule (snap.Visible) is in two tables: membership has the audiences of each
// principal, and grants has the snapshots that each audience may see. Methods return only snapshots
// that their caller may see. For a snapshot that the caller is not allowed to see, methods return
// snap.ErrNotFound, as for one that never existed.
//
// Times are stored as milliseconds since 1970 UTC. A null time means "never" or "not yet". SQL is
// written once where both databases accept it ($1 placeholders work in both), and twice where they
// differ.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"snap"
)

// Options configures a [Store].
type Options struct {
	// URL is empty for SQLite in DataDir, or begins with postgres://.
	URL string
	// Connections is the maximum number of connections to PostgreSQL of this process; 0 means four
	// for each processor that Go uses, and at least 16.
	Connections int
	// TransactionPooling says that a pooler such as PgBouncer may give every transaction a
	// different connection, so that no state may be kept in a session.
	TransactionPooling bool
	// DataDir holds snapcloud.db, for SQLite only. It is created if missing.
	DataDir string
	// Now is the clock by which expiry is decided. Nil means time.Now.
	Now func() time.Time
	// Reserve is the number of bytes of the disk that are reserved for requests with
	// [AllowReserve]. For SQLite only; zero means none.
	Reserve int64
	// Quotas limits what users and organizations may push.
	Quotas Quotas
	// Watch is called for every statement. It may be nil, which costs nothing.
	Watch Watch
}

// Store is an open database, safe for concurrent use.
type Store struct {
	// OpenObject opens an object of the audit log's archive. The service sets it before it serves.
	OpenObject func(ctx context.Context, key string) (io.ReadCloser, error)

	write   *sql.DB // SQLite: one connection, so that writers queue here
	read    *sql.DB // PostgreSQL: the same pool as write
	dialect dialect
	pooled  bool // see Options.TransactionPooling
	now     func() time.Time
	quotas  Quotas
	reserve reserve
	schema  int64 // newest migration that this program knows

	mu       sync.Mutex
	prepared map[string]*sql.Stmt // prepared statements, by their text
	listings map[shape]string     // SQL of listings
}

// Open opens the database, migrates it to the newest schema under a lock, and returns the store.
// Several processes may open one database at the same time. On a full disk, Open may use the
// reserve, because every command that takes access away opens the store first.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	ctx = AllowReserve(ctx)
	if err := s.attempt(ctx, func() error { return s.migrate(ctx, o.DataDir) }); err != nil {
		s.Close()
		if code := snap.CodeOf(err); code == snap.CodeUsage || code == snap.CodeStorageFull {
			return nil, err
		}
		return nil, refusedConnection(fmt.Errorf("migrate the database: %w", err))
	}
	return s, nil
}

// refusedConnection converts the error of a failed connection to an error of code unavailable with
// a message on one line. It returns any other error unchanged.
func refusedConnection(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	var pg *pgconn.PgError
	var network *net.OpError
	reason := strings.Join(strings.Fields(connect.Error()), " ")
	switch {
	case errors.As(err, &pg):
		reason = pg.Message
	case errors.As(err, &network):
		reason = network.Error()
	}
	return &snap.Error{Code: snap.CodeUnavailable, Detail: "cannot connect to the database: " + reason,
		Hint: "check that it is running, and check database.url", Cause: err}
}

// open opens the database without migrating it.
func open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{OpenObject: noObjects, now: o.Now, quotas: o.Quotas, prepared: map[string]*sql.Stmt{},
		listings: map[shape]string{}}
	if o.URL != "" {
		s.dialect = postgres
		return s, s.openPostgres(o)
	}
	s.reserve = reserve{filepath.Join(o.DataDir, "reserve"), o.Reserve}
	return s, s.openSQLite(o.DataDir, o.Watch)
}

// idleConnection is how long an unused connection to PostgreSQL is kept.
const idleConnection = 5 * time.Minute

func noObjects(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("the object store of the audit log's archive is not open")
}

func (s *Store) openPostgres(o Options) (err error) {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return snap.Usage("database.url must be empty (SQLite) or begin with postgres://",
			"compare it with docs/configuration.md")
	}
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return snap.Usage("database.url is not valid: "+err.Error(), "compare it with docs/configuration.md")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "snapcloud"
	}
	options := withTimeouts(config)
	s.pooled = o.TransactionPooling
	if s.pooled {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	} else {
		setSession(config)
	}
	if o.Watch != nil {
		config.Tracer = multitracer.New(config.Tracer, pgWatch{o.Watch})
	}
	connections := o.Connections
	if connections == 0 {
		connections = 4 * max(4, runtime.GOMAXPROCS(0))
	}
	s.write = stdlib.OpenDB(*config, options...)
	s.write.SetMaxOpenConns(max(2, connections)) // a migration uses two
	// A connection costs PostgreSQL a process and the plans of every statement, so a busy pool
	// keeps all of its connections.
	s.write.SetMaxIdleConns(max(2, connections))
	s.write.SetConnMaxIdleTime(idleConnection)
	s.read = s.write
	return nil
}

// setSession sets the parameters with which each session begins. A pooler in transaction mode
// refuses these settings; the database's role can have them instead (docs/operations.md).
// plan_cache_mode is set because planning a listing again for every caller costs more than running
// it; random_page_cost, because every statement is written to use indexes, which are normally in
// memory. The server ends idle transactions, because their locks block others.
func setSession(config *pgx.ConnConfig) {
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	config.RuntimeParams["random_page_cost"] = "1.1"
	if config.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		config.RuntimeParams["idle_in_transaction_session_timeout"] = idleLimit
	}
}

// restrictToOwner creates the database file, or makes an existing one readable by its owner only,
// because it holds the keys that sign tokens. SQLite gives its other files the same mode.
func restrictToOwner(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o600)
}

// openSQLite opens one connection for writing and several for reading. In WAL mode, readers never
// wait for the writer. synchronous is FULL because a power failure must not undo a revocation that
// was confirmed.
func (s *Store) openSQLite(dir string, watch Watch) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return snap.Usage("cannot create the data directory: "+err.Error(), "check data_dir")
	}
	s.reserve.fill()
	path := filepath.Join(dir, "snapcloud.db")
	if err := restrictToOwner(path); err != nil {
		return fmt.Errorf("open SQLite: %w", err)
	}
	file := fileURL(path)
	pragmas := "?_pragma=busy_timeout(15000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=foreign_keys(1)&_pragma=cache_size(-65536)"
	if s.write, err = openWatched(file+pragmas+"&_txlock=immediate", watch); err != nil {
		return fmt.Errorf("open SQLite: %w", err)
	}
	s.write.SetMaxOpenConns(1)
	if s.read, err = openWatched(file+pragmas+"&_pragma=query_only(1)", watch); err != nil {
		return fmt.Errorf("open SQLite: %w", err)
	}
	s.read.SetMaxOpenConns(max(2, runtime.NumCPU()))
	s.read.SetMaxIdleConns(max(2, runtime.NumCPU()))
	return nil
}

// Close closes the database.
func (s *Store) Close() error {
	err := s.write.Close()
	if s.read != s.write && s.read != nil {
		err = errors.Join(err, s.read.Close())
	}
	return err
}

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error { return s.read.PingContext(ctx) }

// Now returns the time by which the store judges expiry.
func (s *Store) Now() time.Time { return s.now() }

// tx runs f in one writing transaction and commits if f returns nil. On PostgreSQL, it repeats a
// transaction that failed because of another one (serialization failure, deadlock), so f must have
// no effect outside tx. On a full disk, it may free the reserve and repeat the transaction.
func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	return s.attempt(ctx, func() error { return s.txOnce(ctx, f) })
}

// exec runs one statement that is a transaction by itself, which saves the round trips of
// [Store.tx].
func (s *Store) exec(ctx context.Context, text string, args ...any) error {
	return s.attempt(ctx, func() error {
		_, err := s.write.ExecContext(ctx, text, args...)
		return err
	})
}

// attempt runs a writing transaction as [Store.tx] describes.
func (s *Store) attempt(ctx context.Context, write func() error) error {
	if err := s.reserve.requireSpace(ctx); err != nil {
		return err
	}
	const attempts = 5
	for try := 1; ; try++ {
		err := write()
		if try < attempts && s.dialect == postgres && retryable(err) {
			continue
		}
		if !isDiskFull(err) {
			return err
		}
		if !s.reserve.release(ctx) {
			return errDiskFull(err)
		}
	}
}

// txUnique is like tx, for an f that inserts unique rows. It runs f again if another transaction
// inserted the same rows at the same time.
func (s *Store) txUnique(ctx context.Context, f func(*sql.Tx) error) error {
	const attempts = 5
	for try := 1; ; try++ {
		err := s.tx(ctx, f)
		if try == attempts || !violatesUnique(err) {
			return err
		}
	}
}

func (s *Store) txOnce(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func retryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// ErrUnavailable returns the error that callers get while the database is not available.
func ErrUnavailable(cause error) *snap.Error {
	return &snap.Error{Code: snap.CodeUnavailable, Detail: "the service's database is not available",
		Hint: "try again in a moment", Cause: cause}
}

// Unavailable reports whether err means that the database cannot be reached or used now, so that
// the same request may succeed in a moment.
func Unavailable(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	var pg *pgconn.PgError
	switch {
	// 08: connection, 53: resources, 57P: shut down or starting, 40: repeated conflicts, 25006:
	// read-only, 25P03: idle too long
	case errors.As(err, &pg):
		class := pg.Code[:min(2, len(pg.Code))]
		return class == "08" || class == "53" || class == "40" || strings.HasPrefix(pg.Code, "57P") ||
			pg.Code == "25006" || pg.Code == "25P03"
	case errors.As(err, &connect), errors.As(err, &network):
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// violatesUnique reports whether err says that a statement violated a unique index.
func violatesUnique(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505"
	}
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed")
}

// millis converts a time to its stored form: milliseconds since 1970, or null for the zero time.
func millis(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// timeOf reverses millis.
func timeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMilli(n.Int64).UTC()
}

// timeOrNever converts milliseconds to a time; 0 means never.
func timeOrNever(ms int64) time.Time { return timeOf(nullID(ms)) }

// toTime returns a destination for Scan that sets t to the time in a column, as timeOf returns it.
func toTime(t *time.Time) sql.Scanner { return (*timeColumn)(t) }

type timeColumn time.Time

// Scan implements sql.Scanner.
func (t *timeColumn) Scan(value any) error {
	var n sql.NullInt64
	err := n.Scan(value)
	*t = timeColumn(timeOf(n))
	return err
}

// nullID stores 0 as null.
func nullID(id int64) sql.NullInt64 { return sql.NullInt64{Int64: id, Valid: id != 0} }

// nullText stores an empty string as null.
func nullText(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// joinWords joins words with spaces.
func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, " ")
}

// splitWords reverses joinWords.
func splitWords[T ~string](text string) (words []T) {
	for w := range strings.FieldsSeq(text) {
		words = append(words, T(w))
	}
	return words
}
