package postgres

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/subset"
)

// A subset's rows are chosen in temporary tables of one transaction. pg_dump uses the snapshot of
// that transaction. For a table of which only some rows are chosen, the rows from pg_dump are
// skipped and replaced with the chosen rows, which are read in the transaction.

// stateReadOnly is the SQLSTATE read_only_sql_transaction. A standby returns it, because it cannot
// have temporary tables.
const stateReadOnly = "25006"

// sessionLikeDump sets the formats of values to those of pg_dump.
const sessionLikeDump = `SET datestyle = ISO; SET intervalstyle = postgres; SET extra_float_digits = 3; ` +
	`SET row_security = off; SET synchronize_seqscans = off`

// withoutChecks stops the planner from evaluating constant expressions in the checks of tables.
const withoutChecks = "SET constraint_exclusion = off"

// lockWait limits how long pg_dump waits for the lock of a table. The session that chose the rows
// holds locks while snapcli waits for pg_dump. A statement like TRUNCATE that waits for these locks
// blocks pg_dump, and the server does not detect the deadlock.
const lockWait = "--lock-wait-timeout=5s"

// dumpSubset dumps some rows of the database.
func (d database) dumpSubset(ctx context.Context, t tool, info engine.Info, w io.Writer,
	o engine.Options) (engine.Info, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return info, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	c := &subsetDump{conn: conn, d: d, counts: map[[2]string]tally{}}
	o.Begin("choose")
	snapshot, err := c.choose(ctx, o)
	if err != nil {
		return info, c.failure(err)
	}
	if err := c.d.describe(ctx, conn, &info); err != nil {
		return info, c.failure(err)
	}
	o.Begin("dump")
	warnings, err := c.dump(ctx, t, snapshot, w)
	if err != nil {
		return info, err
	}
	info.Warnings = append(info.Warnings, warnings...)
	info.Tables = c.d.excluded.emptyTables(info.Tables, merge(info.Tables, c.counts))
	info.Subset = &engine.Subset{Where: o.Subset.Where, Percent: c.choice.Percent, Start: c.choice.Plan.Start}
	for i, table := range info.Tables {
		if info.Tables[i].Of, err = c.countRows(ctx, table); err != nil {
			return info, c.failure(err)
		}
	}
	return info, nil
}

// plannedPrograms counts the functions that could run with the rights of a superuser who chooses
// rows of the tables $2, and selects the name and the owner of one of them. The planner evaluates
// constant expressions in indexes, statistics and partition keys, and a foreign key between
// different types uses an implicit cast. Functions of superusers do not count. All functions of
// roles that begin with $1 count, because they came from a snapshot from elsewhere. Functions of
// extensions count too, because an owner who is not a superuser can replace them.
const plannedPrograms = `
	WITH RECURSIVE used (classid, objid) AS (
		SELECT 'pg_class'::regclass::oid, indexrelid FROM pg_index WHERE indrelid = ANY ($2)
		UNION SELECT 'pg_class'::regclass, unnest($2)
		UNION SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxrelid = ANY ($2)
		UNION SELECT 'pg_cast'::regclass, oid FROM pg_cast WHERE castcontext = 'i'
		UNION SELECT d.refclassid, d.refobjid FROM used u JOIN pg_depend d USING (classid, objid)
			WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
	)
	SELECT count(*), coalesce(min(format('%I.%I of %I', n.nspname, p.proname, o.rolname)), '')
	FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner JOIN pg_namespace n ON n.oid = p.pronamespace
	WHERE NOT o.rolsuper AND (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
		AND (starts_with(o.rolname, $1)
			OR EXISTS (SELECT FROM used WHERE classid = 'pg_proc'::regclass AND objid = p.oid))`

