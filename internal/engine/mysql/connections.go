package mysql

import (
	"context"
	"database/sql"
	"strconv"
)

// connection is a client's connection to a server.
type connection struct {
	id         int64
	user, host string
}

// connectionsTo returns the connections that use a database, except the one that it uses to list
// them. An account without the PROCESS privilege sees only its own connections.
//
// It reads SHOW PROCESSLIST, because MySQL 9 cannot read information_schema.processlist while any
// connection runs a statement with characters outside utf8mb3.
func connectionsTo(ctx context.Context, db *sql.DB, name string) ([]connection, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var own int64
	if err := c.QueryRowContext(ctx, "SELECT connection_id()").Scan(&own); err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []connection
	for rows.Next() {
		var one connection
		var in sql.NullString
		row := []any{&one.id, &one.user, &one.host, &in}
		for range columns[len(row):] {
			row = append(row, new(sql.RawBytes))
		}
		if err := rows.Scan(row...); err != nil {
			return nil, err
		}
		if in.String == name && one.id != own {
			all = append(all, one)
		}
	}
	return all, rows.Err()
}

// connectedTo returns the users of a database and the hosts that they are connected from.
func connectedTo(ctx context.Context, db *sql.DB, name string) (users []string, err error) {
	all, err := connectionsTo(ctx, db, name)
	for _, c := range all {
		users = append(users, c.user+" from "+c.host)
	}
	return users, err
}

// endConnections ends the connections that use a database.
func endConnections(ctx context.Context, db *sql.DB, name string) error {
	all, err := connectionsTo(ctx, db, name)
	for _, c := range all {
		// A connection that has already ended is not an error.
		_, _ = db.ExecContext(ctx, "KILL "+strconv.FormatInt(c.id, 10))
	}
	return err
}
