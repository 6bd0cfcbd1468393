package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// A load into an existing database is one transaction on one connection, unless it is in place. It
// renames the old schemas, creates the new schemas next to them, drops the old schemas at the end,
// and commits. Other sessions see the old content until the commit, and only the last step waits
// for their locks. A schema that belongs to somebody else or has extensions in it cannot be
// renamed. The load empties such a schema at the start of the transaction instead. Other sessions
// that use the schema wait until the load has ended.

// existing is the database whose content a load replaces.
type existing struct {
	dest        database // the database that the load fills
	tx          pgx.Tx   // the transaction of the whole load; nil if the database is filled in place
	conn        *pgx.Conn
	lockTimeout time.Duration
	serverMajor int // major version of the server
	content     content
	o           engine.Options
}

// defaultLockTimeout is how long a step of a load into an existing database waits for locks that
// others hold, unless [Engine.LockTimeout] is set.
const defaultLockTimeout = 30 * time.Second

// restoreInto implements [Engine.Restore] for an existing database.
func (e Engine) restoreInto(ctx context.Context, d database, dump engine.Dump, o engine.Options) (engine.Scratch,
	error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	x := &existing{dest: d, conn: conn, o: o, lockTimeout: e.LockTimeout}
	if x.lockTimeout == 0 {
		x.lockTimeout = defaultLockTimeout
	}
	if o.Into == engine.Existing {
		o.Jobs = 1
	}
	s := &scratch{dest: d, db: d, admin: conn, o: o, size: dump.Size, trust: dump.Trust, into: x}
	if err = d.requireDirect(ctx, conn, "a load needs its own session on the server, and a pooler "+
		"shares sessions between clients"); err == nil {
		err = checkGrants(ctx, conn, dump, o)
	}
	if err == nil && !onlyGenerated(dump) && reviewOf(dump) != nil {
		err = s.requireConfined(ctx)
	}
	if err == nil {
		err = x.begin(ctx, dump, o.Into == engine.InPlace)
	}
	if err == nil {
		err = s.fill(ctx, e, dump)
	}
	if err == nil {
		err = x.inheritRights(ctx)
	}
	if err != nil {
		x.leave(context.WithoutCancel(ctx))
		return nil, x.failure(err)
	}
	return s, nil
}

// begin makes room for the new content. It renames the old schemas or, if inPlace is set, removes
// them for good.
func (x *existing) begin(ctx context.Context, dump engine.Dump, inPlace bool) (err error) {
	if err := x.hold(ctx); err != nil {
		return err
	}
	server, err := version(ctx, x.conn)
	if err != nil {
		return err
	}
	x.serverMajor = major(server)
	if x.serverMajor >= 14 { // a killed load then ends within seconds, even while the server builds an index
		_, _ = x.conn.Exec(ctx, "SET client_connection_check_interval = '5s'") // fails on some systems
	}
	if x.tx, err = x.conn.Begin(ctx); err != nil {
		return err
	}
	if x.content, err = contentOf(ctx, x.conn, dump); err != nil {
		return err
	}
	if len(x.content.kept) > 0 {
		x.o.Notify("the load keeps the content of " + engine.List(x.content.kept) +
			": a schema without objects in the snapshot is replaced only if the snapshot has the whole database, the " +
			"user owns the schema, and it contains no extension")
	}
	if x.o.OnlyIfEmpty {
		if err := x.dest.requireEmpty(ctx, x.conn); err != nil {
			return err
		}
	}
	if inPlace {
		return x.clear(ctx)
	}
	return x.makeRoom(ctx)
}

// hold takes the lock that allows only one load into this database at a time. The lock ends with
// the connection.
func (x *existing) hold(ctx context.Context) error {
	if _, err := x.conn.Exec(ctx, "SET lock_timeout = '"+x.timeoutSQL()+"'"); err != nil {
		return err
	}
	err := holdName(ctx, x.conn, x.dest.name())
	if state(err) == stateLocked {
		return &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("another load into the database %q is running", x.dest.name()),
			Hint:   "try again when it has ended"}
	}
	if err != nil {
		return err
	}
	_, err = x.conn.Exec(ctx, "SET lock_timeout = 0")
	return err
}

func (x *existing) timeoutSQL() string { return fmt.Sprintf("%dms", x.lockTimeout.Milliseconds()) }