// requireNoPrograms refuses a superuser's session if choosing rows could run functions of others.
// SET ROLE is no protection, because a function can reset it.
func (c *subsetDump) requireNoPrograms(ctx context.Context) error {
	oids := []uint32{}
	for _, m := range c.parts {
		oids = append(oids, m.oid)
	}
	var programs int
	var first string
	err := c.conn.QueryRow(ctx, plannedPrograms, rolePrefix, oids).Scan(&programs, &first)
	if err != nil || programs == 0 {
		return err
	}
	return snap.Usage(fmt.Sprintf("the database contains %s of users who are not superusers, such as %s, and building "+
		"a subset as a superuser could run them with your rights",
		snap.Plural(programs, "function", "functions"), charset.Readable(first)),
		"build the whole database, build the subset as a user who is not a superuser, or make a superuser the owner "+
			"of functions that you trust (ALTER FUNCTION ... OWNER TO ...)")
}

// subsetDump chooses the rows of a subset and reduces a dump to the chosen rows.
type subsetDump struct {
	conn   *pgx.Conn
	d      database
	choice *subset.Choice
	graph  subset.Graph
	parts  map[[2]string]*member // by schema and name, including partitions
	counts map[[2]string]tally   // rows written
}

// member is a table that stores rows: a table of the graph, or a partition of such a table. from
// and columns are quoted names; from begins with ONLY unless the table is partitioned.
type member struct {
	table   int
	oid     uint32
	from    string
	columns []string
}

// choose begins the transaction and chooses the rows. It returns the transaction's snapshot for
// pg_dump.
func (c *subsetDump) choose(ctx context.Context, o engine.Options) (snapshot string, err error) {
	if _, err := c.conn.Exec(ctx, sessionLikeDump+"; "+withoutChecks); err != nil {
		return "", err
	}
	if _, err := c.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return "", err
	}
	if err := c.conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		return "", err
	}
	if c.d.excluded, err = choose(ctx, c.conn, o.Choice); err != nil {
		return "", err
	}
	if err := c.readTables(ctx); err != nil {
		return "", err
	}
	if err := c.requireNoPrograms(ctx); err != nil {
		return "", err
	}
	if err := c.readKeys(ctx); err != nil {
		return "", err
	}
	c.choice, err = subset.Choose(ctx, c.graph, *o.Subset, c, subset.Dialect{
		Temp:  func(name string) string { return "pg_temp." + name },
		Empty: "TRUNCATE %s", Drop: "DROP TABLE %s", Bytes: tableBytes, Analyze: "ANALYZE %s",
		BeforeDeep: "SELECT set_config(j, 'off', true) FROM unnest('{enable_hashjoin,enable_mergejoin}'::text[]) j",
		AfterDeep:  "SELECT set_config(j, 'on', true) FROM unnest('{enable_hashjoin,enable_mergejoin}'::text[]) j",
	})
	return snapshot, err
}

// tableBytes returns the query for the size in bytes of a table and its partitions, without
// indexes.
func tableBytes(t subset.Table) string {
	name := quoteText(strings.TrimPrefix(t.From, "ONLY ")) + "::regclass"
	return "SELECT sum(pg_table_size(part))::bigint FROM (SELECT " + name + " AS part UNION SELECT relid FROM " +
		"pg_partition_tree(" + name + ")) parts"
}

// failure is like [database.failure], and also explains an error that only a subset can have: the
// server is read-only.
func (c *subsetDump) failure(err error) error {
	if state(err) == stateReadOnly {
		return &snap.Error{Code: snap.CodeDatabase,
			Detail: "the rows of a subset are chosen in temporary tables, and the PostgreSQL server " + c.d.where() +
				" is read-only", Hint: "build the subset from the primary server", Cause: err}
	}
	return c.d.failure(err)
}

