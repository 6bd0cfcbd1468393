package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
)

// A dump is masked in a scratch file: one UPDATE a table, with a function of
// ours as the mask, and then written anew so that no old value remains.

var _ engine.Rewriter = Engine{}

// scratchIn returns a scratch file of the temporary folder, which is not made
// yet.
func scratchIn(o engine.Options) (*scratch, error) {
	place, err := filepath.Abs(filepath.Join(o.TempDir, "scratch.db"))
	if err != nil {
		return nil, fmt.Errorf("find the temporary folder: %w", err)
	}
	return &scratch{place: place, o: o, passing: true}, nil
}

// Inspect implements [engine.Rewriter]. What it reads must be readable; that the
// file is whole Rewrite checks.
func (Engine) Inspect(ctx context.Context, dump engine.Dump, samples int, o engine.Options) (engine.Contents, error) {
	s, err := scratchIn(o)
	if err != nil {
		return engine.Contents{}, err
	}
	defer s.remove()
	if err := s.take(ctx, dump); err != nil {
		return engine.Contents{}, failure(s.place, err)
	}
	db, err := open(s.path, "ro")
	if err != nil {
		return engine.Contents{}, err
	}
	defer db.Close()
	c, err := inspect(ctx, db, samples)
	if code(err) == codes.SQLITE_CORRUPT || code(err) == codes.SQLITE_NOTADB {
		err = damaged("", err)
	}
	return c, failure(s.path, err)
}

func inspect(ctx context.Context, db *sql.DB, samples int) (engine.Contents, error) {
	var c engine.Contents
	list, err := ownTables(ctx, db)
	if err != nil {
		return c, err
	}
	for _, t := range list {
		s := engine.Shape{Name: t.Name, Columns: t.Columns, Samples: make([][]string, len(t.Columns))}
		if len(t.Columns) == 0 {
			return c, snap.Invalid(fmt.Sprintf("the table %s is of a kind that this SQLite does not know", t.Name), "mask the snapshot with a SQL file after dropping it")
		}
		for i, column := range t.Columns {
			if s.Samples[i], err = sample(ctx, db, t.Name, column.Name, samples); err != nil {
				return c, err
			}
		}
		c.Tables = append(c.Tables, s)
	}
	return c, nil
}

