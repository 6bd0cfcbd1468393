package postgres

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/engine"
)

// Dump implements [engine.Engine].
func (e Engine) Dump(ctx context.Context, raw string, w io.Writer, o engine.Options) (engine.Info, error) {
	d, err := e.parse(raw)
	if err != nil {
		return engine.Info{}, err
	}
	d.withGrants, d.tablesOnly = o.WithGrants, true
	pgDump := e.findTool("pg_dump")
	conn, err := d.connect(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	info := engine.Info{Exists: true}
	if err := d.requireSession(ctx, conn); err != nil {
		return info, err
	}
	if info.ServerVersion, err = version(ctx, conn); err != nil {
		return info, d.failure(err)
	}
	d.encoding = conn.PgConn().ParameterStatus("server_encoding")
	tool, err := pgDump(major(info.ServerVersion))
	if err != nil {
		return info, err
	}
	info.ToolVersion = tool.version
	out := &engine.Counter{W: w, O: o}
	if o.Subset != nil {
		if err := inspect(ctx, conn, &info); err != nil {
			return info, d.failure(err)
		}
		return retryChanged(out, func() (engine.Info, error) { return d.dumpSubset(ctx, tool, info, out, o) })
	}
	o.Begin("dump")
	return retryChanged(out, func() (engine.Info, error) { return d.dumpOnce(ctx, tool, info, out, o) })
}

// describe sets the description of the chosen objects, as conn's transaction sees them. The
// description also lists the parts of the database that a dump omits. If a load by another
// organization would refuse the description, describe adds a warning.
func (d database) describe(ctx context.Context, conn *pgx.Conn, info *engine.Info) (err error) {
	if info.Schema, err = describeSchema(ctx, conn.PgConn()); err != nil {
		return err
	}
	if err := describeOmitted(ctx, conn, d.excluded, info); err != nil {
		return err
	}
	if d.withGrants {
		if err := describeGrants(ctx, conn, info.Schema); err != nil {
			return err
		}
	}
	if _, err := describedBy(*info); err != nil {
		info.Warnings = append(info.Warnings, "other organizations cannot load the snapshot: "+err.Error())
	}
	return nil
}

// dumpArguments returns the arguments of pg_dump.
func (d database) dumpArguments(t tool, snapshot string) []string {
	args := []string{"--format=custom", "--compress=0", "--no-privileges", "--no-subscriptions",
		"--encoding=" + d.encoding, "--snapshot=" + snapshot}
	if major(t.version) >= 18 { // planner statistics contain values from rows
		args = append(args, "--no-statistics")
	}
	return append(args, d.excluded.arguments()...)
}

// retryChanged calls dump. It calls dump again if others dropped, rewrote or locked a table before
// pg_dump had locked all tables. Nothing has been written in that case.
func retryChanged(w *engine.Counter, dump func() (engine.Info, error)) (info engine.Info, err error) {
	for range 5 {
		if info, err = dump(); w.Done > 0 || !schemaChanged(err) {
			return info, err
		}
	}
	var failed *snap.Error
	if errors.As(err, &failed) {
		e := *failed
		e.Hint = "tables keep being created, dropped, rewritten or locked; try again when that has ended"
		err = &e
	}
	return info, err
}

// dumpOnce dumps and describes the database in one snapshot of the server. The session that exports
// the snapshot stays open and locks no table. Describing a view locks the view's tables, so another
// session describes the database and then ends. If that session held its locks while snapcli waits
// for pg_dump, a statement like TRUNCATE could wait for the locks and block pg_dump, and the server
// would not detect the deadlock.
func (d database) dumpOnce(ctx context.Context, t tool, info engine.Info, w io.Writer, o engine.Options) (engine.Info,
	error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return info, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var snapshot string
	_, err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot)
	}
	if err == nil {
		d.excluded, err = choose(ctx, conn, o.Choice)
	}
	if err != nil {
		return info, d.failure(err)
	}
	var counts map[[2]string]tally
	var warnings []string
	g, groupCtx := errgroup.WithContext(ctx)
	g.Go(func() error {
		conn, err := d.inSnapshot(groupCtx, snapshot)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(groupCtx))
		if err = inspect(groupCtx, conn, &info); err == nil {
			err = d.describe(groupCtx, conn, &info)
		}
		return d.failure(err)
	})
	g.Go(func() (err error) {
		counts, warnings, err = d.dump(groupCtx, t, snapshot, w)
		return err
	})
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil { // a canceled statement can fail in other ways
			err = ctx.Err()
		}
		return info, err
	}
	info.Warnings = append(info.Warnings, warnings...)
	info.Tables = d.excluded.emptyTables(info.Tables, merge(info.Tables, counts))
	return info, nil
}

