package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

var _ engine.Cloner = Engine{}

// MySQL and MariaDB cannot copy databases. A copy is therefore made like a load: in a scratch
// database, whose tables then replace those of the clone. The rows come from the template by INSERT
// ... SELECT and never leave the server.

// Named implements [engine.Cloner].
func (e Engine) Named(raw, name string) (string, error) {
	d, err := e.parse(raw)
	return d.named(name).url(), err
}

// CheckCanClone implements [engine.Cloner].
func (e Engine) CheckCanClone(ctx context.Context, raw string) error {
	needs, err := e.Needs(ctx, raw, engine.ForLoad)
	if err != nil {
		return err
	}
	if len(needs) > 0 {
		last := needs[len(needs)-1]
		return &snap.Error{Code: snap.CodeForbidden, Detail: last.What,
			Hint: "have an administrator run: " + last.Remedy}
	}
	return e.withServer(raw, func(d database, db *sql.DB) error {
		var readOnly bool
		if err := db.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly); err != nil || !readOnly {
			return err
		}
		return &snap.Error{Code: snap.CodeDatabase,
			Detail: fmt.Sprintf("the MySQL server %s is read-only, as replicas are", d.where()),
			Hint:   "use the primary server as the target's destination"}
	})
}

// withServer calls f with a pool of connections to the server of a database.
func (e Engine) withServer(raw string, f func(database, *sql.DB) error) error {
	d, err := e.parse(raw)
	if err != nil {
		return err
	}
	db, err := d.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	return d.failure(f(d, db))
}

// Seal implements [engine.Cloner]. In MySQL, it makes the database read-only if the user is allowed
// to. MariaDB has no such setting. If the database is not read-only, the mark reveals most later
// writes, but not writes that are followed by a restart of the server.
func (e Engine) Seal(ctx context.Context, raw string) (mark string, err error) {
	err = e.withServer(raw, func(d database, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "ALTER DATABASE "+quote(d.name)+" READ ONLY = 1")
		if n := number(err); err != nil && n != erSyntax && n != erNoRight {
			return err
		}
		// The server records the times of writes in whole seconds. Wait, so that the next write
		// gets a later time than the last write.
		if _, err := db.ExecContext(ctx, "DO sleep(1.1)"); err != nil {
			return err
		}
		mark, err = markOf(ctx, db, d.name)
		return err
	})
	return mark, err
}

// erSyntax is the error for a statement that the server cannot parse.
const erSyntax = 1064

// markOf returns a string that changes when a table of the database is created, altered or written
// to, or when the database is dropped.
func markOf(ctx context.Context, db querier, name string) (mark string, err error) {
	err = db.QueryRowContext(ctx, `SELECT if(EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = ?),
		concat(count(*), ' ', coalesce(sum(unix_timestamp(create_time)), 0)), '')
		FROM information_schema.tables WHERE table_schema = ? AND table_type <> 'VIEW'`, name, name).Scan(&mark)
	if err != nil {
		return "", err
	}
	var written sql.NullFloat64
	err = db.QueryRowContext(ctx, "SELECT max(unix_timestamp(update_time)) FROM information_schema.tables WHERE "+
		"table_schema = ?", name).Scan(&written)
	return fmt.Sprintf("%s|%.0f", mark, written.Float64), err
}

// unchanged reports whether a mark still matches its database. After a restart, the server does not
// know when tables were written to, so only the other part of the mark is compared.
func unchanged(before, now string) bool {
	tables, written, _ := strings.Cut(before, "|")
	tablesNow, writtenNow, _ := strings.Cut(now, "|")
	return tables == tablesNow && (writtenNow == written || writtenNow == "0")
}

// Copy implements [engine.Cloner].
func (e Engine) Copy(ctx context.Context, from, to string, o engine.CopyOptions) error {
	source, err := e.parse(from)
	if err != nil {
		return err
	}
	return e.withServer(to, func(d database, db *sql.DB) error {
		if !strings.HasPrefix(d.name, engine.ClonePrefix) {
			return fmt.Errorf("%q is not a clone", d.name)
		}
		if o.Mark != "" {
			if now, err := markOf(ctx, db, source.name); err != nil {
				return err
			} else if !unchanged(o.Mark, now) {
				return engine.ErrNotSealed
			}
		}
		if err := requireRoom(ctx, db, d, source.name); err != nil {
			return err
		}
		return copyDatabase(ctx, source, d, o)
	})
}

