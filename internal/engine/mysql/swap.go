package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
)

// A load creates three databases next to the destination: one for the new tables, one for the old
// tables after the swap, and one for the journal of the swap. Their names consist of one of these
// prefixes and the load's id.
const (
	scratchPrefix       = "snapcli_scratch_"
	replacedPrefix      = "snapcli_replaced_"
	journalPrefix       = "snapcli_journal_"
	loadDatabasePattern = "^snapcli_(scratch|replaced|journal)_[0-9a-f]{16}$"
)

// Swap implements [engine.Scratch]. All tables are exchanged in one atomic RENAME TABLE statement.
// Triggers cannot move with their tables, so the triggers of the old tables are dropped immediately
// before the exchange, and created again if it fails.
func (s *scratch) Swap(ctx context.Context, terminate bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.emptied {
		if err := s.finishInPlace(ctx); err != nil {
			return s.failed(err)
		}
		return s.dest.failure(s.grant(context.WithoutCancel(ctx)))
	}
	err := s.dest.failure(s.swap(ctx, terminate))
	var e *snap.Error
	if errors.As(err, &e) && e.Code == snap.CodeDatabase && number(err) == 0 { // the server is unreachable
		e.Hint = "load again when the server is running: the load first finishes or undoes the exchange of the tables"
	}
	if err == nil {
		err = s.dest.failure(s.grant(context.WithoutCancel(ctx)))
	}
	return err
}

func (s *scratch) swap(ctx context.Context, terminate bool) error {
	existing, err := queryStrings(ctx, s.lock, "SELECT schema_name FROM information_schema.schemata WHERE "+
		"schema_name = ?", s.dest.name)
	// CREATE DATABASE IF NOT EXISTS would wait for sessions that read from an existing database.
	if err == nil && len(existing) == 0 {
		_, err = s.lock.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(s.dest.name)+s.charsetClause())
	}
	if err != nil {
		return err
	}
	if err := s.requireUnused(ctx, terminate); err != nil {
		return err
	}
	err = s.exchange(ctx)
	// recoverSwap is also the last step of a swap that succeeded. The new tables may be in place,
	// so an interruption must not leave the swap half done.
	ctx = context.WithoutCancel(ctx)
	if recoverErr := recoverSwap(ctx, s.server, s.dest, s.id); recoverErr != nil {
		return errors.Join(err, setAside(ctx, s.server, s.dest, s.id, recoverErr))
	}
	if err != nil {
		return err
	}
	if err := dropSkipped(ctx, s.server, s.dest.name); err != nil {
		return err
	}
	if err := sweepAccounts(ctx, s.server, s.lock); err != nil { // the next load tries again
		s.o.Notify("accounts that owned the replaced programs are still on the server: " + err.Error())
	}
	return nil
}

// exchange exchanges the tables or leaves them unchanged. Its session holds the lock of the
// exchange. The server releases the lock when the session's last statement has ended, even if the
// client no longer waits for its result.
func (s *scratch) exchange(ctx context.Context) error {
	db, err := s.dest.open(s.dest.name)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := session(ctx, db, "SET SESSION lock_wait_timeout = 10, foreign_key_checks = 0")
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "SELECT get_lock(?, 0)", exchangeLock(s.id)); err != nil {
		return err
	}
	// If the connection is lost, the server may have restarted and lost rows that it had accepted.
	if err := s.lock.PingContext(ctx); err != nil {
		return err
	}
	if err := s.requireAgreed(ctx, c); err != nil {
		return err
	}
	if err := s.begin(ctx, c); err != nil {
		return err
	}
	// The statement waits for locks no longer than lock_wait_timeout, so it is not canceled. The
	// caller always gets its result.
	return s.rename(context.WithoutCancel(ctx), c)
}

// exchangeLock returns the name of the lock that the load with this id holds during its exchange.
func exchangeLock(id string) string { return id + "_exchange" }

// waitForExchange waits until the server no longer runs the exchange of the load with this id.
// After 30 seconds, it returns a conflict.
func waitForExchange(ctx context.Context, server *sql.DB, id string) error {
	var free sql.NullInt64
	err := server.QueryRowContext(ctx, "SELECT CASE WHEN get_lock(?, 30) = 1 THEN release_lock(?) END",
		exchangeLock(id), exchangeLock(id)).Scan(&free)
	if err == nil && free.Int64 != 1 {
		err = &snap.Error{Code: snap.CodeConflict,
			Detail: "the server is still exchanging the tables of an earlier load",
			Hint:   "load again in a minute: the load first finishes or undoes the exchange"}
	}
	return err
}

