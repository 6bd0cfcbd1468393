package postgres

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// If possible, a snapshot that this user did not build on this machine is loaded by a role that is
// created for the load. The role owns the scratch database and is granted nothing else. The
// sessions of the user who loads run no SQL of the snapshot.

// rolePrefix is the prefix of the names of these roles.
const rolePrefix = "snapcli_load_"

// loader is the role of a load. The name is empty if there is no such role.
type loader struct{ name, password string }

func (l loader) quoted() string { return quote(l.name) }

// makeLoader creates the role of the load, if the user is allowed to create roles. The user becomes
// a member of the role, and can therefore change and drop the role's objects.
func (s *scratch) makeLoader(ctx context.Context) error {
	var mayCreate bool
	var server int
	err := s.admin.QueryRow(ctx,
		"SELECT rolsuper OR rolcreaterole, current_setting('server_version_num')::int / 10000 FROM pg_roles WHERE "+
			"rolname = current_user").Scan(&mayCreate, &server)
	if err != nil || !mayCreate {
		return err
	}
	l := loader{name: randomName(rolePrefix), password: rand.Text()}
	if err := holdName(ctx, s.admin, l.name); err != nil {
		return err
	}
	grant := "GRANT " + l.quoted() + " TO CURRENT_USER"
	if server >= 16 {
		grant += " WITH INHERIT TRUE, SET TRUE"
	}
	create := "CREATE ROLE " + l.quoted() + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD " +
		quoteText(l.password)
	if _, err := s.admin.Exec(ctx, create+"; "+grant); err != nil { // both or neither, in one message
		return err
	}
	s.loader = l
	return nil
}

// asLoader returns the scratch database with settings that let the role connect, or false if the
// role cannot connect. Some servers on this machine accept passwords only over TCP, not over a
// socket.
func (s *scratch) asLoader(ctx context.Context) (db database, ok bool) {
	db = s.db.as(s.loader)
	for _, d := range []database{db, db.onLoopback()} {
		conn, err := d.connect(ctx)
		if err == nil {
			conn.Close(context.WithoutCancel(ctx))
			return d, true
		}
	}
	return db, false
}

// as returns the database with the loader's credentials.
func (d database) as(l loader) database {
	config := d.config.Copy()
	config.User, config.Password = l.name, l.password
	return database{raw: d.raw, config: config, way: d.way.WithoutCommand(), encoding: d.encoding}
}

// onLoopback returns the database with a TCP address on this machine if d uses a socket, and
// otherwise d.
func (d database) onLoopback() database {
	if !strings.HasPrefix(d.config.Host, "/") {
		return d
	}
	config := d.config.Copy()
	config.Host, config.Fallbacks = "127.0.0.1", nil
	return database{raw: "host=127.0.0.1", config: config, way: d.way, encoding: d.encoding}
}

// confine makes the role of the load the owner of the scratch database. If the role cannot connect,
// confine makes the user the owner again and drops the role.
func (s *scratch) confine(ctx context.Context) error {
	if s.loader.name == "" {
		return nil
	}
	id := s.db.quoted()
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+id+" OWNER TO "+s.loader.quoted()); err != nil {
		return err
	}
	if db, ok := s.asLoader(ctx); ok {
		s.db = db
		return nil
	}
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+id+" OWNER TO CURRENT_USER"); err != nil {
		return err
	}
	return s.dropLoader(ctx)
}

// dropLoader drops the role, which must own nothing.
func (s *scratch) dropLoader(ctx context.Context) error {
	if s.loader.name == "" {
		return nil
	}
	_, err := s.admin.Exec(ctx, dropRole(s.loader.name))
	s.loader = loader{}
	return err
}

// reassignData makes the user the owner of the role's objects, and drops the role. This is safe
// because the objects contain no code.
func (s *scratch) reassignData(ctx context.Context) error {
	if s.loader.name == "" {
		return nil
	}
	s.db = s.dest.named(s.db.name())
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+s.db.quoted()+" OWNER TO CURRENT_USER"); err != nil {
		return err
	}
	conn, err := s.db.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := s.reassignRelations(ctx, conn); err != nil {
		return err
	}
	for _, statement := range []string{"REASSIGN OWNED BY " + s.loader.quoted() + " TO CURRENT_USER",
		"DROP OWNED BY " + s.loader.quoted()} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return s.dropLoader(ctx)
}

// reassignRelations makes the user the owner of the role's tables and sequences, in many
// transactions. REASSIGN OWNED would lock all of them and their indexes in one.
func (s *scratch) reassignRelations(ctx context.Context, conn *pgx.Conn) error {
	statements, err := collect(ctx, conn, `SELECT format('ALTER TABLE %I.%I OWNER TO CURRENT_USER', nspname, relname)
		FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = $1)
			AND (relkind IN ('r', 'p') OR relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d
				WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i')))`,
		pgx.RowTo[string], s.loader.name)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(statements, statementsPerTransaction) {
		if _, err := conn.PgConn().Exec(ctx, strings.Join(part, ";\n")).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// retireLoader returns statements that make the user the owner of the database and prevent logins
// as the role. The role then owns only the objects that it loaded.
func (s *scratch) retireLoader() []string {
	if s.loader.name == "" {
		return nil
	}
	return []string{
		"ALTER DATABASE " + s.db.quoted() + " OWNER TO CURRENT_USER",
		"ALTER ROLE " + s.loader.quoted() + " NOLOGIN PASSWORD NULL",
	}
}

func dropRole(name string) string { return "DROP ROLE IF EXISTS " + quote(name) }

// eachFree runs a statement for each name. It skips a name whose lock another session in the
// database of admin holds, because that session is about to drop the object. It ignores errors of
// the statements, because the next load tries again.
func eachFree(ctx context.Context, admin *pgx.Conn, names []string, statement func(name string) string) error {
	for _, name := range names {
		var free bool
		if err := admin.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))",
			name).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue
		}
		_, _ = admin.Exec(ctx, statement(name))
		if _, err := admin.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", name); err != nil {
			return err
		}
	}
	return nil
}
