package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

var _ engine.Cloner = Engine{}

// Named implements [engine.Cloner].
func (e Engine) Named(raw, name string) (string, error) {
	d, err := e.parse(raw)
	if err != nil {
		return "", err
	}
	return d.named(name).url(), nil
}

// copier copies databases on one server, in one session.
type copier struct {
	database
	*pgx.Conn
	server int    // major version
	folder string // the server's data directory, or "" if the user may not see it
}

// copier connects to the server of a database without connecting to the database, and checks that
// databases can be copied there.
func (d database) copier(ctx context.Context) (*copier, error) {
	conn, err := d.maintenance(ctx)
	if err != nil {
		return nil, err
	}
	c := &copier{database: d, Conn: conn}
	if err := c.check(ctx); err != nil {
		c.close(ctx)
		return nil, d.failure(err)
	}
	return c, nil
}

func (c *copier) close(ctx context.Context) { _ = c.Conn.Close(context.WithoutCancel(ctx)) }

func (c *copier) check(ctx context.Context) error {
	var pid uint32
	var standby, mayCreate bool
	var grant string
	err := c.QueryRow(ctx, `SELECT pg_backend_pid(), pg_is_in_recovery(), rolsuper
		OR rolcreatedb, format('ALTER ROLE %I CREATEDB', current_user),
		current_setting('server_version_num')::int / 10000, CASE
			WHEN pg_has_role(current_user, 'pg_read_all_settings', 'USAGE')
			THEN current_setting('data_directory') ELSE '' END
		FROM pg_roles WHERE rolname = current_user`).Scan(&pid, &standby, &mayCreate, &grant, &c.server, &c.folder)
	switch {
	case err != nil:
		return err
	case pid != c.PgConn().PID():
		return &snap.Error{Code: snap.CodeDatabase,
			Detail: fmt.Sprintf("a connection pooler answers %s, and databases cannot be created through it",
				c.where()),
			Hint: "give the server's own host and port in the target's destination"}
	case standby:
		return &snap.Error{Code: snap.CodeDatabase,
			Detail: fmt.Sprintf("the PostgreSQL server %s is a standby, where nothing can be created", c.where()),
			Hint:   "give the primary server in the target's destination"}
	case !mayCreate:
		return &snap.Error{Code: snap.CodeForbidden,
			Detail: fmt.Sprintf("the PostgreSQL user %q is not allowed to create databases", c.config.User),
			Hint:   "have a superuser run: " + grant}
	}
	return nil
}

// CheckCanClone implements [engine.Cloner].
func (e Engine) CheckCanClone(ctx context.Context, raw string) error {
	return e.withCopier(ctx, raw, func(*copier) error { return nil })
}

// withCopier calls f with a session on the server of a database.
func (e Engine) withCopier(ctx context.Context, raw string, f func(*copier) error) error {
	d, err := e.parse(raw)
	if err != nil {
		return err
	}
	c, err := d.copier(ctx)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	return d.failure(f(c))
}

// Seal implements [engine.Cloner]. Afterwards, nobody can connect to the database, not even a
// superuser. The mark is the version of the database's row in the catalog, which changes when
// somebody allows connections again.
func (e Engine) Seal(ctx context.Context, raw string) (mark string, err error) {
	err = e.withCopier(ctx, raw, func(c *copier) error {
		_, err := c.Exec(ctx, "ALTER DATABASE "+c.quoted()+" ALLOW_CONNECTIONS false")
		if err == nil {
			mark, err = c.mark(ctx)
		}
		return err
	})
	return mark, err
}

// quoted returns the database's name, quoted for SQL.
func (d database) quoted() string { return pgx.Identifier{d.name()}.Sanitize() }

// mark returns the mark of a sealed database, or "" if it is missing or open.
func (c *copier) mark(ctx context.Context) (mark string, err error) {
	err = c.QueryRow(ctx, "SELECT coalesce(max(oid || ' ' || xmin), '') FROM pg_database WHERE datname = $1 AND NOT "+
		"datallowconn", c.name()).Scan(&mark)
	return mark, err
}

