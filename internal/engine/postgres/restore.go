package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

// scratchMark is the comment on a scratch database, for whoever finds it.
const scratchMark = "snapcli: a scratch database, in use while its load runs"

// Restore implements [engine.Engine].
func (e Engine) Restore(ctx context.Context, raw string, dump engine.Dump, o engine.Options) (engine.Scratch, error) {
	d, err := parse(raw)
	if err != nil {
		return nil, err
	}
	admin, err := d.maintenance(ctx)
	if err != nil {
		return nil, err
	}
	s := &scratch{place: d, admin: admin, o: o}
	if err := s.fill(ctx, e, dump); err != nil {
		if dropped := s.Drop(context.WithoutCancel(ctx)); dropped != nil {
			err = errors.Join(err, dropped)
		}
		return nil, err
	}
	return s, nil
}

// scratch is a database on the destination's server. While it lives, admin
// holds an advisory lock on its name, so that nobody takes it for a leftover.
type scratch struct {
	place database
	here  database
	admin *pgx.Conn
	made  bool
	o     engine.Options
}

func (s *scratch) fill(ctx context.Context, e Engine, dump engine.Dump) error {
	server, err := version(ctx, s.admin)
	if err != nil {
		return s.place.failure(err)
	}
	tool, err := e.tool("pg_restore", max(major(server), major(dump.Info.ToolVersion)))
	if err != nil {
		return err
	}
	if err := sweep(ctx, s.admin); err != nil {
		return s.place.failure(err)
	}
	s.o.Begin("unpack")
	file, err := unpack(ctx, dump, s.o)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	if err := s.create(ctx, dump.Info.Properties); err != nil {
		return s.place.failure(err)
	}
	s.o.Begin("restore")
	if err := s.restore(ctx, tool, file); err != nil {
		return err
	}
	s.o.Begin("verify")
	return s.verify(ctx, dump.Info.Tables)
}

// unpack writes the dump to a file, from which pg_restore can work in parallel.
func unpack(ctx context.Context, dump engine.Dump, o engine.Options) (path string, err error) {
	file, err := os.CreateTemp(o.TempDir, "restore-*.dump")
	if err != nil {
		return "", fmt.Errorf("make a temporary file: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			os.Remove(file.Name())
		}
		if disk.Full(err) {
			err = &snap.Error{Code: snap.CodeStorageFull, Detail: "there is no space left on the disk to unpack the snapshot", Hint: "make room in the data folder; nothing was replaced", Cause: err}
		}
	}()
	in, err := dump.Open()
	if err != nil {
		return "", err
	}
	defer in.Close()
	_, err = io.Copy(&engine.Counter{W: file, O: o, Of: dump.Size}, engine.Reader(ctx, in))
	return file.Name(), err
}