// schemaChanged reports whether a dump failed because others changed the schema or held a lock.
func schemaChanged(err error) bool {
	return err != nil && (errors.Is(err, errRewritten) || strings.Contains(err.Error(), "does not exist") ||
		strings.Contains(err.Error(), "cache lookup failed") ||
		strings.Contains(err.Error(), "statement timeout") ||
		strings.Contains(err.Error(), "access to non-system view") || // a view has replaced a table or a sequence
		strings.Contains(err.Error(), "could not open relation"))
}

// dump runs pg_dump, through a relay if possible, and writes its stream condensed. It returns the
// number of rows of each table and pg_dump's warnings.
func (d database) dump(ctx context.Context, t tool, snapshot string, w io.Writer) (map[[2]string]tally, []string,
	error) {
	via, err := d.relay(ctx)
	if errors.Is(err, errNoSocket) {
		return d.dumpVia(ctx, nil, t, snapshot, w)
	}
	if err != nil {
		return nil, nil, err
	}
	counts, warnings, err := d.dumpVia(ctx, via, t, snapshot, w)
	via.close(ctx, err != nil)
	if errors.Is(err, errUnknownVersion) {
		return d.dumpVia(ctx, nil, t, snapshot, w)
	}
	return counts, warnings, err
}

// dumpVia dumps through a relay, or without one.
func (d database) dumpVia(ctx context.Context, via *relay, t tool, snapshot string, w io.Writer) (map[[2]string]tally,
	[]string, error) {
	args := d.dumpArguments(t, snapshot)
	if via == nil {
		cmd, stderr, done, err := d.program(ctx, t, args...)
		if err != nil {
			return nil, nil, err
		}
		counts, warnings, err := d.dumpBy(ctx, cmd, stderr, nil, snapshot, w)
		return counts, warnings, cmp.Or(done(), err)
	}
	cmd, stderr := via.command(ctx, t, args...)
	return d.dumpBy(ctx, cmd, stderr, via, snapshot, w)
}

// dumpBy starts pg_dump and condenses its output. It returns the number of rows of each table and
// pg_dump's warnings.
func (d database) dumpBy(ctx context.Context, cmd *exec.Cmd, stderr *engine.Stderr, via *relay, snapshot string,
	w io.Writer) (map[[2]string]tally, []string, error) {
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start pg_dump: %w", err)
	}
	out, stream := &errWriter{w: w}, bufio.NewReaderSize(stdout, 1<<20)
	if err := d.checkLocked(ctx, stream, snapshot); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, nil, err
	}
	counts, failed := condense(stream, via, d.excluded, out)
	early := errors.Is(failed, io.EOF) || errors.Is(failed, io.ErrUnexpectedEOF)
	if early { // the output ended early: pg_dump is about to print the reason
		_, _ = io.Copy(io.Discard, stream)
	} else if failed != nil {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	switch {
	case out.err != nil:
		return nil, nil, out.err
	case err != nil && (failed == nil || early || ctx.Err() != nil):
		return nil, nil, d.toolFailure(ctx, "pg_dump", stderr, err)
	case failed != nil:
		return nil, nil, fmt.Errorf("read from pg_dump: %w", failed)
	}
	return counts, stderr.Warnings(), nil
}

// errWriter remembers an error of its writer, so that callers can distinguish failures to write
// from failures to read.
type errWriter struct {
	w   io.Writer
	err error
}

func (f *errWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.err = err
	return n, err
}

// merge returns the dumped tables with their counted rows. The tables are those that pg_dump saw,
// even if a table was created or dropped after they were listed.
func merge(listed []engine.Table, counts map[[2]string]tally) []engine.Table {
	if counts == nil {
		return listed
	}
	columns := map[[2]string][]engine.Column{}
	for _, t := range listed {
		columns[[2]string{t.Schema, t.Name}] = t.Columns
	}
	var all []engine.Table
	for key, n := range counts {
		all = append(all, engine.Table{Schema: key[0], Name: key[1], Rows: n.rows, Bytes: n.bytes,
			Columns: columns[key]})
	}
	engine.Sort(all)
	return all
}
