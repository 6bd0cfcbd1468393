package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"snap"
)

// createObject runs the statement of a definition. It returns an error if the statement does not
// create an object of this kind. The connection must not allow several statements at a time.
func createObject(ctx context.Context, c *sql.Conn, kind string, d definition) error {
	h, err := readHeader(d.SQL, modeOf(d.Mode))
	if err != nil || h.kind != kind {
		return badDump(fmt.Errorf("%.60q does not create the %s %s", d.SQL, kind, d.Name))
	}
	run := func() error {
		if _, err := c.ExecContext(ctx, d.SQL); err != nil {
			return fmt.Errorf("create the %s %s: %w", strings.ToLower(kind), d.Name, err)
		}
		return nil
	}
	if kind == "TABLE" || kind == "SEQUENCE" {
		return run()
	}
	return withSettings(ctx, c, d, run)
}

// withSettings calls do with the session settings that a program was created with.
func withSettings(ctx context.Context, c *sql.Conn, d definition, do func() error) error {
	_, err := c.ExecContext(ctx, d.settingsSQL())
	if number(err) == erWrongValue { // a mode of MariaDB that does not matter here and that MySQL 8 rejects
		d.Mode = strings.ReplaceAll(d.Mode, "NO_AUTO_CREATE_USER", "")
		_, err = c.ExecContext(ctx, d.settingsSQL())
	}
	if number(err) == erNoCollation { // affects only literals: collations of columns were checked before
		d.Charset, d.Collation = "", ""
		_, err = c.ExecContext(ctx, d.settingsSQL())
	}
	if err != nil {
		return err
	}
	defer func() {
		_, _ = c.ExecContext(context.WithoutCancel(ctx),
			"SET NAMES utf8mb4, SESSION time_zone = '+00:00', sql_mode = '"+storedMode+"'")
	}()
	return do()
}

// erNotPrepared is MySQL's error for a valid statement that cannot be prepared.
const erNotPrepared = 1295

// checkEvents returns an error if the server cannot parse an event. Events would run in the scratch
// database, so they are created after the exchange, when it is too late to refuse them.
func checkEvents(ctx context.Context, c *sql.Conn, events []definition) error {
	for _, d := range events {
		err := withSettings(ctx, c, d, func() error {
			prepared, err := c.PrepareContext(ctx, d.SQL)
			if err == nil {
				err = prepared.Close()
			}
			return err
		})
		if err != nil && number(err) != erNotPrepared {
			return fmt.Errorf("create the event %s: %w", d.Name, err)
		}
	}
	return nil
}

// addEvents adds the events that s does not have, and sorts all events by name.
func (s *structure) addEvents(events []definition) {
	for _, d := range events {
		if !slices.ContainsFunc(s.Events, func(e definition) bool { return strings.EqualFold(e.Name, d.Name) }) {
			s.Events = append(s.Events, d)
		}
	}
	slices.SortFunc(s.Events, func(a, b definition) int { return strings.Compare(a.Name, b.Name) })
}

func createSequence(ctx context.Context, c *sql.Conn, d definition) error {
	if err := createObject(ctx, c, "SEQUENCE", d); err != nil {
		return err
	}
	round := cmp.Or(d.Round, "0")
	if !numberPattern.MatchString(d.Next) || !numberPattern.MatchString(round) {
		return badDump(fmt.Errorf("%.40q and %.40q are not values of the sequence %s", d.Next, round, d.Name))
	}
	_, err := c.ExecContext(ctx, "DO setval("+quote(d.Name)+", "+d.Next+", 0, "+round+")")
	return err
}

// createPrograms creates routines, triggers and views. It does not create events, because they
// would run.
func createPrograms(ctx context.Context, m creator, s structure) error {
	for _, d := range s.Routines {
		if err := m.create(ctx, d.Kind, d); err != nil {
			return err
		}
	}
	for _, d := range s.Triggers {
		if err := m.create(ctx, "TRIGGER", d); err != nil {
			return err
		}
	}
	return createViews(ctx, m, s.Views)
}

