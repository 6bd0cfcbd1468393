package postgres

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/subset"
)

// A subset's rows are chosen in temporary tables of one transaction, whose
// snapshot pg_dump gets too. What it writes of a table that is not whole is
// passed over, and the chosen rows, read in that transaction, take the place.

// stateReadOnly is the SQLSTATE of a standby, which has no temporary tables.
const stateReadOnly = "25006"

// sessionLikeDump makes values look as pg_dump writes them.
const sessionLikeDump = `SET datestyle = ISO; SET intervalstyle = postgres; SET extra_float_digits = 3; SET row_security = off;
	SET synchronize_seqscans = off; SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0`

// dumpSubset dumps some rows of the database.
func (e Engine) dumpSubset(ctx context.Context, d database, t tool, info engine.Info, w io.Writer, o engine.Options) (engine.Info, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return info, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	c := &cutter{conn: conn, d: d, encoding: info.Properties["encoding"], counts: map[[2]string]int64{}}
	o.Begin("choose")
	snapshot, err := c.choose(ctx, *o.Subset)
	if err != nil {
		return info, c.failure(err)
	}
	o.Begin("dump")
	warnings, err := c.dump(ctx, t, snapshot, &engine.Counter{W: w, O: o})
	if err != nil {
		return info, err
	}
	info.Warnings = append(info.Warnings, warnings...)
	info.Tables = merge(info.Tables, c.counts)
	info.Subset = &engine.Subset{Where: o.Subset.Where, Percent: o.Subset.Percent, Start: c.choice.Plan.Start}
	for i, table := range info.Tables {
		if info.Tables[i].Of, err = c.of(ctx, table); err != nil {
			return info, c.failure(err)
		}
	}
	return info, nil
}

// cutter knows which rows belong to a subset, and cuts a dump down to them.
type cutter struct {
	conn     *pgx.Conn
	d        database
	encoding string // of the dump
	choice   *subset.Choice
	graph    subset.Graph
	oids     []uint32             // by table of the graph
	parts    map[[2]string]member // by schema and name, partitions too
	counts   map[[2]string]int64  // rows written

	ctx    context.Context // of one dump, for the blocks of its stream
	in     *dumpReader
	out    *bufio.Writer
	tables map[int]tableData
}

// member is a table with rows of its own: which table of the graph it is of.
type member struct {
	table int
	oid   uint32
}

// choose begins the transaction and chooses the rows. The snapshot is for
// pg_dump.
func (c *cutter) choose(ctx context.Context, want engine.Subset) (snapshot string, err error) {
	if _, err := c.conn.Exec(ctx, sessionLikeDump); err != nil {
		return "", err
	}
	if _, err := c.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return "", err
	}
	if err := c.conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		return "", err
	}
	if err := c.tablesOf(ctx); err != nil {
		return "", err
	}
	if err := c.references(ctx); err != nil {
		return "", err
	}
	c.choice, err = subset.Choose(ctx, c.graph, want, c, subset.Dialect{
		Temp:  func(name string) string { return "pg_temp." + name },
		Empty: "TRUNCATE %s", Analyze: "ANALYZE %s",
	})
	return snapshot, err
}

// failure explains what only a subset needs.
func (c *cutter) failure(err error) error {
	if state(err) == stateReadOnly {
		return &snap.Error{Code: snap.CodeDatabase, Detail: "the rows of a subset are chosen in temporary tables, and the PostgreSQL server " + c.d.where() + " is read-only", Hint: "build the subset from the primary server", Cause: err}
	}
	return c.d.failure(err)
}

