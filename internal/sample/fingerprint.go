package sample

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"strconv"
	"strings"
)

// Table summarizes the content of a table. Two tables with the same rows have the same Sum,
// regardless of the order of the rows.
type Table struct {
	Name string
	Rows int
	Sum  string // hexadecimal SHA-256 of all values and their types
}

// Fingerprint reads a SQLite database without changing it and returns its tables, sorted by name.
// It appends an entry named schema, whose rows are the definitions of all tables, indexes, views
// and triggers.
func Fingerprint(ctx context.Context, file string) ([]Table, error) {
	db, err := open(file, url.Values{"mode": {"ro"}})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	names, err := tableNames(ctx, db)
	if err != nil {
		return nil, err
	}
	var all []Table
	for _, name := range names {
		t, err := fingerprint(ctx, db, name, `SELECT * FROM "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	t, err := fingerprint(ctx, db, "schema",
		`SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`)
	return append(all, t), err
}

func tableNames(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx,
		`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// fingerprint summarizes the rows of a query, ordered by all their columns.
func fingerprint(ctx context.Context, db *sql.DB, name, query string) (Table, error) {
	t := Table{Name: name}
	columns, err := columnCount(ctx, db, query)
	if err != nil {
		return t, err
	}
	order := make([]string, columns)
	values := make([]any, columns)
	into := make([]any, columns)
	for i := range order {
		order[i] = strconv.Itoa(i + 1)
		into[i] = &values[i]
	}
	rows, err := db.QueryContext(ctx, query+" ORDER BY "+strings.Join(order, ","))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	sum := sha256.New()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return t, err
		}
		addRow(sum, values)
		t.Rows++
	}
	t.Sum = hex.EncodeToString(sum.Sum(nil))
	return t, rows.Err()
}

// columnCount returns the number of columns of a query.
func columnCount(ctx context.Context, db *sql.DB, query string) (int, error) {
	rows, err := db.QueryContext(ctx, query+" LIMIT 0")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	return len(columns), rows.Err()
}

// addRow adds a row to the hash. Different rows always add different bytes.
func addRow(sum hash.Hash, values []any) {
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			fmt.Fprintf(sum, "blob %d %s\n", len(b), b)
			continue
		}
		text := fmt.Sprint(v)
		fmt.Fprintf(sum, "%T %d %s\n", v, len(text), text)
	}
	fmt.Fprintln(sum, "row")
}
