package postgres

import (
	"context"

	"snap"
	"snap/internal/engine"
)

// Ask implements [engine.Scratch].
func (s *scratch) Ask(ctx context.Context, query string) (string, error) {
	conn, err := s.db.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const setup = usersNames + "; SET default_transaction_read_only = on"
	if _, err := conn.PgConn().Exec(ctx, setup).ReadAll(); err != nil {
		return "", s.db.failure(err)
	}
	results, err := conn.PgConn().Exec(ctx, query).ReadAll()
	if err != nil && state(err) == "" {
		return "", s.db.failure(err)
	}
	if err != nil {
		return "", &snap.Error{Code: snap.CodeDatabase, Detail: "the SQL failed: " + message(err),
			Hint: "correct the SQL", Cause: err}
	}
	rows, columns := 0, 0
	var value []byte
	for _, r := range results { // the last result counts
		rows, columns = len(r.Rows), len(r.FieldDescriptions)
		if rows > 0 && columns > 0 {
			value = r.Rows[0][0]
		}
	}
	if err := engine.RequireOneValue(rows, columns); err != nil {
		return "", err
	}
	if value == nil {
		return engine.Null, nil
	}
	return string(value), nil
}
