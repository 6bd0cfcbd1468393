package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// limits are the settings by which a server of a version ends what takes long,
// or is idle for long. A role can have them for its reports or its pages; a build
// and a load are neither, and hold locks by being idle.
func limits(server int) []string {
	all := []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}
	if server >= 14 {
		all = append(all, "idle_session_timeout")
	}
	if server >= 17 {
		all = append(all, "transaction_timeout")
	}
	return all
}

// prepareSession prepares every session of ours.
func prepareSession(ctx context.Context, conn *pgconn.PgConn) error {
	statements := []string{"SET client_encoding = " + spoken(conn.ParameterStatus("server_encoding")),
		"SET bytea_output = hex"}
	for _, limit := range limits(major(conn.ParameterStatus("server_version"))) {
		statements = append(statements, "SET "+limit+" = 0")
	}
	_, err := conn.Exec(ctx, strings.Join(statements, "; ")).ReadAll()
	return err
}
