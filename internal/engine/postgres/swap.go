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
	if err := requireDroppable(ctx, s.admin, s.dest.name()); err != nil {
		return s.dest.failure(err)
	}
	old := randomName("snapcli_replaced_")
	if err := holdName(ctx, s.admin, old); err != nil {
		return s.dest.failure(err)
	}
	const attempts = 5
	var replaced bool
	var err error
	for range attempts {
		replaced, err = s.attempt(ctx, old, terminate)
		if !(state(err) == stateInUse && terminate) && state(err) != stateDuplicateDatabase {
			break
		}
	}
	if err != nil {
		return s.dest.failure(err)
	}
	s.created, s.loader = false, loader{}
	if replaced {
		s.startDrop(old)
	}
	return nil
}

// attempt tries once to exchange the databases. It reports whether there was an old database.
func (s *scratch) attempt(ctx context.Context, old string, terminate bool) (exists bool, err error) {
	if exists, err = databaseExists(ctx, s.admin, s.dest.name()); err != nil {
		return false, err
	}
	watcher := s.admin
	if exists && s.o.OnlyIfEmpty {
		if watcher, err = s.dest.connect(ctx); err != nil {
			return false, err
		}
		defer watcher.Close(context.WithoutCancel(ctx))
		if err := s.dest.requireEmpty(ctx, watcher); err != nil { // before disconnectOthers ends sessions
			return false, err
		}
	}
	if err := s.disconnectOthers(ctx, watcher, terminate); err != nil {
		return false, err
	}
	return exists, s.exchange(ctx, watcher, exists, old)
}

// startDrop starts to drop the old database and does not wait for the result, because the server
// first makes a checkpoint of all databases. The session holds the lock on the old database's name
// until the database is dropped. If the old database cannot be dropped, the next load drops it.
func (s *scratch) startDrop(old string) {
	server := s.admin.PgConn().Frontend()
	server.SendQuery(&pgproto3.Query{String: dropStatement(old)})
	_ = server.Flush()
}

// databaseExists reports whether the server has a database with this name.
func databaseExists(ctx context.Context, conn *pgx.Conn, name string) (ok bool, err error) {
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&ok)
	return ok, err
}

// requireDroppable returns an error if the server would rename the old database but could not drop
// it afterwards.
func requireDroppable(ctx context.Context, admin *pgx.Conn, database string) error {
	var subscription string
	err := admin.QueryRow(ctx,
		"SELECT coalesce(min(subname), '') FROM pg_subscription JOIN pg_database d ON d.oid = subdbid "+
			"WHERE datname = $1", database).Scan(&subscription)
	if err != nil || subscription == "" {
		return err
	}
	return &snap.Error{
		Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the database %q cannot be dropped while it has the subscription %q", database,
			subscription),
		Hint: "drop the subscription first; nothing was changed",
	}
}

// disconnectOthers returns a conflict if others are connected to the old database. With terminate,
// it ends their connections instead. conn may be connected to the old database.
func (s *scratch) disconnectOthers(ctx context.Context, conn *pgx.Conn, terminate bool) error {
	others, err := connections(ctx, conn, s.dest.name())
	if err != nil || len(others) == 0 {
		return err
	}
	if !terminate {
		return engine.InUse(snap.Postgres, strconv.Quote(s.dest.name()), others)
	}
	return disconnectAll(ctx, conn, s.dest.name())
}

// disconnectAll ends the other connections to a database.
func disconnectAll(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", name)
	return err
}

// exchange exchanges the databases. If only an empty database may be replaced, watcher is connected
// to the old database.
func (s *scratch) exchange(ctx context.Context, watcher *pgx.Conn, exists bool, old string) error {
	tx, err := s.admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	scratch, place := s.db.quoted(), s.dest.quoted()
	statements := append(s.retireLoader(), "ALTER DATABASE "+scratch+" RESET ALL",
		"ALTER ROLE CURRENT_USER IN DATABASE "+scratch+" RESET ALL", "COMMENT ON DATABASE "+scratch+" IS NULL")
	if exists {
		inherited, err := inheritProperties(ctx, tx, s.dest.name(), scratch)
		if err != nil {
			return err
		}
		statements = append(statements, inherited...)
		statements = append(statements,
			"COMMENT ON DATABASE "+place+" IS "+quoteText(replacedMark),
			"ALTER DATABASE "+place+" IS_TEMPLATE false") // otherwise it cannot be dropped
	} else {
		statements = append(statements, "GRANT CONNECT, TEMPORARY ON DATABASE "+scratch+" TO PUBLIC")
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if exists {
		if err := s.moveAway(ctx, tx, watcher, "ALTER DATABASE "+place+" RENAME TO "+quote(old)); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "ALTER DATABASE "+scratch+" RENAME TO "+place); err != nil {
		return err
	}
	// If the commit were canceled, it would be unknown which database has the name.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longWait)
	defer cancel()
	return tx.Commit(ctx)
}

// longWait is longer than a server needs for any of the operations that it limits.
const longWait = time.Minute

// inheritProperties returns the statements that give the new database the properties of the old
// one: owner, comment, connection limit, privileges, settings (including those for single roles),
// and whether it is a template and accepts connections.
func inheritProperties(ctx context.Context, tx pgx.Tx, old, scratch string) ([]string, error) {
	return collect(ctx, tx.Conn(), `
		WITH old AS (SELECT *, shobj_description(oid, 'pg_database') AS comment FROM pg_database WHERE datname = $1),
		settings AS (SELECT setrole, split_part(s, '=', 1) AS name, substr(s, strpos(s, '=') + 1) AS value FROM old
			JOIN pg_db_role_setting ON setdatabase = old.oid, unnest(setconfig) s)
		SELECT format('ALTER DATABASE %s CONNECTION LIMIT %s IS_TEMPLATE %s ALLOW_CONNECTIONS %s', $2::text,
			datconnlimit, datistemplate::text, datallowconn::text) FROM old
		UNION ALL
		SELECT format('COMMENT ON DATABASE %s IS %L', $2, comment) FROM old WHERE comment IS NOT NULL
		UNION ALL
		SELECT CASE setrole WHEN 0 THEN format('ALTER DATABASE %s', $2)
			ELSE format('ALTER ROLE %I IN DATABASE %s', pg_get_userbyid(setrole), $2) END
			|| format(' SET %I TO %s', name, CASE WHEN name IN ('search_path', 'temp_tablespaces',
				'local_preload_libraries', 'session_preload_libraries') THEN
				(SELECT string_agg(quote_literal(CASE WHEN m[1] LIKE '"%'
					THEN replace(substr(m[1], 2, length(m[1]) - 2), '""', '"') ELSE m[1] END), ', ' ORDER BY at)
					FROM regexp_matches(value, '"(?:[^"]|"")*"|[^", ]+', 'g') WITH ORDINALITY names (m, at))
						ELSE quote_literal(value) END)
			FROM settings
		UNION ALL
		SELECT format('GRANT %s ON DATABASE %s TO %s%s', a.privilege_type, $2, CASE WHEN a.grantee = 0 THEN 'PUBLIC'
			ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
			CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
		FROM old, aclexplode(coalesce(datacl, acldefault('d', datdba))) a WHERE a.grantee <> datdba
		UNION ALL
		SELECT format('ALTER DATABASE %s OWNER TO %I', $2, pg_get_userbyid(datdba)) FROM old
			WHERE pg_get_userbyid(datdba) <> current_user`, pgx.RowTo[string], old, scratch)
}
