package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// structure holds the definitions in a dump, which are everything except the rows.
type structure struct {
	Sequences []definition `json:"sequences,omitempty"`
	Tables    []definition `json:"tables"`
	Routines  []definition `json:"routines,omitempty"`
	Triggers  []definition `json:"triggers,omitempty"`
	Views     []definition `json:"views,omitempty"`
	Events    []definition `json:"events,omitempty"`
	// in a journal: columns that take their default from a sequence
	Defaults []definition `json:"defaults,omitempty"`
}

// definition is one CREATE statement and the session settings that its object was created with.
type definition struct {
	Kind      string `json:"kind,omitempty"` // of a routine: PROCEDURE, FUNCTION, PACKAGE or PACKAGE BODY
	Name      string `json:"name"`
	On        string `json:"on,omitempty"`    // the table of a trigger
	Owner     string `json:"owner,omitempty"` // of a trigger in a journal: user@host
	SQL       string `json:"sql"`
	Mode      string `json:"mode,omitempty"` // sql_mode
	Charset   string `json:"charset,omitempty"`
	Collation string `json:"collation,omitempty"`
	TimeZone  string `json:"time_zone,omitempty"`
	Next      string `json:"next,omitempty"`  // a sequence's next value
	Round     string `json:"round,omitempty"` // how often a sequence restarted

	// of a table whose history is in the dump: the last two columns of its rows
	Period []string `json:"period,omitempty"`
}