// Copy implements [engine.Cloner].
func (e Engine) Copy(ctx context.Context, from, to string, o engine.CopyOptions) error {
	d, err := e.parse(to)
	if err != nil {
		return err
	}
	return e.withCopier(ctx, from, func(c *copier) error {
		if err := holdName(ctx, c.Conn, d.name()); err != nil {
			return err
		}
		return c.copyTo(ctx, d.name(), o)
	})
}

// copyTo creates a copy of the copier's database.
func (c *copier) copyTo(ctx context.Context, name string, o engine.CopyOptions) error {
	if o.Mark != "" {
		switch mark, err := c.mark(ctx); {
		case err != nil:
			return err
		case mark != o.Mark:
			return engine.ErrNotSealed
		}
	}
	size, err := c.checkSpace(ctx)
	if err != nil {
		return err
	}
	const attempts = 5
	for range attempts {
		if o.Mark == "" && o.Terminate {
			if err := disconnectAll(ctx, c.Conn, c.name()); err != nil {
				return err
			}
		}
		if err = c.createFrom(ctx, name, size); state(err) != stateInUse || !o.Terminate {
			break
		}
	}
	if state(err) == stateInUse {
		return c.inUse(ctx, err)
	}
	return err
}

// largeDatabase is the size from which copying files is faster than writing the copy to the
// write-ahead log. Copying files makes the server first write all changed pages to disk, so it is
// slower for a small database on a busy server.
const largeDatabase = 32 << 20

func (c *copier) createFrom(ctx context.Context, name string, size int64) error {
	create := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + c.quoted()
	switch {
	case c.server < 15: // these versions always copy files
	case size < largeDatabase:
		create += " STRATEGY WAL_LOG"
	default:
		create += " STRATEGY FILE_COPY"
	}
	if c.server >= 18 && size >= largeDatabase {
		_, err := c.Exec(ctx, "SET file_copy_method = clone")
		if err == nil {
			_, err = c.Exec(ctx, create)
		}
		if err == nil || ctx.Err() != nil || state(err) == stateInUse || state(err) == stateDiskFull {
			return err
		}
		if _, err := c.Exec(ctx, "SET file_copy_method = copy"); err != nil { // this file system cannot share blocks
			return err
		}
	}
	_, err := c.Exec(ctx, create)
	return err
}

// checkSpace returns the size of the copier's database, and an error if the disk of a server on
// this machine cannot hold another copy of it.
func (c *copier) checkSpace(ctx context.Context) (size int64, err error) {
	err = c.QueryRow(ctx, "SELECT coalesce(max(pg_database_size(oid)), 0) FROM pg_database WHERE datname = $1",
		c.name()).Scan(&size)
	if err != nil || c.folder == "" || !c.local() {
		return size, err
	}
	free, known := disk.Free(c.folder)
	if !known || size < free {
		return size, nil
	}
	return size, engine.NoRoom(size, "on the PostgreSQL server "+c.where(), free)
}

// inUse returns a conflict that names the connections to the copier's database.
func (c *copier) inUse(ctx context.Context, cause error) error {
	others, err := connections(ctx, c.Conn, c.name())
	if err != nil {
		return err
	}
	by := "another session"
	if len(others) > 0 {
		by = engine.List(others)
	}
	return &snap.Error{Code: snap.CodeConflict, Cause: cause,
		Detail: fmt.Sprintf("the database %q is in use by %s, and PostgreSQL copies only databases without connections",
			c.name(), by),
		Hint: "close the connections, or end them with --terminate"}
}

// The names of the databases that Reset creates next to a clone are the clone's name followed by
// one of these suffixes, so that they can be found after a kill.
const (
	nextSuffix = "_next"
	oldSuffix  = "_old"
)

// Reset implements [engine.Cloner]. It creates the copy next to the clone, and puts it in place
// with two renames in one transaction.
func (e Engine) Reset(ctx context.Context, from, to string, o engine.CopyOptions) error {
	source, err := e.parse(from)
	if err != nil {
		return err
	}
	d, err := e.parseClone(to)
	if err != nil {
		return err
	}
	c, err := d.copier(ctx)
	if err != nil {
		return err
	}
	if err = c.reset(ctx, source, o); err != nil {
		c.close(ctx)
		return d.failure(err)
	}
	// Reset does not wait until the server has dropped the old database. The session holds the lock
	// on the clone's name until then.
	go func() {
		defer c.close(ctx)
		_, _ = c.Exec(context.WithoutCancel(ctx), dropStatement(d.name()+oldSuffix))
	}()
	return nil
}