// makeRoom renames the old schemas, and removes everything else that is replaced.
func (x *existing) makeRoom(ctx context.Context) error {
	for i := range x.content.Schemas {
		n := &x.content.Schemas[i]
		if n.Renamed {
			n.Old = randomName("snapcli_replaced_")
			if err := x.exec(ctx, "ALTER SCHEMA "+quote(n.Name)+" RENAME TO "+quote(n.Old)); err != nil {
				return err
			}
		}
	}
	if err := x.withLocks(ctx, x.o.Terminate, func() error { return x.exec(ctx, x.content.Objects...) }); err != nil {
		return err
	}
	if !x.o.OnlyIfEmpty {
		if err := x.exec(ctx, deleteOwnLargeObjects); err != nil {
			return err
		}
	}
	if n := x.content.named("public"); n != nil && n.Renamed {
		return x.createPublic(ctx)
	}
	return nil
}

// createPublic creates the schema public as it is in a new database.
func (x *existing) createPublic(ctx context.Context) error {
	right := "USAGE"
	if x.serverMajor < 15 {
		right = "ALL"
	}
	return x.exec(ctx, "CREATE SCHEMA public", "COMMENT ON SCHEMA public IS 'standard public schema'",
		"GRANT "+right+" ON SCHEMA public TO PUBLIC")
}

// clear removes the old content for good, and marks the database as unfinished.
func (x *existing) clear(ctx context.Context) error {
	if err := x.makeRoom(ctx); err != nil {
		return err
	}
	if err := x.exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+engine.Unfinished, "COMMENT ON SCHEMA "+engine.Unfinished+
		" IS 'snapcli is loading this database, or a load failed: the database is incomplete'"); err != nil {
		return err
	}
	if err := x.dropOld(ctx, x.o.Terminate); err != nil {
		return err
	}
	if err := x.tx.Commit(ctx); err != nil {
		return err
	}
	x.tx = nil
	return nil
}

func (x *existing) exec(ctx context.Context, statements ...string) error {
	_, err := x.conn.PgConn().Exec(ctx, strings.Join(statements, ";\n")).ReadAll()
	return err
}

// deleteOwnLargeObjects deletes the large objects whose owner's rights the user has.
const deleteOwnLargeObjects = "SELECT lo_unlink(oid) FROM pg_largeobject_metadata " +
	"WHERE pg_has_role(lomowner, 'USAGE')"

// withLocks runs a step that needs locks on the old objects. If another session holds such a lock
// for longer than x.lockTimeout, withLocks returns a conflict that names the session. With
// terminate, it ends the session instead.
func (x *existing) withLocks(ctx context.Context, terminate bool, step func() error) error {
	for attempt := 0; ; attempt++ {
		if err := x.exec(ctx, "SAVEPOINT step", "SET LOCAL lock_timeout = '"+x.timeoutSQL()+"'"); err != nil {
			return err
		}
		err := step()
		if err == nil {
			return x.exec(ctx, "RELEASE step", "SET LOCAL lock_timeout = 0")
		}
		if state(err) != stateLocked || attempt == 5 {
			return err
		}
		if err := x.exec(ctx, "ROLLBACK TO step"); err != nil {
			return err
		}
		if err := x.freeLocks(ctx, terminate, err); err != nil {
			return err
		}
	}
}

// freeLocks returns a conflict that names a session with locks on replaced objects. With terminate,
// it instead ends all sessions with such locks. If there is no such session, it returns nil.
func (x *existing) freeLocks(ctx context.Context, terminate bool, cause error) error {
	type holder struct {
		PID    int32
		Who    string
		Schema uint32
		Table  string
	}
	all, err := collect(ctx, x.conn, holders, pgx.RowToStructByPos[holder], x.content.oids())
	if err != nil || len(all) == 0 { // the sessions have ended: try again
		return err
	}
	if terminate {
		for _, h := range all {
			if _, err := x.conn.Exec(ctx, "SELECT pg_terminate_backend($1)", h.PID); err != nil {
				return err
			}
		}
		return nil
	}
	return &snap.Error{
		Code: snap.CodeConflict, Cause: cause,
		Detail: fmt.Sprintf("the session %d of %s holds a lock on %s", all[0].PID, charset.Readable(all[0].Who),
			charset.Readable(x.content.nameOf(all[0].Schema)+"."+all[0].Table)),
		Hint: fmt.Sprintf("end it with SELECT pg_terminate_backend(%d), or load with --terminate; nothing was changed",
			all[0].PID),
	}
}

// holders lists the other sessions that hold locks on relations in the schemas $1.
const holders = `
SELECT DISTINCT ON (l.pid) l.pid, coalesce(a.usename, 'unknown')
	|| coalesce(' (' || nullif(a.application_name, '') || ')', ''),
	c.relnamespace, c.relname::text
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
	LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.pid <> pg_backend_pid()
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND c.relnamespace = ANY ($1) ORDER BY l.pid, c.relkind <> 'r', c.relname`

