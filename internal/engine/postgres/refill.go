package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

var _ engine.Refiller = Engine{}

// Refill implements [engine.Refiller]. Foreign keys are dropped and created again, because
// otherwise the server would check them for each statement, and would not truncate a table that
// other tables reference.
func (e Engine) Refill(ctx context.Context, raw string, dump engine.Dump, only []string, o engine.Options) (
	[]engine.Table, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	chosen, partitions, err := engine.ChosenTables(dump.Info, only)
	if err != nil {
		return nil, err
	}
	if err := dump.Info.Schema.Check(dialect); err != nil {
		return nil, err
	}
	in, err := dump.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	r := &refill{conn: conn, schema: dump.Info.Schema, chosen: chosen, partitions: partitions, o: o, size: dump.Size}
	if err := r.run(ctx, in); err != nil {
		return nil, d.failure(err)
	}
	for _, name := range r.names {
		_, _ = conn.Exec(ctx, "ANALYZE "+name) // if this fails, the server does it later
	}
	return r.tables, nil
}

// refill replaces rows in one transaction.
type refill struct {
	conn               *pgx.Conn
	schema             *schema.Schema
	chosen, partitions map[schema.Name]bool // see engine.ChosenTables; prepare adds the partitions to chosen
	o                  engine.Options
	size               int64

	names    []string // of the tables, quoted
	oids     []uint32 // of the tables and of the tables that they are partitions of
	keys     []keyOrTrigger
	triggers []keyOrTrigger
	tables   []engine.Table
}

// keyOrTrigger is a foreign key that is dropped and created again, or a trigger that is disabled
// and enabled again.
type keyOrTrigger struct{ Name, Drop, Create string }

