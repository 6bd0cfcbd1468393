package mysql

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"snap/internal/engine"
)

// programs are the parts of a database that are no tables, as SQL for the
// client program.
type programs struct {
	Routines string `json:"routines"` // procedures, functions, triggers
	Views    string `json:"views"`
	Events   string `json:"events"`
}

const (
	programsMark = "-- snapcli: "
	maxPrograms  = 64 << 20
)

// Dump implements [engine.Engine].
func (Engine) Dump(ctx context.Context, raw string, w io.Writer, o engine.Options) (engine.Info, error) {
	d, err := parse(raw)
	if err != nil {
		return engine.Info{}, err
	}
	db, err := d.open(d.name)
	if err != nil {
		return engine.Info{}, err
	}
	defer db.Close()
	info, err := look(ctx, db, d.name)
	if err != nil {
		return info, d.failure(err)
	}
	views, err := names(ctx, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type LIKE '%VIEW' ORDER BY table_name", d.name)
	if err != nil {
		return info, d.failure(err)
	}
	t, err := program(dumpers(info.ServerVersion))
	if err != nil {
		return info, err
	}
	info.ToolVersion = t.version
	o.Begin("dump")
	parts, err := d.programs(ctx, t, views)
	if err != nil {
		return info, err
	}
	line, err := json.Marshal(parts)
	if err != nil {
		return info, fmt.Errorf("write the dump: %w", err)
	}
	out := &engine.Counter{W: w, O: o}
	if _, err := fmt.Fprintf(out, "%s%s\n", programsMark, line); err != nil {
		return info, err
	}
	counts := newRowCounter(out)
	args := append(tableArguments(t), d.name)
	for _, v := range views {
		args = append(args, "--ignore-table="+d.name+"."+v)
	}
	if err := d.dump(ctx, t, counts, args...); err != nil {
		return info, err
	}
	for i := range info.Tables {
		info.Tables[i].Rows = counts.rows[info.Tables[i].Name]
	}
	return info, nil
}

// tableArguments are those of the run that dumps tables and rows: one
// transaction, row by row, binary values in hexadecimal.
func tableArguments(t tool) []string {
	args := []string{"--single-transaction", "--quick", "--skip-lock-tables", "--skip-add-locks", "--skip-triggers", "--hex-blob", "--skip-dump-date", "--skip-comments", "--no-tablespaces"}
	if t.name == "mysqldump" && !strings.Contains(t.version, "MariaDB") {
		args = append(args, "--set-gtid-purged=OFF", "--column-statistics=0")
	}
	return args
}

// programs dumps what is no table, without the definers: they are users of the
// source's server.
func (d database) programs(ctx context.Context, t tool, views []string) (programs, error) {
	var p programs
	base := []string{"--no-data", "--skip-comments", "--skip-dump-date", "--no-tablespaces", "--skip-lock-tables"}
	if t.name == "mysqldump" && !strings.Contains(t.version, "MariaDB") {
		base = append(base, "--set-gtid-purged=OFF", "--column-statistics=0")
	}
	run := func(into *string, args ...string) error {
		var b bytes.Buffer
		err := d.dump(ctx, t, &b, append(append([]string{}, base...), args...)...)
		*into = definer.ReplaceAllString(b.String(), "")
		return err
	}
	err := run(&p.Routines, "--no-create-info", "--routines", "--triggers", d.name)
	if err == nil {
		err = run(&p.Events, "--no-create-info", "--skip-triggers", "--events", d.name)
	}
	if err == nil && len(views) > 0 {
		err = run(&p.Views, append([]string{"--skip-triggers", d.name}, views...)...)
	}
	return p, err
}

var definer = regexp.MustCompile("DEFINER=`(?:[^`]|``)*`@`(?:[^`]|``)*` ?")

// dump runs the dumping program.
func (d database) dump(ctx context.Context, t tool, w io.Writer, args ...string) error {
	cmd, said := t.command(ctx, d, args...)
	copied := &failing{w: w}
	cmd.Stdout = copied
	err := cmd.Run()
	if copied.err != nil {
		return copied.err
	}
	if err != nil {
		return d.toolFailure(ctx, t, said, err)
	}
	return nil
}

// failing remembers that writing failed, which the program reports as a broken
// pipe.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil && f.err == nil {
		f.err = err
	}
	return n, err
}

// split reads the first line of a dump and returns the rest.
func split(r io.Reader) (programs, io.Reader, error) {
	var p programs
	in := bufio.NewReaderSize(r, 1<<20)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxPrograms {
			continue
		}
		if err != nil {
			return p, nil, badDump(err)
		}
		break
	}
	text, ok := bytes.CutPrefix(line, []byte(programsMark))
	if !ok {
		return p, nil, badDump(nil)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, nil, badDump(err)
	}
	return p, in, nil
}
