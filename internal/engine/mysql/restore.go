package mysql

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/engine"
)

// Restore implements [engine.Engine].
func (e Engine) Restore(ctx context.Context, raw string, dump engine.Dump, o engine.Options) (engine.Scratch, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	db, err := d.open("")
	if err != nil {
		return nil, err
	}
	id := randomID()
	s := &scratch{dest: d, db: d.named(scratchPrefix + id), id: id, server: db, o: o}
	if o.Into == engine.InPlace {
		s.db = d
	}
	if err := s.fill(ctx, dump); err != nil {
		err = s.failed(errors.Join(err, s.drop(context.WithoutCancel(ctx))))
		if s.emptied { // explainOtherServer would say that nothing was replaced
			return nil, err
		}
		return nil, explainOtherServer(err, dump.Info.ServerVersion, s.version)
	}
	return s, nil
}

// scratch is a database on the destination's server. While the database is in use, lock holds a
// user-level lock with its id, so that the database is not mistaken for a leftover.
type scratch struct {
	dest, db   database // the destination and the scratch database; the same for a load in place
	id         string
	server     *sql.DB
	lock       *sql.Conn
	structure  structure
	packet     int // maximum size of a statement on the server, in bytes
	properties map[string]string
	created    bool // the scratch database exists, or may exist
	emptied    bool // the destination was emptied, for a load in place
	o          engine.Options
	from       string // database on the same server that the rows are copied from; "" for a dump

	version string             // of the server
	trust   trust              // of the dump
	forms   map[string]rowForm // the form of the rows, by table; nil if the dump is trusted
	leftOut map[string]bool    // the tables of the dump that the load omits
	account account            // the account that creates everything, if any

	needsAccount bool // the dump cannot be loaded without an account
}