// readTables reads the tables and their primary keys. It omits tables of extensions, because
// pg_dump decides which of their rows to dump. The tables have the names that they have in a dump.
// Statements use names that the server quoted.
func (c *subsetDump) readTables(ctx context.Context) error {
	rows, err := c.conn.Query(ctx,
		`SELECT c.oid, convert_to(n.nspname::text, e), convert_to(c.relname::text, e), CASE c.relkind WHEN 'r'
		THEN 'ONLY ' ELSE '' END || format('%I.%I', n.nspname, c.relname), quote_ident(c.relname),
			coalesce(pg_partition_root(c.oid)::oid, c.oid),
			ARRAY(SELECT convert_to(quote_ident(a.attname), pg_client_encoding()) FROM pg_index i, unnest(i.indkey)
				WITH ORDINALITY u(number, at), pg_attribute a
				WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid
					AND a.attnum = u.number ORDER BY u.at),
			ARRAY(SELECT convert_to(quote_ident(a.attname), pg_client_encoding()) FROM pg_attribute a
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
				AND a.attgenerated = '' ORDER BY a.attnum)
		FROM getdatabaseencoding() e, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid IN (`+ownTables()+`)
		ORDER BY coalesce(pg_partition_root(c.oid)::oid, c.oid) <> c.oid, n.nspname, c.relname`)
	if err != nil {
		return err
	}
	defer rows.Close()
	c.parts = map[[2]string]*member{}
	at, stored, skipped := map[uint32]int{}, charsetOn(c.conn.PgConn()), c.d.excluded.skipped()
	for rows.Next() {
		var m member
		var schema, name []byte
		var quoted string
		var root uint32
		var primary, columns [][]byte // pgx would decode strings as UTF-8
		if err := rows.Scan(&m.oid, &schema, &name, &m.from, &quoted, &root, &primary, &columns); err != nil {
			return err
		}
		m.columns = asTexts(columns)
		key := [2]string{stored.Label(string(schema)), stored.Label(string(name))}
		if skipped[key] != engine.Whole {
			continue
		}
		if root == m.oid { // the rows of roots come first
			at[root] = len(c.graph.Tables)
			c.graph.Tables = append(c.graph.Tables, tableOf(key, m.from, quoted, asTexts(primary)))
		}
		if table, ok := at[root]; ok {
			m.table = table
			c.parts[key] = &m
		}
	}
	return rows.Err()
}

func asTexts(all [][]byte) []string {
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = string(b)
	}
	return texts
}

// tableOf describes a table. A row is identified by its position, which does not change in a
// snapshot.
func tableOf(key [2]string, from, quoted string, primary []string) subset.Table {
	t := subset.Table{Schema: key[0], Name: key[1], From: from, Key: []subset.Key{
		{Type: "oid", Expr: func(prefix string) string { return prefix + "tableoid" }},
		{Type: "tid", Expr: func(prefix string) string { return prefix + "ctid" }},
	}}
	t.Share = func(prefix string) string {
		identity := "ROW(" + cmp.Or(prefix, quoted+".") + "*)"
		var parts []string
		for _, column := range primary {
			parts = append(parts, prefix+column) // without a cast, because the database can define its own casts
		}
		if len(parts) > 0 {
			identity = "concat_ws(chr(31), " + strings.Join(parts, ", ") + ")"
		}
		return "('x' || substr(encode(sha256(convert_to(" + identity +
			"::text, 'SQL_ASCII')), 'hex'), 1, 8))::bit(32)::bigint"
	}
	return t
}

