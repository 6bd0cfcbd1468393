package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

// A journal that the server refuses to complete is set aside: its load stays in its current state,
// and later loads skip the journal. A load that replaces the same database removes it, because
// nothing is left to complete.

// asideError says that a journal was set aside.
type asideError struct{ said *snap.Error }

func (e asideError) Error() string { return e.said.Error() }
func (e asideError) Unwrap() error { return e.said }

func isAside(err error) bool {
	var e asideError
	return errors.As(err, &e)
}

// setAside sets aside the journal of an id that could not be completed, and returns an error that
// says so. If the server is unreachable or busy, it does not: the next load tries again.
func setAside(ctx context.Context, server *sql.DB, place database, id string, why error) error {
	n := number(why)
	var e *snap.Error
	if ctx.Err() != nil || isConnectionLost(why) || n == erLockTimeout || n == erDeadlock || errors.As(why, &e) &&
		e.Code == snap.CodeConflict {
		return why
	}
	name := quote(journalPrefix + id)
	if _, err := server.ExecContext(ctx, "RENAME TABLE "+name+".whole TO "+name+".aside"); err != nil {
		return errors.Join(why, err)
	}
	said := place.failure(why).Error()
	return asideError{said: &snap.Error{
		Code: snap.CodeDatabase, Cause: why,
		Detail: fmt.Sprintf("a load could not be finished: %s; its journal %s was set aside", said, journalPrefix+id),
		Hint:   "load again, which replaces what it left, or run: snapcli doctor --fix",
	}}
}

// journalsAside returns the ids of the journals that were set aside.
func journalsAside(ctx context.Context, server querier) ([]string, error) {
	all, err := names(ctx, server, "SELECT table_schema FROM information_schema.tables WHERE table_name = 'aside' "+
		"AND table_schema REGEXP ?", ofLoads)
	for i, name := range all {
		all[i] = strings.TrimPrefix(name, journalPrefix)
	}
	return all, err
}

// sideOf returns the side of its exchange that a journal is on.
func sideOf(ctx context.Context, server querier, id string) (string, error) {
	side, err := names(ctx, server, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND "+
		"table_name IN ('before', 'after')", journalPrefix+id)
	if err == nil && len(side) == 0 {
		err = errors.New("a journal without its text")
	}
	if err != nil {
		return "", err
	}
	return side[0], nil
}

// dropAside removes the set-aside journals of loads into a database that has been replaced since.
func dropAside(ctx context.Context, server *sql.DB, database string) error {
	ids, err := journalsAside(ctx, server)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if side, err := sideOf(ctx, server, id); err == nil {
			if j, err := journalOf(ctx, server, id, side); err == nil && j.Place != database {
				continue
			}
		}
		if err := dropJournal(ctx, server, id, false); err != nil {
			return err
		}
	}
	return nil
}

var _ engine.Mender = Engine{}

// Leftovers implements [engine.Mender]. It lists the databases and accounts of loads that no longer
// run.
func (Engine) Leftovers(ctx context.Context, raw string) ([]string, error) {
	d, err := parse(raw)
	if err != nil {
		return nil, err
	}
	db, err := d.open("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	left, err := leftOn(ctx, db)
	return left, d.failure(err)
}

func leftOn(ctx context.Context, server querier) ([]string, error) {
	left, err := names(ctx, server, "SELECT schema_name FROM information_schema.schemata WHERE schema_name REGEXP ? "+
		"AND is_free_lock(right(schema_name, 16)) ORDER BY schema_name", ofLoads)
	if err != nil {
		return nil, err
	}
	accounts, err := unusedAccounts(ctx, server)
	return append(left, accounts...), err
}

// Mend implements [engine.Mender]. It tries a set-aside journal once more, and then removes it
// whether or not that succeeded.
func (Engine) Mend(ctx context.Context, raw string) ([]string, error) {
	d, err := parse(raw)
	if err != nil {
		return nil, err
	}
	db, err := d.open("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	before, err := leftOn(ctx, db)
	if err != nil {
		return nil, d.failure(err)
	}
	err = mend(ctx, db, d)
	after, failed := leftOn(ctx, db)
	removed := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
	return removed, d.failure(errors.Join(err, failed))
}

func mend(ctx context.Context, server *sql.DB, place database) error {
	c, err := server.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := sweep(ctx, server, c, place, engine.Options{}); err != nil { // sets more journals aside
		return err
	}
	aside, err := journalsAside(ctx, server)
	if err != nil {
		return err
	}
	for _, id := range aside {
		if side, err := sideOf(ctx, server, id); err == nil {
			_ = finish(ctx, server, place, id, side == "after") // it failed earlier
		}
		if err := dropJournal(ctx, server, id, false); err != nil {
			return err
		}
	}
	return sweepAccounts(ctx, server, c)
}
