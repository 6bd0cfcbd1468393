package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// confine opens a scratch file on a connection that can use no other file. The connection cannot
// attach databases or load extensions. Views and triggers cannot use functions or virtual tables
// with effects outside the database.
func confine(ctx context.Context, d *sqlite3.Driver, path string, query url.Values) (*sql.DB, error) {
	query["_pragma"] = append(query["_pragma"], "busy_timeout(5000)", "trusted_schema(0)",
		"cell_size_check(1)", "mmap_size(0)")
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db := sql.OpenDB(&connector{driver: d, dsn: dsn.String()})
	db.SetMaxOpenConns(1)
	if err := limit(ctx, db, 0); err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// limit sets the limits of the connection, which can then attach at most n databases.
func limit(ctx context.Context, db *sql.DB, n int) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for id, value := range map[int]int{
		codes.SQLITE_LIMIT_ATTACHED:      n,
		codes.SQLITE_LIMIT_SQL_LENGTH:    maxStatement,
		codes.SQLITE_LIMIT_TRIGGER_DEPTH: 100,
	} {
		if _, err := sqlite3.Limit(conn, id, value); err != nil {
			return err
		}
	}
	return nil
}

// connector opens a single connection, because a second one would not have the limits of the first.
type connector struct {
	driver *sqlite3.Driver
	dsn    string
	opened atomic.Bool
}

var errReopened = errors.New("the connection to the scratch database was lost")

// Connect implements [driver.Connector].
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	if c.opened.Swap(true) {
		return nil, errReopened
	}
	return c.driver.Open(c.dsn)
}

// Driver implements [driver.Connector].
func (c *connector) Driver() driver.Driver { return c.driver }
