package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"

	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

var _ engine.Refiller = Engine{}

// Refill implements [engine.Refiller]. It restores the snapshot next to the destination and copies
// the rows from there.
func (e Engine) Refill(ctx context.Context, raw string, dump engine.Dump, only []string, o engine.Options) (
	[]engine.Table, error) {
	path, err := Path(raw)
	if err != nil {
		return nil, err
	}
	chosen, _, err := engine.ChosenTables(dump.Info, only)
	if err != nil {
		return nil, err
	}
	for _, t := range dump.Info.Schema.Tables {
		if chosen[t.Name] && t.Virtual != "" {
			return nil, snap.Invalid(fmt.Sprintf("the rows of the virtual table %s cannot be replaced", t.Name.Name),
				"load the whole snapshot; nothing was changed")
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, failure(path, err)
	}
	from, err := e.Restore(ctx, raw, dump, o)
	if err != nil {
		return nil, err
	}
	defer from.Drop(context.WithoutCancel(ctx))
	r := &refill{from: from.(*scratch).path}
	for name := range chosen {
		r.chosen = append(r.chosen, name.Name)
	}
	err = r.run(ctx, path, o)
	return r.tables, failure(path, err)
}

// refill replaces rows in one transaction.
type refill struct {
	from   string // the file with the new rows
	chosen []string
	tables []engine.Table
}

func (r *refill) run(ctx context.Context, path string, o engine.Options) error {
	db, err := open(path, "rw")
	if err != nil {
		return err
	}
	defer db.Close() // there is only one connection, so the following settings last
	if _, err := db.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "ATTACH DATABASE ? AS snapcli_from", r.from); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	o.Begin("restore")
	if err := r.fill(ctx, tx); err != nil {
		return err
	}
	o.Begin("verify")
	if err := r.checkKeys(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// fill replaces the rows without firing the tables' triggers, and rebuilds the full-text indexes of
// the rows.
func (r *refill) fill(ctx context.Context, tx *sql.Tx) error {
	indexes, err := r.indexes(ctx, tx)
	if err != nil {
		return err
	}
	for _, name := range r.chosen {
		triggers, err := texts(ctx, tx, "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ? "+
			"COLLATE NOCASE", name)
		if err != nil {
			return err
		}
		dropped, err := drop(ctx, tx, "trigger", triggers)
		if err == nil {
			err = r.copy(ctx, tx, name)
		}
		if err == nil {
			err = recreate(ctx, tx, dropped)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range indexes {
		err := rebuildIndex(ctx, tx, name)
		if code(err) == codes.SQLITE_ERROR {
			return errNotRebuildable(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// indexes returns the full-text indexes whose content is a chosen table, and those that the
// triggers of a chosen table keep up to date. It fails if such a trigger writes to a virtual table
// that cannot be rebuilt from a table or a view.
func (r *refill) indexes(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	all, err := entriesOf(ctx, tx)
	for _, v := range all {
		if !v.isVirtual() {
			continue
		}
		content := contentOf(v.sql)
		written := slices.ContainsFunc(all, func(e entry) bool {
			return e.kind == "trigger" && r.isChosen(e.table) && writes(e.sql, v.name)
		})
		if written && content == "" {
			return nil, errNotRebuildable(v.name)
		}
		if written || r.isChosen(content) {
			names = append(names, v.name)
		}
	}
	return names, err
}

// errNotRebuildable returns the error for a virtual table that a refill would leave out of date.
func errNotRebuildable(name string) error {
	return snap.Invalid(fmt.Sprintf("the virtual table %s depends on these tables and cannot be rebuilt from them",
		charset.Readable(name)), "load the whole snapshot; nothing was changed")
}

func (r *refill) isChosen(table string) bool {
	return slices.ContainsFunc(r.chosen, func(name string) bool { return strings.EqualFold(name, table) })
}

// rowidName selects a name for the rowid of the table ?1 that no column has. It selects nothing if
// the table has no rowid, or if the rowid is the table's key.
const rowidName = `SELECT column1 FROM (VALUES ('rowid'), ('_rowid_'), ('oid'))
	WHERE NOT EXISTS (SELECT 1 FROM pragma_table_list
		WHERE schema IN ('main', 'snapcli_from') AND name = ?1 COLLATE NOCASE AND (wr OR type <> 'table'))
	AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE name = column1 COLLATE NOCASE)
	AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1, 'snapcli_from') WHERE name = column1 COLLATE NOCASE)
	AND (NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0)
		OR EXISTS (SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'))
	LIMIT 1`

// copy replaces the rows of one table, and keeps their rowids.
func (r *refill) copy(ctx context.Context, tx *sql.Tx, name string) error {
	found, err := texts(ctx, tx, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND "+
		"name = ? COLLATE NOCASE", name)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return engine.NoTable(name)
	}
	columns, err := texts(ctx, tx, "SELECT name FROM pragma_table_xinfo(?, 'snapcli_from') WHERE hidden = 0 ORDER BY "+
		"cid", name)
	if err != nil {
		return err
	}
	rowid, err := texts(ctx, tx, rowidName, name)
	if err != nil {
		return err
	}
	if err := execute(ctx, tx, "DELETE FROM main."+quote(name)); err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO main.%[1]s (%[2]s) SELECT %[2]s FROM snapcli_from.%[1]s",
		quote(name), quoted(append(rowid, columns...))))
	if err != nil {
		return err
	}
	rows, err := done.RowsAffected()
	r.tables = append(r.tables, engine.Table{Name: name, Rows: rows})
	return err
}

// checkKeys checks the foreign keys from and to the tables.
func (r *refill) checkKeys(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "PRAGMA main.foreign_key_check")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var child, parent string
		if err := rows.Scan(&child, new(any), &parent, new(any)); err != nil {
			return err
		}
		if r.isChosen(child) || r.isChosen(parent) {
			return engine.KeysBroken(charset.Readable(child)+" to "+charset.Readable(parent), nil)
		}
	}
	return rows.Err()
}
