package mysql

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/engine"
)

const (
	head      = "-- snapcli 2: " // begins the first line of a dump
	maxHead   = 256 << 20        // maximum bytes of the first line
	chunkSize = 1 << 20          // approximate bytes of an INSERT statement
	readSize  = 64 << 10
)

// Dump implements [engine.Engine]. If the user can block writers for a moment (with the RELOAD
// privilege), several connections read concurrently and see the same state; otherwise a single
// connection reads.
func (e Engine) Dump(ctx context.Context, raw string, w io.Writer, o engine.Options) (engine.Info, error) {
	d, err := e.parse(raw)
	if err != nil {
		return engine.Info{}, err
	}
	return d.dump(ctx, w, o, nil)
}

// Dump implements [engine.Dumper]. The new dump has no history of system-versioned tables, because
// SQL cannot change the history, and masking adds the originals to it. The new dump has the events
// of the restored one, which do not exist in the scratch database because they would run there.
func (s *scratch) Dump(ctx context.Context, w io.Writer, o engine.Options) (engine.Info, error) {
	return s.db.dump(ctx, w, o, s)
}

// dump writes a dump of a database. masked is the scratch database, or nil for any other database.
func (d database) dump(ctx context.Context, w io.Writer, o engine.Options, masked *scratch) (engine.Info, error) {
	db, err := d.open(d.name)
	if err != nil {
		return engine.Info{}, err
	}
	defer db.Close()
	info, err := dump(ctx, db, d.name, w, o, masked)
	if err != nil && ctx.Err() != nil { // a canceled statement can fail in other ways
		return info, ctx.Err()
	}
	return info, d.failure(err)
}

// whyWithoutHistory returns the reason why a dump has no history of system-versioned tables, or "".
func whyWithoutHistory(masked bool, o engine.Options) string {
	switch {
	case masked:
		return "SQL cannot mask the history; rules can"
	case o.Subset != nil:
		return "the rows of a subset are chosen from the current rows"
	}
	return ""
}

func dump(ctx context.Context, db *sql.DB, name string, w io.Writer, o engine.Options, masked *scratch) (engine.Info,
	error) {
	o.Begin("count")
	info, err := inspect(ctx, db, name)
	if err != nil {
		return info, err
	}
	if o.Subset != nil {
		o.Jobs = 1 // the temporary tables with the chosen rows belong to one connection
	}
	readers, err := openReaders(ctx, db, max(1, o.Jobs))
	defer func() {
		for _, r := range readers {
			r.Close()
		}
	}()
	if err != nil {
		return info, err
	}
	if info.Tables, err = listTables(ctx, readers[0], name); err != nil {
		return info, err
	}
	parts, err := structureOf(ctx, readers[0], name)
	if err != nil {
		return info, err
	}
	if masked != nil {
		parts.addEvents(masked.structure.Events)
	}
	if err := parts.keepHistory(ctx, readers[0], name, &info, whyWithoutHistory(masked != nil, o)); err != nil {
		return info, err
	}
	before := parts.Tables
	tables, left, err := leaveOut(&parts, info.Tables, o.Choice)
	if err != nil {
		return info, err
	}
	info.Tables, info.Schema = tables, describe(parts)
	left.report(&info)
	info.Warnings = append(info.Warnings, loadWarnings(parts, info)...)
	line, err := json.Marshal(parts)
	if err != nil {
		return info, fmt.Errorf("write the dump: %w", err)
	}
	where, err := choose(ctx, readers[0], name, &info, o)
	if err != nil {
		return info, err
	}
	o.Begin("dump")
	out := &engine.Counter{W: w, O: o}
	if _, err := fmt.Fprintf(out, "%s%s\n", head, line); err != nil {
		return info, fmt.Errorf("write the dump: %w", err)
	}
	if err := readTables(ctx, readers, name, parts, info.Tables, where, out); err != nil {
		return info, err
	}
	after, err := structureOf(ctx, readers[0], name)
	if err == nil && !sameTables(before, after.Tables) {
		err = errSchemaChanged("its tables changed after the build started")
	}
	info.Tables = append(info.Tables, left.empty...)
	engine.Sort(info.Tables)
	return info, err
}

// loadWarnings returns warnings if only this user could load the dump, because it would fail the
// checks of a load by another user.
func loadWarnings(parts structure, info engine.Info) []string {
	mariadb := strings.Contains(info.ServerVersion, "MariaDB")
	_, data := statementsFor(info.Schema, mariadb)
	_, programs := checker{mariadb: mariadb, version: serverVersion(info.ServerVersion),
		known: info.Schema}.structure(parts)
	var all []string
	for _, err := range []error{data, programs} {
		if err != nil {
			all = append(all, "only you can load this snapshot: "+err.Error())
		}
	}
	return all
}

