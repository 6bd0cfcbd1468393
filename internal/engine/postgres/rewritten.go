package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine/charset"
)

// errRewritten is the cause of the error for a table whose rows a snapshot of the server no longer
// shows.
var errRewritten = errors.New("a table was truncated or rewritten")

// checkLocked waits until pg_dump has written its first byte, which it does after it has locked all
// tables. It fails with errRewritten if a table has been truncated or rewritten since the snapshot
// was taken. TRUNCATE and the forms of ALTER TABLE that rewrite a table ignore older snapshots, in
// which the table then appears empty (see "Caveats" in the chapter on concurrency control of
// PostgreSQL's manual). Once pg_dump has locked the tables, they cannot be truncated or rewritten.
//
// It opens a new session, because an older session may have cached the files of the tables.
func (d database) checkLocked(ctx context.Context, stream *bufio.Reader, snapshot string) error {
	if _, err := stream.Peek(1); err != nil {
		return nil // pg_dump failed, and its exit status and messages say why
	}
	conn, err := d.inSnapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var table string
	err = conn.QueryRow(ctx, rewrittenTable, d.excluded.unlocked()).Scan(&table)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return d.failure(err)
	}
	return &snap.Error{Code: snap.CodeDatabase,
		Detail: fmt.Sprintf("the table %s was truncated, rewritten or dropped when the build began",
			charset.Readable(table)),
		Hint: "build again", Cause: errRewritten}
}

// inSnapshot opens a session with a read-only transaction that sees a snapshot.
func (d database) inSnapshot(ctx context.Context, snapshot string) (*pgx.Conn, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	if err == nil {
		_, err = conn.Exec(ctx, fmt.Sprintf("SET TRANSACTION SNAPSHOT %s", quoteText(snapshot)))
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, d.failure(err)
	}
	return conn, nil
}

// rewrittenTable selects a table whose current file differs from its file in the transaction's
// snapshot. The columns of pg_class are those of the snapshot, and pg_relation_filenode returns the
// current file.
const rewrittenTable = `
	SELECT format('%I.%I', n.nspname, c.relname)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND c.relfilenode <> 0
		AND n.nspname NOT IN ('pg_catalog', 'information_schema')
		AND c.oid <> ALL ($1::oid[]) AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
	ORDER BY 1 LIMIT 1`
