package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// A replica that is cut off in the middle of a transaction must not block the others: the server
// ends transactions that are idle for too long. A limit in the URL takes precedence.
func TestTransactionsDoNotWaitForTheDead(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	for query, want := range map[string]string{"": "10s", "&idle_in_transaction_session_timeout=15min": "15min"} {
		s, err := Open(t.Context(), Options{URL: url + query})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var got string
		if err := s.write.QueryRowContext(t.Context(),
			`SHOW idle_in_transaction_session_timeout`).Scan(&got); err != nil || got != want {
			t.Errorf("with %q a transaction may be idle for %s (%v), want %s", query, got, err, want)
		}
	}
}

// Every statement has a time limit, except those that change the schema or lock tables, and those
// of a context without a time limit.
func TestStatementsHaveALimit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ctx       context.Context
		statement string
		limited   bool
	}{
		{t.Context(), "SELECT 1", true},
		{t.Context(), " insert into t values(1)", true},
		{t.Context(), "begin", true},
		{t.Context(), "commit", true},
		{t.Context(), "WITH x AS (SELECT 1) SELECT * FROM x", true},
		{t.Context(), "CREATE INDEX i ON t(a)", false},
		{t.Context(), "LOCK TABLE t", false},
		{withoutTimeLimit(t.Context()), "UPDATE t SET a = 1", false},
	} {
		ctx := limit(row.ctx, row.statement)
		end, limited := ctx.Deadline()
		if limited != row.limited || limited && time.Until(end) > statementLimit {
			t.Errorf("%q has a limit: %v, want %v", row.statement, limited, row.limited)
		}
		release(ctx)
		if limited && ctx.Err() == nil {
			t.Errorf("the limit of %q is not released", row.statement)
		}
	}
}

// A database that cannot be reached is reported on one line with a hint, by a start and by a check.
func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	o := Options{URL: "postgres://me@127.0.0.1:1/service?connect_timeout=5"}
	_, opening := Open(t.Context(), o)
	_, inspecting := Inspect(t.Context(), o)
	for _, err := range []error{opening, inspecting} {
		var e *snap.Error
		if !errors.As(err, &e) || e.Code != snap.CodeUnavailable || !strings.Contains(e.Detail, "connection refused") ||
			strings.Contains(e.Detail, "\n") || e.Hint == "" {
			t.Errorf("%#v", err)
		}
	}
}