func randomID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (s *scratch) fill(ctx context.Context, dump engine.Dump) error {
	var err error
	if s.lock, err = s.server.Conn(ctx); err != nil {
		return err
	}
	if err := sweep(ctx, s.server, s.lock, s.dest, s.o); err != nil {
		return err
	}
	if _, err := s.lock.ExecContext(ctx, "SELECT get_lock(?, 0)", s.id); err != nil {
		return err
	}
	in, err := dump.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	counted := &engine.Counter{W: io.Discard, O: s.o, Of: dump.Size}
	if err := s.server.QueryRowContext(ctx, "SELECT version(), @@max_allowed_packet").Scan(&s.version,
		&s.packet); err != nil {
		return err
	}
	s.trust = trustOf(dump)
	rows, err := s.read(dump, io.TeeReader(engine.Reader(ctx, in), counted))
	if err != nil {
		return err
	}
	s.properties = dump.Info.Properties
	if err := s.requireCollations(ctx, dump.Info.ServerVersion); err != nil {
		return err
	}
	steps := []func(context.Context) error{s.create, s.confine}
	if s.o.Into == engine.InPlace { // refuse before the old content is removed
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.o.Begin("restore")
	return s.restore(ctx, rows, s.wanted(dump.Info))
}

// restore creates and fills everything in the scratch database, and verifies it.
func (s *scratch) restore(ctx context.Context, rows *bufio.Reader, want []engine.Table) error {
	db, err := s.loadDatabase().open(s.db.name)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := s.loadSession(ctx, db)
	if err != nil {
		return err
	}
	defer c.Close()
	// A server can be configured to reject tables without a primary key, or to add a key to them.
	// This statement turns both settings off for the session. Its error is ignored, because the
	// user may have no permission to change them.
	_, _ = c.ExecContext(ctx, "SET @unused = 0 /*!80030 , SESSION sql_require_primary_key = 0, SESSION "+
		"sql_generate_invisible_primary_key = 0 */")
	indexes, references := map[string]string{}, []string{}
	for _, q := range s.structure.Sequences {
		if err := createSequence(ctx, c, q); err != nil {
			return err
		}
	}
	for _, t := range s.structure.Tables {
		bare, keys, foreign := splitKeys(t.SQL)
		if err := createObject(ctx, c, "TABLE", definition{Name: t.Name, SQL: bare, Mode: storedMode}); err != nil {
			return err
		}
		if keys != "" {
			indexes[t.Name] = "ALTER TABLE " + quote(t.Name) + " " + keys
		}
		if foreign != "" {
			references = append(references, "ALTER TABLE "+quote(t.Name)+" "+foreign)
		}
	}
	got, err := s.fillTables(ctx, db, rows, indexes)
	if err == nil {
		err = s.parallel(ctx, db, references) // a foreign key needs the other table's index
	}
	if err != nil {
		return err
	}
	s.o.Begin("verify")
	if err := s.verify(ctx, c, want, got); err != nil {
		return err
	}
	if keys, ok := s.properties[engine.ForeignKeys]; ok {
		if err := checkOrphans(ctx, c, s.db.name, want, keys); err != nil {
			return err
		}
	}
	// Unsupported programs must be detected now rather than after the swap.
	m := creator{c: c, account: s.account}
	if s.account.exists() {
		if m.own, err = session(ctx, s.server, "USE "+quote(s.db.name)); err != nil {
			return err
		}
		defer endSession(m.own)
	}
	if err := createPrograms(ctx, m, s.structure); err != nil {
		return err
	}
	if err := checkEvents(ctx, c, s.structure.Events); err != nil {
		return err
	}
	return s.requireInside(ctx)
}

// fillTables fills the tables, makes their indexes and returns each table's number of rows.
func (s *scratch) fillTables(ctx context.Context, db *sql.DB, rows *bufio.Reader, indexes map[string]string) (
	map[string]int64, error) {
	if s.from != "" {
		return s.copyRows(ctx, db, indexes)
	}
	got, err := s.load(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	s.o.Begin("index")
	return got, s.parallel(ctx, db, slices.Collect(maps.Values(indexes)))
}

// endSession closes a connection, so that no other user of the pool gets its database and modes.
func endSession(c *sql.Conn) {
	_ = c.Raw(func(any) error { return sqldriver.ErrBadConn })
	_ = c.Close()
}

// loadSession opens a connection that loads rows. It turns off checks that the source database has
// already made, and then runs the statements in more.
func (s *scratch) loadSession(ctx context.Context, db *sql.DB, more ...string) (*sql.Conn, error) {
	settings := []string{"SET SESSION foreign_key_checks = 0, unique_checks = 0 /*M!100300 , check_constraint_checks " +
		"= 0 */", setEnglish}
	if s.structure.hasHistory() {
		settings = append(settings, "SET SESSION system_versioning_insert_history = 1")
	}
	c, err := session(ctx, db, append(settings, more...)...)
	if number(err) == erNoVariable {
		return nil, errNoHistory(s.dest.where(), err)
	}
	if err == nil {
		_, _ = c.ExecContext(ctx, allWarnings)
	}
	return c, err
}

// load inserts the rows, several statements at a time, and returns each table's number of rows.
func (s *scratch) load(ctx context.Context, db *sql.DB, in *bufio.Reader) (map[string]int64, error) {
	known, rows, mu := s.structure.tableNames(), map[string]int64{}, sync.Mutex{}
	queue := make(chan statement)
	limit := maxStatement
	if s.trust != complete {
		limit = s.packet + chunkSize // the server accepts no larger row
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(queue)
		for {
			next, err := next(in, limit)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil && s.leftOut[next.table] {
				continue
			}
			if err == nil && !known[next.table] {
				err = badDump(fmt.Errorf("it has rows of %.80q, which is not one of its tables", next.table))
			}
			if err != nil {
				return err
			}
			select {
			case queue <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	for range max(1, s.o.Jobs) {
		g.Go(func() error {
			return s.insert(ctx, db, queue, func(table string, n int64) {
				mu.Lock()
				defer mu.Unlock()
				rows[table] += n
			})
		})
	}
	return rows, g.Wait()
}

// insert runs the statements in the queue. Each statement is one transaction. A statement that is
// too large for the server is split into several.
func (s *scratch) insert(ctx context.Context, db *sql.DB, queue <-chan statement,
	inserted func(table string, rows int64)) error {
	c, err := s.loadSession(ctx, db)
	if err != nil {
		return err
	}
	defer c.Close()
	for next := range queue {
		if s.o.Enforce != nil && s.mariadb() {
			if _, err := c.ExecContext(ctx, fmt.Sprintf("SET SESSION check_constraint_checks = %t",
				s.o.Enforce("", next.table))); err != nil {
				return err
			}
		}
		if form, ok := s.forms[next.table]; ok {
			var omitted int64
			if next, omitted, err = form.rewrite(next); err != nil {
				return err
			}
			inserted(next.table, omitted)
		}
		n, err := s.insertRows(ctx, c, next, execRetrying)
		if s.o.Enforce != nil && number(err) == erCheckFailed {
			err = errCheckFailed(next.table, err)
		}
		if err != nil {
			return err
		}
		inserted(next.table, n)
	}
	return nil
}

// insertRows runs a statement, possibly in parts, and returns the number of inserted rows. It
// refuses a value that its column cannot hold.
func (s *scratch) insertRows(ctx context.Context, c *sql.Conn, one statement, run func(context.Context, *sql.Conn,
	string) (sql.Result, error)) (rows int64, err error) {
	one = s.withDecimals(one)
	limit, err := s.partLimit(ctx, c, one)
	if err != nil {
		return 0, err
	}
	for text := range one.parts(limit) {
		result, err := run(ctx, c, text)
		if err != nil {
			return rows, s.tooLarge(one.table, len(text), err)
		}
		n, err := result.RowsAffected()
		if err == nil {
			err = s.checkWarnings(ctx, c, one, text)
		}
		if err != nil {
			return rows, err
		}
		rows += n
	}
	return rows, nil
}

// errCheckFailed explains MariaDB's error for a row that violates a check.
func errCheckFailed(table string, err error) error {
	check := ""
	if name := failedCheck.FindStringSubmatch(err.Error()); name != nil {
		check = " " + name[1]
	}
	return &snap.Error{
		Code: snap.CodeInvalid, Cause: err,
		Detail: fmt.Sprintf("a row of the table %s violates the check%s; the original row may violate it too", table,
			check),
		Hint: "use masks that satisfy the check, or correct the rows in the source; nothing was replaced",
	}
}

// failedCheck matches the name of the check in the message of erCheckFailed.
var failedCheck = regexp.MustCompile("CONSTRAINT `(.*)` failed for ")

// packetHead is an upper bound on the number of bytes that a packet has in addition to its statement.
const packetHead = 64

// tooLarge explains the error if a row is too large for the server.
func (s *scratch) tooLarge(table string, size int, err error) error {
	if !errors.Is(err, driver.ErrPktTooLarge) && number(err) != erPacketTooLarge {
		return err
	}
	return &snap.Error{
		Code: snap.CodeDatabase, Cause: err,
		Detail: fmt.Sprintf("inserting a row of the table %s takes %d bytes, and the MySQL server %s accepts only %d",
			table, size, s.dest.where(), s.packet),
		Hint: fmt.Sprintf("raise the limit with SET GLOBAL max_allowed_packet = %d (and permanently in the server's "+
			"configuration), and load again; nothing was replaced", roundUp(size+packetHead)),
	}
}

// roundUp rounds up to a full MiB.
func roundUp(n int) int { return (n + 1<<20 - 1) &^ (1<<20 - 1) }

// parallel runs statements concurrently.
func (s *scratch) parallel(ctx context.Context, db *sql.DB, statements []string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, s.o.Jobs))
	for _, statement := range statements {
		g.Go(func() error { return s.alter(ctx, db, statement) })
	}
	return g.Wait()
}

func (s *scratch) alter(ctx context.Context, db *sql.DB, statement string) error {
	c, err := s.loadSession(ctx, db)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = execRetrying(ctx, c, statement)
	return err
}

// execRetrying runs a statement, and retries it if the server rolled it back because of a conflict
// with another connection.
func execRetrying(ctx context.Context, c *sql.Conn, text string) (result sql.Result, err error) {
	for range 20 {
		if result, err = c.ExecContext(ctx, text); number(err) != erDeadlock && number(err) != erLockTimeout {
			break
		}
	}
	return result, err
}

// requireCollations returns an error for a dump with collations that the server lacks: a substitute
// would sort and compare differently.
func (s *scratch) requireCollations(ctx context.Context, from string) error {
	known, err := queryStrings(ctx, s.server, "SELECT coalesce(collation_name, '') FROM information_schema.collations "+
		"UNION SELECT coalesce(full_collation_name, '') FROM information_schema.collation_character_set_applicability")
	if err != nil { // MySQL has no column for full names
		known, err = queryStrings(ctx, s.server, "SELECT collation_name FROM information_schema.collations")
	}
	if err != nil {
		return err
	}
	wanted := s.structure.collations()
	wanted[s.properties["collation"]] = true
	var missing []string
	for name := range wanted {
		if name != "" && !slices.Contains(known, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return snap.Usage(fmt.Sprintf("the server %s lacks collations of this snapshot, which is from %s: %s",
		s.dest.where(), from, strings.Join(missing, ", ")),
		"use a server of the kind and version that the snapshot was built from; nothing was replaced")
}

var wordPattern = regexp.MustCompile(`^[a-z0-9_]+$`)

// charsetClause returns the clause of CREATE DATABASE that sets the character set and collation, or
// "" if they are unknown.
func (s *scratch) charsetClause() string {
	charset, collation := s.properties["charset"], s.properties["collation"]
	if !wordPattern.MatchString(charset) || !wordPattern.MatchString(collation) {
		return ""
	}
	return " CHARACTER SET " + charset + " COLLATE " + collation
}

// verify compares the tables, and the row counts that the server reported as inserted, with the
// snapshot.
func (s *scratch) verify(ctx context.Context, c *sql.Conn, want []engine.Table, inserted map[string]int64) error {
	got, err := listTables(ctx, c, s.db.name)
	if err != nil {
		return err
	}
	got = slices.DeleteFunc(got, func(t engine.Table) bool { return t.Name == engine.Unfinished })
	for i, t := range got {
		got[i].Rows = inserted[t.Name]
	}
	return engine.Compare(want, got)
}

// URL implements [engine.Scratch].
func (s *scratch) URL() string { return s.db.url() }

// Run implements [engine.Scratch]. It splits the SQL as the servers' client programs do, including
// DELIMITER lines.
func (s *scratch) Run(ctx context.Context, text string) error {
	err := s.dest.failure(s.withoutTriggers(ctx, func() error { return s.run(ctx, text) }))
	if err == nil && !slices.ContainsFunc(statements(text), hasCode) {
		err = engine.ErrNoStatement
	}
	return err
}

func (s *scratch) run(ctx context.Context, text string) error {
	db, err := s.db.open(s.db.name)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, setStrictMode); err != nil {
		return err
	}
	for _, statement := range statements(text) {
		_, err := c.ExecContext(ctx, statement)
		switch {
		case err == nil || number(err) == erEmptyQuery:
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case number(err) == 0:
			return err
		}
		serverErr, _ := errors.AsType[*driver.MySQLError](err)
		return &snap.Error{Code: snap.CodeDatabase, Cause: err,
			Detail: "the SQL failed: " + serverErr.Message + ", in: " + engine.Shortened(statement),
			Hint:   "correct the SQL and try again; this run's changes were undone"}
	}
	_, err = c.ExecContext(ctx, "COMMIT") // the SQL may have left a transaction open
	return err
}

// Scrub implements [engine.Scratch]. It does nothing, because the dump of a scratch database contains
// only current rows.
func (s *scratch) Scrub(context.Context) error { return nil }

// Drop implements [engine.Scratch].
func (s *scratch) Drop(ctx context.Context) error {
	return s.dest.failure(s.drop(ctx))
}

func (s *scratch) drop(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	var err error
	if s.emptied {
		err = s.account.dropUnused(ctx, s.server)
	}
	if s.created {
		err = errors.Join(s.dropDatabase(ctx), s.account.dropUnused(ctx, s.server))
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
	_ = s.server.Close()
	s.server = nil
	return err
}

// dropDatabase drops the scratch database. If a statement on the connection s.lock was canceled,
// the connection is closed, but the server may still be running the statement. The server then
// holds the lock until the statement ends, so dropDatabase waits for the lock.
func (s *scratch) dropDatabase(ctx context.Context) error {
	if s.lock.PingContext(ctx) != nil {
		c, err := s.server.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.ExecContext(ctx, "SELECT get_lock(?, 30)", s.id); err != nil {
			return err
		}
	}
	_, err := s.server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(s.db.name))
	return err
}
