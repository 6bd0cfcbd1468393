package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/engine/sqlite/btree"
	"snap/internal/schema"
)

// SQLite never opens a file from another organization or of unknown origin. Package btree reads its
// rows. The rows are inserted as parameters into a new file, whose tables are created from the
// snapshot's description.

// rebuild creates the scratch file from the rows of a foreign dump.
func (s *scratch) rebuild(ctx context.Context, file *os.File, d engine.Dump) error {
	description := d.Info.Schema
	if description == nil {
		return &snap.Error{
			Code:   snap.CodeInvalid,
			Detail: "the snapshot is from somebody else and has no description of its tables: an old version built it",
			Hint:   "ask its owner to rebuild it with the current version",
		}
	}
	if err := description.Check(schema.SQLite); err != nil {
		return err
	}
	raw, err := s.unpackForeign(ctx, d)
	if err != nil {
		return err
	}
	defer os.Remove(raw.Name())
	defer raw.Close()
	b, err := newBuilder(raw, description, s.o)
	if err == nil {
		b.withPrograms = d.WithPrograms
		stop := b.startFlushing(file)
		err = b.build(ctx, s.path)
		stop()
	}
	if err == nil {
		err = engine.Compare(described(d.Info).Tables, b.counts())
	}
	return foreignFailure(err)
}

// described returns info without the tables that are missing from its description: tables that are
// listed as programs, and tables that store the content of virtual tables.
func described(info engine.Info) engine.Info {
	if info.Schema == nil {
		return info
	}
	known := map[string]bool{}
	for _, t := range info.Schema.Tables {
		known[t.Name.Name] = true
	}
	info.Tables = slices.DeleteFunc(slices.Clone(info.Tables), func(t engine.Table) bool { return !known[t.Name] })
	return info
}

// counts returns the tables, each with the number of inserted rows, or -1 if they were not counted.
func (b *builder) counts() []engine.Table {
	var all []engine.Table
	for _, t := range b.schema.Tables {
		rows, counted := b.rows[t.Name.Name]
		if !counted {
			rows = -1
		}
		all = append(all, engine.Table{Name: t.Name.Name, Rows: rows})
	}
	return all
}

