package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// Rows are loaded without the server's strict mode, because a source may have values that strict
// mode would refuse, such as an ENUM's empty value. Without strict mode, the server changes values
// that a column cannot hold, and reports each as a warning. Such a warning fails the load, unless
// it is about an empty ENUM value.

// allWarnings makes a session list as many warnings as the server can. In MySQL, few users have the
// privilege to change this setting, so its error is ignored.
const allWarnings = "SET SESSION max_error_count = 65535"

// setEnglish makes a session write its warnings in the language of [truncatedColumn].
const setEnglish = "SET SESSION lc_messages = 'en_US'"

// setStrictMode makes a session refuse values that their columns cannot hold, on any server.
const setStrictMode = "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES')"

// The message of erTruncated has the column's name between these two strings, and the row's number
// after them.
const (
	truncatedColumn = "Data truncated for column '"
	truncatedRow    = "' at row "
)

// checkWarnings returns an error if the last statement had a value that its column cannot hold, or
// a character that the column's character set lacks. The server has stored a substitute in both
// cases.
func (s *scratch) checkWarnings(ctx context.Context, c *sql.Conn, one statement, text string) error {
	rows, err := c.QueryContext(ctx, "SHOW WARNINGS")
	if err != nil {
		return err
	}
	defer rows.Close()
	var empty *emptyMembers
	for rows.Next() {
		var level, message string
		var number uint16
		if err := rows.Scan(&level, &number, &message); err != nil {
			return err
		}
		if level == "Note" { // a number was rounded
			continue
		}
		switch number {
		case erTruncated:
			if empty == nil {
				e := s.emptyMembers(one, text)
				empty = &e
			}
			if empty.explains(message) {
				continue
			}
		case erNotNull, erOutOfRange, erWrongText, erWrongTime, erTruncatedText:
		default:
			continue
		}
		return &snap.Error{
			Code: snap.CodeInvalid, Detail: fmt.Sprintf("a value of the table %s is not valid for its "+
				"column: %s", one.table, message),
			Hint: "if the column is masked, use a mask that fits the column and its character set; nothing " +
				"was replaced",
		}
	}
	return rows.Err()
}

// emptyMembers finds the empty values of ENUM columns in a statement. An ENUM can hold the empty
// value even if it is not a member, so the source had these values too.
type emptyMembers struct {
	columns map[string]int // ENUM columns, by name
	rows    []string
}

func (s *scratch) emptyMembers(one statement, text string) emptyMembers {
	e := emptyMembers{columns: map[string]int{}}
	for _, name := range s.columnsOfType(one.table, "enum(") {
		e.columns[name] = slices.Index(one.columns, name)
	}
	if len(e.columns) > 0 {
		e.rows = strings.Split(text[len(one.start):], "\n")
	}
	return e
}

// explains reports whether a warning is about one of the empty values.
func (e emptyMembers) explains(message string) bool {
	about, isTruncated := strings.CutPrefix(message, truncatedColumn)
	end := strings.LastIndex(about, truncatedRow)
	if !isTruncated || end < 0 {
		return false
	}
	at, ok := e.columns[about[:end]]
	row, err := strconv.Atoi(about[end+len(truncatedRow):])
	if !ok || at < 0 || err != nil || row < 1 || row > len(e.rows) {
		return false
	}
	fields, err := fieldsOf([]byte(strings.TrimSuffix(e.rows[row-1], ",")), nil)
	return err == nil && at < len(fields) && string(fields[at]) == "''"
}

// columnsOfType returns the columns of a table whose type, as written in its definition, begins
// with the given string.
func (s *scratch) columnsOfType(table, begins string) (all []string) {
	for _, t := range s.structure.Tables {
		if t.Name != table || !strings.Contains(t.SQL, "` "+begins) {
			continue
		}
		pattern := regexp.MustCompile("(?m)^  `((?:[^`]|``)*)` " + regexp.QuoteMeta(begins))
		for _, found := range pattern.FindAllStringSubmatch(t.SQL, -1) {
			all = append(all, strings.ReplaceAll(found[1], "``", "`"))
		}
	}
	return all
}

// partLimit returns the maximum size in bytes of each part that a statement is split into. A
// statement with many empty values of ENUM columns is split, because each value causes a warning
// and the server lists only a limited number.
func (s *scratch) partLimit(ctx context.Context, c *sql.Conn, one statement) (int, error) {
	limit, empty := s.packet-packetHead, []byte("''")
	values := bytes.Count(one.rows, empty)
	if values < 64 || len(s.columnsOfType(one.table, "enum(")) == 0 { // MariaDB lists 64 warnings
		return limit, nil
	}
	var maxWarnings int
	if err := c.QueryRowContext(ctx, "SELECT @@max_error_count").Scan(&maxWarnings); err != nil {
		return 0, err
	}
	if values >= maxWarnings {
		limit = min(limit, len(one.start)+maxWarnings*len(empty))
	}
	return limit, nil
}

// members has the members of an ENUM or SET column whose values are masked.
type members struct {
	column string
	all    []string
	set    bool
}

// membersOf returns the members of an ENUM or SET column, or nil for any other column.
func membersOf(table string, c engine.Column) *members {
	r, err := read(c.Type, modeOf(storedMode))
	var t schema.Type
	if err != nil || readType(r, &t) != nil || t.Name != "enum" && t.Name != "set" {
		return nil
	}
	return &members{column: table + "." + c.Name, all: t.Labels, set: t.Name == "set"}
}

// check returns an error for a masked value that is not a member. The server would interpret some
// values, such as '2', as the number of a member.
func (m *members) check(original, masked string) error {
	if m == nil || original == masked || m.set && masked == "" {
		return nil
	}
	values := []string{masked}
	if m.set {
		values = strings.Split(masked, ",")
	}
	for _, v := range values {
		if !slices.ContainsFunc(m.all, func(one string) bool { return strings.EqualFold(one, v) }) {
			return &snap.Error{
				Code:   snap.CodeInvalid,
				Detail: "a masked value of the column " + m.column + " is not a member of its type",
				Hint:   "use the mask choice with members of the type, or keep the column; nothing was written",
			}
		}
	}
	return nil
}
