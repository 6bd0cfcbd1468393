package mysql

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/subset"
)

// choose chooses the rows of a subset and returns, by table, the conditions to read them. It uses
// temporary tables of the reading connection, which exist as long as the connection does. Without a
// subset, it does nothing.
func choose(ctx context.Context, c *sql.Conn, database string, info *engine.Info, o engine.Options) (map[string]string,
	error) {
	if o.Subset == nil {
		return nil, nil //nolint:nilnil // no table has a condition
	}
	o.Begin("choose")
	s := &chooser{c: c, dir: o.TempDir}
	deepest := "SET SESSION cte_max_recursion_depth = 4294967295" // the default of 1000 is too low for deep trees
	if strings.Contains(info.ServerVersion, "MariaDB") {
		deepest = "SET SESSION max_recursive_iterations = 4294967295"
	}
	if _, err := c.ExecContext(ctx, deepest); err != nil {
		return nil, err
	}
	g, err := s.graph(ctx, database, info.Tables)
	if err != nil {
		return nil, err
	}
	choice, err := subset.Choose(ctx, g, *o.Subset, s, subset.Dialect{Temp: quote, Empty: "DELETE FROM %s",
		Drop: "DROP TEMPORARY TABLE %s", Bytes: tableBytes(database)})
	if err != nil {
		return nil, err
	}
	info.Subset = &engine.Subset{Where: o.Subset.Where, Percent: choice.Percent, Start: choice.Plan.Start}
	where := map[string]string{}
	for i, t := range g.Tables {
		if _, info.Tables[i].Of, err = choice.Rows(ctx, i); err != nil {
			return nil, err
		}
		if kept := choice.Kept(i); kept != "" {
			where[t.Name] = " WHERE EXISTS (SELECT 1 FROM " + kept + " k WHERE " + choice.Match(i, t.From+".", "k.") +
				")"
		}
	}
	orphans, err := orphansOf(ctx, c, g, where)
	if err == nil {
		info.Properties[engine.ForeignKeys] = orphans
	}
	return where, err
}

// tableBytes returns a function that returns the query for the size of a table's rows in bytes,
// which the server estimates.
func tableBytes(database string) func(subset.Table) string {
	return func(t subset.Table) string {
		return "SELECT coalesce(max(data_length), 0) FROM information_schema.tables WHERE table_schema = '" +
			escapeText(database) + "' AND table_name = '" + escapeText(t.Name) + "'"
	}
}

// chooser chooses rows on one connection.
type chooser struct {
	c   *sql.Conn
	dir string // folder of the file that buffers keys
}

// Exec implements [subset.Server].
func (s *chooser) Exec(ctx context.Context, statement string) (int64, error) {
	done, err := s.c.ExecContext(ctx, statement)
	if number(err) == erDatabaseDenied {
		return 0, &snap.Error{Code: snap.CodeDatabase,
			Detail: "the rows of a subset are chosen in temporary tables, which the user is not allowed to create",
			Hint:   "grant the privilege CREATE TEMPORARY TABLES on the database", Cause: err}
	}
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Count implements [subset.Server].
func (s *chooser) Count(ctx context.Context, query string) (n int64, err error) {
	err = s.c.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// Condition implements [subset.Server].
func (s *chooser) Condition(table, condition string, err error) error {
	switch number(err) {
	case 0, erDatabaseDenied:
		return err
	}
	return &snap.Error{Code: snap.CodeUsage, Detail: fmt.Sprintf("the condition on %s is not valid SQL: %s: %s",
		table, condition, err), Hint: "write it as you would after WHERE in a SELECT from that table", Cause: err}
}

// InsertWhere implements [subset.Server].
func (s *chooser) InsertWhere(ctx context.Context, table, _, query string) error {
	return s.Insert(ctx, table, query)
}

// Insert implements [subset.Server]. The rows are fetched and sent back, because INSERT ... SELECT
// would see rows newer than the dump and would block writers. There can be many rows, so they are
// buffered in a file.
func (s *chooser) Insert(ctx context.Context, table, query string) error {
	file, err := os.CreateTemp(s.dir, "keys-*")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := s.read(ctx, query, file); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the keys again: %w", err)
	}
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		row, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the keys again: %w", err)
		}
		var b strings.Builder
		b.WriteString("INSERT IGNORE INTO " + table + " VALUES " + strings.TrimSuffix(row, "\n"))
		for n := 1; n < 1000 && b.Len() < 1<<18; n++ {
			more, err := in.ReadString('\n')
			if err != nil {
				break // the outer loop handles it
			}
			b.WriteString("," + strings.TrimSuffix(more, "\n"))
		}
		if _, err := s.c.ExecContext(ctx, b.String()); err != nil {
			return err
		}
	}
}

