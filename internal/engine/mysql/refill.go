package mysql

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/subset"
)

var _ engine.Refiller = Engine{}

// Refill implements [engine.Refiller]. The server does not check foreign keys during the load, so
// Refill checks them at the end. Triggers cannot be turned off, so Refill refuses tables whose
// triggers would fire.
func (e Engine) Refill(ctx context.Context, raw string, dump engine.Dump, only []string, o engine.Options) (
	[]engine.Table, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	chosen, _, err := engine.ChosenTables(dump.Info, only)
	if err != nil {
		return nil, err
	}
	if err := dump.Info.Schema.Check(schema.MySQL); err != nil {
		return nil, err
	}
	db, err := d.open(d.name)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	r := &refill{s: &scratch{dest: d, db: d, server: db, o: o, trust: dataOnly}, chosen: map[string]bool{},
		rows: map[string]int64{}}
	for name := range chosen {
		r.chosen[name.Name] = true
	}
	if err := r.run(ctx, dump); err != nil {
		return nil, d.failure(err)
	}
	var all []engine.Table
	for _, t := range dump.Info.Tables {
		if r.chosen[t.Name] {
			all = append(all, engine.Table{Name: t.Name, Rows: r.rows[t.Name]})
		}
	}
	return all, nil
}

// refill replaces rows in one transaction.
type refill struct {
	s      *scratch
	c      *sql.Conn
	chosen map[string]bool
	rows   map[string]int64 // number of rows inserted or omitted, by table
}

func (r *refill) run(ctx context.Context, dump engine.Dump) (err error) {
	if err := r.s.server.QueryRowContext(ctx, "SELECT version(), @@max_allowed_packet").Scan(&r.s.version,
		&r.s.packet); err != nil {
		return err
	}
	if r.s.structure, err = statementsFor(dump.Info.Schema, r.s.mariadb()); err != nil {
		return err
	}
	r.s.describeRows(dump.Info.Schema)
	if r.c, err = session(ctx, r.s.server, "SET SESSION foreign_key_checks = 0", setEnglish); err != nil {
		return err
	}
	defer endSession(r.c)
	_, _ = r.c.ExecContext(ctx, allWarnings)
	if err := r.requireReplaceable(ctx); err != nil {
		return err
	}
	if _, err := r.c.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	r.s.o.Begin("restore")
	if err := r.fill(ctx, dump); err != nil {
		return err // the end of the session undoes the transaction
	}
	r.s.o.Begin("verify")
	if err := r.verify(ctx, dump.Info); err != nil {
		return err
	}
	_, err = r.c.ExecContext(ctx, "COMMIT")
	return err
}

// requireReplaceable refuses tables that are missing, are not transactional, are system-versioned,
// or have triggers that would fire.
func (r *refill) requireReplaceable(ctx context.Context) error {
	for name := range r.chosen {
		var kind, storage string
		err := r.c.QueryRowContext(ctx, "SELECT table_type, coalesce(engine, '') FROM information_schema.tables WHERE "+
			"table_schema = ? AND table_name = ? AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')", r.s.dest.name,
			name).Scan(&kind, &storage)
		if errors.Is(err, sql.ErrNoRows) {
			return engine.NoTable(name)
		}
		if err != nil {
			return err
		}
		triggers, err := queryStrings(ctx, r.c, "SELECT trigger_name FROM information_schema.triggers WHERE "+
			"event_object_schema = ? AND event_object_table = ? AND event_manipulation <> 'UPDATE'", r.s.dest.name,
			name)
		if err != nil {
			return err
		}
		why := ""
		switch {
		case len(triggers) > 0:
			why = "has the trigger " + triggers[0] + ", which would fire"
		case kind == "SYSTEM VERSIONED":
			why = "keeps the history of its rows"
		case storage != "InnoDB" && storage != "ROCKSDB":
			why = "is not transactional: its storage engine is " + storage
		}
		if why != "" {
			return snap.Invalid(fmt.Sprintf("the rows of the table %s cannot be replaced, because it %s", name, why),
				"load the whole snapshot; nothing was changed")
		}
	}
	return nil
}

// fill replaces the rows with the rows of the dump.
func (r *refill) fill(ctx context.Context, dump engine.Dump) error {
	for name := range r.chosen {
		if _, err := r.c.ExecContext(ctx, "DELETE FROM "+quote(name)); err != nil {
			return err
		}
	}
	in, err := dump.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	counted := &engine.Counter{W: io.Discard, O: r.s.o, Of: dump.Size}
	rows, err := skipHead(io.TeeReader(engine.Reader(ctx, in), counted))
	if err != nil {
		return err
	}
	return r.insert(ctx, rows)
}

func (r *refill) insert(ctx context.Context, in *bufio.Reader) error {
	for {
		one, err := next(in, r.s.packet+chunkSize)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !r.chosen[one.table] {
			continue
		}
		var omitted int64
		if one, omitted, err = r.s.forms[one.table].rewrite(one); err != nil {
			return err
		}
		r.rows[one.table] += omitted
		n, err := r.s.insertRows(ctx, r.c, one, execOnce)
		if err != nil {
			return err
		}
		r.rows[one.table] += n
	}
}

// execOnce runs a statement without retries, because a conflict rolls back the whole transaction.
func execOnce(ctx context.Context, c *sql.Conn, text string) (sql.Result, error) {
	return c.ExecContext(ctx, text)
}

// verify compares the numbers of rows and checks the foreign keys from and to the tables.
func (r *refill) verify(ctx context.Context, info engine.Info) error {
	var want, got []engine.Table
	for _, t := range info.Tables {
		if r.chosen[t.Name] {
			want, got = append(want, t), append(got, engine.Table{Name: t.Name, Rows: r.rows[t.Name]})
		}
	}
	if err := engine.Compare(want, got); err != nil {
		return err
	}
	tables, err := listTables(ctx, r.c, r.s.dest.name)
	if err != nil {
		return err
	}
	g, err := (&chooser{c: r.c}).graph(ctx, r.s.dest.name, tables)
	if err != nil {
		return err
	}
	for _, k := range g.Keys {
		child, parent := g.Tables[k.Child].Name, g.Tables[k.Parent].Name
		if !r.chosen[child] && !r.chosen[parent] {
			continue
		}
		result, err := orphansOf(ctx, r.c, subset.Graph{Tables: g.Tables, Keys: []subset.ForeignKey{k}}, nil)
		if err != nil {
			return err
		}
		if result != keysHold {
			return engine.KeysBroken(fmt.Sprintf("%s (%s) to %s", child, strings.Join(k.Columns, ", "), parent), nil)
		}
	}
	return nil
}
