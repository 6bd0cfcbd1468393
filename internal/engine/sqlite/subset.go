package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
	"snap/internal/subset"
)

// dumpPart dumps chosen objects, or a subset of the rows. It copies the database to a scratch file
// in one read transaction, deletes from the copy everything that is not chosen, and dumps the copy.
func (e Engine) dumpPart(ctx context.Context, raw string, w io.Writer, o engine.Options) (engine.Info, error) {
	want, choice := o.Subset, o.Choice
	o.Subset, o.Choice = nil, engine.Choice{}
	s, err := e.copyOf(ctx, raw, o)
	if err != nil {
		return engine.Info{}, err
	}
	defer s.remove()
	o.Begin("choose")
	var omitted schema.Schema
	if !choice.Empty() {
		if omitted, err = s.leaveOut(ctx, choice); err != nil {
			return engine.Info{}, failure(s.path, err)
		}
	}
	sub := &subsetter{}
	if want != nil {
		if err := sub.run(ctx, s, *want); err != nil {
			return engine.Info{}, failure(s.path, err)
		}
	}
	if err := s.Scrub(ctx); err != nil {
		return engine.Info{}, err
	}
	info, err := e.Dump(ctx, s.URL(), w, o)
	if err != nil {
		return info, err
	}
	info.Schema.Omitted, info.Warnings = omitted.Omitted, append(info.Warnings, omitted.Omissions()...)
	if want != nil {
		sub.describe(&info, *want)
	}
	return info, nil
}

// describe records the subset in info.
func (c *subsetter) describe(info *engine.Info, want engine.Subset) {
	info.Subset = &engine.Subset{Where: want.Where, Percent: c.percent, Start: c.start}
	info.Properties = map[string]string{engine.ForeignKeys: c.keys}
	for i, t := range info.Tables {
		info.Tables[i].Of = c.sourceRows[t.Name]
	}
}

// copyOf copies a database to a scratch file.
func (e Engine) copyOf(ctx context.Context, raw string, o engine.Options) (*scratch, error) {
	file, err := os.CreateTemp(o.TempDir, "subset-*.db")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	s := &scratch{place: file.Name(), path: file.Name(), o: o, temporary: true}
	_, err = e.Dump(ctx, raw, file, o)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// subsetter reduces a database to a subset of its rows.
type subsetter struct {
	tx         *sql.Tx
	start      []string
	percent    float64
	sourceRows map[string]int64 // number of rows in the source, by table
	keys       string           // result of checking the foreign keys
}

func (c *subsetter) run(ctx context.Context, s *scratch, want engine.Subset) error {
	db, err := s.openChoosing(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return withoutJournal(ctx, db, func(tx *sql.Tx) error {
		c.tx = tx
		return c.choose(ctx, want)
	})
}

func (c *subsetter) choose(ctx context.Context, want engine.Subset) error {
	triggers, err := dropTriggers(ctx, c.tx)
	if err != nil {
		return err
	}
	g, err := graph(ctx, c.tx)
	if err != nil {
		return err
	}
	choice, err := subset.Choose(ctx, g, want, c, subset.Dialect{
		Temp:  func(name string) string { return "temp." + name },
		Empty: "DELETE FROM %s", Options: " WITHOUT ROWID", Drop: "DROP TABLE %s", Bytes: tableBytes,
	})
	if err != nil {
		return err
	}
	if err := c.remove(ctx, g, choice); err != nil {
		return err
	}
	c.start, c.percent = choice.Plan.Start, choice.Percent
	if err := rebuildSearch(ctx, c.tx); err != nil {
		return err
	}
	if err := recreate(ctx, c.tx, triggers); err != nil {
		return err
	}
	c.keys, err = foreignKeys(ctx, c.tx)
	return err
}

// tableBytes returns the query for the size of a table's rows in bytes.
func tableBytes(t subset.Table) string {
	return "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = '" + strings.ReplaceAll(t.Name, "'", "''") + "'"
}

// remove deletes the rows that were not chosen.
func (c *subsetter) remove(ctx context.Context, g subset.Graph, choice *subset.Choice) error {
	c.sourceRows = map[string]int64{}
	for i, t := range g.Tables {
		_, total, err := choice.Rows(ctx, i)
		if err != nil {
			return err
		}
		c.sourceRows[t.Name] = total
		kept := choice.Kept(i)
		if kept == "" {
			continue
		}
		if _, err := c.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE NOT EXISTS (SELECT 1 FROM %s k WHERE %s)",
			t.From, kept, choice.Match(i, t.From+".", "k."))); err != nil {
			return err
		}
	}
	return nil
}

