package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"snap"
	"snap/internal/engine"
)

// Restore implements [engine.Engine].
func (Engine) Restore(ctx context.Context, raw string, dump engine.Dump, o engine.Options) (engine.Scratch, error) {
	d, err := parse(raw)
	if err != nil {
		return nil, err
	}
	db, err := d.open("")
	if err != nil {
		return nil, err
	}
	s := &scratch{place: d, here: d.named(randomName("snapcli_scratch_")), server: db, o: o}
	if err := s.fill(ctx, dump); err != nil {
		if dropped := s.Drop(context.WithoutCancel(ctx)); dropped != nil {
			err = errors.Join(err, dropped)
		}
		return nil, s.place.failure(err)
	}
	return s, nil
}

// scratch is a database on the destination's server. While it lives, lock
// holds its name as a user lock, so that nobody takes it for a leftover.
type scratch struct {
	place, here database
	server      *sql.DB
	lock        *sql.Conn
	client      tool
	programs    programs
	properties  map[string]string
	made        bool
	o           engine.Options
}

func randomName(prefix string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

func (s *scratch) fill(ctx context.Context, dump engine.Dump) error {
	var version string
	if err := s.server.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	var err error
	if s.client, err = program(clients(version)); err != nil {
		return err
	}
	if s.lock, err = s.server.Conn(ctx); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	if _, err := s.lock.ExecContext(ctx, "SELECT get_lock(?, 0)", s.here.name); err != nil {
		return err
	}
	s.properties = dump.Info.Properties
	if _, err := s.server.ExecContext(ctx, "CREATE DATABASE "+quote(s.here.name)+s.charset()); err != nil {
		return err
	}
	s.made = true
	in, err := dump.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	programs, tables, err := split(engine.Reader(ctx, in))
	if err != nil {
		return err
	}
	s.programs = programs
	s.o.Begin("restore")
	if err := s.run(ctx, s.here, io.TeeReader(tables, &engine.Counter{W: io.Discard, O: s.o, Of: dump.Size})); err != nil {
		return err
	}
	s.o.Begin("verify")
	if err := s.verify(ctx, dump.Info.Tables); err != nil {
		return err
	}
	// That the programs are understood here is found out now, not after the swap.
	return s.run(ctx, s.here, strings.NewReader(s.programs.Routines+s.programs.Views))
}

var word = regexp.MustCompile(`^[a-z0-9_]+$`)

func (s *scratch) charset() string {
	charset, collation := s.properties["charset"], s.properties["collation"]
	if !word.MatchString(charset) || !word.MatchString(collation) {
		return ""
	}
	return " CHARACTER SET " + charset + " COLLATE " + collation
}

// run gives SQL of a dump to the client program. Nobody knows who wrote it: in
// binary mode the program takes no commands of its own from it, such as system,
// and it reads no file of this machine for the server.
func (s *scratch) run(ctx context.Context, d database, text io.Reader) error {
	cmd, said := s.client.command(ctx, d, "--batch", "--binary-mode", "--local-infile=0", "--max-allowed-packet=1G", "--init-command=SET SESSION foreign_key_checks = 0, unique_checks = 0", "--database="+d.name)
	cmd.Stdin = text
	if err := cmd.Run(); err != nil {
		return d.toolFailure(ctx, s.client, said, err)
	}
	return nil
}

func (s *scratch) verify(ctx context.Context, want []engine.Table) error {
	got, err := listTables(ctx, s.server, s.here.name)
	if err != nil {
		return err
	}
	for i, t := range got {
		if err := s.server.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(s.here.name)+"."+quote(t.Name)).Scan(&got[i].Rows); err != nil {
			return err
		}
	}
	return engine.Compare(want, got)
}

func (s *scratch) URL() string { return s.here.url() }

// Run implements [engine.Scratch].
func (s *scratch) Run(ctx context.Context, text string) error {
	cmd, said := s.client.command(ctx, s.here, "--batch", "--database="+s.here.name)
	cmd.Stdin = strings.NewReader(text)
	cmd.Stdout = io.Discard
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &snap.Error{Code: snap.CodeDatabase, Detail: "the SQL failed: " + said.FirstError(), Hint: "correct the SQL and try again; nothing was kept of this run", Cause: err}
	}
	return nil
}

// Scrub implements [engine.Scratch]: a dump holds only live rows.
func (s *scratch) Scrub(context.Context) error { return nil }

// Drop implements [engine.Scratch].
func (s *scratch) Drop(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	var err error
	if s.made {
		_, err = s.server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(s.here.name))
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
	_ = s.server.Close()
	s.server = nil
	return s.place.failure(err)
}

// sweep drops what loads that were killed have left on the server.
func (s *scratch) sweep(ctx context.Context) error {
	left, err := names(ctx, s.server, "SELECT schema_name FROM information_schema.schemata WHERE schema_name REGEXP ?", "^snapcli_(scratch|replaced)_[0-9a-f]{16}$")
	if err != nil {
		return err
	}
	for _, name := range left {
		var free sql.NullInt64
		if err := s.lock.QueryRowContext(ctx, "SELECT is_free_lock(?)", name).Scan(&free); err != nil {
			return err
		}
		if free.Int64 == 1 {
			// Somebody else may be sweeping too: an error can wait.
			_, _ = s.server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(name))
		}
	}
	return nil
}

func inUse(name string, who []string) error {
	return &snap.Error{
		Code:   snap.CodeConflict,
		Detail: fmt.Sprintf("the database %q is in use by %s", name, strings.Join(who[:min(3, len(who))], ", ")),
		Hint:   "close the connections, or end them with --terminate; nothing was changed",
	}
}