// requireRoom returns an error if the disk of a server on this machine cannot hold another copy of
// a database.
func requireRoom(ctx context.Context, db *sql.DB, on database, name string) error {
	if on.way.Through() != "" || on.socket == "" && !snap.IsLoopback(on.host) {
		return nil
	}
	found, err := databaseState(ctx, db, name)
	if err != nil {
		return err
	}
	var folder string
	if err := db.QueryRowContext(ctx, "SELECT @@global.datadir").Scan(&folder); err != nil {
		return err
	}
	if free, known := disk.Free(folder); known && found.Size >= free {
		return engine.NoRoom(found.Size, "on the MySQL server "+on.where(), free)
	}
	return nil
}

// copyDatabase replaces the content of a database with a copy of another database on the same
// server.
func copyDatabase(ctx context.Context, source, to database, o engine.CopyOptions) error {
	db, err := to.open("")
	if err != nil {
		return err
	}
	id := randomID()
	s := &scratch{dest: to, db: to.named(scratchPrefix + id), id: id, server: db,
		o: engine.Options{Jobs: max(1, o.Jobs)}, from: source.name}
	if err := s.fillFrom(ctx, source); err != nil {
		return errors.Join(err, s.drop(context.WithoutCancel(ctx)))
	}
	return errors.Join(s.Swap(ctx, true), s.drop(context.WithoutCancel(ctx)))
}

// fillFrom creates the scratch database as a copy of a database on the same server.
func (s *scratch) fillFrom(ctx context.Context, source database) error {
	var err error
	if s.lock, err = s.server.Conn(ctx); err != nil {
		return err
	}
	if _, err := s.lock.ExecContext(ctx, "SELECT get_lock(?, 0)", s.id); err != nil {
		return err
	}
	if err := s.server.QueryRowContext(ctx, "SELECT version()").Scan(&s.version); err != nil {
		return err
	}
	want, err := s.readSource(ctx, source)
	if err != nil {
		return err
	}
	_, err = s.lock.ExecContext(ctx, "CREATE DATABASE "+quote(s.db.name)+s.charsetClause())
	s.created = err == nil || number(err) == 0 // if the server has not answered, it may still create the database
	if err != nil {
		return err
	}
	if err := s.confine(ctx); err != nil {
		return err
	}
	return s.restore(ctx, nil, want)
}