func sample(ctx context.Context, db *sql.DB, table, column string, most int) ([]string, error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT DISTINCT CAST(%[1]s AS TEXT) FROM (SELECT %[1]s FROM %[2]s WHERE %[1]s IS NOT NULL LIMIT 20000) LIMIT %[3]d", quote(column), quote(table), most))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// ownTables lists the tables without those that virtual tables keep their
// content in, which follow the virtual tables.
func ownTables(ctx context.Context, q querier) ([]engine.Table, error) {
	rows, err := q.QueryContext(ctx, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	shadow := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		shadow[name] = true
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	all, err := tables(ctx, q)
	var own []engine.Table
	for _, t := range all {
		if !shadow[t.Name] {
			own = append(own, t)
		}
	}
	return own, err
}

// Rewrite implements [engine.Rewriter].
func (e Engine) Rewrite(ctx context.Context, dump engine.Dump, p engine.Plan, w io.Writer, o engine.Options) (engine.Info, error) {
	s, err := scratchIn(o)
	if err != nil {
		return engine.Info{}, err
	}
	defer s.remove()
	if err := s.fill(ctx, dump); err != nil {
		return engine.Info{}, err
	}
	o.Begin("mask")
	if err := s.mask(ctx, p); err != nil {
		return engine.Info{}, failure(s.path, err)
	}
	if err := s.Scrub(ctx); err != nil {
		return engine.Info{}, err
	}
	return e.Dump(ctx, s.URL(), w, o)
}

// mask applies the plan in one transaction.
func (s *scratch) mask(ctx context.Context, p engine.Plan) error {
	var masks []engine.Mask
	db, err := openMasking(s.path, &masks)
	if err != nil {
		return err
	}
	defer db.Close()
	list, err := ownTables(ctx, db)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	triggers, err := dropTriggers(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range list {
		statement, err := maskStatement(t, p, &masks)
		if err != nil {
			return err
		}
		if statement == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return maskFailure(t.Name, err)
		}
	}
	if err := rebuildSearch(ctx, tx); err != nil {
		return err
	}
	for _, trigger := range triggers {
		if _, err := tx.ExecContext(ctx, trigger); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// maskStatement returns the statement that masks a table, "" when all of it is
// kept. Its masks are added to those that the function knows.
func maskStatement(t engine.Table, p engine.Plan, masks *[]engine.Mask) (string, error) {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	own, drop, err := p.Masks("", t.Name, names)
	if err != nil {
		return "", err
	}
	if drop {
		return "DELETE FROM " + quote(t.Name), nil
	}
	var sets []string
	for i, m := range own {
		if m != nil {
			sets = append(sets, fmt.Sprintf("%[1]s = snapcli_mask(%[2]d, %[1]s)", quote(names[i]), len(*masks)))
			*masks = append(*masks, m)
		}
	}
	if len(sets) == 0 {
		return "", nil
	}
	return "UPDATE " + quote(t.Name) + " SET " + strings.Join(sets, ", "), nil
}

func maskFailure(table string, err error) error {
	if code(err) == 19 { // SQLITE_CONSTRAINT
		return &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf("the masks of the table %s break a constraint of it: %s", table, strings.TrimSpace(err.Error())), Hint: "use the mask hash for values that must stay unique", Cause: err}
	}
	return err
}

// dropTriggers takes the triggers away, so that masking fires none, and returns
// the statements that make them again.
func dropTriggers(ctx context.Context, tx *sql.Tx) ([]string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var drops, makes []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		drops, makes = append(drops, "DROP TRIGGER "+quote(name)), append(makes, text)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, statement := range drops {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return makes, nil
}

// rebuildSearch makes the full-text indexes anew: they keep words of values
// that are gone.
func rebuildSearch(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%' AND (sql LIKE '%USING fts5%' OR sql LIKE '%USING fts4%')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %[1]s(%[1]s) VALUES ('rebuild')", quote(name))); err != nil {
			return snap.Invalid(fmt.Sprintf("the full-text index %s cannot be made anew, and may hold words of masked values", name), "drop it with a SQL file instead")
		}
	}
	return nil
}

// openMasking opens the file with the function snapcli_mask(number, value),
// which applies the mask of that number.
func openMasking(path string, masks *[]engine.Mask) (*sql.DB, error) {
	d := &sqlite3.Driver{}
	err := d.RegisterScalarFunction("snapcli_mask", 2, func(_ *sqlite3.FunctionContext, args []driver.Value) (driver.Value, error) {
		number, ok := args[0].(int64)
		if !ok || number < 0 || int(number) >= len(*masks) {
			return nil, fmt.Errorf("there is no mask %v", args[0])
		}
		return apply((*masks)[number], args[1]), nil
	})
	if err != nil {
		return nil, fmt.Errorf("register the mask: %w", err)
	}
	query := url.Values{"mode": {"rw"}, "_pragma": {"secure_delete(1)", manyPages, noSync, "foreign_keys(0)", "trusted_schema(0)"}}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db := sql.OpenDB(connector{driver: d, dsn: dsn.String()})
	db.SetMaxOpenConns(1)
	return db, nil
}

// apply masks a value and gives the result the value's own kind, where it is
// one of that kind.
func apply(mask engine.Mask, value driver.Value) driver.Value {
	var text string
	switch v := value.(type) {
	case nil:
		return nil
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	masked, null := mask(text)
	if null {
		return nil
	}
	switch value.(type) {
	case int64:
		if n, err := strconv.ParseInt(masked, 10, 64); err == nil {
			return n
		}
	case float64:
		if f, err := strconv.ParseFloat(masked, 64); err == nil {
			return f
		}
	case []byte:
		return []byte(masked)
	}
	return masked
}

type connector struct {
	driver *sqlite3.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }
