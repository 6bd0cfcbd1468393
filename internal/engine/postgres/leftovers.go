package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// leftDatabases and leftRoles select the databases and roles that loads create on a server and that
// the user may drop.
const (
	leftDatabases = `SELECT datname FROM pg_database WHERE datname ~ '^snapcli_(scratch|replaced)_[0-9a-f]{16}$' AND pg_has_role(datdba, 'MEMBER')`
	leftRoles     = `SELECT rolname FROM pg_roles r WHERE rolname ~ '^` + rolePrefix + `[0-9a-f]{16}$' AND pg_has_role(r.oid, 'MEMBER')
		AND NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = r.oid AND classid <> 'pg_auth_members'::regclass)`
)

// Leftovers implements [engine.Cleaner]. It lists the databases and roles of loads that have ended.
func (e Engine) Leftovers(ctx context.Context, raw string) ([]string, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	admin, err := d.maintenance(ctx)
	if err != nil {
		return nil, err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	left, err := leftOnServer(ctx, admin)
	return left, d.failure(err)
}

// RemoveLeftovers implements [engine.Cleaner]. It drops the databases and roles that Leftovers
// lists.
func (e Engine) RemoveLeftovers(ctx context.Context, raw string) (removed []string, err error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	admin, err := d.maintenance(ctx)
	if err != nil {
		return nil, err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	before, err := leftOnServer(ctx, admin)
	if err == nil {
		err = sweep(ctx, admin)
	}
	if err != nil {
		return nil, d.failure(err)
	}
	after, err := leftOnServer(ctx, admin)
	removed = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
	return removed, d.failure(err)
}

// leftOnServer lists the databases and roles that no running load uses.
func leftOnServer(ctx context.Context, admin *pgx.Conn) (left []string, err error) {
	for _, query := range []string{leftDatabases, leftRoles} {
		names, err := collect(ctx, admin, query)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			var free bool
			err := admin.QueryRow(ctx, `SELECT CASE WHEN pg_try_advisory_lock(hashtextextended($1, 0))
				THEN pg_advisory_unlock(hashtextextended($1, 0)) ELSE false END`, name).Scan(&free)
			if err != nil {
				return nil, err
			}
			if free {
				left = append(left, name)
			}
		}
	}
	return left, nil
}

func collect(ctx context.Context, admin *pgx.Conn, query string) ([]string, error) {
	rows, err := admin.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