// readKeys reads the foreign keys, without those that partitions inherit from their table.
func (c *subsetDump) readKeys(ctx context.Context) error {
	rows, err := c.conn.Query(ctx, `SELECT k.conrelid, k.confrelid,
			ARRAY(SELECT convert_to(quote_ident(t.attname), pg_client_encoding()) FROM unnest(k.conkey)
				WITH ORDINALITY u(number, at) JOIN pg_attribute t ON t.attrelid = k.conrelid
				AND t.attnum = u.number ORDER BY u.at),
			ARRAY(SELECT convert_to(quote_ident(t.attname), pg_client_encoding()) FROM unnest(k.confkey)
				WITH ORDINALITY u(number, at) JOIN pg_attribute t ON t.attrelid = k.confrelid
				AND t.attnum = u.number ORDER BY u.at),
			ARRAY(SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname) FROM unnest(k.conpfeqop)
				WITH ORDINALITY u(operator, at) JOIN pg_operator o ON o.oid = u.operator
				JOIN pg_namespace n ON n.oid = o.oprnamespace ORDER BY u.at)
		FROM pg_constraint k WHERE k.contype = 'f' AND k.conparentid = 0 ORDER BY k.oid`)
	if err != nil {
		return err
	}
	defer rows.Close()
	known := map[uint32]*member{}
	for _, m := range c.parts {
		known[m.oid] = m
	}
	for rows.Next() {
		var child, parent uint32
		var columns, parentColumns [][]byte
		var equal []string
		if err := rows.Scan(&child, &parent, &columns, &parentColumns, &equal); err != nil {
			return err
		}
		a, b := known[child], known[parent]
		if a == nil || b == nil {
			continue
		}
		c.graph.Keys = append(c.graph.Keys, subset.ForeignKey{
			Child: a.table, Parent: b.table, ChildFrom: a.from, ParentFrom: b.from, Columns: asTexts(columns),
			ParentColumns: asTexts(parentColumns), Equal: equal,
		})
	}
	return rows.Err()
}

// Exec implements [subset.Server]. It uses the protocol for single statements, so that a condition
// cannot contain a second statement.
func (c *subsetDump) Exec(ctx context.Context, statement string) (int64, error) {
	tag, err := c.conn.Exec(ctx, statement, pgx.QueryExecModeExec)
	return tag.RowsAffected(), err
}

// InsertWhere implements [subset.Server]. The condition is the user's own SQL and can read views.
// The table that the rows come from is locked first, so that nobody can replace it with a view.
func (c *subsetDump) InsertWhere(ctx context.Context, table, from, query string) error {
	if _, err := c.conn.Exec(ctx, "SELECT FROM "+from+" LIMIT 0"); err != nil {
		return err
	}
	if _, err := c.conn.Exec(ctx, usersNames+"; "+withViews); err != nil {
		return err
	}
	if err := c.Insert(ctx, table, query); err != nil {
		return err
	}
	_, err := c.conn.Exec(ctx, builtInNames+"; "+onlyTables)
	return err
}

// Insert implements [subset.Server].
func (c *subsetDump) Insert(ctx context.Context, table, query string) error {
	_, err := c.Exec(ctx, "INSERT INTO "+table+" "+query+" ON CONFLICT DO NOTHING")
	return err
}

