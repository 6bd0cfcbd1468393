package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine/charset"
)

// rewriteSchema calls see with the SQL of every object of the schema. see can overwrite the SQL,
// and rewriteSchema stores the result. Call rewriteSchema last in a transaction, because SQLite
// rereads the schema only after the transaction.
func rewriteSchema(ctx context.Context, tx *sql.Tx, see func(kind, name string, sql []byte)) error {
	if see == nil {
		return nil
	}
	all, err := entriesOf(ctx, tx)
	if err != nil {
		return err
	}
	writable := false
	for _, e := range all {
		if e.sql == "" {
			continue
		}
		text := []byte(e.sql)
		if see(e.kind, e.name, text); string(text) == e.sql {
			continue
		}
		if !writable {
			if err := execute(ctx, tx, "PRAGMA writable_schema = on"); err != nil {
				return err
			}
			writable = true
		}
		r, err := tx.ExecContext(ctx, "UPDATE sqlite_schema SET sql = ? WHERE type = ? AND name = ?", string(text),
			e.kind, e.name)
		if code(err) == codes.SQLITE_ERROR {
			return snap.Invalid(fmt.Sprintf("the definition of the %s %s cannot be changed", e.kind,
				charset.Readable(e.name)), "use schema_literals: stop, and change the definition in the database")
		}
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("the definition of %s has %d rows",
				charset.Readable(e.name), n))
		}
	}
	if !writable {
		return nil
	}
	return execute(ctx, tx, "PRAGMA writable_schema = off")
}