func (c *copier) reset(ctx context.Context, from database, o engine.CopyOptions) error {
	if err := holdName(ctx, c.Conn, c.name()); err != nil {
		return err
	}
	if err := c.recover(ctx); err != nil {
		return err
	}
	source := *c
	source.database = from
	if err := source.copyTo(ctx, c.name()+nextSuffix, o); err != nil {
		return err
	}
	var err error
	const attempts = 5
	for range attempts {
		if err = disconnectAll(ctx, c.Conn, c.name()); err != nil {
			return err
		}
		if err = c.exchange(ctx); state(err) != stateInUse {
			break
		}
	}
	return err
}

// exchange renames the clone and gives its name to the copy, in one transaction.
func (c *copier) exchange(ctx context.Context) error {
	id := func(suffix string) string { return pgx.Identifier{c.name() + suffix}.Sanitize() }
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	exists, err := databaseExists(ctx, tx.Conn(), c.name())
	if err != nil {
		return err
	}
	if exists {
		if _, err := tx.Exec(ctx, "ALTER DATABASE "+id("")+" RENAME TO "+id(oldSuffix)); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "ALTER DATABASE "+id(nextSuffix)+" RENAME TO "+id("")); err != nil {
		return err
	}
	return tx.Commit(context.WithoutCancel(ctx))
}

func dropStatement(name string) string {
	return "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
}

// isClone reports whether the database's name is that of a clone.
func (d database) isClone() bool { return strings.HasPrefix(d.name(), engine.ClonePrefix) }

// parseClone is like [Engine.parse] and returns an error unless the database is a clone.
func (e Engine) parseClone(raw string) (database, error) {
	d, err := e.parse(raw)
	if err == nil && !d.isClone() {
		err = fmt.Errorf("%q is not a clone", d.name())
	}
	return d, err
}

// withClone calls f with a session on the server of a clone, and the lock on the clone's name. It
// waits for a session of a killed client that may still be creating the database.
func (e Engine) withClone(ctx context.Context, raw string, f func(*copier) error) error {
	if _, err := e.parseClone(raw); err != nil {
		return err
	}
	return e.withCopier(ctx, raw, func(c *copier) error {
		if err := holdName(ctx, c.Conn, c.name()); err != nil {
			return err
		}
		return f(c)
	})
}

// recover drops the remains of a killed reset.
func (c *copier) recover(ctx context.Context) error {
	for _, suffix := range []string{nextSuffix, oldSuffix} {
		if _, err := c.Exec(ctx, dropStatement(c.name()+suffix)); err != nil {
			return err
		}
	}
	return nil
}

// Recover implements [engine.Cloner].
func (e Engine) Recover(ctx context.Context, raw string) error {
	return e.withClone(ctx, raw, func(c *copier) error { return c.recover(ctx) })
}

// Drop implements [engine.Cloner].
func (e Engine) Drop(ctx context.Context, raw string) error {
	return e.withClone(ctx, raw, func(c *copier) error {
		if err := c.recover(ctx); err != nil {
			return err
		}
		_, err := c.Exec(ctx, dropStatement(c.name()))
		return err
	})
}

// States implements [engine.Cloner].
func (e Engine) States(ctx context.Context, urls []string) ([]engine.DatabaseState, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	_, conn, err := e.maintenance(ctx, urls[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	all := make([]engine.DatabaseState, len(urls))
	for i, raw := range urls {
		d, err := e.parse(raw)
		if err != nil {
			return nil, err
		}
		if all[i], err = databaseState(ctx, conn, d.name()); err != nil {
			return nil, d.failure(err)
		}
	}
	return all, nil
}

func databaseState(ctx context.Context, conn *pgx.Conn, name string) (s engine.DatabaseState, err error) {
	err = conn.QueryRow(ctx, "SELECT count(*) > 0, coalesce(max(pg_database_size(oid)), 0) FROM pg_database WHERE "+
		"datname = $1", name).Scan(&s.Exists, &s.Size)
	if err == nil {
		s.Connections, err = connections(ctx, conn, name)
	}
	return s, err
}