func (r *refill) run(ctx context.Context, in io.Reader) error {
	tx, err := r.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, "SET LOCAL row_security = off"); err != nil {
		return err
	}
	r.o.Begin("restore")
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.fill(ctx, in); err != nil {
		return err
	}
	r.o.Begin("verify")
	for _, k := range r.keys {
		if _, err := tx.Exec(ctx, k.Create); err != nil {
			return engine.KeysBroken(k.Name, err)
		}
	}
	for _, t := range r.triggers {
		if _, err := tx.Exec(ctx, t.Create); err != nil {
			return err
		}
	}
	if err := r.sequences(ctx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// tableToFill selects the oids of the table with the schema $1 and the name $2 and of the tables that
// it is a partition of, and whether one of these has its schema among $3 and its name among $4.
const tableToFill = `
	SELECT c.oid || ARRAY(SELECT relid::oid FROM pg_partition_ancestors(c.oid)),
		EXISTS (SELECT FROM pg_partition_ancestors(c.oid) JOIN pg_class up ON up.oid = relid
			JOIN pg_namespace o ON o.oid = up.relnamespace
			JOIN unnest($3::text[], $4::text[]) AS t (schema, name) ON o.nspname = t.schema AND up.relname = t.name)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind = 'r'`

// prepare finds the tables, drops the foreign keys from and to them, disables their triggers, and
// empties them.
func (r *refill) prepare(ctx context.Context) (err error) {
	var schemas, names []string
	for name := range r.chosen {
		schemas, names = append(schemas, name.Schema), append(names, name.Name)
	}
	for _, t := range r.schema.Tables {
		if !r.chosen[t.Name] && !r.partitions[t.Name] || t.Partitions != nil {
			continue
		}
		var oids []uint32
		var below bool
		err := r.conn.QueryRow(ctx, tableToFill, t.Schema, t.Name.Name, schemas, names).Scan(&oids, &below)
		if errors.Is(err, pgx.ErrNoRows) {
			return engine.NoTable(t.Schema + "." + t.Name.Name)
		}
		if err != nil {
			return err
		}
		if r.partitions[t.Name] && !below {
			return snap.Invalid(fmt.Sprintf("the table %s.%s is a partition of a chosen table in the snapshot, but "+
				"not in the destination", t.Schema, t.Name.Name),
				"to replace its rows, choose it by its own name; nothing was changed")
		}
		r.chosen[t.Name] = true
		r.names, r.oids = append(r.names, quoteName(t.Name)), append(r.oids, oids...)
	}
	if err := r.requireNoPrograms(ctx); err != nil {
		return err
	}
	if r.keys, err = r.list(ctx, keysToRestore); err != nil {
		return err
	}
	if r.triggers, err = r.list(ctx, triggersToRestore); err != nil {
		return err
	}
	for _, x := range slices.Concat(r.keys, r.triggers) {
		if _, err := r.conn.Exec(ctx, x.Drop); err != nil {
			return err
		}
	}
	for _, name := range r.names {
		if _, err := r.conn.Exec(ctx, "TRUNCATE TABLE ONLY "+name); err != nil {
			return err
		}
	}
	return nil
}

// loadedPrograms counts the functions that came from snapshots from elsewhere and would run if the
// tables $1 were filled. These are the functions that types, casts and operators use, the functions
// in an index, a check or a computed column of any table (because a foreign key is also checked
// with the indexes of the table at its other end), and the functions in a default of the tables $1.
// Functions that only views, policies, other functions and disabled triggers use do not run.
const loadedPrograms = `
	SELECT count(DISTINCT p.oid) FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid
		JOIN pg_roles o ON o.oid = p.proowner
	WHERE d.refclassid = 'pg_proc'::regclass AND starts_with(o.rolname, $2)
		AND d.classid NOT IN ('pg_rewrite'::regclass, 'pg_policy'::regclass,
			'pg_proc'::regclass, 'pg_trigger'::regclass)
		AND (d.classid <> 'pg_attrdef'::regclass OR EXISTS (
			SELECT FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
			WHERE f.oid = d.objid AND (a.attgenerated <> '' OR f.adrelid = ANY ($1))))`

// requireNoPrograms returns an error if loading the rows would run functions that came from a
// snapshot from elsewhere, with the rights of the user who loads. The role that owns the functions
// cannot load the rows, because it can no longer log in, and SET ROLE is no protection because a
// function can reset it.
func (r *refill) requireNoPrograms(ctx context.Context) error {
	var programs int
	err := r.conn.QueryRow(ctx, loadedPrograms, r.oids, rolePrefix).Scan(&programs)
	if err != nil || programs == 0 {
		return err
	}
	return snap.Usage(fmt.Sprintf("the indexes, checks or columns of the destination's tables use %d functions of a "+
		"snapshot from elsewhere, which would run with the privileges of the user who loads the rows", programs),
		"load the whole snapshot, without --only; nothing was changed")
}

// These queries select the foreign keys to drop and create again, and the triggers to disable and
// enable again: their names, and the statements for both steps.
const (
	keysToRestore = `
		SELECT format('%I on %s', conname, conrelid::regclass),
			format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(k.oid))
				|| coalesce(format('; COMMENT ON CONSTRAINT %I ON %s IS %L', conname, conrelid::regclass,
					obj_description(k.oid, 'pg_constraint')), '')
		FROM pg_constraint k WHERE contype = 'f' AND conparentid = 0
			AND (conrelid = ANY ($1) OR confrelid = ANY ($1)) ORDER BY 1`
	triggersToRestore = `
		SELECT tgname::text, format('ALTER TABLE ONLY %s DISABLE TRIGGER %I', tgrelid::regclass, tgname),
			format('ALTER TABLE ONLY %s ENABLE %s TRIGGER %I', tgrelid::regclass,
				CASE tgenabled WHEN 'R' THEN 'REPLICA' WHEN 'A' THEN 'ALWAYS' ELSE '' END, tgname)
		FROM pg_trigger WHERE tgrelid = ANY ($1) AND ` + notOfConstraint + ` AND tgenabled <> 'D' ORDER BY 1`
)

func (r *refill) list(ctx context.Context, query string) ([]keyOrTrigger, error) {
	return collect(ctx, r.conn, query, pgx.RowToStructByPos[keyOrTrigger], r.oids)
}

// fill copies the rows of the chosen tables from the dump, which it reads to its end.
func (r *refill) fill(ctx context.Context, in io.Reader) error {
	counter := &engine.Counter{W: io.Discard, O: r.o, Of: r.size}
	d := &dumpReader{r: bufio.NewReaderSize(io.TeeReader(engine.Reader(ctx, in), counter), 1<<20), foreign: true,
		lean: true}
	d.header()
	entries := d.contents()
	if d.err != nil {
		return errUnreadable
	}
	roots, err := r.roots(ctx)
	if err != nil {
		return err
	}
	l, err := matchedLayout(entries, r.schema, roots)
	if err != nil {
		return err
	}
	return d.blocks(func(kind byte, id int) error {
		b := l.tables[id]
		if kind != blockData || b == nil || !r.chosen[schema.Name{Schema: b.schema, Name: b.name}] {
			d.skip(kind)
			return d.err
		}
		rows, err := r.copy(ctx, d, b)
		if err != nil {
			return fmt.Errorf("fill %s.%s: %w", b.schema, b.name, err)
		}
		r.tables = append(r.tables, engine.Table{Schema: b.schema, Name: b.name, Rows: rows})
		return nil
	})
}

// rootsToFill selects the partitions among the tables $1 and their root, if all partitions of the
// root are among the tables $1.
const rootsToFill = `
	WITH roots AS (SELECT DISTINCT pg_partition_root(t)::oid AS root FROM unnest($1::oid[]) t)
	SELECT n.nspname::text, c.relname::text, up.nspname::text, r.relname::text
	FROM roots JOIN pg_class r ON r.oid = root JOIN pg_namespace up ON up.oid = r.relnamespace
		CROSS JOIN LATERAL pg_partition_tree(root) p
		JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE p.isleaf AND NOT EXISTS (SELECT FROM pg_partition_tree(root) o WHERE o.isleaf AND o.relid <> ALL ($1))`

// roots returns the roots of the partitions in the destination whose rows can be loaded through the
// root. The snapshot's description may be wrong, and rows that are loaded through a root can go to
// any of its partitions, so all of them must be chosen.
func (r *refill) roots(ctx context.Context) (map[schema.Name]schema.Name, error) {
	rows, err := r.conn.Query(ctx, rootsToFill, r.oids)
	if err != nil {
		return nil, err
	}
	roots := map[schema.Name]schema.Name{}
	var table, root schema.Name
	_, err = pgx.ForEachRow(rows, []any{&table.Schema, &table.Name, &root.Schema, &root.Name}, func() error {
		roots[table] = root
		return nil
	})
	return roots, err
}

// copy sends the rows of one table to the server.
func (r *refill) copy(ctx context.Context, d *dumpReader, b *block) (int64, error) {
	from, to := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		d.chunks(func(p []byte) {
			if err == nil {
				_, err = to.Write(p)
			}
		})
		to.CloseWithError(errors.Join(err, d.err))
	}()
	tag, err := r.conn.PgConn().CopyFrom(ctx, from, b.copy+b.options(""))
	from.CloseWithError(io.ErrClosedPipe)
	<-done
	return tag.RowsAffected(), err
}

// sequences restores the values of the sequences that the tables own.
func (r *refill) sequences(ctx context.Context) error {
	for _, q := range r.schema.Sequences {
		if q.Owner == nil || !r.chosen[q.Owner.Table] || q.Last == "" {
			continue
		}
		if _, err := r.conn.Exec(ctx, "SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3::text::bigint, $4)",
			quoteName(q.Owner.Table), q.Owner.Column, q.Last, q.Called); err != nil {
			return err
		}
	}
	return nil
}