// readSource reads the definitions of the source. If the source's programs belong to the account of
// a load, the copy's programs must belong to such an account too.
func (s *scratch) readSource(ctx context.Context, source database) (tables []engine.Table, err error) {
	db, err := source.open("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	c, err := session(ctx, db, "USE "+quote(source.name))
	if err != nil {
		return nil, err
	}
	defer endSession(c)
	if s.structure, err = structureOf(ctx, c, source.name); err != nil {
		return nil, err
	}
	info := engine.Info{}
	if err := s.structure.keepHistory(ctx, c, source.name, &info, ""); err != nil {
		return nil, err
	}
	var charset, collation string
	err = c.QueryRowContext(ctx, "SELECT default_character_set_name, default_collation_name FROM "+
		"information_schema.schemata WHERE schema_name = ?", source.name).Scan(&charset, &collation)
	if err != nil {
		return nil, err
	}
	s.properties = map[string]string{"charset": charset, "collation": collation}
	var confined bool
	err = c.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM information_schema.views
		WHERE table_schema = ? AND definer REGEXP ?
		UNION ALL SELECT 1 FROM information_schema.triggers WHERE trigger_schema = ? AND definer REGEXP ?
		UNION ALL SELECT 1 FROM information_schema.routines WHERE routine_schema = ? AND definer REGEXP ?
		UNION ALL SELECT 1 FROM information_schema.events WHERE event_schema = ? AND definer REGEXP ?)`,
		source.name, ownerPattern, source.name, ownerPattern, source.name, ownerPattern, source.name,
		ownerPattern).Scan(&confined)
	if confined {
		s.trust, s.needsAccount = checked, true
	}
	if err != nil {
		return nil, err
	}
	return listTables(ctx, c, source.name)
}

// ownerPattern matches a program's owner if it is the account of a load.
const ownerPattern = "^snapcli_[0-9a-f]{16}@"

// copyRows fills the tables from those of the source and then creates their indexes, several tables
// at a time and the largest first. It returns the number of rows inserted into each table.
func (s *scratch) copyRows(ctx context.Context, inside *sql.DB, indexes map[string]string) (map[string]int64, error) {
	db, err := s.db.open(s.db.name)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tables, err := listTables(ctx, db, s.from)
	if err != nil {
		return nil, err
	}
	bySize, err := queryStrings(ctx, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? "+
		"ORDER BY data_length DESC", s.from)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(tables, func(a, b engine.Table) int {
		return slices.Index(bySize, a.Name) - slices.Index(bySize, b.Name)
	})
	inserted := make([]int64, len(tables))
	g, copying := errgroup.WithContext(ctx)
	g.SetLimit(s.o.Jobs)
	for i, t := range tables {
		g.Go(func() (err error) {
			inserted[i], err = s.copyTable(copying, db, t)
			if statement, ok := indexes[t.Name]; ok && err == nil {
				err = s.alter(copying, inside, statement)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows := map[string]int64{}
	for i, t := range tables {
		rows[t.Name] = inserted[i]
	}
	return rows, nil
}

// The source is read without locks. Unique checks are on because MariaDB would otherwise sort the
// rows before it inserts them, although they are in the order of the primary key.
const (
	copiesInOrder   = "SET SESSION unique_checks = 1"
	readsUnlocked   = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	readsRepeatably = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
)

// erNeedsRepeatable is the error of a server whose binary log contains statements instead of rows.
const erNeedsRepeatable = 1665

// copyTable fills one table and returns the number of rows that it inserted.
func (s *scratch) copyTable(ctx context.Context, db *sql.DB, t engine.Table) (int64, error) {
	c, err := s.loadSession(ctx, db, copiesInOrder, readsUnlocked)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	statement := s.copyStatement(t)
	if statement == "" {
		return 0, nil
	}
	result, err := execRetrying(ctx, c, statement)
	if number(err) == erNeedsRepeatable {
		if _, err = c.ExecContext(ctx, readsRepeatably); err == nil {
			result, err = execRetrying(ctx, c, statement)
		}
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// copyStatement returns the statement that fills a table, or "" for a table whose columns are all
// generated.
func (s *scratch) copyStatement(t engine.Table) string {
	var columns []string
	for _, column := range t.Columns {
		if !column.Generated {
			columns = append(columns, quote(column.Name))
		}
	}
	versions := ""
	if period := s.structure.periodOf(t.Name); period != nil {
		versions = " FOR SYSTEM_TIME ALL"
		for _, column := range period {
			columns = append(columns, quote(column))
		}
	}
	list := strings.Join(columns, ", ")
	if list == "" {
		return ""
	}
	return fmt.Sprintf("INSERT INTO %[1]s.%[2]s (%[3]s) SELECT %[3]s FROM %[4]s.%[2]s%[5]s",
		quote(s.db.name), quote(t.Name), list, quote(s.from), versions)
}

// Reset implements [engine.Cloner]. It ends the connections to the clone.
func (e Engine) Reset(ctx context.Context, from, to string, o engine.CopyOptions) error {
	return e.Copy(ctx, from, to, o)
}

// Recover implements [engine.Cloner]. It completes or reverts an interrupted exchange of tables.
func (e Engine) Recover(ctx context.Context, raw string) error {
	return e.withServer(raw, func(d database, db *sql.DB) error {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		return sweep(ctx, db, c, d, engine.Options{})
	})
}

// Drop implements [engine.Cloner].
func (e Engine) Drop(ctx context.Context, raw string) error {
	d, err := e.parse(raw)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(d.name, engine.ClonePrefix) {
		return fmt.Errorf("%q is not a clone", d.name)
	}
	// Clean up after a killed copy first. Otherwise, a later load could complete it and put its
	// tables in place.
	if err := e.Recover(ctx, raw); err != nil {
		return err
	}
	return e.withServer(raw, func(d database, db *sql.DB) error {
		if err := endConnections(ctx, db, d.name); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "ALTER DATABASE "+quote(d.name)+" READ ONLY = 0")
		if n := number(err); err != nil &&
			!slices.Contains([]uint16{erSyntax, erNoDatabase, erNoSchema, erNoRight}, n) {
			return err
		}
		if _, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(d.name)); err != nil {
			return err
		}
		if err := dropSkipped(ctx, db, d.name); err != nil {
			return err
		}
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := sweepAccounts(ctx, db, c); !isDenied(err) {
			return err
		}
		return nil
	})
}

// States implements [engine.Cloner].
func (e Engine) States(ctx context.Context, urls []string) (all []engine.DatabaseState, err error) {
	if len(urls) == 0 {
		return nil, nil
	}
	all = make([]engine.DatabaseState, len(urls))
	err = e.withServer(urls[0], func(_ database, db *sql.DB) error {
		for i, raw := range urls {
			d, err := e.parse(raw)
			if err != nil {
				return err
			}
			if all[i], err = databaseState(ctx, db, d.name); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func databaseState(ctx context.Context, db *sql.DB, name string) (l engine.DatabaseState, err error) {
	err = db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?),
		(SELECT coalesce(CAST(sum(data_length + index_length) AS SIGNED), 0)
			FROM information_schema.tables WHERE table_schema = ?)`,
		name, name).Scan(&l.Exists, &l.Size)
	if err == nil {
		l.Connections, err = connectedTo(ctx, db, name)
	}
	return l, err
}