// unpackForeign writes the dump to a temporary file.
func (s *scratch) unpackForeign(ctx context.Context, d engine.Dump) (*os.File, error) {
	file, err := os.CreateTemp(s.o.TempDir, "snapcli-foreign-*.db")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	if err := s.copy(ctx, file, d); err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

// foreignFailure converts an error about a foreign file to a *snap.Error.
func foreignFailure(err error) error {
	var already *snap.Error
	switch {
	case errors.As(err, &already):
	case errors.Is(err, btree.ErrDamaged):
		return damaged(err.Error(), err)
	case errors.Is(err, btree.ErrRow):
		return &snap.Error{
			Code:   snap.CodeInvalid,
			Detail: "the snapshot is from somebody else, and " + err.Error(),
			Hint:   "ask for a snapshot without that row; to load this one anyway, trust its owner",
			Cause:  err,
		}
	case slices.Contains([]int{codes.SQLITE_CONSTRAINT, codes.SQLITE_MISMATCH, codes.SQLITE_ERROR,
		codes.SQLITE_TOOBIG}, code(err)):
		return damaged("its rows or tables do not match its description: "+err.Error(), err)
	}
	return err
}

// builder creates a new database from a description and the rows of a file.
type builder struct {
	file         *btree.File
	catalog      *catalog
	schema       *schema.Schema
	o            engine.Options
	withPrograms bool
	conn         *sql.Conn
	rows         map[string]int64 // inserted rows, by table
	unflushed    int              // bytes of rows since the last flush
	flush        chan struct{}    // starts a flush
}

// flushBytes is the number of bytes of rows between two flushes to the disk.
const flushBytes = 8 << 20

// startFlushing flushes the file to the disk while it grows, so that the last flush is short. It
// ignores errors, because the last flush reports them.
func (b *builder) startFlushing(file *os.File) (stop func()) {
	b.flush = make(chan struct{}, 1)
	var done sync.WaitGroup
	done.Go(func() {
		for range b.flush {
			_ = file.Sync()
		}
	})
	return func() { close(b.flush); done.Wait() }
}

// inserted counts the rows and bytes of a batch, and starts a flush if it is due.
func (b *builder) inserted(table string, rows, size int) {
	b.rows[table] += int64(rows)
	if b.unflushed += size; b.unflushed < flushBytes {
		return
	}
	b.unflushed = 0
	select {
	case b.flush <- struct{}{}:
	default:
	}
}

func newBuilder(raw *os.File, description *schema.Schema, o engine.Options) (*builder, error) {
	info, err := raw.Stat()
	if err != nil {
		return nil, err
	}
	file, err := btree.Open(raw, info.Size())
	if err != nil {
		return nil, err
	}
	entries, err := file.Schema()
	if err != nil {
		return nil, err
	}
	return &builder{file: file, catalog: catalogOf(entriesIn(entries)), schema: description, o: o,
		rows: map[string]int64{}}, nil
}

func entriesIn(list []btree.Entry) []entry {
	all := make([]entry, len(list))
	for i, e := range list {
		all[i] = entry{kind: e.Type, name: e.Name, table: e.Table, root: int64(e.Root), sql: e.SQL}
	}
	return all
}

// maxValue is the maximum size of a value in bytes. It is larger than a row, because checks compute
// longer values.
const maxValue = 4 * btree.MaxRow

// build fills the empty file at path.
func (b *builder) build(ctx context.Context, path string) error {
	db, err := confine(ctx, &sqlite3.Driver{}, path, url.Values{
		"mode": {"rw"}, "_dqs": {strconv.FormatBool(b.withPrograms)},
		"_pragma": {fmt.Sprintf("page_size(%d)", b.file.PageSize), b.encoding(), b.autoVacuum(), "journal_mode(off)",
			noSync, "cache_size(-4096)", "locking_mode(exclusive)", "foreign_keys(0)", "temp_store(1)"},
	})
	if err != nil {
		return err
	}
	defer db.Close()
	if b.conn, err = db.Conn(ctx); err != nil {
		return err
	}
	defer b.conn.Close()
	if _, err := sqlite3.Limit(b.conn, codes.SQLITE_LIMIT_LENGTH, maxValue); err != nil {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	if b.file.WAL {
		return b.run(ctx, "PRAGMA journal_mode = wal", "PRAGMA locking_mode = normal", "SELECT 1 FROM sqlite_schema")
	}
	return nil
}

func (b *builder) encoding() string {
	name := "UTF-8"
	switch b.file.Encoding {
	case btree.UTF16LE:
		name = "UTF-16le"
	case btree.UTF16BE:
		name = "UTF-16be"
	}
	return "encoding('" + name + "')"
}

func (b *builder) autoVacuum() string {
	switch {
	case b.file.Incremental:
		return "auto_vacuum(2)"
	case b.file.AutoVacuum:
		return "auto_vacuum(1)"
	}
	return "auto_vacuum(0)"
}

// run executes statements that were generated or checked.
func (b *builder) run(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := b.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// fill creates everything in one transaction. Indexes come after the rows of their table, and
// virtual tables after the tables that they can read.
func (b *builder) fill(ctx context.Context) error {
	if err := b.run(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, virtual := range []bool{false, true} {
		for _, t := range b.schema.Tables {
			if (t.Virtual != "") != virtual {
				continue
			}
			if !fillable(t, b.schema.Tables) { // an older version described it
				b.notifyLeftOut("virtual table", t.Name.Name)
				continue
			}
			if err := b.table(ctx, t); err != nil {
				return err
			}
		}
	}
	if err := b.sequences(ctx); err != nil {
		return err
	}
	if b.withPrograms {
		if err := b.programs(ctx); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(b.catalog.entries, func(e entry) bool { return e.name == "sqlite_stat1" }) {
		if err := b.run(ctx, "ANALYZE"); err != nil {
			return err
		}
	}
	return b.run(ctx, fmt.Sprintf("PRAGMA user_version = %d", b.file.UserVersion),
		fmt.Sprintf("PRAGMA application_id = %d", b.file.ApplicationID), "COMMIT")
}

// entry returns the schema entry of a table in the file.
func (b *builder) entry(name string) (entry, error) {
	for _, e := range b.catalog.entries {
		if e.kind == "table" && charset.Readable(e.name) == name {
			return e, nil
		}
	}
	return entry{}, damaged(fmt.Sprintf("the table %q is described but missing", name), nil)
}

// table creates a table with its rows and indexes.
func (b *builder) table(ctx context.Context, t schema.Table) error {
	text, err := b.statement(t)
	if err != nil {
		return err
	}
	if err := b.run(ctx, text); err != nil {
		return err
	}
	switch t.Virtual {
	case fts5:
		err = b.fillSearch(ctx, t)
	case rtree:
		err = b.fillTree(ctx, t)
	default:
		err = b.fillOrdinary(ctx, t)
	}
	if err != nil {
		return err
	}
	for _, index := range t.Indexes {
		if err := b.run(ctx, createIndex(t.Name.Name, index)); err != nil {
			return err
		}
	}
	return nil
}

// statement returns the statement that creates a table: a generated statement, or the file's own if
// the table's programs are loaded.
func (b *builder) statement(t schema.Table) (string, error) {
	ofTable := func(p schema.Program) bool { return p.On == t.Name.Name && slices.Contains(tablePrograms(), p.Kind) }
	if !b.withPrograms || t.Virtual != "" || !slices.ContainsFunc(b.schema.Programs, ofTable) {
		return createTable(t)
	}
	e, err := b.entry(t.Name.Name)
	if err == nil {
		err = e.check()
	}
	return e.sql, err
}

// tablePrograms returns the kinds of programs that are part of a table.
func tablePrograms() []string {
	return []string{"check constraint", "default", "generated column", "unique constraint", "foreign key", "collation"}
}

// fillOrdinary copies the rows of an ordinary table. In the file, the table must have the described
// columns.
func (b *builder) fillOrdinary(ctx context.Context, t schema.Table) error {
	e, err := b.entry(t.Name.Name)
	if err != nil {
		return err
	}
	d, ok := b.catalog.tables[strings.ToLower(e.name)]
	same := func(x, y schema.Column) bool { return x.Name == y.Name && x.Computed == y.Computed }
	if !ok || !slices.EqualFunc(d.Columns, t.Columns, same) || d.Options[withoutRowid] != t.Options[withoutRowid] {
		return damaged(fmt.Sprintf("the table %q does not match its description", t.Name.Name), nil)
	}
	return b.copyRows(ctx, t.Name.Name, e.root, layoutOf(d))
}

// sequences sets the last assigned number for each table that has AUTOINCREMENT.
func (b *builder) sequences(ctx context.Context) error {
	hasSequence := func(t schema.Table) bool { return definition{Table: t}.autoIncrement() != "" }
	if !slices.ContainsFunc(b.schema.Tables, hasSequence) {
		return nil
	}
	if err := b.run(ctx, "DELETE FROM sqlite_sequence"); err != nil {
		return err
	}
	for _, q := range b.schema.Sequences {
		if _, err := b.conn.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES (?, CAST(? AS INTEGER))",
			q.Name.Name, q.Last); err != nil {
			return err
		}
	}
	return nil
}

// programs creates the programs that the description lists: expression and partial indexes, views
// and triggers, in this order. Each statement is checked before it runs. Virtual tables and tables
// that are programs are left out, and the user is notified.
func (b *builder) programs(ctx context.Context) error {
	for _, kind := range []string{"index", "view", "trigger"} {
		for _, e := range b.catalog.entries {
			if e.kind != kind || !b.isProgram(e) {
				continue
			}
			if err := e.check(); err != nil {
				return err
			}
			if err := b.run(ctx, e.sql); err != nil {
				return &snap.Error{
					Code: snap.CodeDatabase,
					Detail: fmt.Sprintf("the %s %q of the snapshot cannot be created: %s", e.kind, e.name,
						strings.TrimSpace(err.Error())),
					Hint:  "load the snapshot without its programs",
					Cause: err,
				}
			}
		}
	}
	for _, p := range b.schema.Programs {
		if p.Kind == "virtual table" || p.Kind == "table" {
			b.notifyLeftOut(p.Kind, p.Name.Name)
		}
	}
	return nil
}

func (b *builder) notifyLeftOut(kind, name string) {
	b.o.Notify(fmt.Sprintf("left out: the %s %s, which cannot be rebuilt from rows", kind, name))
}

// isProgram reports whether the description lists an entry as a program.
func (b *builder) isProgram(e entry) bool {
	return slices.ContainsFunc(b.schema.Programs, func(p schema.Program) bool {
		return p.Name.Name == charset.Readable(e.name) && (p.Kind == e.kind || e.kind == "index" &&
			strings.HasSuffix(p.Kind, " index"))
	})
}
