package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// A dump is masked in a scratch file with one UPDATE for each table, or two if columns of the table
// are permuted. A SQL function calls the masks. Then the file is rewritten so that no old value
// remains. The changes have no rollback journal and are not synced, because the file is deleted
// after a failure.

var _ engine.Rewriter = Engine{}

// unpack restores a dump into a scratch file in the temporary folder, or reuses the file that
// Inspect kept there. The caller must remove the file.
func unpack(ctx context.Context, d engine.Dump, o engine.Options) (*scratch, error) {
	place, err := filepath.Abs(filepath.Join(o.TempDir, "scratch.db"))
	if err != nil {
		return nil, fmt.Errorf("find the temporary folder: %w", err)
	}
	s := &scratch{place: place, o: o, temporary: true, trust: d.Trust}
	if kept := s.keptPath(d); kept != "" {
		if _, err := os.Stat(kept); err == nil {
			s.path = kept
			return s, nil
		}
	}
	file, err := s.write(ctx, d)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		s.remove()
		return nil, failure(s.place, err)
	}
	return s, nil
}

// keptPath returns the path at which Inspect keeps the unpacked database, or "" if Inspect does not
// keep it.
func (s *scratch) keptPath(d engine.Dump) string {
	if d.SHA256 == "" {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d-%t", s.place, d.SHA256, d.Trust, d.WithPrograms)
}

// keep keeps the scratch file for a Rewrite of the same dump, if keptPath returns a path.
func (s *scratch) keep(d engine.Dump) error {
	kept := s.keptPath(d)
	if kept == "" {
		return nil
	}
	if err := os.Rename(s.path, kept); err != nil {
		return err
	}
	removeSides(s.path)
	s.path = ""
	s.release()
	return nil
}

// Inspect implements [engine.Rewriter]. It fails if the data that it reads is damaged. It does not
// check that all rows exist; Rewrite does.
func (Engine) Inspect(ctx context.Context, dump engine.Dump, samples int, o engine.Options) (engine.Contents, error) {
	s, err := unpack(ctx, dump, o)
	if err != nil {
		return engine.Contents{}, err
	}
	defer s.remove()
	db, err := s.open(ctx, "ro")
	if err != nil {
		return engine.Contents{}, err
	}
	c, err := inspect(ctx, db, samples, o)
	db.Close()
	if err == nil {
		err = s.keep(dump)
	}
	return c, failure(s.path, unreadable(err))
}

// unreadable converts an error about a damaged dump and leaves other errors unchanged.
func unreadable(err error) error {
	if code(err) == codes.SQLITE_CORRUPT || code(err) == codes.SQLITE_NOTADB {
		return damaged("", err)
	}
	return err
}

func inspect(ctx context.Context, db *sql.DB, samples int, o engine.Options) (engine.Contents, error) {
	var c engine.Contents
	all, err := tables(ctx, db)
	if err != nil {
		return c, err
	}
	list, err := withoutShadows(ctx, db, all)
	if err != nil {
		return c, err
	}
	if c.Stored, err = storedIn(ctx, db); err != nil {
		return c, err
	}
	for _, t := range list {
		s := engine.Shape{Name: charset.Readable(t.Name), Columns: labels(t.Columns), Samples: make([][]string,
			len(t.Columns))}
		if len(t.Columns) == 0 {
			return c, snap.Invalid(fmt.Sprintf("the table %s is of a kind that this build of SQLite does not support",
				s.Name), "mask the snapshot with a SQL file that drops the table")
		}
		for i, column := range t.Columns {
			if s.Samples[i], err = sample(ctx, db, t.Name, column.Name, samples); err != nil {
				return c, err
			}
		}
		observers, _ := o.Observers("", s.Name, s.Columns)
		for i, see := range observers {
			if err := allValues(ctx, db, t.Name, t.Columns[i].Name, see); err != nil {
				return c, err
			}
		}
		if s.Definitions, err = texts(ctx, db, "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? "+
			"AND sql IS NOT NULL", t.Name); err != nil {
			return c, err
		}
		c.Tables = append(c.Tables, s)
	}
	return c, nil
}

// sample returns samples of a column, from its first 20,000 values that are not NULL.
func sample(ctx context.Context, db *sql.DB, table, column string, limit int) (samples []string, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT DISTINCT CAST(%[1]s AS TEXT) FROM (SELECT %[1]s FROM %[2]s "+
		"WHERE %[1]s IS NOT NULL LIMIT 20000)", quote(column), quote(table)))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for !engine.EnoughSamples(samples, limit) && rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		samples = engine.AddSample(samples, value, limit)
	}
	return samples, rows.Err()
}

