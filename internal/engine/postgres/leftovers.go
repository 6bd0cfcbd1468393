package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// leftDatabases and leftRoles select the leftovers of loads on a server: databases and roles that
// no running load uses. They omit leftovers that the user may not drop. A load takes the lock on a
// name before it creates the database or role of that name.
const (
	leftDatabases = `SELECT datname FROM pg_database
		WHERE datname ~ '^snapcli_(scratch|replaced)_[0-9a-f]{16}$' AND pg_has_role(datdba, 'MEMBER')
			AND hashtextextended(datname, 0) ` + notHeld
	leftRoles = `SELECT rolname FROM pg_roles r
		WHERE rolname ~ '^` + rolePrefix + `[0-9a-f]{16}$' AND pg_has_role(r.oid, 'MEMBER')
			AND hashtextextended(rolname, 0) ` + notHeld + `
			AND NOT EXISTS (SELECT FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = r.oid
				AND classid <> 'pg_auth_members'::regclass)`
)

// notHeld follows the key of an advisory lock, and is the condition that no session holds this
// lock, in any database of the server. An advisory lock belongs to the database of the session. For
// a load, this is postgres. It is template1 if the load replaces the database postgres, or if the
// server has no database of this name.
const notHeld = `NOT IN (SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory')`

// Leftovers implements [engine.Cleaner]. It lists the databases and roles of loads that have ended.
func (e Engine) Leftovers(ctx context.Context, raw string) ([]string, error) {
	d, admin, err := e.maintenance(ctx, raw)
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
	d, admin, err := e.maintenance(ctx, raw)
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
		names, err := collect(ctx, admin, query, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		left = append(left, names...)
	}
	return left, nil
}