// read writes the rows of a query as literals, one row per line.
func (s *chooser) read(ctx context.Context, query string, w io.Writer) error {
	rows, err := s.c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	out := bufio.NewWriterSize(w, 1<<20)
	var line []byte
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line = append(line[:0], '(')
		for i, v := range values {
			if i > 0 {
				line = append(line, ',')
			}
			kind := kindText
			if base := strings.ToUpper(columns[i].DatabaseTypeName()); strings.Contains(base, "BINARY") ||
				strings.Contains(base, "BLOB") || base == "BIT" {
				kind = kindBinary
			}
			line = appendBytes(line, v, kind)
		}
		if _, err := out.Write(append(line, ")\n"...)); err != nil {
			return fmt.Errorf("write the keys: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	return nil
}

// graph describes the tables, in their order, and reads their foreign keys.
func (s *chooser) graph(ctx context.Context, database string, tables []engine.Table) (subset.Graph, error) {
	var g subset.Graph
	primary, types, err := primaryKeys(ctx, s.c, database)
	if err != nil {
		return g, err
	}
	at := map[string]int{}
	for i, t := range tables {
		at[strings.ToLower(t.Name)] = i
		g.Tables = append(g.Tables, tableOf(t, primary[t.Name], types[t.Name]))
	}
	g.Keys, err = foreignKeys(ctx, s.c, database, at)
	for i, k := range g.Keys {
		g.Keys[i].ChildFrom, g.Keys[i].ParentFrom = g.Tables[k.Child].From, g.Tables[k.Parent].From
	}
	return g, err
}

// primaryKeys returns the columns of the primary keys and their types, by table.
func primaryKeys(ctx context.Context, c querier, database string) (columns, types map[string][]string, err error) {
	rows, err := c.QueryContext(ctx,
		`SELECT s.table_name, s.column_name, c.column_type, coalesce(c.character_set_name, ''),
		coalesce(c.collation_name, ''), s.sub_part IS NOT NULL
		FROM information_schema.statistics s JOIN information_schema.columns c ON c.table_schema = s.table_schema
			AND c.table_name = s.table_name AND c.column_name = s.column_name
		WHERE s.table_schema = ? AND s.index_name = 'PRIMARY' ORDER BY s.table_name, s.seq_in_index`, database)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns, types = map[string][]string{}, map[string][]string{}
	for rows.Next() {
		var table, column, kind, charset, collation string
		var part bool
		if err := rows.Scan(&table, &column, &kind, &charset, &collation, &part); err != nil {
			return nil, nil, err
		}
		if charset != "" {
			kind += " CHARACTER SET " + charset + " COLLATE " + collation
		}
		if part || strings.Contains(kind, "text") || strings.Contains(kind, "blob") || !keptByUTF8(charset) {
			kind = "" // it cannot be a key at full length, or a conversion would change it
		}
		columns[table], types[table] = append(columns[table], column), append(types[table], kind)
	}
	return columns, types, rows.Err()
}

// tableOf describes a table. If the table has no primary key, or a temporary table cannot have the
// same one, a hash of all values identifies the rows. Rows with the same values are then chosen
// together.
func tableOf(t engine.Table, primary, types []string) subset.Table {
	out := subset.Table{Name: t.Name, From: quote(t.Name)}
	direct := len(primary) > 0 && !slices.Contains(types, "")
	hashed := func(prefix string) string {
		parts := []string{"'x'"}
		for _, c := range t.Columns {
			parts = append(parts, "coalesce(hex(CAST("+prefix+quote(c.Name)+" AS BINARY)), '-')")
		}
		return "sha2(concat_ws(',', " + strings.Join(parts, ", ") + "), 256)"
	}
	identity := hashed
	if direct {
		for i, column := range primary {
			out.Key = append(out.Key, subset.Key{Type: types[i], Expr: func(prefix string) string {
				return prefix + quote(column)
			}})
		}
		identity = func(prefix string) string {
			var parts []string
			for _, column := range primary {
				parts = append(parts, prefix+quote(column))
			}
			return "sha2(concat_ws(char(31), " + strings.Join(parts, ", ") + "), 256)"
		}
	} else {
		out.Key = []subset.Key{{Type: "binary(32)", Expr: func(prefix string) string {
			return "unhex(" + hashed(prefix) + ")"
		}}}
	}
	out.Share = func(prefix string) string {
		return "CAST(conv(substr(" + identity(prefix) + ", 1, 8), 16, 10) AS UNSIGNED)"
	}
	return out
}

// foreignKeys reads the foreign keys inside a database. The map at has the tables' indexes by name
// in lower case, because some servers write names in lower case.
func foreignKeys(ctx context.Context, c querier, database string, at map[string]int) ([]subset.ForeignKey, error) {
	rows, err := c.QueryContext(ctx,
		`SELECT constraint_name, table_name, referenced_table_name, column_name,
		referenced_column_name, ordinal_position
		FROM information_schema.key_column_usage WHERE table_schema = ? AND referenced_table_schema = table_schema
			AND referenced_table_name IS NOT NULL
		ORDER BY table_name, constraint_name, ordinal_position`, database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []subset.ForeignKey
	for rows.Next() {
		var name, child, parent, column, refers string
		var position int
		if err := rows.Scan(&name, &child, &parent, &column, &refers, &position); err != nil {
			return nil, err
		}
		a, knownChild := at[strings.ToLower(child)]
		b, knownParent := at[strings.ToLower(parent)]
		if !knownChild || !knownParent {
			continue
		}
		if position == 1 {
			all = append(all, subset.ForeignKey{Child: a, Parent: b})
		}
		k := &all[len(all)-1]
		k.Columns, k.ParentColumns = append(k.Columns, quote(column)), append(k.ParentColumns, quote(refers))
	}
	return all, rows.Err()
}

// orphansOf counts the rows that reference missing rows, among the rows that the conditions select,
// and returns the result as a string, which is [keysHold] if there are none. The server does not
// check foreign keys when rows are loaded.
func orphansOf(ctx context.Context, c *sql.Conn, g subset.Graph, where map[string]string) (string, error) {
	var all int64
	for _, k := range g.Keys {
		var set, same []string
		for i := range k.Columns {
			set = append(set, "c."+k.Columns[i]+" IS NOT NULL")
			same = append(same, "p."+k.ParentColumns[i]+" = c."+k.Columns[i])
		}
		child := g.Tables[k.Child]
		rows := "(SELECT * FROM " + child.From + where[child.Name] + ")"
		if where[child.Name] == "" {
			rows = child.From
		}
		var n int64
		err := c.QueryRowContext(ctx, "SELECT count(*) FROM "+rows+" c WHERE "+strings.Join(set, " AND ")+
			" AND NOT EXISTS (SELECT 1 FROM "+k.ParentFrom+" p WHERE "+strings.Join(same, " AND ")+")").Scan(&n)
		if err != nil {
			return "", err
		}
		all += n
	}
	if all == 0 {
		return keysHold, nil
	}
	return fmt.Sprintf("%d rows of the source reference nothing", all), nil
}

// keysHold is the result of [orphansOf] if every foreign key holds.
const keysHold = "hold"

// checkOrphans checks the foreign keys of a restored subset.
func checkOrphans(ctx context.Context, c *sql.Conn, database string, tables []engine.Table, want string) error {
	g, err := (&chooser{c: c}).graph(ctx, database, tables)
	if err != nil {
		return err
	}
	for i := range g.Tables {
		g.Tables[i].From = quote(database) + "." + g.Tables[i].From
	}
	for i, k := range g.Keys {
		g.Keys[i].ParentFrom = g.Tables[k.Parent].From
	}
	got, err := orphansOf(ctx, c, g, nil)
	if err == nil && got != want {
		err = &snap.Error{Code: snap.CodeCorrupt,
			Detail: fmt.Sprintf("checking the foreign keys of the restored database gave %q, but the snapshot "+
				"records %q", got, want), Hint: "rebuild the snapshot; nothing was replaced"}
	}
	return err
}
