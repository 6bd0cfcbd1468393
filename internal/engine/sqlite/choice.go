package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// omitter removes from a copy of the database the objects that are not chosen.
type omitter struct {
	tx      *sql.Tx
	all     []engine.Relation
	names   []string // of the relations, as stored
	fates   map[string]engine.Fate
	omitted schema.Schema // only Omitted is set
}

// leaveOut removes from the scratch file the objects that a choice leaves out.
func (s *scratch) leaveOut(ctx context.Context, c engine.Choice) (schema.Schema, error) {
	if err := c.RequireTablesOnly(); err != nil {
		return schema.Schema{}, err
	}
	db, err := s.openChoosing(ctx)
	if err != nil {
		return schema.Schema{}, err
	}
	defer db.Close()
	l := &omitter{fates: map[string]engine.Fate{}}
	err = withoutJournal(ctx, db, func(tx *sql.Tx) error {
		l.tx = tx
		return l.omit(ctx, c)
	})
	return l.omitted, err
}

func (l *omitter) omit(ctx context.Context, c engine.Choice) error {
	if err := l.choose(ctx, c); err != nil {
		return err
	}
	views, err := l.compilableViews(ctx)
	if err != nil {
		return err
	}
	triggers, err := dropTriggers(ctx, l.tx)
	if err != nil {
		return err
	}
	if err := l.remove(ctx); err != nil {
		return err
	}
	if err := l.removeKeys(ctx); err != nil {
		return err
	}
	compilable, err := l.compilableViews(ctx)
	if err != nil {
		return err
	}
	var dropped []string
	for _, view := range views {
		if l.fates[strings.ToLower(view)] != engine.LeftOut && !slices.Contains(compilable, view) {
			if err := execute(ctx, l.tx, "DROP VIEW "+quote(view)); err != nil {
				return err
			}
			l.fates[strings.ToLower(view)] = engine.LeftOut
			dropped = append(dropped, "view "+charset.Readable(view))
		}
	}
	broken, err := l.recreateTriggers(ctx, triggers)
	l.omitted.AddOmission(schema.OmittedPrograms, append(dropped, broken...))
	return err
}

