// Package sqlite dumps and restores SQLite databases, in pure Go.
//
// A dump is a database file. Its pages are read in one read transaction, which in WAL mode does
// not block writers. The unused bytes of free pages are written as zeros, so that most deleted rows
// are not included. Free space inside other pages can still contain some.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

// Engine is the SQLite engine.
type Engine struct{}

// Path returns the absolute path that a database URL names, such as sqlite:///var/lib/shop.db or
// sqlite:shop.db.
func Path(raw string) (string, error) {
	_, rest, _ := strings.Cut(raw, ":")
	rest = strings.TrimPrefix(rest, "//")
	rest, _, _ = strings.Cut(rest, "?")
	if decoded, err := url.PathUnescape(rest); err == nil {
		rest = decoded
	}
	if rest == "" || strings.ContainsRune(rest, 0) {
		return "", snap.Usage("the database URL does not name a file", "use sqlite:///path/to/file")
	}
	return filepath.Abs(rest)
}

// URLOf returns the database URL of a file.
func URLOf(path string) string { return (&url.URL{Scheme: "sqlite", Path: path}).String() }

// Pragmas for connections that read or write whole files. The page cache of manyPages is 16 MiB,
// because indexes are read in any order. noSync is for files that are temporary or synced later.
const (
	manyPages = "cache_size(-16384)"
	fewPages  = "cache_size(-512)"
	noSync    = "synchronous(off)"
)

// open opens the file; mode is ro, rw or rwc.
func open(path, mode string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"mode": {mode}, "_pragma": append(pragmas, "busy_timeout(5000)", "trusted_schema(0)")}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Check implements [engine.Engine].
func (Engine) Check(ctx context.Context, raw string) (engine.Info, error) {
	path, err := Path(raw)
	if err != nil {
		return engine.Info{}, err
	}
	info := engine.Info{ServerVersion: codes.SQLITE_VERSION}
	file, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return info, nil
	}
	if err != nil {
		return info, failure(path, err)
	}
	if file.Size() == 0 { // an empty file is an empty database
		info.Exists, info.Empty = true, true
		return info, nil
	}
	db, err := open(path, "ro")
	if err != nil {
		return info, err
	}
	defer db.Close()
	all, err := tables(ctx, db)
	if err != nil {
		return info, failure(path, err)
	}
	info.Tables, info.Exists, info.Size = labeled(all), true, file.Size()
	if info.Empty, err = isEmpty(ctx, db); err != nil {
		return info, failure(path, err)
	}
	info.Connections = users(path)
	return info, nil
}

// isEmpty reports whether a database has no objects.
func isEmpty(ctx context.Context, q querier) (empty bool, err error) {
	err = q.QueryRowContext(ctx, "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)").Scan(&empty)
	return empty, err
}

// querier is a database, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// tableNames lists the tables, without SQLite's internal ones.
func tableNames(ctx context.Context, q querier) ([]string, error) {
	return texts(ctx, q,
		`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
}

// texts returns the values of a query with one column.
func texts(ctx context.Context, q querier, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// tables lists the tables with their numbers of rows, which are -1 for virtual tables whose module
// is not built in.
func tables(ctx context.Context, q querier) ([]engine.Table, error) {
	names, err := tableNames(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]engine.Table, len(names))
	for i, name := range names {
		t := &all[i]
		t.Name, t.Rows = name, -1
		if t.Columns, err = columns(ctx, q, name); err != nil {
			return nil, err
		}
		var n int64
		err := q.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(name)).Scan(&n)
		switch {
		case err == nil:
			t.Rows = n
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case code(err) != codes.SQLITE_ERROR:
			return nil, err
		}
	}
	return all, nil
}

// columns lists a table's columns, without generated and hidden ones. It returns none for a virtual
// table whose module is not built in.
func columns(ctx context.Context, q querier, table string) ([]engine.Column, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid`, table)
	if code(err) == codes.SQLITE_ERROR {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []engine.Column
	for rows.Next() {
		var c engine.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.NotNull); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// code returns SQLite's primary result code, or 0 if err is not an error of SQLite.
func code(err error) int {
	var e *sqlite3.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// failure converts an error of SQLite or the file system about the database at path to a
// *snap.Error.
func failure(path string, err error) error {
	var already *snap.Error
	if err == nil || errors.As(err, &already) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &snap.Error{Code: snap.CodeDatabase, Cause: err}
	switch {
	case code(err) == codes.SQLITE_BUSY || code(err) == codes.SQLITE_LOCKED:
		e.Code = snap.CodeConflict
		e.Detail = fmt.Sprintf("the database %s is in use", path)
		e.Hint = "close the programs that use it and try again"
	case code(err) == codes.SQLITE_NOTADB:
		e.Detail = fmt.Sprintf("the file %s is not a SQLite database", path)
		e.Hint = "check the path; an encrypted database cannot be read"
	case code(err) == codes.SQLITE_CORRUPT:
		e.Detail = fmt.Sprintf("the SQLite database %s is damaged", path)
		e.Hint = "repair it first with the command .recover of sqlite3"
	case code(err) == codes.SQLITE_FULL || disk.Full(err):
		e.Code = snap.CodeStorageFull
		e.Detail = fmt.Sprintf("there is no space left on the disk that holds %s", path)
		e.Hint = "free some space and try again; the database is unchanged"
	case errors.Is(err, os.ErrNotExist):
		return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no database file %s", path),
			Hint: "check the target's URL with `snapcli targets`"}
	case errors.Is(err, os.ErrPermission) || code(err) == codes.SQLITE_READONLY ||
		code(err) == codes.SQLITE_PERM || code(err) == codes.SQLITE_CANTOPEN:
		e.Detail = fmt.Sprintf("the database %s cannot be opened", path)
		e.Hint = "check the permissions of the file and of its folder"
	default:
		e.Detail = fmt.Sprintf("the database %s cannot be used: %s", path, strings.TrimSpace(err.Error()))
	}
	return e
}
