package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// rows runs a query that many requests repeat. The query is prepared once per connection, because
// SQLite would otherwise spend more time on compiling a listing than on running it. Behind a pooler
// in transaction mode no statement is prepared, because the next connection may not have it.
func (s *Store) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s.pooled {
		return s.read.QueryContext(ctx, text, args...)
	}
	stmt, err := s.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// row is like [Store.rows], for a query that returns at most one row.
func (s *Store) row(ctx context.Context, text string, args ...any) scanner {
	if s.pooled {
		return s.read.QueryRowContext(ctx, text, args...)
	}
	stmt, err := s.stmt(ctx, text)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(ctx, args...)
}

type scanner interface{ Scan(...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

func (s *Store) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.prepared[text]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := s.read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.prepared[text]; first != nil { // a concurrent request prepared it first
		stmt.Close()
		return first, nil
	}
	s.prepared[text] = stmt
	return stmt, nil
}

// collect runs a query and returns the result of scan for each row.
func collect[T any](ctx context.Context, s *Store, text string, scan func(*sql.Rows) (T, error), args ...any) ([]T,
	error) {
	rows, err := s.rows(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return drain(rows, scan)
}

// txCollect is collect inside a transaction.
func txCollect[T any](ctx context.Context, tx *sql.Tx, text string, scan func(*sql.Rows) (T, error), args ...any) ([]T,
	error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return drain(rows, scan)
}

// one returns the only row of a query, or sql.ErrNoRows.
func one[T any](rows []T, err error) (T, error) {
	if err == nil && len(rows) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// noRowsAs returns other if err says that a query returned no row, and err otherwise.
func noRowsAs(err, other error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return other
	}
	return err
}

// changed reports whether a statement changed any row.
func changed(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// requireChanged returns missing as the error if a statement changed no row.
func requireChanged(res sql.Result, err, missing error) error {
	if ok, err := changed(res, err); err != nil || ok {
		return err
	}
	return missing
}

// scanOne scans a row of one column.
func scanOne[T any](rows *sql.Rows) (value T, err error) {
	err = rows.Scan(&value)
	return value, err
}

// drain returns the result of scan for each row, and closes rows.
func drain[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) (all []T, err error) {
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// jsonArray encodes a list as the JSON array that [Store.each] and [Store.eachText] read.
func jsonArray[T ~int64 | ~string](list []T) string {
	if len(list) == 0 {
		return `[]`
	}
	text, _ := json.Marshal(list) // cannot fail for numbers and strings
	return string(text)
}

// eachText returns a table with the column "value": the strings of the JSON array in parameter p.
func (s *Store) eachText(p string) string {
	if s.dialect == postgres {
		return `json_array_elements_text(` + p + `::json)`
	}
	return `json_each(` + p + `)`
}

// each returns a table with the column v: the numbers of the JSON array in parameter p.
func (s *Store) each(p string) string {
	if s.dialect == postgres {
		return `(SELECT value::bigint AS v FROM ` + s.eachText(p) + `)`
	}
	return `(SELECT CAST(value AS INTEGER) AS v FROM ` + s.eachText(p) + `)`
}