// structureOf reads the definitions of a database. It sorts them, so that an unchanged database
// gives the same structure.
func structureOf(ctx context.Context, c *sql.Conn, name string) (structure, error) {
	var s structure
	for _, part := range []struct {
		into *[]definition
		kind string
	}{
		{&s.Sequences, "SEQUENCE"}, {&s.Tables, "TABLE"}, {&s.Routines, "FUNCTION"}, {&s.Routines, "PROCEDURE"},
		{&s.Routines, "PACKAGE"}, {&s.Routines, "PACKAGE BODY"}, {&s.Triggers, "TRIGGER"}, {&s.Views, "VIEW"},
		{&s.Events, "EVENT"},
	} {
		names, err := namesOf(ctx, c, name, part.kind)
		if err != nil {
			return s, err
		}
		for _, n := range names {
			d, err := show(ctx, c, name, part.kind, n)
			if err != nil {
				return s, err
			}
			*part.into = append(*part.into, d)
		}
	}
	for i, q := range s.Sequences {
		err := c.QueryRowContext(ctx, "SELECT next_not_cached_value, cycle_count FROM "+quote(name)+"."+
			quote(q.Name)).Scan(&s.Sequences[i].Next, &s.Sequences[i].Round)
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s structure) tableNames() map[string]bool {
	all := map[string]bool{}
	for _, t := range s.Tables {
		all[t.Name] = true
	}
	return all
}

// namesOf returns the sorted names of a database's objects of one kind. Triggers are sorted in the
// order in which they fire.
func namesOf(ctx context.Context, db querier, database, kind string) ([]string, error) {
	var query string
	switch kind {
	case "SEQUENCE":
		query = "table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'SEQUENCE' " +
			"ORDER BY table_name"
	case "TABLE":
		query = "table_name FROM information_schema.tables WHERE table_schema = ? AND " +
			"table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY table_name"
	case "TRIGGER":
		query = "trigger_name FROM information_schema.triggers WHERE trigger_schema = ? " +
			"ORDER BY event_object_table, action_timing, event_manipulation, action_order"
	case "VIEW":
		query = "table_name FROM information_schema.views WHERE table_schema = ? ORDER BY table_name"
	case "EVENT":
		query = "event_name FROM information_schema.events WHERE event_schema = ? ORDER BY event_name"
	default:
		query = "routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type = '" + kind +
			"' ORDER BY routine_name"
	}
	return queryStrings(ctx, db, "SELECT "+query, database)
}

// show requests the CREATE statement of an object. It finds the columns of the result by name,
// because they differ between kinds of objects and between servers.
func show(ctx context.Context, c *sql.Conn, database, kind, name string) (definition, error) {
	d := definition{Name: name}
	if kind != "TABLE" && kind != "VIEW" && kind != "SEQUENCE" && kind != "TRIGGER" && kind != "EVENT" {
		d.Kind = kind
	}
	rows, err := c.QueryContext(ctx, "SHOW CREATE "+kind+" "+quote(database)+"."+quote(name))
	if err != nil {
		return d, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return d, fmt.Errorf("show %s %s: %w", kind, name, rows.Err())
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return d, err
	}
	for i, column := range columns {
		v := values[i].String
		switch lower := strings.ToLower(column); {
		case lower == "sql_mode":
			d.Mode = v
		case lower == "character_set_client":
			d.Charset = v
		case lower == "collation_connection":
			d.Collation = v
		case lower == "time_zone":
			d.TimeZone = v
		case lower == "sql original statement", strings.HasPrefix(lower, "create "):
			d.SQL = v
		}
	}
	if d.SQL == "" {
		return d, errHiddenBody(kind, name)
	}
	h, err := readHeader(d.SQL, modeOf(d.Mode))
	if err != nil || h.kind != kind {
		return d, errNotParsed(kind, name, err)
	}
	d.SQL, d.On = h.withoutQualifiers(d.SQL), h.on.name
	// Remove the name of the database from defaults that refer to sequences.
	d.SQL = strings.ReplaceAll(d.SQL, "val("+quote(database)+".", "val(")
	return d, rows.Err()
}

// settingsSQL returns the statement that prepares the session for a definition. The definition's
// SQL is UTF-8. The character set of the client that created the object is used only if the SQL is
// ASCII, and therefore has the same bytes in both character sets.
func (d definition) settingsSQL() string {
	text := "SET sql_mode = '" + escapeText(d.Mode) + "'"
	if wordPattern.MatchString(d.Charset) && wordPattern.MatchString(d.Collation) {
		charset := "utf8mb4"
		if isASCII(d.SQL) {
			charset = d.Charset
		}
		text += ", character_set_client = " + charset + ", collation_connection = " + d.Collation
	}
	if d.TimeZone != "" {
		text += ", time_zone = '" + escapeText(d.TimeZone) + "'"
	}
	return text
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// escapeText escapes a string for use between single quotes.
func escapeText(text string) string { return strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) }

// collations returns the collations that a structure names.
func (s structure) collations() map[string]bool {
	all := map[string]bool{}
	for _, t := range s.Tables {
		for _, m := range collationPattern.FindAllStringSubmatch(t.SQL, -1) {
			all[m[1]] = true
		}
	}
	return all
}

// charsets returns the character sets that a structure names, except those that [keptByUTF8]
// accepts.
func (s structure) charsets() map[string]bool {
	all := map[string]bool{}
	for _, t := range s.Tables {
		for _, m := range charsetPattern.FindAllStringSubmatch(t.SQL, -1) {
			if !keptByUTF8(m[1]) {
				all[m[1]] = true
			}
		}
	}
	return all
}

var charsetPattern = regexp.MustCompile(`\b(?:CHARSET=|CHARACTER SET )(\w+)`)

var collationPattern = regexp.MustCompile(`\bCOLLATE[= ](\w+)`)

// splitKeys splits the secondary indexes and foreign keys off a table's definition, so that they
// can be created after the rows are inserted. Building an index in one go is faster than row by
// row. If the indexes cannot be split off or there are none, it returns the statement unchanged and
// empty strings. The foreign keys are separate, because they are created after the indexes of all
// tables.
func splitKeys(create string) (bare, keys, foreign string) {
	lines := strings.Split(create, "\n")
	last := len(lines) - 1
	odd := func(line string) bool { return strings.Count(line, "`")%2 > 0 }
	if slices.ContainsFunc(lines, odd) { // perhaps a name that contains a line break
		return create, "", ""
	}
	for last > 0 && !strings.HasPrefix(lines[last], ")") {
		last--
	}
	if last == 0 || !strings.Contains(lines[last], "ENGINE=InnoDB") ||
		strings.Contains(create, "WITH SYSTEM VERSIONING") {
		return create, "", ""
	}
	primary, auto := "", ""
	for _, line := range lines[:last] {
		if m := primaryKey.FindStringSubmatch(line); m != nil {
			primary = m[1]
		}
		if m := autoColumn.FindStringSubmatch(line); m != nil {
			auto = m[1]
		}
	}
	if primary == "" || auto != "" && auto != primary {
		return create, "", ""
	}
	kept, added, references := lines[:1:1], []string{}, []string{}
	for _, line := range lines[1:last] {
		part := "ADD " + strings.TrimSuffix(strings.TrimSpace(line), ",")
		switch {
		case !laterLine.MatchString(line):
			kept = append(kept, line)
		case strings.HasPrefix(part, "ADD CONSTRAINT "):
			references = append(references, part)
		default:
			added = append(added, part)
		}
	}
	kept[len(kept)-1] = strings.TrimSuffix(kept[len(kept)-1], ",")
	return strings.Join(append(kept, lines[last:]...), "\n"), strings.Join(added, ", "), strings.Join(references, ", ")
}

// sequenceDefaults returns the columns whose default refers to a sequence. The server stores such a
// default with the name of the sequence's database, which the swap changes.
func sequenceDefaults(tables []definition) []definition {
	var all []definition
	for _, t := range tables {
		for line := range strings.Lines(t.SQL) {
			if sequenceDefault.MatchString(line) {
				all = append(all, definition{Name: t.Name, SQL: strings.TrimRight(strings.TrimSpace(line), ",")})
			}
		}
	}
	return all
}

var sequenceDefault = regexp.MustCompile("^  `(?:[^`]|``)*` .* DEFAULT .*(?i:next|last|set)(?i:val)\\(`")

var (
	primaryKey = regexp.MustCompile("^  PRIMARY KEY \\((`(?:[^`]|``)*`)")
	autoColumn = regexp.MustCompile("^  (`(?:[^`]|``)*`) .* AUTO_INCREMENT")
	laterLine  = regexp.MustCompile("^  ((UNIQUE |SPATIAL )?KEY `|CONSTRAINT `(?:[^`]|``)*` FOREIGN KEY )")
)
