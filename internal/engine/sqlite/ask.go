package sqlite

import (
	"context"

	"snap/internal/engine"
)

// Ask implements [engine.Scratch].
func (s *scratch) Ask(ctx context.Context, query string) (string, error) {
	db, err := s.open(ctx, "ro", "query_only(1)")
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, query) //nolint:rowserrcheck // engine.Answer checks it
	if err != nil {
		return "", statementError(err)
	}
	value, err := engine.Answer(rows)
	if code(err) != 0 {
		err = statementError(err)
	}
	return value, err
}
