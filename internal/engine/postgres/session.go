package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// limits returns the names of the settings with which a server of this version cancels slow
// statements, and ends idle sessions and long transactions. Every session of snapcli turns these
// settings off, because a build or a load takes a long time and holds locks while idle. An
// administrator may have set them for reports or web pages that use the same role.
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

// prepareSession sets the settings that every session of snapcli needs.
func prepareSession(ctx context.Context, conn *pgconn.PgConn) error {
	statements := []string{"SET client_encoding = " + sessionEncoding(conn.ParameterStatus("server_encoding")),
		"SET bytea_output = hex"}
	for _, limit := range limits(major(conn.ParameterStatus("server_version"))) {
		statements = append(statements, "SET "+limit+" = 0")
	}
	_, err := conn.Exec(ctx, strings.Join(statements, "; ")).ReadAll()
	return err
}