// Exec implements [subset.Server].
func (c *subsetter) Exec(ctx context.Context, statement string) (int64, error) {
	done, err := c.tx.ExecContext(ctx, statement)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// InsertWhere implements [subset.Server].
func (c *subsetter) InsertWhere(ctx context.Context, table, _, query string) error {
	return c.Insert(ctx, table, query)
}

// Insert implements [subset.Server].
func (c *subsetter) Insert(ctx context.Context, table, query string) error {
	_, err := c.tx.ExecContext(ctx, "INSERT OR IGNORE INTO "+table+" "+query)
	return err
}

// Count implements [subset.Server].
func (c *subsetter) Count(ctx context.Context, query string) (n int64, err error) {
	err = c.tx.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// Condition implements [subset.Server].
func (c *subsetter) Condition(table, condition string, err error) error {
	if code(err) != codes.SQLITE_ERROR {
		return err
	}
	return &snap.Error{
		Code: snap.CodeUsage,
		Detail: fmt.Sprintf("the condition on %s is not valid SQL: %s: %s", table, condition,
			strings.TrimSpace(err.Error())),
		Hint:  "write it as you would after WHERE in a SELECT from that table",
		Cause: err,
	}
}

// graph reads the tables and their foreign keys. Virtual tables are not part of the graph: they are
// kept whole, and full-text indexes are rebuilt.
func graph(ctx context.Context, q querier) (subset.Graph, error) {
	var g subset.Graph
	rows, err := q.QueryContext(ctx,
		`SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
		AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return g, err
	}
	defer rows.Close()
	noRowid := map[string]bool{}
	var list []string
	for rows.Next() {
		var name string
		var wr bool
		if err := rows.Scan(&name, &wr); err != nil {
			return g, err
		}
		list, noRowid[name] = append(list, name), wr
	}
	if err := rows.Err(); err != nil {
		return g, err
	}
	at, primary := map[string]int{}, make([][]string, len(list))
	for i, name := range list {
		t, keys, err := tableOf(ctx, q, name, noRowid[name])
		if err != nil {
			return g, err
		}
		g.Tables, primary[i], at[strings.ToLower(name)] = append(g.Tables, t), keys, i
	}
	for i, name := range list {
		if err := references(ctx, q, &g, i, name, at, primary); err != nil {
			return g, err
		}
	}
	return g, nil
}

// tableOf describes a table, and returns the columns of its primary key.
func tableOf(ctx context.Context, q querier, name string, noRowid bool) (subset.Table, []string, error) {
	t := subset.Table{Name: charset.Readable(name), From: quote(name)}
	rows, err := q.QueryContext(ctx, "SELECT name, type, pk FROM pragma_table_xinfo(?) ORDER BY pk", name)
	if err != nil {
		return t, nil, err
	}
	defer rows.Close()
	var primary []string
	types := map[string]string{"_rowid_": "INTEGER", "rowid": "INTEGER", "oid": "INTEGER"}
	taken := map[string]bool{}
	for rows.Next() {
		var column, kind string
		var pk int
		if err := rows.Scan(&column, &kind, &pk); err != nil {
			return t, nil, err
		}
		taken[strings.ToLower(column)], types[column] = true, affinity(kind)
		if pk > 0 {
			primary = append(primary, column)
		}
	}
	keys := primary
	if !noRowid {
		for _, alias := range []string{"_rowid_", "rowid", "oid"} {
			if !taken[alias] {
				keys = []string{alias}
				break
			}
		}
	}
	for _, key := range keys { // without the type, SQLite would not use the temporary table's index
		t.Key = append(t.Key, subset.Key{Type: types[key],
			Expr: func(prefix string) string { return prefix + quote(key) }})
	}
	identity := primary
	if len(identity) == 0 {
		identity = keys
	}
	t.Share = func(prefix string) string {
		parts := make([]string, len(identity))
		for i, column := range identity {
			parts[i] = prefix + quote(column)
		}
		return "snapcli_share(" + strings.Join(parts, ", ") + ")"
	}
	return t, primary, rows.Err()
}

// references adds the foreign keys of a table. Like SQLite, it ignores foreign keys to tables that
// do not exist.
func references(ctx context.Context, q querier, g *subset.Graph, child int, name string, at map[string]int,
	primary [][]string) error {
	rows, err := q.QueryContext(ctx,
		`SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq`, name)
	if err != nil {
		return err
	}
	defer rows.Close()
	last, seq := -1, 0
	for rows.Next() {
		var id int
		var to, from string
		var parentColumn sql.NullString
		if err := rows.Scan(&id, &to, &from, &parentColumn); err != nil {
			return err
		}
		parent, known := at[strings.ToLower(to)]
		if !known {
			continue
		}
		if id != last {
			g.Keys = append(g.Keys, subset.ForeignKey{Child: child, Parent: parent,
				ChildFrom: g.Tables[child].From, ParentFrom: g.Tables[parent].From})
			last, seq = id, 0
		}
		if !parentColumn.Valid && seq < len(primary[parent]) {
			parentColumn.String = primary[parent][seq]
		}
		seq++
		k := &g.Keys[len(g.Keys)-1]
		k.Columns = append(k.Columns, quote(from))
		k.ParentColumns = append(k.ParentColumns, quote(parentColumn.String))
	}
	return rows.Err()
}

// openChoosing opens the file with the function snapcli_share(key...), which spreads keys evenly
// over 32 bits and always returns the same value for a key.
func (s *scratch) openChoosing(ctx context.Context) (*sql.DB, error) {
	d := &sqlite3.Driver{}
	err := d.RegisterDeterministicScalarFunction("snapcli_share", -1, func(_ *sqlite3.FunctionContext,
		args []driver.Value) (driver.Value, error) {
		h := sha256.New()
		for i, arg := range args {
			if i > 0 {
				h.Write([]byte{0x1f})
			}
			if b, ok := arg.([]byte); ok {
				arg = string(b)
			}
			fmt.Fprint(h, arg)
		}
		return int64(binary.BigEndian.Uint32(h.Sum(nil))), nil
	})
	if err != nil {
		return nil, fmt.Errorf("register the SQL function: %w", err)
	}
	return s.openWith(ctx, d)
}

// foreignKeys checks every foreign key and returns the result as a string.
func foreignKeys(ctx context.Context, q querier) (string, error) {
	n, err := dangling(ctx, q)
	switch {
	case err != nil:
		return "", err
	case n < 0:
		return "cannot be checked", nil
	case n > 0:
		return fmt.Sprintf("%d rows of the source reference nothing", n), nil
	}
	return "hold", nil
}

// checkForeignKeys checks the foreign keys of a restored subset.
func checkForeignKeys(ctx context.Context, q querier, want string) error {
	got, err := foreignKeys(ctx, q)
	if err == nil && got != want {
		err = damaged(fmt.Sprintf("the check of its foreign keys returned %q instead of %q", got, want), nil)
	}
	return err
}