// choose applies the choice to the tables and views.
func (l *omitter) choose(ctx context.Context, c engine.Choice) error {
	for _, kind := range []string{"table", "virtual", "view"} {
		names, err := texts(ctx, l.tx, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = ?
			AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`, kind)
		if err != nil {
			return err
		}
		for _, name := range names {
			l.names = append(l.names, name)
			l.all = append(l.all, engine.Relation{Name: charset.Readable(name), View: kind == "view"})
		}
	}
	fates, err := c.Fates(l.all, nil)
	if err != nil {
		return err
	}
	var leftOut, empty []string
	for i, r := range l.all {
		l.fates[strings.ToLower(l.names[i])] = fates[i]
		switch fates[i] {
		case engine.LeftOut:
			leftOut = append(leftOut, r.Name)
		case engine.NoRows:
			empty = append(empty, r.Name)
		}
	}
	l.omitted.AddOmission(schema.OmittedTables, leftOut)
	l.omitted.AddOmission(schema.OmittedRows, empty)
	return nil
}

// compilableViews returns the views that SQLite can compile.
func (l *omitter) compilableViews(ctx context.Context) (all []string, err error) {
	names, err := texts(ctx, l.tx, "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name")
	for _, name := range names {
		rows, err := l.tx.QueryContext(ctx, //nolint:rowserrcheck // only compiling it matters
			"EXPLAIN SELECT * FROM "+quote(name))
		if err == nil {
			all, err = append(all, name), rows.Close()
		}
		if err != nil && code(err) != codes.SQLITE_ERROR {
			return nil, err
		}
	}
	return all, err
}

// recreateTriggers creates the triggers again, except those that name an object that is left out,
// and returns these. With such a trigger, every change of its table would fail.
func (l *omitter) recreateTriggers(ctx context.Context, triggers []entry) (broken []string, err error) {
	for _, e := range triggers {
		found, err := relationExists(ctx, l.tx, e.table)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		list, err := tokens(e.sql)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(t token) bool {
			name, ok := t.name()
			return ok && t.kind != stringToken && l.fates[strings.ToLower(name)] == engine.LeftOut
		}) {
			broken = append(broken, "trigger "+charset.Readable(e.name))
			continue
		}
		if err := execute(ctx, l.tx, e.sql); err != nil {
			return nil, err
		}
	}
	return broken, nil
}

// remove drops the tables and views that are left out, and empties the tables whose rows are left
// out.
func (l *omitter) remove(ctx context.Context) error {
	for i, r := range l.all {
		var statement string
		switch fate := l.fates[strings.ToLower(l.names[i])]; {
		case fate == engine.LeftOut && r.View:
			statement = "DROP VIEW "
		case fate == engine.LeftOut:
			statement = "DROP TABLE "
		case fate == engine.NoRows:
			statement = "DELETE FROM "
		default:
			continue
		}
		if err := execute(ctx, l.tx, statement+quote(l.names[i])); err != nil {
			return err
		}
	}
	return nil
}

// removeKeys removes the foreign keys to tables that are left out, and those from a table with rows
// to a table without rows.
func (l *omitter) removeKeys(ctx context.Context) error {
	var removed []string
	changes := map[string]string{}
	for i, r := range l.all {
		fate := l.fates[strings.ToLower(l.names[i])]
		if r.View || fate == engine.LeftOut {
			continue
		}
		var text string
		if err := l.tx.QueryRowContext(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?",
			l.names[i]).Scan(&text); err != nil {
			return err
		}
		changed, to, err := withoutKeys(text, func(to string) bool {
			parent := l.fates[strings.ToLower(to)]
			return parent == engine.LeftOut || parent == engine.NoRows && fate == engine.Whole
		})
		if err != nil {
			return snap.Invalid("the definition of the table "+r.Name+" cannot be read", "include every table")
		}
		if len(to) > 0 {
			changes[l.names[i]] = changed
		}
		for _, other := range to {
			removed = append(removed, r.Name+" to "+charset.Readable(other))
		}
	}
	l.omitted.AddOmission(schema.OmittedForeignKeys, removed)
	return l.define(ctx, changes)
}

// define replaces the definitions of tables. changes has the new definitions by table name.
func (l *omitter) define(ctx context.Context, changes map[string]string) error {
	if len(changes) == 0 {
		return nil
	}
	if err := execute(ctx, l.tx, "PRAGMA writable_schema = ON"); err != nil {
		return err
	}
	for name, text := range changes {
		if _, err := l.tx.ExecContext(ctx, "UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?", text,
			name); err != nil {
			return err
		}
	}
	return execute(ctx, l.tx, "PRAGMA writable_schema = RESET") // SQLite then rereads the definitions
}

// withoutKeys removes from a CREATE TABLE statement the foreign keys to tables for which unwanted
// returns true, and returns these tables.
func withoutKeys(text string, unwanted func(table string) bool) (string, []string, error) {
	list, err := tokens(text)
	if err != nil || len(list) > 1 && list[1].is("VIRTUAL") {
		return text, nil, err
	}
	var to []string
	var spans [][2]int // of the foreign keys in the text
	for i := 0; i < len(list); i++ {
		if !list[i].is("REFERENCES") || i+1 == len(list) {
			continue
		}
		name, _ := list[i+1].name()
		p := &tableParser{reader: reader{list: list, at: i + 1}}
		if err := p.references(nil); err != nil {
			return "", nil, err
		}
		if _, err := p.deferrable(); err != nil {
			return "", nil, err
		}
		if unwanted(name) {
			to = append(to, name)
			spans = append(spans, [2]int{list[keyStart(list, i)].start, list[p.at-1].end})
		}
		i = p.at - 1
	}
	for _, s := range slices.Backward(spans) {
		text = text[:s[0]] + text[s[1]:]
	}
	return text, to, nil
}

// keyStart returns the index of the first token of the foreign key whose word REFERENCES is at i.
// If the key is a constraint of the table, the first token is the comma before it.
func keyStart(list []token, i int) int {
	start := i
	if i > 0 && list[i-1].is(")") {
		for open := i - 1; open > 1; open-- {
			if list[open].is("(") {
				if list[open-1].is("KEY") && list[open-2].is("FOREIGN") {
					start = open - 2
				}
				break
			}
		}
	}
	if start > 2 && list[start-2].is("CONSTRAINT") {
		start -= 2
	}
	if start > 0 && list[start-1].is(",") {
		start--
	}
	return start
}
