package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"snap"
)

// pooled reports whether a connection pooler is between this machine and the server. Poolers
// report process IDs that differ from the server's.
func pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return err == nil && pid != conn.PgConn().PID(), err
}

// requireDirect refuses a pooler for a load, for the reason why.
func (d database) requireDirect(ctx context.Context, conn *pgx.Conn, why string) error {
	found, err := pooled(ctx, conn)
	if err != nil || !found {
		return d.failure(err)
	}
	return d.poolerError(why, "give the server's own host and port in the target's destination")
}

// requireSession refuses a pooler that distributes one client's statements over several sessions of
// the server, because the settings of a session would not apply to all statements. A pooler in
// session mode is accepted.
func (d database) requireSession(ctx context.Context, conn *pgx.Conn) error {
	found, err := pooled(ctx, conn)
	if err != nil || !found {
		return d.failure(err)
	}
	mark := randomName("s")
	if _, err := conn.Exec(ctx, "SELECT set_config('snapcli.session', $1, false)", mark); err != nil {
		return d.failure(err)
	}
	const others = 3 // one of these connections gets conn's session, unless the pooler reserves it for conn
	for range others {
		other, err := d.connect(ctx)
		if err != nil {
			return err
		}
		defer other.Close(context.WithoutCancel(ctx))
		if _, err := other.Exec(ctx, "BEGIN"); err != nil {
			return d.failure(err)
		}
		for _, c := range []*pgx.Conn{other, conn} {
			var seen string
			if err := c.QueryRow(ctx, "SELECT coalesce(current_setting('snapcli.session', true), '')").Scan(
				&seen); err != nil {
				return d.failure(err)
			}
			if (seen == mark) != (c == conn) {
				return d.poolerError("it shares the server's sessions between clients",
					"give the server's own host and port in the target's source, or those of the pooler's session mode")
			}
		}
	}
	return nil
}

func (d database) poolerError(why, hint string) error {
	return &snap.Error{Code: snap.CodeDatabase,
		Detail: fmt.Sprintf("a connection pooler such as PgBouncer answers %s: %s", d.where(), why), Hint: hint}
}
