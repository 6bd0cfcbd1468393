package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"snap"
	"snap/internal/engine"
)

// Loads into MySQL never replace the database itself, only its content. They prepare the new
// content in scratch databases, which some providers do not allow users to create. A load in place
// does not need scratch databases: it removes the old content and fills the database.

// create creates the scratch database, or empties the destination for a load in place.
func (s *scratch) create(ctx context.Context) error {
	if s.o.Into == engine.InPlace {
		return s.empty(ctx)
	}
	_, err := s.lock.ExecContext(ctx, "CREATE DATABASE "+quote(s.db.name)+s.charsetClause())
	s.created = err == nil || number(err) == 0 // if the server has not responded, it may still create the database
	if isDenied(err) {
		return s.errMayNotCreate(ctx, err)
	}
	return err
}

func (s *scratch) errMayNotCreate(ctx context.Context, cause error) error {
	var user, host string
	_ = s.server.QueryRowContext(ctx, "SELECT substring_index(current_user(), '@', 1), "+
		"substring_index(current_user(), '@', -1)").Scan(&user, &host)
	return &snap.Error{
		Code: snap.CodeDatabase, Cause: cause,
		Detail: fmt.Sprintf("the MySQL user %q is not allowed to create the scratch databases of a load", s.dest.user),
		Hint: fmt.Sprintf("as an administrator, run: GRANT ALL PRIVILEGES ON `snapcli\\_%%`.* TO %s@%s; or load with "+
			"--in-place; nothing was changed", quoteText(user), quoteText(host)),
	}
}

// empty marks the destination as unfinished and removes its content. With OnlyIfEmpty, there is no
// content to remove. If others are connected, empty ends their connections if Terminate is set, and
// otherwise returns a conflict.
func (s *scratch) empty(ctx context.Context) error {
	var locked sql.NullInt64
	if err := s.lock.QueryRowContext(ctx, "SELECT get_lock(left(concat('snapcli_', sha2(?, 256)), 64), 10)",
		s.dest.name).Scan(&locked); err != nil {
		return err
	}
	if locked.Int64 != 1 {
		return &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("another load into the database %q is running", s.dest.name),
			Hint:   "try again when it has ended"}
	}
	if err := s.requireUnused(ctx, s.o.Terminate); err != nil {
		return err
	}
	c, err := session(ctx, s.server, "USE "+quote(s.dest.name),
		"SET SESSION lock_wait_timeout = 10, foreign_key_checks = 0")
	if err != nil {
		return err
	}
	defer endSession(c)
	if err := s.requireAgreed(ctx, c); err != nil {
		return err
	}
	// The table marks the database. Creating it is also the first statement that fails if a
	// privilege is missing.
	if _, err := c.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+engine.Unfinished+" (n INT PRIMARY KEY) COMMENT "+
		"'snapcli is loading this database, or a load failed: the database is incomplete'"); err != nil {
		return err
	}
	s.emptied = true
	if s.o.OnlyIfEmpty {
		return nil
	}
	if err := replacePrograms(ctx, c, creator{c: c}, s.dest.name, structure{}, false); err != nil {
		return err
	}
	tables, err := queryStrings(ctx, c, "SELECT concat(if(table_type = 'SEQUENCE', 'SEQUENCE ', 'TABLE '), '`', "+
		"replace(table_name, '`', '``'), '`') FROM information_schema.tables WHERE table_schema = ? AND table_name <> "+
		"? AND table_type <> 'VIEW'", s.dest.name, engine.Unfinished)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if _, err := c.ExecContext(ctx, "DROP "+t); err != nil {
			return err
		}
	}
	return nil
}

// finishInPlace replaces the programs, including the events, with those of the dump, as a load does
// after an exchange of tables. Then it removes the mark, because the database is complete.
func (s *scratch) finishInPlace(ctx context.Context) error {
	c, err := session(ctx, s.server, "USE "+quote(s.dest.name))
	if err != nil {
		return err
	}
	defer endSession(c)
	j := journal{Place: s.dest.name, New: s.structure, Account: s.account, Keep: s.o.OnlyIfEmpty}
	j.New.Tables, j.New.Sequences = nil, nil
	if err := replaceFromJournal(ctx, s.server, s.dest, c, j); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, "DROP TABLE "+engine.Unfinished)
	return err
}

// failed converts an error of a load to one for the user. If the load has emptied the database to
// fill it in place, the error says that the database is incomplete.
func (s *scratch) failed(err error) error {
	err = s.dest.failure(err)
	if s.emptied {
		return engine.Incomplete(s.dest.name, err)
	}
	return err
}

var _ engine.Granter = Engine{}

var grantText = regexp.MustCompile(`(?is)^\s*GRANT\s`)

// CheckGrant implements [engine.Granter].
func (Engine) CheckGrant(statement string) error {
	if len(statements(statement)) != 1 || !grantText.MatchString(statement) {
		return engine.NotGrant(statement)
	}
	return nil
}

// grant runs the target's GRANT statements in the destination. It runs at the end of a load,
// because the statements may name tables that the load created.
func (s *scratch) grant(ctx context.Context) error {
	if len(s.o.Grants) == 0 {
		return nil
	}
	c, err := session(ctx, s.server, "USE "+quote(s.dest.name))
	if err != nil {
		return err
	}
	defer endSession(c)
	for _, statement := range s.o.Grants {
		_, err := c.ExecContext(ctx, strings.TrimSuffix(strings.TrimSpace(statement), ";"))
		if serverErr, ok := errors.AsType[*driver.MySQLError](err); ok {
			return &snap.Error{Code: snap.CodeDatabase, Cause: err,
				Detail: fmt.Sprintf("the database was replaced, but the grant %q failed: %s",
					engine.Shortened(statement), serverErr.Message),
				Hint: "correct the target's grants, or create the user, and load again"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
