package postgres

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// loadForeign loads a dump as data: every object is created by statements generated from its
// description, and the rows are loaded as values.
func (s *scratch) loadForeign(ctx context.Context, info engine.Info, u *unpacking) error {
	server, err := s.serverVersion(ctx)
	if err != nil {
		return err
	}
	run := restoreRun{server: major(server), jobs: s.o.Jobs, properties: info.Properties}
	if s.into == nil {
		if err := s.create(ctx, run); err != nil {
			return s.dest.failure(err)
		}
	}
	g := newGenerator(u.described)
	g.into = s.into
	if err := s.prepare(ctx, g); err != nil {
		return olderServer(s.db.failure(err), info.ServerVersion, server)
	}
	counts, err := s.createAndFill(ctx, g, u)
	if err != nil {
		return olderServer(s.db.failure(err), info.ServerVersion, server)
	}
	s.o.Begin("verify")
	if err := s.verify(ctx, describedTables(info.Tables, u.described), counts); err != nil {
		return err
	}
	return s.dest.failure(s.reassignData(ctx))
}

// describedTables returns the tables of a manifest whose rows are loaded.
func describedTables(tables []engine.Table, d *schema.Schema) []engine.Table {
	described := map[[2]string]bool{}
	for _, t := range d.Tables {
		described[[2]string{t.Schema, t.Name.Name}] = t.Partitions == nil
	}
	return slices.DeleteFunc(slices.Clone(tables),
		func(t engine.Table) bool { return !described[[2]string{t.Schema, t.Name}] })
}

// prepare creates the extensions while the database is still empty, and reads which collations and
// operator classes the server has. It uses a session of the user who loads.
func (s *scratch) prepare(ctx context.Context, g *generator) error {
	conn, err := s.asUser(ctx)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	for _, x := range g.s.Extensions {
		if err := s.createExtension(ctx, conn, x); err != nil {
			return s.db.extensionFailure(x, err)
		}
	}
	classes, err := collect(ctx, conn, "SELECT nspname::text, opcname::text FROM pg_opclass JOIN pg_namespace n ON "+
		"n.oid = opcnamespace", pgx.RowToStructByPos[schema.Name])
	if err != nil {
		return err
	}
	for _, c := range classes {
		g.opClasses[c.Name] = c.Schema
	}
	g.collations, err = collect(ctx, conn,
		"SELECT collname::text FROM pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace", pgx.RowTo[string])
	return err
}

// createExtension creates an extension. If the extension's schema is missing, createExtension first
// creates that schema, and the load's role owns the schema.
func (s *scratch) createExtension(ctx context.Context, conn *pgx.Conn, x schema.Extension) error {
	owner := "CURRENT_USER"
	if s.loader.name != "" {
		owner = s.loader.quoted()
	}
	create := "CREATE EXTENSION IF NOT EXISTS " + quote(x.Name)
	if x.Schema != "pg_catalog" {
		if _, err := conn.Exec(ctx,
			"CREATE SCHEMA IF NOT EXISTS "+quote(x.Schema)+" AUTHORIZATION "+owner); err != nil {
			return err
		}
		create += " SCHEMA " + quote(x.Schema)
	}
	_, err := conn.Exec(ctx, create)
	return err
}

// createExtensions creates the extensions that checked entries need. It first refuses the load if
// the entries would run with more rights than they need. The user who loads creates allowed
// extensions, and the load's role creates the others.
func (s *scratch) createExtensions(ctx context.Context, u *unpacking) error {
	if u.review == nil {
		return nil
	}
	if s.into == nil { // otherwise restoreInto has checked this before it changed anything
		if err := s.requireConfined(ctx); err != nil {
			return err
		}
	}
	for _, label := range u.review.leftOut {
		s.o.Notify("left out, because only a superuser may create it or an object that it needs: " + label)
	}
	for _, x := range u.layout.extensions {
		connect := s.connect
		if allowedExtension(x.Name) {
			connect = s.asUser
		}
		conn, err := connect(ctx)
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, s.beginner(conn), func(pgx.Tx) error { return s.createExtension(ctx, conn, x) })
		s.release(ctx, conn)
		if err != nil && allowedExtension(x.Name) {
			return s.db.extensionFailure(x, err)
		}
		if err != nil {
			s.o.Notify("left out: the extension " + x.Name + ": " + message(err))
		}
	}
	return nil
}

// requireConfined returns an error if the programs of a snapshot that is not the user's own would
// be restored with the privileges of a superuser or, in an existing database, of a user who can
// create roles. It also returns an error if foreign programs would not be restored by a role that
// was created for the load.
func (s *scratch) requireConfined(ctx context.Context) error {
	if s.loader.name != "" {
		return nil
	}
	var super, creator bool
	err := s.admin.QueryRow(ctx,
		"SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user").Scan(&super, &creator)
	if err != nil {
		return s.dest.failure(err)
	}
	if s.into != nil && (super || creator || s.trust == engine.Foreign) {
		return &snap.Error{
			Code: snap.CodeDatabase,
			Detail: fmt.Sprintf("a load into an existing database runs the snapshot's programs with the privileges of "+
				"the user %s, which are too many for a snapshot that is not your own", s.dest.config.User),
			Hint: "for a snapshot of your organization, use the database's owner in the target's URL, without " +
				"CREATEROLE; or load without --into-existing, or without programs; nothing was changed",
		}
	}
	if super || s.trust == engine.Foreign {
		return &snap.Error{
			Code: snap.CodeDatabase,
			Detail: "the snapshot's programs need a role of their own, and the server " + s.dest.where() +
				" does not let the user " + s.dest.config.User + " create one that can log in",
			Hint: "grant CREATEROLE and set pg_hba.conf to let roles log in with a password, or load without " +
				"programs; nothing was replaced",
		}
	}
	s.o.Notify("the snapshot's functions and views are loaded with the privileges of the user " + s.dest.config.User +
		", who cannot create a role for them")
	return nil
}

