package mysql

import (
	"context"
	"database/sql"
	"errors"

	driver "github.com/go-sql-driver/mysql"

	"snap"
	"snap/internal/engine"
)

// Ask implements [engine.Scratch].
func (s *scratch) Ask(ctx context.Context, query string) (string, error) {
	db, err := s.db.open(s.db.name)
	if err != nil {
		return "", err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return "", s.dest.failure(err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, query) //nolint:rowserrcheck // engine.Answer checks it
	var value string
	if err == nil {
		value, err = engine.Answer(rows)
	}
	if serverErr, ok := errors.AsType[*driver.MySQLError](err); ok && ctx.Err() == nil {
		return "", &snap.Error{Code: snap.CodeDatabase, Detail: "the SQL failed: " + serverErr.Message,
			Hint: "correct the SQL", Cause: err}
	}
	return value, s.dest.failure(err)
}