// begin writes the journal and drops the triggers of the tables that the exchange moves.
func (s *scratch) begin(ctx context.Context, c *sql.Conn) error {
	old, err := structureOf(ctx, c, s.dest.name)
	if err != nil {
		return err
	}
	j := journal{Place: s.dest.name, New: s.structure, Account: s.account, Keep: s.o.OnlyIfEmpty}
	j.New.Tables, j.New.Sequences, j.New.Defaults = nil, nil, sequenceDefaults(s.structure.Tables)
	if j.Triggers, err = ownedTriggers(ctx, c, s.dest.name, old.Triggers); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "CREATE DATABASE "+quote(replacedPrefix+s.id)); err != nil {
		return err
	}
	if err := j.write(ctx, c, s.id); err != nil {
		return err
	}
	for _, d := range s.exchangedDatabases() {
		triggers, err := triggersOf(ctx, c, d)
		if err != nil {
			return err
		}
		for name := range triggers {
			if _, err := c.ExecContext(ctx, "DROP TRIGGER "+quote(d)+"."+quote(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNotReferenced returns an error if a foreign key in another database references the old
// tables. When the tables move, the key would still reference them, and they could not be dropped.
func (s *scratch) checkNotReferenced(ctx context.Context) error {
	tables, err := queryStrings(ctx, s.server, "SELECT concat(constraint_schema, '.', table_name) FROM "+
		"information_schema.referential_constraints WHERE unique_constraint_schema = ? AND constraint_schema <> ?",
		s.dest.name, s.dest.name)
	if err != nil || len(tables) == 0 {
		return err
	}
	return &snap.Error{
		Code: snap.CodeConflict,
		Detail: fmt.Sprintf("a foreign key of the table %s refers to the database %q, so the tables of that "+
			"database cannot be replaced", tables[0], s.dest.name),
		Hint: "drop that foreign key first, and recreate it after the load; nothing was changed",
	}
}

// requireUnused returns an error if the database is used in a way that prevents the load. If
// terminate is set, it ends the connections to the database instead of reporting them.
func (s *scratch) requireUnused(ctx context.Context, terminate bool) error {
	if err := s.requireAgreed(ctx, s.server); err != nil { // before connections are ended for nothing
		return err
	}
	if err := s.checkNotReferenced(ctx); err != nil {
		return err
	}
	users, err := connectedTo(ctx, s.server, s.dest.name)
	if err != nil || len(users) == 0 {
		return err
	}
	if !terminate {
		return engine.InUse(snap.MySQL, strconv.Quote(s.dest.name), users)
	}
	return endConnections(ctx, s.server, s.dest.name)
}

// requireAgreed returns an error if the database has content that nobody agreed to replace. Others
// can still add content after this check. So with OnlyIfEmpty, a load moves and drops nothing that
// it did not create, and fails if a table in the database has the name of a new table.
func (s *scratch) requireAgreed(ctx context.Context, q querier) error {
	if !s.o.OnlyIfEmpty {
		return nil
	}
	empty, err := isEmpty(ctx, q, s.dest.name)
	if err == nil && !empty {
		err = engine.Filled(strconv.Quote(s.dest.name))
	}
	return err
}

// exchangedDatabases returns the databases whose tables the exchange moves: the scratch database
// and, unless only an empty database may be replaced, the old one.
func (s *scratch) exchangedDatabases() []string {
	if s.o.OnlyIfEmpty {
		return []string{s.db.name}
	}
	return []string{s.dest.name, s.db.name}
}

// rename moves the old tables out and the new tables in, and renames the journal to "after", in one
// statement.
func (s *scratch) rename(ctx context.Context, c *sql.Conn) error {
	moves := []string{fmt.Sprintf("%[1]s.`before` TO %[1]s.`after`", quote(journalPrefix+s.id))}
	to := map[string]string{s.dest.name: replacedPrefix + s.id, s.db.name: s.dest.name}
	for _, from := range s.exchangedDatabases() {
		tables, err := queryStrings(ctx, c, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? "+
			"AND table_type IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED')", from)
		if err != nil {
			return err
		}
		for _, t := range tables {
			moves = append(moves, fmt.Sprintf("%s.%s TO %s.%s", quote(from), quote(t), quote(to[from]), quote(t)))
		}
	}
	if err := s.requireAgreed(ctx, c); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, "RENAME TABLE "+strings.Join(moves, ", "))
	if number(err) == erTableExists && s.o.OnlyIfEmpty {
		return engine.Filled(strconv.Quote(s.dest.name))
	}
	return err
}

// recoverSwap completes the swap of the load with this id if the tables have been exchanged, and
// reverts it if not. Then it removes what the swap created.
func recoverSwap(ctx context.Context, server *sql.DB, dest database, id string) error {
	if err := waitForExchange(ctx, server, id); err != nil {
		return err
	}
	seals, err := queryStrings(ctx, server, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? "+
		"AND table_name = ?", journalPrefix+id, sealName)
	if err != nil {
		return err
	}
	if len(seals) > 0 { // otherwise nothing has been changed yet
		if err := finish(ctx, server, dest, id); err != nil {
			return err
		}
	}
	return dropJournal(ctx, server, id, len(seals) > 0)
}

// finish completes or reverts an exchange as its journal says.
func finish(ctx context.Context, server *sql.DB, dest database, id string) error {
	j, swapped, err := readJournal(ctx, server, id)
	if err != nil {
		return err
	}
	c, err := session(ctx, server, "USE "+quote(j.Place))
	if err != nil {
		return err
	}
	defer endSession(c)
	have, err := triggersOf(ctx, c, j.Place)
	if err != nil {
		return err
	}
	if err := dropBrokenTriggers(ctx, c, j, scratchPrefix+id, have); err != nil {
		return err
	}
	if swapped {
		return replaceFromJournal(ctx, server, dest.named(j.Place), c, j)
	}
	for _, t := range j.Triggers {
		if have[t.Name] {
			continue
		}
		if err := restoreTrigger(ctx, server, dest.named(j.Place), c, t); err != nil {
			return err
		}
	}
	return nil
}

// replaceFromJournal replaces the programs of a database with those of a journal. If the journal
// names an account, that account creates the programs.
func replaceFromJournal(ctx context.Context, server *sql.DB, dest database, c *sql.Conn, j journal) error {
	owner := j.Account
	if !j.New.hasPrograms() && len(j.New.Defaults) == 0 {
		owner = account{}
	}
	m, done, err := owner.creator(ctx, server, dest, c)
	if err != nil {
		return err
	}
	defer done()
	err = replacePrograms(ctx, c, m, dest.name, j.New, j.Keep)
	return errors.Join(err, j.Account.dropUnused(ctx, server))
}

// triggersOf returns the names of a database's triggers.
func triggersOf(ctx context.Context, c querier, name string) (map[string]bool, error) {
	names, err := namesOf(ctx, c, name, "TRIGGER")
	have := map[string]bool{}
	for _, t := range names {
		have[t] = true
	}
	return have, err
}

// dropBrokenTriggers removes the remains that MariaDB leaves if it crashes while it creates or
// drops a trigger. The trigger is then not listed, but its name is in use, and the server cannot
// drop the database. MySQL is not affected.
func dropBrokenTriggers(ctx context.Context, c *sql.Conn, j journal, scratch string, have map[string]bool) error {
	var mariadb bool
	if err := c.QueryRowContext(ctx, "SELECT version() LIKE '%MariaDB%'").Scan(&mariadb); err != nil || !mariadb {
		return err
	}
	listed := map[string]bool{} // in lower case, because servers treat case differently
	for name := range have {
		listed[strings.ToLower(name)] = true
	}
	for _, t := range slices.Concat(j.Triggers, j.New.Triggers) {
		for _, in := range []string{scratch, j.Place} {
			if in == j.Place && listed[strings.ToLower(t.Name)] {
				continue
			}
			if _, err := c.ExecContext(ctx, "DROP TRIGGER IF EXISTS "+quote(in)+"."+quote(t.Name)); err != nil &&
				number(err) != erNoDatabase {
				return err
			}
		}
	}
	return nil
}

// sweep completes or reverts the swaps of killed loads and removes their remains.
func sweep(ctx context.Context, server *sql.DB, c *sql.Conn, dest database, o engine.Options) error {
	left, err := queryStrings(ctx, server, "SELECT schema_name FROM information_schema.schemata WHERE schema_name "+
		"REGEXP ?", loadDatabasePattern)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range left {
		id := name[strings.LastIndexByte(name, '_')+1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		patience := 0
		if slices.Contains(left, journalPrefix+id) { // a load that was just killed may still hold its lock
			patience = 10
		}
		if err := sweepOne(ctx, server, c, dest, id, patience); err != nil {
			if !isSkipped(err) && !isDenied(err) {
				return err
			}
			o.Notify(dest.failure(err).Error())
		}
	}
	if err := sweepAccounts(ctx, server, c); !isDenied(err) {
		return err
	}
	return nil
}

// sweepOne takes the lock of the load with this id and cleans up after that load. If others still
// hold the lock after patience seconds, a load or another cleanup is running, and sweepOne does
// nothing.
func sweepOne(ctx context.Context, server *sql.DB, c *sql.Conn, dest database, id string, patience int) error {
	var free sql.NullInt64
	if err := c.QueryRowContext(ctx, "SELECT get_lock(?, ?)", id, patience).Scan(&free); err != nil {
		return err
	}
	if free.Int64 != 1 {
		return nil
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), "SELECT release_lock(?)", id) }()
	aside, err := isSetAside(ctx, server, id)
	if err != nil {
		return err
	}
	if !aside {
		if err := recoverSwap(ctx, server, dest, id); err != nil {
			return setAside(ctx, server, dest, id, err)
		}
	}
	_, err = server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(scratchPrefix+id))
	return err
}
