package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"snap"
	"snap/internal/engine"
)

const replacedMark = "snapcli: the database that a load replaced, being dropped"

// Swap implements [engine.Scratch]. One transaction performs both renames and copies the properties
// of the old database to the new one. So at every moment, even if the process is killed, a complete
// database has the name.
func (s *scratch) Swap(ctx context.Context, terminate bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.grant(ctx); err != nil {
		return err
	}
	if s.into != nil {
		return s.into.failure(s.into.swap(ctx, terminate))
	}
	if err := requireDroppable(ctx, s.admin, s.place.name()); err != nil {
		return s.place.failure(err)
	}
	old := randomName("snapcli_replaced_")
	if err := holdName(ctx, s.admin, old); err != nil {
		return s.place.failure(err)
	}
	const attempts = 5
	var replaced bool
	var err error
	for range attempts {
		replaced, err = s.attempt(ctx, old, terminate)
		if !(state(err) == stateInUse && terminate) && state(err) != stateDatabaseMade {
			break
		}
	}
	if err != nil {
		return s.place.failure(err)
	}
	s.made, s.loader = false, loader{}
	if replaced {
		s.leave(old)
	}
	return nil
}

// attempt tries once to exchange the databases. It reports whether there was an old database.
func (s *scratch) attempt(ctx context.Context, old string, terminate bool) (exists bool, err error) {
	if exists, err = s.exists(ctx); err != nil {
		return false, err
	}
	looking := s.admin
	if exists && s.o.OnlyIfEmpty {
		if looking, err = s.place.connect(ctx); err != nil {
			return false, err
		}
		defer looking.Close(context.WithoutCancel(ctx))
		if err := s.place.requireEmpty(ctx, looking); err != nil { // before clear ends sessions
			return false, err
		}
	}
	if err := s.clear(ctx, looking, terminate); err != nil {
		return false, err
	}
	return exists, s.exchange(ctx, looking, exists, old)
}

// leave starts to drop the old database and does not wait for the result, because the server first
// makes a checkpoint of all databases. The session holds the lock on the old database's name until
// the database is dropped. If the old database cannot be dropped, the next load drops it.
func (s *scratch) leave(old string) {
	server := s.admin.PgConn().Frontend()
	server.SendQuery(&pgproto3.Query{String: "DROP DATABASE IF EXISTS " + pgx.Identifier{old}.Sanitize() +
		" WITH (FORCE)"})
	_ = server.Flush()
}

func (s *scratch) exists(ctx context.Context) (yes bool, err error) {
	err = s.admin.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.place.name()).Scan(&yes)
	return yes, err
}

// requireDroppable returns an error if the server would rename the old database but could not drop
// it afterwards.
func requireDroppable(ctx context.Context, admin *pgx.Conn, database string) error {
	var subscription string
	err := admin.QueryRow(ctx,
		"SELECT coalesce(min(subname), '') FROM pg_subscription JOIN pg_database d ON d.oid = subdbid WHERE datname "+
			"= $1",
		database).Scan(&subscription)
	if err != nil || subscription == "" {
		return err
	}
	return &snap.Error{
		Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the database %q cannot be dropped while it has the subscription %q",
			database,
			subscription),
		Hint: "drop the subscription first; nothing was changed",
	}
}

// clear returns a conflict if others are connected to the old database. With terminate, it ends
// their connections instead. conn may be connected to the old database.
func (s *scratch) clear(ctx context.Context, conn *pgx.Conn, terminate bool) error {
	who, err := connections(ctx, conn, s.place.name())
	if err != nil || len(who) == 0 {
		return err
	}
	if !terminate {
		return engine.InUse(snap.Postgres, strconv.Quote(s.place.name()), who)
	}
	_, err = conn.Exec(ctx,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
		s.place.name())
	return err
}

// exchange exchanges the databases. If only an empty database may be replaced, looking is connected
// to the old database.
func (s *scratch) exchange(ctx context.Context, looking *pgx.Conn, exists bool, old string) error {
	tx, err := s.admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	id := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	here, place := id(s.db.name()), id(s.place.name())
	statements := append(s.retire(), "ALTER DATABASE "+here+" RESET ALL",
		"ALTER ROLE CURRENT_USER IN DATABASE "+here+" RESET ALL", "COMMENT ON DATABASE "+here+" IS NULL")
	if exists {
		inherited, err := inherit(ctx, tx, s.place.name(), here)
		if err != nil {
			return err
		}
		statements = append(statements, inherited...)
		statements = append(statements,
			"COMMENT ON DATABASE "+place+" IS "+literal(replacedMark),
			"ALTER DATABASE "+place+" IS_TEMPLATE false") // otherwise it cannot be dropped
	} else {
		statements = append(statements, "GRANT CONNECT, TEMPORARY ON DATABASE "+here+" TO PUBLIC")
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if exists {
		if err := s.moveAway(ctx, tx, looking, "ALTER DATABASE "+place+" RENAME TO "+id(old)); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "ALTER DATABASE "+here+" RENAME TO "+place); err != nil {
		return err
	}
	// If the commit were canceled, it would be unknown which database has the name.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longWait)
	defer cancel()
	return tx.Commit(ctx)
}

// longWait is longer than a server needs for any of the operations that it limits.
const longWait = time.Minute

// inherit returns the statements that give the new database the properties of the old one: owner,
// comment, connection limit, privileges, settings (including those for single roles), and whether
// it is a template and accepts connections.
func inherit(ctx context.Context, tx pgx.Tx, old, here string) ([]string, error) {
	rows, err := tx.Query(ctx, `
		WITH old AS (SELECT *, shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = $1),
		settings AS (SELECT setrole, split_part(s, '=', 1) AS name, substr(s, strpos(s, '=') + 1) AS value FROM old JOIN pg_db_role_setting ON setdatabase = old.oid, unnest(setconfig) s)
		SELECT format('ALTER DATABASE %s CONNECTION LIMIT %s IS_TEMPLATE %s ALLOW_CONNECTIONS %s', $2::text, datconnlimit, datistemplate::text, datallowconn::text) FROM old
		UNION ALL
		SELECT format('COMMENT ON DATABASE %s IS %L', $2, comment) FROM old WHERE comment IS NOT NULL
		UNION ALL
		SELECT CASE setrole WHEN 0 THEN format('ALTER DATABASE %s', $2) ELSE format('ALTER ROLE %I IN DATABASE %s', pg_get_userbyid(setrole), $2) END
			|| format(' SET %I TO %s', name, CASE WHEN name IN ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries') THEN
				(SELECT string_agg(quote_literal(CASE WHEN m[1] LIKE '"%' THEN replace(substr(m[1], 2, length(m[1]) - 2), '""', '"') ELSE m[1] END), ', ' ORDER BY at)
					FROM regexp_matches(value, '"(?:[^"]|"")*"|[^", ]+', 'g') WITH ORDINALITY names (m, at)) ELSE quote_literal(value) END)
			FROM settings
		UNION ALL
		SELECT format('GRANT %s ON DATABASE %s TO %s%s', a.privilege_type, $2, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
			CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
		FROM old, aclexplode(coalesce(datacl, acldefault('d', datdba))) a WHERE a.grantee <> datdba
		UNION ALL
		SELECT format('ALTER DATABASE %s OWNER TO %I', $2, pg_get_userbyid(datdba)) FROM old WHERE pg_get_userbyid(datdba) <> current_user`,
		old, here)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