// sameTables reports whether definitions are equal. It ignores AUTO_INCREMENT, which changes when
// rows are inserted, and Period, which [structure.keepHistory] sets.
func sameTables(before, after []definition) bool {
	return slices.EqualFunc(before, after, func(a, b definition) bool {
		a.SQL, b.SQL = nextNumber.ReplaceAllString(a.SQL, ""), nextNumber.ReplaceAllString(b.SQL, "")
		b.Period = a.Period
		return reflect.DeepEqual(a, b)
	})
}

// nextNumber matches the part of a table's definition that changes when rows are inserted.
var nextNumber = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

func errSchemaChanged(why string) error {
	return &snap.Error{Code: snap.CodeConflict, Detail: "the schema changed during the build: " + why,
		Hint: "build again when no migration is running"}
}

// openReaders opens connections that all see the same state of the database. If that is impossible,
// it opens only one connection.
func openReaders(ctx context.Context, db *sql.DB, jobs int) ([]*sql.Conn, error) {
	var readers []*sql.Conn
	open := func(n int) error {
		for range n {
			c, err := session(ctx, db, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
			if err != nil {
				return err
			}
			readers = append(readers, c)
			if _, err := c.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
				return err
			}
		}
		return nil
	}
	if jobs == 1 {
		return readers, open(1)
	}
	// Writers wait while this lock waits for running statements, so give up after a second.
	lock, err := session(ctx, db, "SET SESSION lock_wait_timeout = 1")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if _, err := lock.ExecContext(ctx, "FLUSH TABLES WITH READ LOCK"); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		jobs = 1
	}
	err = open(jobs)
	if _, unlockErr := lock.ExecContext(context.WithoutCancel(ctx), "UNLOCK TABLES"); err == nil {
		err = unlockErr
	}
	return readers, err
}

// session opens a connection with times in UTC, strings in UTF-8, and no mode that changes how
// values are shown or stored. It then runs the additional statements.
func session(ctx context.Context, db *sql.DB, more ...string) (*sql.Conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range append([]string{"SET NAMES utf8mb4", "SET SESSION time_zone = '+00:00', sql_mode = '" +
		storedMode + "', sql_quote_show_create = 1"}, more...) {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// storedMode is the SQL mode of the sessions that read and load rows.
const storedMode = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"

// readTables reads all tables and sets their Rows and Bytes. A connection that has read a table, or
// a part of a table, continues with the next.
func readTables(ctx context.Context, readers []*sql.Conn, name string, parts structure, tables []engine.Table,
	where map[string]string, out io.Writer) error {
	sources, err := sourcesOf(ctx, readers[0], name, tables)
	if err != nil {
		return err
	}
	for i, s := range sources {
		sources[i].where, sources[i].period = where[s.table.Name], parts.periodOf(s.table.Name)
	}
	if len(readers) > 1 {
		if sources, err = inParts(ctx, readers[0], sources); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, t := range newTurns(out, sources, len(readers)) {
		g.Go(func() error {
			for {
				s, err := t.next(ctx)
				if s == nil {
					return err
				}
				if s.rows, s.bytes, err = readTable(ctx, readers[i], *s, t); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, s := range sources {
		s.table.Rows, s.table.Bytes = max(0, s.table.Rows)+s.rows, s.table.Bytes+s.bytes
	}
	return nil
}

// splitHead parses the first line of a dump, which may have at most limit bytes, and returns a
// reader of the rest.
func splitHead(r io.Reader, limit int) (structure, *bufio.Reader, error) {
	var s structure
	in := bufio.NewReaderSize(r, readSize)
	line, err := readLine(in, limit)
	if err != nil {
		return s, nil, badDump(err)
	}
	text, ok := bytes.CutPrefix(line, []byte(head))
	if !ok {
		return s, nil, badDump(nil)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, nil, badDump(err)
	}
	return s, in, nil
}

// skipHead skips the first line of a dump without parsing it.
func skipHead(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, readSize)
	if start, err := in.Peek(len(head)); err != nil || string(start) != head {
		return nil, badDump(err)
	}
	for {
		switch _, err := in.ReadSlice('\n'); {
		case err == nil:
			return in, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, badDump(io.ErrUnexpectedEOF)
		default:
			return nil, err
		}
	}
}

// readLine reads a line of at most limit bytes. At the end of the input, it returns io.EOF. A last
// line without a newline is an error.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, badDump(errors.New("a line is too long"))
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, badDump(io.ErrUnexpectedEOF)
		}
		return line, err
	}
}

func badDump(cause error) error {
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the snapshot does not contain a dump of a MySQL database",
		Hint: "rebuild it", Cause: cause}
}