// dropOld drops the renamed schemas. If only an empty database may be replaced, it fails if
// somebody has created an object in these schemas.
func (x *existing) dropOld(ctx context.Context, terminate bool) error {
	var old []string
	for _, n := range x.content.Schemas {
		if n.Renamed && x.tx != nil {
			old = append(old, quote(n.Old))
		}
	}
	if len(old) == 0 {
		return nil
	}
	how := " CASCADE"
	if x.o.OnlyIfEmpty {
		how = " RESTRICT"
	}
	err := x.withLocks(ctx, terminate, func() error {
		return x.exec(ctx, "SET LOCAL client_min_messages = error", "DROP SCHEMA "+strings.Join(old, ", ")+how)
	})
	if state(err) == stateDependents && x.o.OnlyIfEmpty {
		return engine.Filled(strconv.Quote(x.dest.name()))
	}
	return err
}

// swap drops the old content and commits the new content.
func (x *existing) swap(ctx context.Context, terminate bool) error {
	if err := x.dropOld(ctx, terminate); err != nil {
		return err
	}
	if err := x.exec(ctx, "SET client_min_messages = error", "DROP SCHEMA IF EXISTS "+engine.Unfinished); err != nil ||
		x.tx == nil {
		return err
	}
	if err := x.exec(ctx, "RESET synchronous_commit"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longWait)
	defer cancel()
	return x.tx.Commit(ctx)
}

// inheritRights gives the new schemas the owners and rights of the old schemas, as far as the user
// is allowed to.
func (x *existing) inheritRights(ctx context.Context) error {
	for _, n := range x.content.Schemas {
		for _, statement := range n.Inherit {
			var exists bool
			err := x.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
				n.Name).Scan(&exists)
			if err == nil && exists {
				err = x.attempt(ctx, statement)
			}
			if err != nil && state(err) != stateNoRight {
				return err
			}
		}
	}
	return nil
}

// attempt runs a statement whose failure must not end the transaction.
func (x *existing) attempt(ctx context.Context, statement string) error {
	if x.tx == nil {
		return x.exec(ctx, statement)
	}
	return pgx.BeginFunc(ctx, x.tx, func(pgx.Tx) error { return x.exec(ctx, statement) })
}

// leave rolls back the transaction, if it has not been committed, and disconnects.
func (x *existing) leave(ctx context.Context) { _ = x.conn.Close(ctx) }

// schemas returns the schemas that a load fills, or nil for a scratch database.
func (x *existing) schemas() (all []string) {
	if x == nil {
		return nil
	}
	for _, n := range x.content.Schemas {
		all = append(all, n.Name)
	}
	return append(all, x.content.fresh...)
}

// tablesOf returns the tables in got that the snapshot has. An existing database can have other
// tables in schemas that the load does not change.
func (x *existing) tablesOf(got, want []engine.Table) []engine.Table {
	if x == nil {
		return got
	}
	return slices.DeleteFunc(got, func(t engine.Table) bool {
		return !slices.ContainsFunc(want, func(w engine.Table) bool { return w.Schema == t.Schema && w.Name == t.Name })
	})
}

// connect opens a session in the scratch database. If the whole load is one transaction, it returns
// the session of that transaction.
func (s *scratch) connect(ctx context.Context) (*pgx.Conn, error) {
	if s.inTransaction() {
		return s.into.conn, nil
	}
	return s.db.connect(ctx)
}

// asUser is like [scratch.connect], but the session always has the rights of the user who loads.
func (s *scratch) asUser(ctx context.Context) (*pgx.Conn, error) {
	if s.inTransaction() {
		return s.into.conn, nil
	}
	return s.dest.named(s.db.name()).connect(ctx)
}

// release closes a session, unless it is the session of the load's transaction.
func (s *scratch) release(ctx context.Context, conn *pgx.Conn) {
	if !s.inTransaction() {
		conn.Close(context.WithoutCancel(ctx))
	}
}

// inTransaction reports whether the whole load is one transaction.
func (s *scratch) inTransaction() bool { return s.into != nil && s.into.tx != nil }

// txBeginner begins a transaction, or a savepoint in one.
type txBeginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// beginner returns the value that begins a transaction: the session itself or, if the whole load is
// one transaction, that transaction.
func (s *scratch) beginner(conn *pgx.Conn) txBeginner {
	if s.inTransaction() {
		return s.into.tx
	}
	return conn
}