func randomName(prefix string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// create makes the empty scratch database, closed to everybody but its owner.
func (s *scratch) create(ctx context.Context, properties map[string]string) error {
	name := randomName("snapcli_scratch_")
	if err := holdName(ctx, s.admin, name); err != nil {
		return err
	}
	if err := createLike(ctx, s.admin, name, properties); err != nil {
		return err
	}
	s.here, s.made = s.place.named(name), true
	id := pgx.Identifier{name}.Sanitize()
	for _, statement := range []string{
		"COMMENT ON DATABASE " + id + " IS " + literal(scratchMark),
		"REVOKE ALL ON DATABASE " + id + " FROM PUBLIC",
		// What is lost in a crash is scratch.
		"ALTER DATABASE " + id + " SET synchronous_commit = off",
		"ALTER DATABASE " + id + " SET maintenance_work_mem = '256MB'",
	} {
		if _, err := s.admin.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// createLike creates a database with the source's encoding and locale, or as
// near to it as the server can: locales have different names on different
// systems.
func createLike(ctx context.Context, admin *pgx.Conn, name string, p map[string]string) error {
	base := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE template0"
	encoding := ""
	if p["encoding"] != "" {
		encoding = " ENCODING " + literal(p["encoding"])
	}
	attempts := []string{base + encoding, base + encoding + " LC_COLLATE 'C' LC_CTYPE 'C'"}
	if p["lc_collate"] != "" && p["lc_ctype"] != "" {
		attempts = append([]string{base + encoding + " LC_COLLATE " + literal(p["lc_collate"]) + " LC_CTYPE " + literal(p["lc_ctype"])}, attempts...)
	}
	var err error
	for _, statement := range attempts {
		_, err = admin.Exec(ctx, statement)
		if err == nil || (state(err) != stateBadParameter && state(err) != stateWrongObject) {
			return err
		}
	}
	return err
}

func (s *scratch) restore(ctx context.Context, t tool, file string) error {
	cmd, said := t.command(ctx, s.here, "--jobs="+strconv.Itoa(max(1, s.o.Jobs)), "--exit-on-error",
		"--no-owner", "--no-privileges", "--no-tablespaces", "--no-subscriptions")
	cmd.Args = append(cmd.Args, file)
	if err := cmd.Run(); err != nil {
		return s.here.toolFailure(ctx, "pg_restore", said, err)
	}
	return nil
}

// verify counts the rows of every table, and lets the planner know them.
func (s *scratch) verify(ctx context.Context, want []engine.Table) error {
	conn, err := s.here.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	got, err := listTables(ctx, conn)
	if err != nil {
		return s.here.failure(err)
	}
	work, workers := make(chan *engine.Table), errgroup.Group{}
	g, inner := errgroup.WithContext(ctx)
	for range max(1, s.o.Jobs) {
		g.Go(func() error { return s.count(inner, work) })
	}
	workers.Go(func() error {
		defer close(work)
		for i := range got {
			select {
			case work <- &got[i]:
			case <-inner.Done():
				return nil
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return s.here.failure(err)
	}
	_ = workers.Wait()
	if err := engine.Compare(want, got); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ANALYZE"); err != nil {
		return s.here.failure(err)
	}
	return nil
}

func (s *scratch) count(ctx context.Context, work <-chan *engine.Table) error {
	conn, err := s.here.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for t := range work {
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM ONLY "+pgx.Identifier{t.Schema, t.Name}.Sanitize()).Scan(&t.Rows); err != nil {
			return err
		}
	}
	return nil
}

func (s *scratch) URL() string { return s.here.url() }

// Run implements [engine.Scratch].
func (s *scratch) Run(ctx context.Context, text string) error {
	conn, err := s.here.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		if state(err) == "" {
			return s.here.failure(err)
		}
		return &snap.Error{Code: snap.CodeDatabase, Detail: "the SQL failed: " + message(err), Hint: "correct the SQL and try again; nothing was kept of this run", Cause: err}
	}
	if conn.PgConn().TxStatus() != 'I' {
		return snap.Invalid("the SQL begins a transaction and does not commit it", "add COMMIT at the end")
	}
	return nil
}

// Scrub implements [engine.Scratch]: a dump holds only live rows.
func (s *scratch) Scrub(context.Context) error { return nil }

// Drop implements [engine.Scratch].
func (s *scratch) Drop(ctx context.Context) error {
	if s.admin == nil {
		return nil
	}
	var err error
	if s.made {
		_, err = s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{s.here.name()}.Sanitize()+" WITH (FORCE)")
	}
	_ = s.admin.Close(ctx)
	s.admin = nil
	return s.place.failure(err)
}

func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.ContainsRune(s, '\\') {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// holdName takes the advisory lock that says a scratch database is in use. It
// ends with the connection, however the program ends.
func holdName(ctx context.Context, admin *pgx.Conn, name string) error {
	_, err := admin.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", name)
	return err
}

// sweep drops what loads that were killed have left on the server.
func sweep(ctx context.Context, admin *pgx.Conn) error {
	rows, err := admin.Query(ctx, `SELECT datname FROM pg_database WHERE datname ~ '^snapcli_(scratch|replaced)_[0-9a-f]{16}$' AND pg_has_role(datdba, 'MEMBER')`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		var free bool
		if err := admin.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", name).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue
		}
		// Its load is gone; what is still connected is what that load started.
		// Somebody else may be sweeping too: an error can wait for the next load.
		_, _ = admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		if _, err := admin.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", name); err != nil {
			return err
		}
	}
	return nil
}