// tablesOf reads the tables and their primary keys. Those of extensions are no
// part of it: pg_dump knows what to take of them.
func (c *cutter) tablesOf(ctx context.Context) error {
	rows, err := c.conn.Query(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind = 'p', coalesce(pg_partition_root(c.oid)::oid, c.oid),
			coalesce((SELECT array_agg(quote_ident(a.attname) ORDER BY u.at) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY u(number, at), pg_attribute a
				WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = u.number), '{}'::text[])
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
			AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		ORDER BY coalesce(pg_partition_root(c.oid)::oid, c.oid) <> c.oid, 2, 3`)
	if err != nil {
		return err
	}
	defer rows.Close()
	c.parts = map[[2]string]member{}
	at := map[uint32]int{}
	for rows.Next() {
		var oid, root uint32
		var schema, name string
		var partitioned bool
		var primary []string
		if err := rows.Scan(&oid, &schema, &name, &partitioned, &root, &primary); err != nil {
			return err
		}
		if root == oid { // those come first
			at[oid] = len(c.graph.Tables)
			c.oids = append(c.oids, oid)
			c.graph.Tables = append(c.graph.Tables, tableOf(schema, name, partitioned, primary))
		}
		if table, ok := at[root]; ok {
			c.parts[[2]string{schema, name}] = member{table, oid}
		}
	}
	return rows.Err()
}

// tableOf describes a table. Its rows are told apart by where they are: that
// does not change for a snapshot.
func tableOf(schema, name string, partitioned bool, primary []string) subset.Table {
	t := subset.Table{Schema: schema, Name: name, From: from(schema, name, partitioned), Key: []subset.Key{
		{Type: "oid", Expr: func(prefix string) string { return prefix + "tableoid" }},
		{Type: "tid", Expr: func(prefix string) string { return prefix + "ctid" }},
	}}
	t.Share = func(prefix string) string {
		identity := "ROW(" + pgx.Identifier{name}.Sanitize() + ".*)"
		var parts []string
		for _, column := range primary {
			parts = append(parts, prefix+column+"::text")
		}
		if len(parts) > 0 {
			identity = "concat_ws(chr(31), " + strings.Join(parts, ", ") + ")"
		}
		return "('x' || substr(encode(sha256(convert_to(" + identity + "::text, 'SQL_ASCII')), 'hex'), 1, 8))::bit(32)::bigint"
	}
	return t
}

// from names a table after FROM: with the rows of its partitions, and without
// those of tables that inherit from it.
func from(schema, name string, partitioned bool) string {
	table := pgx.Identifier{schema, name}.Sanitize()
	if partitioned {
		return table
	}
	return "ONLY " + table
}

// references reads the foreign keys, without those that partitions have from
// their table.
func (c *cutter) references(ctx context.Context) error {
	rows, err := c.conn.Query(ctx, `SELECT a.nspname, b.relname, b.relkind = 'p', x.nspname, y.relname, y.relkind = 'p',
			(SELECT array_agg(quote_ident(t.attname) ORDER BY u.at) FROM unnest(k.conkey) WITH ORDINALITY u(number, at) JOIN pg_attribute t ON t.attrelid = k.conrelid AND t.attnum = u.number),
			(SELECT array_agg(quote_ident(t.attname) ORDER BY u.at) FROM unnest(k.confkey) WITH ORDINALITY u(number, at) JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attnum = u.number)
		FROM pg_constraint k JOIN pg_class b ON b.oid = k.conrelid JOIN pg_namespace a ON a.oid = b.relnamespace
			JOIN pg_class y ON y.oid = k.confrelid JOIN pg_namespace x ON x.oid = y.relnamespace
		WHERE k.contype = 'f' AND k.conparentid = 0 ORDER BY k.oid`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var child, parent [2]string
		var childWhole, parentWhole bool
		var k subset.ForeignKey
		if err := rows.Scan(&child[0], &child[1], &childWhole, &parent[0], &parent[1], &parentWhole, &k.Columns, &k.Refers); err != nil {
			return err
		}
		a, knownChild := c.parts[child]
		b, knownParent := c.parts[parent]
		if !knownChild || !knownParent {
			continue
		}
		k.Child, k.Parent = a.table, b.table
		k.ChildFrom, k.ParentFrom = from(child[0], child[1], childWhole), from(parent[0], parent[1], parentWhole)
		c.graph.Keys = append(c.graph.Keys, k)
	}
	return rows.Err()
}

// Exec implements [subset.Server]. The protocol for one statement is used: a
// condition cannot hide another one.
func (c *cutter) Exec(ctx context.Context, statement string) (int64, error) {
	tag, err := c.conn.Exec(ctx, statement, pgx.QueryExecModeExec)
	return tag.RowsAffected(), err
}

// Insert implements [subset.Server].
func (c *cutter) Insert(ctx context.Context, table, query string) error {
	_, err := c.Exec(ctx, "INSERT INTO "+table+" "+query+" ON CONFLICT DO NOTHING")
	return err
}

// Count implements [subset.Server].
func (c *cutter) Count(ctx context.Context, query string) (n int64, err error) {
	return n, c.conn.QueryRow(ctx, query).Scan(&n)
}

// Condition implements [subset.Server].
func (c *cutter) Condition(table, condition string, err error) error {
	if code := state(err); !strings.HasPrefix(code, "42") && !strings.HasPrefix(code, "22") || code == stateNoRight {
		return err
	}
	return &snap.Error{Code: snap.CodeUsage, Detail: fmt.Sprintf("the condition on %s is not understood: %s: %s", table, condition, message(err)), Hint: "write it as behind WHERE in a SELECT of that table", Cause: err}
}

// of counts the rows of a table of the source.
func (c *cutter) of(ctx context.Context, t engine.Table) (int64, error) {
	return c.Count(ctx, "SELECT count(*) FROM ONLY "+pgx.Identifier{t.Schema, t.Name}.Sanitize())
}

// dump runs pg_dump on the snapshot and writes what it writes, cut down.
func (c *cutter) dump(ctx context.Context, t tool, snapshot string, w io.Writer) ([]string, error) {
	if _, err := c.conn.Exec(ctx, "SET search_path = ''"); err != nil { // as pg_dump does, for names in values
		return nil, c.failure(err)
	}
	cmd, said := t.command(ctx, c.d, append(dumpArguments(t), "--snapshot="+snapshot)...)
	stream, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start pg_dump: %w", err)
	}
	failed := c.copy(ctx, stream, w)
	if failed != nil {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	switch {
	case failed != nil && said.FirstError() != "": // the stream ended because pg_dump failed
		return nil, c.d.toolFailure(ctx, "pg_dump", said, err)
	case failed != nil:
		return nil, c.failure(failed)
	case err != nil:
		return nil, c.d.toolFailure(ctx, "pg_dump", said, err)
	}
	return said.Warnings(), nil
}

// copy writes a dump that is read, block by block.
func (c *cutter) copy(ctx context.Context, stream io.Reader, w io.Writer) error {
	c.ctx, c.out = ctx, bufio.NewWriterSize(w, 1<<20)
	c.in = &dumpReader{r: bufio.NewReaderSize(engine.Reader(ctx, stream), 1<<20), echo: &bytes.Buffer{}}
	tables, _, err := openDump(c.in)
	if err != nil {
		return err
	}
	head := c.in.echo.Bytes()
	c.in.echo, c.tables = nil, tables
	if _, err := c.out.Write(head); err != nil {
		return err
	}
	for _, t := range tables {
		c.counts[[2]string{t.schema, t.name}] = 0
	}
	if err := c.in.blocks(c.block); err != nil {
		return err
	}
	return c.out.Flush()
}

func (c *cutter) block(kind byte, id int) error {
	w := rewriter{d: c.in, out: c.out, plan: engine.Plan{KeepLargeObjects: true}}
	if err := c.out.WriteByte(kind); err != nil {
		return err
	}
	w.int(id)
	if kind == blockObjects {
		return w.objects()
	}
	t := c.tables[id]
	name := [2]string{t.schema, t.name}
	m, known := c.parts[name]
	if !known || c.choice.Kept(m.table) == "" {
		rows, err := w.condensed()
		c.counts[name] = rows
		return err
	}
	c.in.skip(kind)
	if c.in.err != nil {
		return c.in.err
	}
	rows, err := c.chosen(&w, t, m)
	c.counts[name] = rows
	w.chunk([]byte(endOfRows))
	w.int(0)
	return err
}

// chosen writes the chosen rows of a table as COPY does, in the order in which
// they stand in it.
func (c *cutter) chosen(w *rewriter, t tableData, m member) (int64, error) {
	columns := make([]string, len(t.columns))
	for i, column := range t.columns {
		columns[i] = "t." + pgx.Identifier{column}.Sanitize()
	}
	query := fmt.Sprintf("COPY (SELECT %s FROM %s k JOIN ONLY %s t ON t.ctid = k.k2 WHERE k.k1 = %d ORDER BY k.k2) TO STDOUT WITH (ENCODING %s)",
		strings.Join(columns, ", "), c.choice.Kept(m.table), pgx.Identifier{t.schema, t.name}.Sanitize(), m.oid, literal(c.encoding))
	tag, err := c.conn.PgConn().CopyTo(c.ctx, chunks{w}, query)
	return tag.RowsAffected(), err
}

// chunks writes to a block of a dump.
type chunks struct{ w *rewriter }

// Write implements io.Writer.
func (c chunks) Write(p []byte) (int, error) {
	c.w.chunk(p)
	return len(p), nil
}