// Count implements [subset.Server].
func (c *subsetDump) Count(ctx context.Context, query string) (n int64, err error) {
	err = c.conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// Condition implements [subset.Server].
func (c *subsetDump) Condition(table, condition string, err error) error {
	if code := state(err); !strings.HasPrefix(code, "42") && !strings.HasPrefix(code, "22") || code == stateNoRight {
		return err
	}
	return &snap.Error{Code: snap.CodeUsage, Detail: fmt.Sprintf("the condition on %s is not valid SQL: %s: %s", table,
		condition, message(err)), Hint: "write it as you would after WHERE in a SELECT from that table", Cause: err}
}

// countRows counts the rows of a table in the source.
func (c *subsetDump) countRows(ctx context.Context, t engine.Table) (int64, error) {
	from := "ONLY " + pgx.Identifier{t.Schema, t.Name}.Sanitize() // for a table of an extension
	if m := c.parts[[2]string{t.Schema, t.Name}]; m != nil {
		from = m.from
	}
	return c.Count(ctx, "SELECT count(*) FROM "+from)
}

// dump runs pg_dump on the snapshot and writes its dump with only the chosen rows.
func (c *subsetDump) dump(ctx context.Context, t tool, snapshot string, w io.Writer) ([]string, error) {
	cmd, stderr, done, err := c.d.program(ctx, t, append(c.d.dumpArguments(t, snapshot), lockWait)...)
	if err != nil {
		return nil, err
	}
	warnings, err := c.dumpBy(ctx, cmd, stderr, snapshot, w)
	return warnings, cmp.Or(done(), err)
}

// dumpBy starts pg_dump and copies its output with only the chosen rows.
func (c *subsetDump) dumpBy(ctx context.Context, cmd *exec.Cmd, stderr *engine.Stderr, snapshot string, w io.Writer) (
	[]string, error) {
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start pg_dump: %w", err)
	}
	stream := bufio.NewReaderSize(stdout, 1<<20)
	failed := c.d.checkLocked(ctx, stream, snapshot)
	if failed == nil {
		failed = c.copy(ctx, stream, w)
	}
	if failed != nil {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if failed != nil && stderr.FirstError() == "" {
		return nil, c.failure(failed)
	}
	if failed != nil || err != nil { // if pg_dump printed an error, the stream ended because of it
		return nil, c.d.toolFailure(ctx, "pg_dump", stderr, err)
	}
	return stderr.Warnings(), nil
}

// copy copies a dump block by block, with only the chosen rows.
func (c *subsetDump) copy(ctx context.Context, stream io.Reader, w io.Writer) error {
	d := &dumpReader{r: bufio.NewReaderSize(engine.Reader(ctx, stream), 1<<20), echo: &bytes.Buffer{},
		excluded: c.d.excluded}
	tables, _, err := openDump(d)
	if d.err != nil {
		return &snap.Error{Code: snap.CodeDatabase, Detail: "the output of pg_dump cannot be read: " + d.err.Error(),
			Hint: "if its version is unknown, update snapcli or use an older pg_dump", Cause: d.err}
	}
	if err != nil {
		return err
	}
	head := d.echo.Bytes()
	d.echo = nil
	out := &rewriter{d: d, out: bufio.NewWriterSize(w, 1<<20), plan: engine.Plan{KeepLargeObjects: true}}
	if _, err := out.out.Write(head); err != nil {
		return err
	}
	for _, t := range tables {
		c.counts[[2]string{t.schema, t.name}] = tally{}
	}
	if err := out.blocks(func(id int) error { return c.table(ctx, out, tables[id]) }); err != nil {
		return err
	}
	return out.out.Flush()
}

// table writes the rows of a table, or only the chosen ones.
func (c *subsetDump) table(ctx context.Context, out *rewriter, t tableData) (err error) {
	var rows int64
	name, before := [2]string{t.schema, t.name}, out.wrote
	m, known := c.parts[name]
	if !known || c.choice.Kept(m.table) == "" {
		rows, err = out.copyRows()
	} else {
		if out.d.skip(blockData); out.d.err != nil {
			return out.d.err
		}
		rows, err = c.writeChosen(ctx, out, t, m)
		out.chunk([]byte(endOfRows))
		out.int(0)
	}
	c.counts[name] = out.tally(rows, before)
	return err
}

// writeChosen writes the chosen rows of a table in COPY's text format, in the table's order.
func (c *subsetDump) writeChosen(ctx context.Context, w *rewriter, t tableData, m *member) (int64, error) {
	if len(m.columns) != len(t.columns) {
		return 0, fmt.Errorf("the columns of the table %s.%s differ from those in the dump", t.schema, t.name)
	}
	columns := list(m.columns, func(column string) string { return "t." + column })
	query := fmt.Sprintf("COPY (SELECT %s FROM %s k JOIN %s t ON t.ctid = k.k2 WHERE k.k1 = %d ORDER BY k.k2) TO "+
		"STDOUT WITH (ENCODING %s)", columns, c.choice.Kept(m.table), m.from, m.oid, quoteText(c.d.encoding))
	tag, err := c.conn.PgConn().CopyTo(ctx, chunks{w}, query)
	return tag.RowsAffected(), err
}

// chunks is a writer that writes chunks to a block of a dump.
type chunks struct{ w *rewriter }

// Write implements io.Writer.
func (c chunks) Write(p []byte) (int, error) {
	c.w.chunk(p)
	return len(p), nil
}