// createViews creates views in an order that satisfies their dependencies: it retries the views
// that failed as long as at least one of them succeeds.
func createViews(ctx context.Context, m creator, views []definition) error {
	for len(views) > 0 {
		var left []definition
		var err error
		for _, v := range views {
			if e := m.create(ctx, "VIEW", v); e != nil {
				left, err = append(left, v), e
			}
		}
		if len(left) == len(views) || ctx.Err() != nil {
			return err
		}
		views = left
	}
	return nil
}

// execForKind runs a statement that refers to an object of this kind. MariaDB before 11.4 supports
// packages only in its Oracle mode.
func execForKind(ctx context.Context, c *sql.Conn, kind, statement string) error {
	if strings.HasPrefix(kind, "PACKAGE") {
		if _, err := c.ExecContext(ctx, "SET SESSION sql_mode = 'ORACLE'"); err != nil {
			return err
		}
		defer func() {
			_, _ = c.ExecContext(context.WithoutCancel(ctx), "SET SESSION sql_mode = '"+storedMode+"'")
		}()
	}
	_, err := c.ExecContext(ctx, statement)
	return err
}

// programNames returns the names of all programs in lower case, as some servers store them.
func (s structure) programNames() map[string]bool {
	all := map[string]bool{}
	for _, d := range slices.Concat(s.Routines, s.Triggers, s.Views, s.Events) {
		all[strings.ToLower(d.Name)] = true
	}
	return all
}

// replacePrograms drops the programs of a database on connection c. If keep is set, it drops only
// programs whose names are in s. Then m sets the columns' defaults and creates the programs in s.
func replacePrograms(ctx context.Context, c *sql.Conn, m creator, name string, s structure, keep bool) error {
	own := s.programNames()
	for _, kind := range []string{"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT"} {
		names, err := namesOf(ctx, c, name, kind)
		if err != nil {
			return err
		}
		for _, n := range names {
			if keep && !own[strings.ToLower(n)] {
				continue
			}
			statement := "DROP " + kind + " IF EXISTS " + quote(name) + "." + quote(n)
			if err := execForKind(ctx, c, kind, statement); err != nil {
				return err
			}
		}
	}
	if len(s.Defaults) > 0 { // keep the history of tables unchanged
		if _, err := m.c.ExecContext(ctx, "SET SESSION system_versioning_alter_history = KEEP"); err != nil {
			return err
		}
	}
	for _, d := range s.Defaults {
		if _, err := m.c.ExecContext(ctx, "ALTER TABLE "+quote(d.Name)+" MODIFY "+d.SQL); err != nil {
			return err
		}
	}
	if err := createPrograms(ctx, m, s); err != nil {
		return err
	}
	if err := m.revokeRights(ctx, name, s.Routines); err != nil {
		return err
	}
	for _, d := range s.Events {
		if err := m.create(ctx, "EVENT", d); err != nil {
			return err
		}
	}
	return nil
}

func errHiddenBody(kind, name string) error {
	return &snap.Error{
		Code: snap.CodeDatabase,
		Detail: fmt.Sprintf("the MySQL user is not allowed to see how the %s %s is defined", strings.ToLower(kind),
			name),
		Hint: "grant the user SHOW_ROUTINE (MySQL) or SELECT on *.* (MariaDB), and TRIGGER and EVENT on the " +
			"database; a snapshot never leaves out an object that the user can see",
	}
}

func errNotParsed(kind, name string, cause error) error {
	return &snap.Error{
		Code: snap.CodeDatabase, Cause: cause,
		Detail: fmt.Sprintf("the statement that creates the %s %s cannot be parsed, so a load would fail",
			strings.ToLower(kind), name),
		Hint: "recreate it in the database with a plain CREATE statement, and build again",
	}
}
