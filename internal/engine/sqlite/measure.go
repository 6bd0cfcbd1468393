package sqlite

import (
	"context"
	"database/sql"

	"snap/internal/engine"
)

// measure sets the size of each table: the bytes of the pages that hold its rows, without its
// indexes. The sizes are for information only, so a file that SQLite cannot measure is dumped
// without them.
func measure(ctx context.Context, tx *sql.Tx, tables []engine.Table) error {
	rows, err := tx.QueryContext(ctx, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE")
	if err != nil {
		return ctx.Err()
	}
	defer rows.Close()
	sizes := map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return err
		}
		sizes[name] = size
	}
	if rows.Err() != nil {
		return ctx.Err()
	}
	for i, t := range tables {
		tables[i].Bytes = sizes[t.Name]
	}
	return ctx.Err()
}
