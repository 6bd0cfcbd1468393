package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// scratchMark is the comment on a scratch database. It explains the database to people who find it.
const scratchMark = "snapcli: a scratch database, in use while its load runs"

// Restore implements [engine.Engine].
func (e Engine) Restore(ctx context.Context, raw string, dump engine.Dump, o engine.Options) (engine.Scratch, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	o.Jobs = max(1, o.Jobs)
	if o.Into != engine.NewDatabase {
		return e.restoreInto(ctx, d, dump, o)
	}
	admin, err := d.maintenance(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.requireDirect(ctx, admin,
		"a load replaces a database, to which a pooler keeps its connections"); err != nil {
		admin.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	s := &scratch{dest: d, admin: admin, o: o, size: dump.Size}
	err = checkGrants(ctx, admin, dump, o)
	if err == nil {
		err = s.fill(ctx, e, dump)
	}
	if err != nil {
		return nil, errors.Join(err, s.Drop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// scratch is a database on the destination's server. While the database is in use, admin holds an
// advisory lock on its name, so that the database is not mistaken for a leftover.
type scratch struct {
	dest    database // the destination
	db      database // the scratch database, or the destination if into is set
	admin   *pgx.Conn
	created bool
	o       engine.Options
	size    int64 // size of the dump

	trust  engine.Trust
	loader loader // the role that loads, and owns the loaded objects
	grants []schema.Grant
	into   *existing // the database whose content is replaced; nil for a scratch database
}

// fill loads the dump while it is unpacked. Loading and unpacking must both succeed.
func (s *scratch) fill(ctx context.Context, e Engine, dump engine.Dump) error {
	u, err := newUnpacking(s.o.TempDir)
	if err != nil {
		return err
	}
	defer u.remove()
	s.o.Begin("restore")
	s.trust = dump.Trust
	if s.o.WithGrants {
		s.grants = dump.Info.Schema.Grants
	}
	foreign := onlyGenerated(dump)
	if !foreign {
		u.review = reviewOf(dump)
	}
	if dump.Trust == engine.Foreign {
		described, err := describedBy(dump.Info)
		if err != nil {
			return err
		}
		if foreign {
			u.described = described
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return u.run(ctx, dump, s.o.Jobs) })
	g.Go(func() error {
		if foreign {
			return s.loadForeign(ctx, dump.Info, u)
		}
		return s.load(ctx, e, dump.Info, u)
	})
	return g.Wait()
}

// onlyGenerated reports whether every statement of a load is generated from the dump's description.
func onlyGenerated(dump engine.Dump) bool { return dump.Trust == engine.Foreign && !dump.WithPrograms }

func (s *scratch) load(ctx context.Context, e Engine, info engine.Info, u *unpacking) error {
	// Any version of pg_restore that can read the dump works, whatever the server's version is.
	pgRestore := e.findTool("pg_restore")
	server, err := s.serverVersion(ctx)
	if err != nil {
		return err
	}
	tool, err := pgRestore(major(info.ToolVersion))
	if err != nil {
		return err
	}
	run := restoreRun{tool: tool, file: u.file.Name(), server: major(server), jobs: s.o.Jobs,
		properties: info.Properties, oneTable: oneTable(info.Tables)}
	counts, err := s.restoreDump(ctx, run, u)
	if deadlocked(err) && run.jobs > 1 && s.into == nil && u.rows.wait() == nil {
		// Several jobs can deadlock on partitioned tables. A single job cannot.
		run.jobs = 1
		u.rows.offerAgain()
		counts, err = s.restoreDump(ctx, run, u)
	}
	if err != nil {
		return olderServer(err, info.ServerVersion, server)
	}
	s.o.Begin("verify")
	return s.verify(ctx, info.Tables, counts)
}

// serverVersion returns the server's version. For a load into a scratch database, it also drops the
// leftovers of killed loads.
func (s *scratch) serverVersion(ctx context.Context) (server string, err error) {
	if server, err = version(ctx, s.admin); err == nil && s.into == nil {
		err = sweep(ctx, s.admin)
	}
	return server, s.dest.failure(err)
}

// restoreDump restores the dump. For a load into a scratch database, it first creates that
// database, and drops the scratch database of an earlier attempt.
func (s *scratch) restoreDump(ctx context.Context, run restoreRun, u *unpacking) (map[[2]string]int64, error) {
	if s.created {
		if _, err := s.admin.Exec(ctx, dropStatement(s.db.name())); err != nil {
			return nil, s.dest.failure(err)
		}
		s.created = false
	}
	if s.into == nil {
		if err := s.create(ctx, run); err != nil {
			return nil, s.dest.failure(err)
		}
	}
	return s.restoreParts(ctx, run, u)
}

func deadlocked(err error) bool {
	return err != nil && strings.Contains(err.Error(), "deadlock detected")
}

// restoreParts restores the definitions, then the rows, then indexes, constraints and everything
// else. If the dump has an unknown version, pg_restore restores all of it, and the rows are not
// counted.
func (s *scratch) restoreParts(ctx context.Context, run restoreRun, u *unpacking) (map[[2]string]int64, error) {
	<-u.known
	if u.layout == nil {
		if err := u.rows.wait(); err != nil {
			return nil, err
		}
		return nil, s.restore(ctx, run)
	}
	if s.into != nil {
		s.into.skip(u.layout)
	}
	if err := s.createExtensions(ctx, u); err != nil {
		return nil, err
	}
	// One job suffices, because pg_restore creates the definitions one after the other.
	if err := s.restoreEntries(ctx, run, step{u.layout.others, 1}, "--section=pre-data"); err != nil {
		return nil, err
	}
	stats := newAnalysis(len(u.layout.tables))
	defer stats.end()
	counts, err := s.loadData(ctx, u, run.jobs, stats)
	if err != nil {
		return nil, err
	}
	for _, group := range u.layout.steps(run.jobs) {
		if err := s.restoreEntries(ctx, run, group, "--section=data", "--section=post-data"); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// restoreEntries restores some entries of the dump.
func (s *scratch) restoreEntries(ctx context.Context, run restoreRun, group step, sections ...string) error {
	list, err := useList(s.o.TempDir, group.entries)
	if err != nil {
		return err
	}
	defer os.Remove(list)
	run.jobs = group.jobs
	return s.restore(ctx, run, append(sections, "--use-list="+list)...)
}

func randomName(prefix string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// create creates the empty scratch database. Only its owner can connect to it.
func (s *scratch) create(ctx context.Context, run restoreRun) error {
	if s.dest.isClone() { // if this process is killed, [Engine.Drop] waits until its session has ended
		if err := holdName(ctx, s.admin, s.dest.name()); err != nil {
			return err
		}
	}
	if s.trust != engine.Mine && s.loader.name == "" {
		if err := s.makeLoader(ctx); err != nil {
			return err
		}
	}
	name := randomName("snapcli_scratch_")
	if err := holdName(ctx, s.admin, name); err != nil {
		return err
	}
	tablespace, err := s.tablespace(ctx)
	if err != nil {
		return err
	}
	err = createLike(ctx, s.admin, name, tablespace, run.properties)
	// If the server has not responded, it may still create the database.
	s.db, s.created = s.dest.named(name), err == nil || state(err) == ""
	if err != nil {
		return err
	}
	id := quote(name)
	statements := []string{
		"COMMENT ON DATABASE " + id + " IS " + quoteText(scratchMark),
		"REVOKE ALL ON DATABASE " + id + " FROM PUBLIC",
		// A crash can only lose scratch data.
		"ALTER DATABASE " + id + " SET synchronous_commit = off",
		"ALTER DATABASE " + id + " SET maintenance_work_mem = '256MB'",
	}
	for _, limit := range limits(run.server) { // pg_restore does not set all of them
		statements = append(statements, "ALTER ROLE CURRENT_USER IN DATABASE "+id+" SET "+limit+" = 0")
	}
	if s.dest.local() && s.o.Jobs >= runtime.NumCPU() && !run.oneTable {
		// The jobs already use every core, so parallel workers would only slow them down.
		statements = append(statements, "ALTER DATABASE "+id+" SET max_parallel_maintenance_workers = 0")
	}
	if _, err = s.admin.PgConn().Exec(ctx, strings.Join(statements, "; ")).ReadAll(); err != nil {
		return err
	}
	return s.confine(ctx)
}

// tablespace returns the clause for the destination's tablespace, such as " TABLESPACE big", or ""
// if the user has no permission to create a database in that tablespace.
func (s *scratch) tablespace(ctx context.Context) (clause string, err error) {
	err = s.admin.QueryRow(ctx,
		`SELECT coalesce(max(format(' TABLESPACE %I', spcname)), '') FROM pg_database d
		JOIN pg_tablespace t ON t.oid = dattablespace
		WHERE datname = $1 AND has_tablespace_privilege(t.oid, 'CREATE')`, s.dest.name()).Scan(&clause)
	return clause, err
}

// createLike creates a database with the source's encoding and locale, or with the closest ones
// that the server supports, because operating systems have different names for locales.
func createLike(ctx context.Context, admin *pgx.Conn, name, tablespace string, p map[string]string) error {
	base := "CREATE DATABASE " + quote(name) + " TEMPLATE template0" + tablespace
	encoding := ""
	if p["encoding"] != "" {
		encoding = " ENCODING " + quoteText(p["encoding"])
	}
	attempts := []string{base + encoding, base + encoding + " LC_COLLATE 'C' LC_CTYPE 'C'"}
	if p["lc_collate"] != "" && p["lc_ctype"] != "" {
		libc := base + encoding + " LC_COLLATE " + quoteText(p["lc_collate"]) + " LC_CTYPE " +
			quoteText(p["lc_ctype"])
		attempts = append([]string{libc}, attempts...)
		switch {
		case p["icu_locale"] != "":
			icu := libc + " LOCALE_PROVIDER icu ICU_LOCALE " + quoteText(p["icu_locale"])
			if p["icu_rules"] != "" {
				icu += " ICU_RULES " + quoteText(p["icu_rules"])
			}
			attempts = append([]string{icu}, attempts...)
		case p["builtin_locale"] != "":
			builtin := libc + " LOCALE_PROVIDER builtin BUILTIN_LOCALE " + quoteText(p["builtin_locale"])
			attempts = append([]string{builtin}, attempts...)
		}
	}
	var err error
	for _, statement := range attempts {
		_, err = admin.Exec(ctx, statement)
		if err == nil || !slices.Contains([]string{stateBadParameter, stateWrongObject, stateSyntax, stateUnsupported},
			state(err)) {
			return err
		}
	}
	return err
}

// omitFlags are arguments for pg_restore. They omit the properties that the destination
// decides: owners, privileges, tablespaces and subscriptions.
var omitFlags = []string{"--no-owner", "--no-privileges", "--no-tablespaces", "--no-subscriptions"}

// restoreRun describes a run of pg_restore.
type restoreRun struct {
	tool   tool
	file   string
	server int // major version
	jobs   int

	properties map[string]string // of the scratch database
	oneTable   bool              // one table has most of the rows
}

// restore runs pg_restore and stops it at the first error.
func (s *scratch) restore(ctx context.Context, run restoreRun, args ...string) error {
	if s.inTransaction() {
		return s.into.restore(ctx, run, args...)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	args = append(args, "--jobs="+strconv.Itoa(run.jobs))
	args = append(args, omitFlags...)
	cmd, stderr, done, err := s.db.program(ctx, run.tool, args...)
	if err != nil {
		return err
	}
	var filter *errorFilter
	if setsUnknown(run.tool, run.server) {
		filter = &errorFilter{stderr: stderr, failed: func() { stop(errors.New("pg_restore reported an error")) }}
		cmd.Stderr = filter
	} else {
		cmd.Args = append(cmd.Args, "--exit-on-error")
	}
	cmd.Args = append(cmd.Args, run.file)
	err = cmd.Run()
	if connectErr := done(); connectErr != nil {
		return connectErr
	}
	if err == nil || filter != nil && filter.onlyIgnored(err) {
		return nil
	}
	if filter != nil && filter.found {
		ctx = context.WithoutCancel(ctx) // pg_restore was stopped because of the error that it reported
	}
	return s.db.toolFailure(ctx, "pg_restore", stderr, err)
}

// verify compares the tables, and the number of rows that the server loaded into each, with the
// snapshot. Then it analyzes the tables. Without counts, it does not compare rows.
func (s *scratch) verify(ctx context.Context, want []engine.Table, counts map[[2]string]int64) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	got, err := listTables(ctx, conn)
	if err != nil {
		return s.db.failure(err)
	}
	got = s.into.tablesOf(got, want)
	for i := range got {
		if counts != nil {
			got[i].Rows = counts[[2]string{got[i].Schema, got[i].Name}]
		}
	}
	if err := engine.Compare(want, got); err != nil {
		return err
	}
	return s.db.failure(s.analyze(ctx, conn))
}

// URL implements [engine.Scratch].
func (s *scratch) URL() string { return s.db.url() }

// Run implements [engine.Scratch].
func (s *scratch) Run(ctx context.Context, text string) error {
	var none error
	err := s.withoutTriggers(ctx, func() error {
		err := s.run(ctx, text)
		if errors.Is(err, engine.ErrNoStatement) {
			none, err = err, nil // the triggers must be enabled again
		}
		return err
	})
	return cmp.Or(err, none)
}

func (s *scratch) run(ctx context.Context, text string) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	if err := s.checkRowSecurity(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.PgConn().Exec(ctx, usersNames).ReadAll(); err != nil {
		return s.db.failure(err)
	}
	if s.inTransaction() {
		return s.into.run(ctx, text)
	}
	results, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		if state(err) == "" {
			return s.db.failure(err)
		}
		return sqlFailed(err)
	}
	if results[0].CommandTag.String() == "" { // the server's answer to comments only
		return engine.ErrNoStatement
	}
	if conn.PgConn().TxStatus() != 'I' {
		return snap.Invalid("the SQL begins a transaction and does not commit it", "add COMMIT at the end")
	}
	return nil
}

func sqlFailed(err error) error {
	return &snap.Error{Code: snap.CodeDatabase, Detail: "the SQL failed: " + message(err),
		Hint: "correct the SQL and try again; this run's changes were undone", Cause: err}
}

// checkRowSecurity returns an error if policies hide rows of a table from this session, because SQL
// would then not change those rows.
func (s *scratch) checkRowSecurity(ctx context.Context, conn *pgx.Conn) error {
	var table string
	err := conn.QueryRow(ctx, `SELECT coalesce((SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relrowsecurity AND pg_catalog.row_security_active(c.oid) ORDER BY 1 LIMIT 1), '')`).Scan(&table)
	if err != nil {
		return s.db.failure(err)
	}
	if table == "" {
		return nil
	}
	return &snap.Error{
		Code: snap.CodeInvalid,
		Detail: fmt.Sprintf("the table %s has row-level security, which would hide rows from the SQL and leave them "+
			"unmasked", charset.Readable(table)),
		Hint: "mask the snapshot with rules, which reach every row; this run's changes were undone",
	}
}

// Scrub implements [engine.Scratch]. It does nothing, because a dump contains only live rows.
func (s *scratch) Scrub(context.Context) error { return nil }

// Drop implements [engine.Scratch]. It opens another connection if canceling a statement closed the
// first one.
func (s *scratch) Drop(ctx context.Context) (err error) {
	if s.admin == nil {
		return nil
	}
	if s.into != nil {
		s.into.leave(ctx)
		s.admin = nil
		return nil
	}
	if s.created && s.admin.IsClosed() {
		if s.admin, err = s.dest.maintenance(ctx); err != nil {
			return err
		}
		// The server may still be creating the database until the first session has ended.
		wait, cancel := context.WithTimeout(ctx, longWait)
		defer cancel()
		if err := holdName(wait, s.admin, s.db.name()); err != nil {
			return s.dest.failure(err)
		}
	}
	if s.created {
		_, err = s.admin.Exec(ctx, dropStatement(s.db.name()))
	}
	err = cmp.Or(err, s.dropLoader(ctx))
	s.admin.Close(ctx)
	s.admin = nil
	return s.dest.failure(err)
}

// holdName takes the advisory lock on a name, which marks the database or role with that name as in
// use. The lock ends with the connection, even if the program is killed.
func holdName(ctx context.Context, admin *pgx.Conn, name string) error {
	_, err := admin.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", name)
	return err
}

// sweep drops the databases and roles of loads that have ended. It ends the sessions that are still
// connected to such a database, because its load started them.
func sweep(ctx context.Context, admin *pgx.Conn) error {
	databases, err := collect(ctx, admin, leftDatabases, pgx.RowTo[string])
	if err == nil {
		err = eachFree(ctx, admin, databases, dropStatement)
	}
	if err != nil {
		return err
	}
	roles, err := collect(ctx, admin, leftRoles, pgx.RowTo[string]) // a role owns its database until that is dropped
	if err != nil {
		return err
	}
	return eachFree(ctx, admin, roles, dropRole)
}