// allValues calls see with every value of a column except NULL. It does nothing if see is nil.
func allValues(ctx context.Context, db *sql.DB, table, column string, see func(string)) error {
	if see == nil {
		return nil
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT CAST(%[1]s AS TEXT) FROM %[2]s WHERE %[1]s IS NOT NULL",
		quote(column), quote(table)))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return err
		}
		see(value)
	}
	return rows.Err()
}

// withoutShadows removes shadow tables from a list, because they change with their virtual tables.
func withoutShadows(ctx context.Context, q querier, all []engine.Table) ([]engine.Table, error) {
	shadow, err := texts(ctx, q, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'")
	return slices.DeleteFunc(all, func(t engine.Table) bool { return slices.Contains(shadow, t.Name) }), err
}

// Rewrite implements [engine.Rewriter]. Before masking, it checks that no page of the original
// belongs to two trees. Afterwards, it checks that the indexes of masked tables match the rows. A
// load checks the other indexes (decision 45).
func (e Engine) Rewrite(ctx context.Context, dump engine.Dump, p engine.Plan, w io.Writer,
	o engine.Options) (engine.Info, error) {
	s, err := unpack(ctx, dump, o)
	if err != nil {
		return engine.Info{}, err
	}
	defer s.remove()
	o.Begin("verify")
	if err := s.check(ctx, []string{"quick_check(1)"}); err != nil {
		return engine.Info{}, err
	}
	o.Begin("mask")
	want := dump.Info
	if dump.Trust == engine.Foreign {
		want = described(want)
	}
	changed, err := s.mask(ctx, p, want)
	if err != nil {
		return engine.Info{}, failure(s.path, unreadable(err))
	}
	if err := s.Scrub(ctx); err != nil {
		return engine.Info{}, err
	}
	check, ctx := errgroup.WithContext(ctx)
	check.Go(func() error { return s.check(ctx, tableChecks(changed)) })
	info, err := s.dump(ctx, w)
	if checkErr := check.Wait(); checkErr != nil {
		err = checkErr
	}
	return info, err
}

// mask applies the plan, and returns the tables that it changed.
func (s *scratch) mask(ctx context.Context, p engine.Plan, want engine.Info) (changed []string, err error) {
	var masks []columnMask
	db, err := s.openMasking(ctx, &masks)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	err = withoutJournal(ctx, db, func(tx *sql.Tx) error {
		changed, err = maskTables(ctx, tx, p, want, &masks)
		return err
	})
	return changed, err
}

// withoutJournal changes a scratch file in one transaction without a rollback journal. After a
// failure, the file is unusable. The journal mode of the file is kept.
func withoutJournal(ctx context.Context, db *sql.DB, change func(*sql.Tx) error) error {
	var journal string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = off"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil || journal != "wal" { // the file stores no other journal mode
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode = wal")
	return err
}

// maskTables masks the tables one by one, without triggers. It fails if rows that the manifest
// counts are missing.
func maskTables(ctx context.Context, tx *sql.Tx, p engine.Plan, want engine.Info,
	masks *[]columnMask) (changed []string, err error) {
	all, err := tables(ctx, tx)
	if err == nil {
		err = engine.Compare(want.Tables, labeled(all))
	}
	if err != nil {
		return nil, err
	}
	list, err := withoutShadows(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	triggers, err := dropTriggers(ctx, tx)
	if err != nil {
		return nil, err
	}
	var plans []masking
	for _, t := range list {
		m, err := maskingOf(t, p)
		if err != nil {
			return nil, err
		}
		if m.drop || len(m.columns) > 0 {
			plans = append(plans, m)
		}
	}
	before, err := danglingOf(ctx, tx, plans)
	if err != nil {
		return nil, err
	}
	for _, m := range plans {
		changed, *masks = append(changed, m.table), m.masks
		if err := m.run(ctx, tx); err != nil {
			return nil, maskFailure(m.table, err)
		}
	}
	if before >= 0 {
		if after, err := dangling(ctx, tx); err != nil || after > before {
			return nil, cmp.Or(err, brokenReferences(after-before))
		}
	}
	if err := rebuildSearch(ctx, tx); err != nil {
		return nil, err
	}
	if err := recreate(ctx, tx, triggers); err != nil {
		return nil, err
	}
	return changed, rewriteSchema(ctx, tx, p.Schema)
}

// danglingOf returns the result of [dangling], or -1 if the plans affect no foreign key.
func danglingOf(ctx context.Context, tx *sql.Tx, plans []masking) (int64, error) {
	for _, m := range plans {
		list, err := json.Marshal(m.columns)
		if err != nil {
			return 0, err
		}
		var n int
		if err := tx.QueryRowContext(ctx, `
			WITH masked AS (SELECT value FROM json_each(?2))
			SELECT count(*) FROM pragma_table_list AS l, pragma_foreign_key_list(l.name) AS f
			WHERE l.schema = 'main' AND (l.name = ?1 COLLATE NOCASE AND (?3 OR f."from" IN masked)
			OR f."table" = ?1 COLLATE NOCASE AND (?3 OR coalesce(f."to",
			(SELECT name FROM pragma_table_xinfo(?1) WHERE pk = f.seq + 1)) COLLATE NOCASE IN masked))`,
			m.table, string(list), m.drop).Scan(&n); err != nil {
			return 0, err
		}
		if n > 0 {
			return dangling(ctx, tx)
		}
	}
	return -1, nil
}

// dangling returns the number of rows whose foreign keys refer to no row, or -1 if SQLite cannot
// check the keys.
func dangling(ctx context.Context, q querier) (n int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&n)
	if code(err) == codes.SQLITE_ERROR { // a foreign key refers to columns without a unique index
		return -1, nil
	}
	return n, err
}

// brokenReferences returns the error for masks that break foreign keys.
func brokenReferences(n int64) error {
	return snap.Invalid(fmt.Sprintf("the masks break foreign keys: %d more rows refer to no row", n),
		"give the columns that refer to one another the same mask")
}

// masking defines how a table is masked.
type masking struct {
	table   string
	drop    bool     // delete all rows
	columns []string // otherwise, mask these columns
	masks   []columnMask
}

// columnMask is the mask of a column.
type columnMask struct {
	mask  engine.Mask
	row   *engine.BoundMask // replaces mask if it is not nil
	needs string            // SQL of the additional arguments of snapcli_mask
	twice bool              // the column is masked in two steps, see [tempForm]
}

// forRow returns the mask for a row. others are the row's values in the columns that the mask
// needs.
func (m columnMask) forRow(others []driver.Value) (engine.Mask, error) {
	if m.row == nil {
		return m.mask, nil
	}
	if len(others) != len(m.row.At) {
		return nil, fmt.Errorf("%d values for a mask that needs %d", len(others), len(m.row.At))
	}
	i := -1
	return m.row.For(func(int) (*string, error) {
		if i++; others[i] == nil {
			return nil, nil
		}
		text := textOf(others[i])
		return &text, nil
	})
}

func maskingOf(t engine.Table, p engine.Plan) (masking, error) {
	m := masking{table: t.Name}
	names := make([]string, len(t.Columns))
	for i, c := range labels(t.Columns) {
		names[i] = c.Name
	}
	masks, drop, err := p.Masks("", charset.Readable(t.Name), names)
	if m.drop = drop; err != nil || drop {
		return m, err
	}
	rows, err := p.RowMasks("", charset.Readable(t.Name), names)
	if err != nil {
		return m, err
	}
	permuted := p.Tables[[2]string{"", charset.Readable(t.Name)}].Permuted
	for i, mask := range masks {
		if mask != nil {
			column := columnMask{mask: mask, twice: slices.Contains(permuted, names[i])}
			if len(rows) > 0 && rows[i] != nil {
				column.row = rows[i]
				for _, at := range rows[i].At {
					column.needs += ", " + quote(t.Columns[at].Name)
				}
			}
			m.columns, m.masks = append(m.columns, t.Columns[i].Name), append(m.masks, column)
		}
	}
	return m, nil
}

// run masks the table. It overrides the conflict clauses of constraints, because a clause such as
// IGNORE would leave rows unmasked.
func (m masking) run(ctx context.Context, tx *sql.Tx) error {
	if m.drop {
		return execute(ctx, tx, "DELETE FROM "+quote(m.table))
	}
	indexes, err := dropIndexes(ctx, tx, m.table, m.columns)
	if err != nil {
		return err
	}
	sets, decodes, inTwo := make([]string, len(m.columns)), make([]string, len(m.columns)), false
	for i, column := range m.columns {
		sets[i] = fmt.Sprintf("%[1]s = snapcli_mask(%[2]d, %[1]s%[3]s)", quote(column), i, m.masks[i].needs)
		decodes[i] = fmt.Sprintf("%[1]s = %[1]s", quote(column)) // so that SQLite checks its constraints
		if m.masks[i].twice {
			inTwo, decodes[i] = true, fmt.Sprintf("%[1]s = snapcli_decode(%[1]s)", quote(column))
		}
	}
	update := "UPDATE OR ABORT " + quote(m.table) + " SET "
	steps := []string{update + strings.Join(sets, ", ")}
	if inTwo {
		steps = append([]string{"PRAGMA ignore_check_constraints = on"}, append(steps,
			"PRAGMA ignore_check_constraints = off", update+strings.Join(decodes, ", "))...)
	}
	if err := execute(ctx, tx, steps...); err != nil {
		return err
	}
	return recreate(ctx, tx, indexes)
}

func maskFailure(table string, err error) error {
	if code(err) != codes.SQLITE_CONSTRAINT {
		return err
	}
	hint := "choose masks whose results the constraint allows"
	if strings.Contains(err.Error(), "UNIQUE") {
		hint = "use the mask \"hash\" for values that must stay unique"
	}
	return &snap.Error{
		Code: snap.CodeInvalid,
		Detail: fmt.Sprintf("the masks of the table %s violate one of its constraints: %s",
			charset.Readable(table), strings.TrimSpace(err.Error())),
		Hint:  hint,
		Cause: err,
	}
}

// dropTriggers drops all triggers, so that no change fires one, and returns them.
func dropTriggers(ctx context.Context, tx *sql.Tx) ([]entry, error) {
	names, err := texts(ctx, tx, "SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid")
	if err != nil {
		return nil, err
	}
	return drop(ctx, tx, "trigger", names)
}

// withoutTriggers drops all triggers in a transaction of its own, and returns them.
func withoutTriggers(ctx context.Context, c *sql.Conn) ([]entry, error) {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // after a commit it does nothing
	dropped, err := dropTriggers(ctx, tx)
	if err != nil {
		return nil, err
	}
	return dropped, tx.Commit()
}

// recreateTriggers recreates the triggers whose tables still exist. Before that, it rebuilds the
// full-text indexes, which triggers often keep up to date.
func recreateTriggers(ctx context.Context, c *sql.Conn, dropped []entry) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := rebuildSearch(ctx, tx); err != nil {
		return err
	}
	for _, e := range dropped {
		found, err := relationExists(ctx, tx, e.table)
		if err == nil && found {
			err = execute(ctx, tx, e.sql)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// relationExists reports whether there is a table or view with this name.
func relationExists(ctx context.Context, q querier, name string) (found bool, err error) {
	err = q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') "+
		"AND name = ? COLLATE NOCASE)", name).Scan(&found)
	return found, err
}

// dropIndexes drops the indexes of a table that a change of these columns can affect, except those
// of constraints, and returns them. Building an index again is faster than updating it row by row.
func dropIndexes(ctx context.Context, tx *sql.Tx, table string, columns []string) ([]entry, error) {
	list, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	names, err := texts(ctx, tx, `SELECT name FROM pragma_index_list(?) AS i WHERE origin = 'c' AND (partial OR EXISTS (
		SELECT 1 FROM pragma_index_xinfo(i.name) AS c WHERE c.cid = -2
			OR c.name IN (SELECT value FROM json_each(?))))`, table, string(list))
	if err != nil {
		return nil, err
	}
	return drop(ctx, tx, "index", names)
}

// drop drops triggers or indexes, and returns them. It first checks the SQL of each, which comes
// from the file, so that it is safe to recreate them.
func drop(ctx context.Context, tx *sql.Tx, kind string, names []string) (dropped []entry, err error) {
	for _, name := range names {
		e := entry{kind: kind, name: name}
		err := tx.QueryRowContext(ctx, "SELECT tbl_name, sql FROM sqlite_schema WHERE type = ? AND name = ?",
			kind, name).Scan(&e.table, &e.sql)
		if err == nil {
			err = e.check()
		}
		if err == nil {
			err = execute(ctx, tx, "DROP "+kind+" "+quote(name))
		}
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, e)
	}
	return dropped, nil
}

// recreate creates objects again that [drop] has dropped.
func recreate(ctx context.Context, tx *sql.Tx, dropped []entry) error {
	for _, e := range dropped {
		if err := execute(ctx, tx, e.sql); err != nil {
			return err
		}
	}
	return nil
}

func execute(ctx context.Context, tx *sql.Tx, statements ...string) error {
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// rebuildSearch rebuilds the full-text indexes, because they contain words of old values. It
// recognizes them by their shadow tables, because their definitions have many forms.
func rebuildSearch(ctx context.Context, tx *sql.Tx) error {
	names, err := texts(ctx, tx, `SELECT name FROM pragma_table_list AS v WHERE schema = 'main' AND type = 'virtual'
		AND EXISTS (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'
			AND name = v.name || '_idx')`)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := rebuildIndex(ctx, tx, name)
		if code(err) == codes.SQLITE_ERROR {
			return snap.Invalid(
				fmt.Sprintf("the full-text index %s cannot be rebuilt, and may contain words of masked values",
					charset.Readable(name)),
				"drop it with a SQL file instead")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuildIndex rebuilds a full-text index from its content.
func rebuildIndex(ctx context.Context, tx *sql.Tx, name string) error {
	return execute(ctx, tx, fmt.Sprintf("INSERT INTO %[1]s(%[1]s) VALUES ('rebuild')", quote(name)))
}

// openMasking opens the file with the function snapcli_mask(number, value, ...), which applies the
// mask with that number. Further arguments are the values of the columns that a row mask needs. The
// function snapcli_decode(value) is the second step for a column that is masked in two steps.
func (s *scratch) openMasking(ctx context.Context, masks *[]columnMask) (*sql.DB, error) {
	d, form := &sqlite3.Driver{}, newTempForm()
	err := d.RegisterScalarFunction("snapcli_mask", -1, func(_ *sqlite3.FunctionContext,
		args []driver.Value) (driver.Value, error) {
		if len(args) < 2 {
			return nil, errors.New("a mask needs a number and a value")
		}
		number, ok := args[0].(int64)
		if !ok || number < 0 || int(number) >= len(*masks) {
			return nil, fmt.Errorf("there is no mask %v", args[0])
		}
		mask, err := (*masks)[number].forRow(args[2:])
		if err != nil {
			return nil, err
		}
		if (*masks)[number].twice {
			return form.encode(apply(mask, args[1])), nil
		}
		return apply(mask, args[1]), nil
	})
	if err == nil {
		err = d.RegisterScalarFunction("snapcli_decode", 1, func(_ *sqlite3.FunctionContext,
			args []driver.Value) (driver.Value, error) {
			return form.decode(args[0]), nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("register the SQL functions: %w", err)
	}
	return s.openWith(ctx, d)
}

// openWith opens a scratch file with a driver that has additional SQL functions.
func (s *scratch) openWith(ctx context.Context, d *sqlite3.Driver) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": {manyPages, noSync, "foreign_keys(0)"}}
	if s.trust != engine.Mine {
		query.Set("_defensive", "1")
	}
	return confine(ctx, d, s.path, query)
}

// textOf returns a value that is not NULL as the string to mask. Real numbers have an exponent only
// if they are very large or small.
func textOf(value driver.Value) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if size := math.Abs(v); size >= 1 && size < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return string(v)
	}
	return fmt.Sprint(value)
}

// apply masks a value. If possible, the result has the same storage class as the value. A result
// that is too large for an integer is masked again, so that different integers stay different if
// the mask is a permutation. If a mask changes the letter of an exponent, the value is masked again
// in a form without an exponent.
func apply(mask engine.Mask, value driver.Value) driver.Value {
	if value == nil {
		return nil
	}
	masked, null := mask(textOf(value))
	if null {
		return nil
	}
	switch v := value.(type) {
	case int64:
		n, err := strconv.ParseInt(masked, 10, 64)
		for i := 0; errors.Is(err, strconv.ErrRange) && !null && i < maxRepeats; i++ {
			masked, null = mask(masked)
			n, err = strconv.ParseInt(masked, 10, 64)
		}
		if null {
			return nil
		}
		if err == nil {
			return n
		}
	case float64:
		f, err := strconv.ParseFloat(masked, 64)
		if err != nil {
			if masked, null = mask(strconv.FormatFloat(v, 'f', -1, 64)); null {
				return nil
			}
			f, err = strconv.ParseFloat(masked, 64)
		}
		if err == nil {
			return f
		}
	case []byte:
		return []byte(masked)
	}
	return masked
}

// maxRepeats limits how often a result is masked again. About one in ten numbers of 19 digits is
// too large.
const maxRepeats = 100
