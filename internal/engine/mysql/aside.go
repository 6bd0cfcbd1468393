package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"snap"
	"snap/internal/engine"
)

// If the server refuses the statements that would complete or revert a swap, the swap's journal is
// set aside: the load stays in its current state, and later loads skip the journal. They also skip
// a journal that another account wrote or changed. A load that replaces the same database, or
// dropping it as a clone, removes a skipped journal, because nothing is left to complete then.

// skippedError is the error for a journal that is skipped. It does not stop a load.
type skippedError struct{ cause *snap.Error }

func (e skippedError) Error() string { return e.cause.Error() }
func (e skippedError) Unwrap() error { return e.cause }

func isSkipped(err error) bool {
	_, ok := errors.AsType[skippedError](err)
	return ok
}

// setAside sets aside the journal of the load with this id, after an attempt to complete or revert
// its swap failed with err, and returns an error that says so. If err can be temporary, for example
// because the server is busy, setAside only returns err, and the next load tries again.
func setAside(ctx context.Context, server *sql.DB, dest database, id string, err error) error {
	n := number(err)
	var e *snap.Error
	if isSkipped(err) || ctx.Err() != nil || isDown(err) || n == erLockTimeout || n == erDeadlock ||
		errors.As(err, &e) && e.Code == snap.CodeConflict {
		return err
	}
	name := quote(journalPrefix + id)
	_, failed := server.ExecContext(ctx, "RENAME TABLE "+name+"."+sealName+" TO "+name+"."+asideName)
	if isDown(failed) {
		return failed
	}
	outcome := "was set aside"
	if failed != nil { // the next load tries again
		err, outcome = errors.Join(err, failed), "could not be set aside"
	}
	reason := dest.failure(err).Error()
	return skippedError{cause: &snap.Error{
		Code: snap.CodeDatabase, Cause: err,
		Detail: fmt.Sprintf("a load could not be finished: %s; its journal %s %s", reason, journalPrefix+id, outcome),
		Hint:   "load again to clean up after it, or run `snapcli doctor --fix`",
	}}
}

// isDown reports whether the server ended the connection or accepts none.
func isDown(err error) bool { return isConnectionLost(err) || errors.Is(err, syscall.ECONNREFUSED) }

// skippedJournals returns the ids of the journals of ended loads that later loads skip.
func skippedJournals(ctx context.Context, server querier) (skipped []string, err error) {
	all, err := queryStrings(ctx, server, "SELECT DISTINCT right(table_schema, 16) FROM information_schema.tables "+
		"WHERE table_schema REGEXP ? AND table_schema LIKE ? AND table_name IN (?, ?) AND "+
		"is_free_lock(right(table_schema, 16))", loadDatabasePattern, journalPrefix+"%", sealName, asideName)
	for _, id := range all {
		aside, failed := isSetAside(ctx, server, id)
		if err = errors.Join(err, failed); !aside {
			_, _, failed = readJournal(ctx, server, id)
		}
		if aside || isSkipped(failed) {
			skipped = append(skipped, id)
		}
	}
	return skipped, err
}

func isSetAside(ctx context.Context, server querier, id string) (bool, error) {
	aside, err := queryStrings(ctx, server, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? "+
		"AND table_name = ?", journalPrefix+id, asideName)
	return len(aside) > 0, err
}

// dropSkipped removes the skipped journals of earlier loads into a database that was replaced or
// dropped, and those that cannot be read.
func dropSkipped(ctx context.Context, server *sql.DB, database string) error {
	ids, err := skippedJournals(ctx, server)
	if err != nil {
		return err
	}
	for _, id := range ids {
		// The journal's author does not matter here, because the name of the database in the
		// journal only decides whether the journal is removed.
		if text, _, err := journalText(ctx, server, id); err == nil {
			if j, err := parseJournal(text); err == nil && j.Place != database {
				continue
			}
		}
		if err := dropRemains(ctx, server, id); err != nil {
			return err
		}
	}
	return nil
}

// dropRemains removes everything that is left of a load whose journal is skipped.
func dropRemains(ctx context.Context, server *sql.DB, id string) error {
	if _, err := server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(scratchPrefix+id)); err != nil {
		return err
	}
	return dropJournal(ctx, server, id, false)
}

var _ engine.Cleaner = Engine{}

// Leftovers implements [engine.Cleaner]. It lists the databases of loads that no longer run, and
// their accounts that own no programs.
func (e Engine) Leftovers(ctx context.Context, raw string) (left []string, err error) {
	err = e.withServer(raw, func(_ database, db *sql.DB) (err error) {
		left, err = leftoversOn(ctx, db)
		return err
	})
	return left, err
}

func leftoversOn(ctx context.Context, server querier) ([]string, error) {
	left, err := queryStrings(ctx, server, "SELECT schema_name FROM information_schema.schemata WHERE schema_name "+
		"REGEXP ? AND is_free_lock(right(schema_name, 16)) ORDER BY schema_name", loadDatabasePattern)
	if err != nil {
		return nil, err
	}
	accounts, err := unusedAccounts(ctx, server)
	return append(left, accounts...), err
}

// RemoveLeftovers implements [engine.Cleaner]. It tries once more to complete or revert the swap of
// a journal that was set aside, and then removes the journal whether or not that succeeded. It
// removes journals of other accounts without using them, unless a journal has the only copy of a
// database's triggers.
func (e Engine) RemoveLeftovers(ctx context.Context, raw string) (removed []string, err error) {
	err = e.withServer(raw, func(d database, db *sql.DB) error {
		before, err := leftoversOn(ctx, db)
		if err != nil {
			return err
		}
		err = finishLoads(ctx, db, d)
		after, failed := leftoversOn(ctx, db)
		if isDenied(err) && len(after) == 0 { // accounts that own programs need not be locked again
			err = nil
		}
		removed = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
		return errors.Join(err, failed)
	})
	return removed, err
}

func finishLoads(ctx context.Context, server *sql.DB, dest database) error {
	c, err := server.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := sweep(ctx, server, c, dest, engine.Options{}); err != nil { // may set more journals aside
		return err
	}
	skipped, err := skippedJournals(ctx, server)
	if err != nil {
		return err
	}
	var kept error
	for _, id := range skipped {
		if isSkipped(finish(ctx, server, dest, id)) { // it belongs to another account
			if held := requireNoTriggers(ctx, server, id); held != nil {
				kept = errors.Join(kept, held)
				continue
			}
		}
		if err := dropRemains(ctx, server, id); err != nil {
			return errors.Join(kept, err)
		}
	}
	return errors.Join(kept, sweepAccounts(ctx, server, c))
}

// requireNoTriggers returns an error if another account's journal has triggers of a database whose
// exchange did not happen. The triggers were dropped, so the journal has their only copy.
func requireNoTriggers(ctx context.Context, server *sql.DB, id string) error {
	var j journal
	text, swapped, unread := journalText(ctx, server, id)
	if unread == nil && !swapped {
		j, _ = parseJournal(text) // a journal that cannot be parsed has no triggers to restore
	}
	if len(j.Triggers) == 0 {
		return nil
	}
	var triggers []string
	for _, t := range j.Triggers {
		triggers = append(triggers, t.Name)
	}
	return &snap.Error{
		Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the journal %s of an interrupted load was kept: another user of the server wrote it, and "+
			"it has the only copy of triggers of the database %.80q: %.200s", journalPrefix+id, j.Place,
			strings.Join(triggers, ", ")),
		Hint: "that user's next load restores them; to give them up, drop the database " + journalPrefix + id,
	}
}