// createAndFill creates the tables, fills them, and creates the rest.
func (s *scratch) createAndFill(ctx context.Context, g *generator, u *unpacking) (map[[2]string]int64, error) {
	definitions, err := g.definitions()
	if err != nil {
		return nil, err
	}
	if err := s.inSequence(ctx, definitions); err != nil {
		return nil, err
	}
	<-u.known
	if u.layout == nil {
		return nil, u.rows.wait()
	}
	stats := newAnalysis(len(u.layout.tables))
	defer stats.end()
	counts, err := s.loadData(ctx, u, s.o.Jobs, stats)
	if err == nil {
		err = s.largeObjects(ctx, u)
	}
	if err != nil {
		return nil, err
	}
	if err := s.indexes(ctx, g, u); err != nil {
		return nil, err
	}
	if err := s.inParallel(ctx, g.foreignKeys()); err != nil {
		return nil, err
	}
	rest := g.rest()
	return counts, cmp.Or(g.err, s.inSequence(ctx, rest))
}

// indexes creates the keys and indexes. The largest tables come first. Parent tables come after
// their partitions, because an index of a parent attaches the indexes of its partitions.
func (s *scratch) indexes(ctx context.Context, g *generator, u *unpacking) error {
	size, depth := map[schema.Name]int64{}, map[schema.Name]int{}
	for _, b := range u.layout.tables {
		size[schema.Name{Schema: b.schema, Name: b.name}] = b.size
	}
	parent := parentsOf(g.s)
	var leaves, roots []schema.Table
	for _, t := range g.s.Tables {
		for at, ok := t.Name, true; ok && depth[t.Name] <= len(parent); depth[t.Name]++ {
			at, ok = parent[at]
		}
		if t.Partitions == nil {
			leaves = append(leaves, t)
		} else {
			roots = append(roots, t)
		}
	}
	slices.SortStableFunc(leaves, func(a, b schema.Table) int { return cmp.Compare(size[b.Name], size[a.Name]) })
	slices.SortStableFunc(roots, func(a, b schema.Table) int { return cmp.Compare(depth[b.Name], depth[a.Name]) })
	var first, then []string
	for _, t := range leaves {
		first = append(first, g.indexes(t)...)
	}
	for _, t := range roots {
		then = append(then, g.indexes(t)...)
	}
	if g.err != nil {
		return g.err
	}
	if err := s.inParallel(ctx, first); err != nil {
		return err
	}
	return s.inSequence(ctx, then)
}

var generatedSession = []string{"SET check_function_bodies = off"}

// statementsPerTransaction is the number of statements in a transaction. It is limited because
// every created object takes locks.
const statementsPerTransaction = 50

// inSequence runs statements one after the other.
func (s *scratch) inSequence(ctx context.Context, statements []string) error {
	conn, err := s.session(ctx, generatedSession)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	for part := range slices.Chunk(statements, statementsPerTransaction) {
		if _, err := conn.PgConn().Exec(ctx, strings.Join(part, ";\n")).ReadAll(); err != nil {
			return s.db.failure(err)
		}
	}
	return nil
}

// stateDeadlock is the SQLSTATE deadlock_detected.
const stateDeadlock = "40P01"

// inParallel runs statements concurrently, with one session per job. Statements that failed with a
// deadlock run again, one after the other.
func (s *scratch) inParallel(ctx context.Context, statements []string) error {
	again := make(chan string, len(statements))
	connect := func(ctx context.Context) (*pgx.Conn, error) { return s.session(ctx, generatedSession) }
	err := s.parallel(ctx, statements, connect, func(ctx context.Context, conn *pgx.Conn, statement string) error {
		_, err := conn.PgConn().Exec(ctx, statement).ReadAll()
		if state(err) == stateDeadlock {
			again <- statement
			return nil
		}
		return s.db.failure(err)
	})
	if err != nil {
		return err
	}
	close(again)
	var failed []string
	for statement := range again {
		failed = append(failed, statement)
	}
	if len(failed) == 0 {
		return nil
	}
	return s.inSequence(ctx, failed)
}

// largeObjects creates the large objects from the file that the unpacking wrote.
func (s *scratch) largeObjects(ctx context.Context, u *unpacking) error {
	if _, err := u.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := &dumpReader{r: bufio.NewReaderSize(u.file, 1<<20), intSize: 4, offset: 8}
	var conn *pgx.Conn
	err := d.blocks(func(byte, int) (err error) {
		if conn == nil {
			if conn, err = s.session(ctx, generatedSession); err != nil {
				return err
			}
		}
		return s.db.failure(pgx.BeginFunc(ctx, s.beginner(conn),
			func(tx pgx.Tx) error { return fillObjects(ctx, d, tx) }))
	})
	if conn != nil {
		s.release(ctx, conn)
	}
	return err
}

// fillObjects creates the large objects of one block.
func fillObjects(ctx context.Context, d *dumpReader, tx pgx.Tx) error {
	all := tx.LargeObjects()
	for {
		oid := uint32(d.int())
		if d.err != nil || oid == 0 {
			return d.err
		}
		if _, err := all.Create(ctx, oid); err != nil {
			return err
		}
		object, err := all.Open(ctx, oid, pgx.LargeObjectModeWrite)
		if err != nil {
			return err
		}
		d.chunks(func(p []byte) {
			if _, err := object.Write(p); err != nil {
				d.fail(err)
			}
		})
		if err := cmp.Or(d.err, object.Close()); err != nil {
			return err
		}
	}
}
