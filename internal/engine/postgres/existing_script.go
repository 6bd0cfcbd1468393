package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"snap"
	"snap/internal/engine"
)

// restore runs the scripts that pg_restore writes for some sections of the dump, in the load's
// transaction.
func (x *existing) restore(ctx context.Context, run restoreRun, args ...string) error {
	var sections, others []string
	for _, a := range args {
		if strings.HasPrefix(a, "--section=") {
			sections = append(sections, a)
		} else {
			others = append(others, a)
		}
	}
	if len(sections) == 0 {
		return errUnreadable
	}
	for _, section := range sections {
		if err := x.section(ctx, run, append(others, section), section == "--section=data"); err != nil {
			return err
		}
	}
	return nil
}

// section runs the script of one section. The data section has the large objects. Its script can be
// run in parts, because each of its statements ends at the end of a line.
func (x *existing) section(ctx context.Context, run restoreRun, args []string, parts bool) error {
	args = append(args, "--file=-")
	args = append(args, omitFlags...)
	cmd, stderr := engine.Program(ctx, run.tool.path, append(args, run.file)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start pg_restore: %w", err)
	}
	failed := x.script(ctx, out, parts)
	if failed != nil {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if failed != nil {
		return failed
	}
	if err != nil {
		return x.dest.toolFailure(ctx, "pg_restore", stderr, err)
	}
	return nil
}

// partOfScript is the number of bytes of a script with large objects that are sent to the server at
// a time.
const partOfScript = 1 << 20

// script runs a script that pg_restore wrote.
func (x *existing) script(ctx context.Context, from io.Reader, parts bool) error {
	in, text := bufio.NewReaderSize(from, 1<<16), bytes.Buffer{}
	for {
		line, err := in.ReadBytes('\n')
		if !parts || string(line) != "BEGIN;\n" && string(line) != "COMMIT;\n" {
			text.Write(line)
		}
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return fmt.Errorf("read from pg_restore: %w", err)
		}
		if end || parts && text.Len() > partOfScript && bytes.HasSuffix(line, []byte(";\n")) {
			if err := x.runScript(ctx, x.forServer(text.Bytes())); err != nil {
				return err
			}
			text.Reset()
		}
		if end {
			return nil
		}
	}
}

// The psql commands at the beginning and at the end of a script that pg_restore wrote.
var (
	restricted   = regexp.MustCompile(`\A((?:--.*)?\n)*\\restrict \w+\n`)
	unrestricted = regexp.MustCompile(`\n\\unrestrict \w+\n*\z`)
)

// forServer removes from a script psql's own commands, and a setting that older servers do not
// know.
func (x *existing) forServer(text []byte) string {
	text = restricted.ReplaceAll(text, nil)
	text = unrestricted.ReplaceAll(text, []byte("\n"))
	if x.serverMajor < 17 {
		text = bytes.Replace(text, []byte("\nSET "+unknownSetting+" = 0;\n"), []byte("\n"), 1)
	}
	return string(text)
}

func (x *existing) runScript(ctx context.Context, text string) error {
	return x.failure(x.dest.advised(x.exec(ctx, text), "the PostgreSQL server "+x.dest.where()+" failed"))
}

// stateOutOfMemory is the SQLSTATE of a server whose table of locks is full.
const stateOutOfMemory = "53200"

// failure converts an error of the load to a *snap.Error. Nothing was changed, unless the database
// is filled in place.
func (x *existing) failure(err error) error {
	if state(err) == stateOutOfMemory && strings.Contains(message(err), "shared memory") && x.tx != nil {
		err = &snap.Error{Code: snap.CodeDatabase, Cause: err,
			Detail: fmt.Sprintf("the PostgreSQL server %s cannot lock all objects of the database in one transaction",
				x.dest.where()),
			Hint: "run ALTER SYSTEM SET max_locks_per_transaction = 1024 and restart the server, or load " +
				"with --in-place; nothing was changed"}
	}
	err = x.dest.failure(err)
	if x.tx == nil && x.o.Into == engine.InPlace && x.content.Schemas != nil {
		return engine.Incomplete(x.dest.name(), err)
	}
	return err
}

// guard makes a COMMIT fail, because two rows have the same value of a deferred key.
const guard = "CREATE TEMPORARY TABLE snapcli_guard (n int UNIQUE DEFERRABLE INITIALLY DEFERRED); " +
	"INSERT INTO snapcli_guard VALUES (1), (1)"

// run runs the user's SQL in the transaction. It fails if the SQL ends the transaction.
func (x *existing) run(ctx context.Context, text string) error {
	if err := x.exec(ctx, guard); err != nil {
		return x.failure(err)
	}
	_, err := x.conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil && state(err) == "" {
		return x.failure(err)
	}
	if x.conn.PgConn().TxStatus() == 'I' || err != nil && strings.Contains(message(err), "snapcli_guard") {
		return &snap.Error{Code: snap.CodeInvalid, Cause: err,
			Detail: "the SQL ends a transaction, but a load into an existing database is a single one",
			Hint:   "remove COMMIT and ROLLBACK from the SQL; nothing was changed"}
	}
	if err != nil {
		return sqlFailed(err)
	}
	// Triggers cannot be enabled on tables that have pending deferred checks.
	err = x.exec(ctx, "DROP TABLE pg_temp.snapcli_guard", "SET CONSTRAINTS ALL IMMEDIATE", builtInNames)
	return x.failure(err)
}
