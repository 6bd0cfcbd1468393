package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// This file generates SQL from a description that may be hostile. It quotes all names. Package
// schema prints strings, numbers and other expressions. Every other word comes from this file,
// except the words of types, which typeText checks.

// createTable returns the statement that creates a table, without its computed columns.
func createTable(t schema.Table) (string, error) {
	if t.Virtual != "" {
		return createVirtual(t)
	}
	var parts []string
	inline := inlineKey(t)
	for _, c := range t.Columns {
		if c.Computed {
			continue
		}
		text, err := columnText(c)
		if err != nil {
			return "", err
		}
		if inline != nil && inline.Columns[0].Name == c.Name {
			text += primaryClause(*inline, c)
		}
		parts = append(parts, text)
	}
	rest, err := constraints(t, inline)
	if err != nil {
		return "", err
	}
	return "CREATE TABLE " + quote(t.Name.Name) + " (" + strings.Join(append(parts, rest...), ", ") + ")" +
		tableOptions(t), nil
}

// columnText returns a column with its type, NOT NULL clause, default and collation.
func columnText(c schema.Column) (string, error) {
	text := quote(c.Name) + typeText(c.Type)
	if c.NotNull {
		text += " NOT NULL" + conflict(c.NotNullConflict)
	}
	if c.Default != nil {
		e, err := c.Default.SQL(schema.SQLite)
		if err != nil {
			return "", err
		}
		text += " DEFAULT (" + e + ")"
	}
	return text + collate(c.Collation), nil
}

// typeText returns a declared type, or a type with the same affinity if one of its words cannot be
// part of a type.
func typeText(t schema.Type) string {
	name := t.Name
	if slices.ContainsFunc(strings.Fields(name), func(word string) bool { return !isTypeWord(word) }) {
		name = affinity(name)
	}
	if name == "" {
		return ""
	}
	text := " " + name
	if len(t.Args) > 0 && len(t.Args) <= 2 {
		text += "(" + strings.Join(t.Args, ",") + ")"
	}
	return text
}

func conflict(action string) string {
	if slices.Contains(conflictActions(), action) {
		return " ON CONFLICT " + action
	}
	return ""
}

func collate(name *schema.Name) string {
	if name == nil {
		return ""
	}
	if known := collation(name.Name); known != "" {
		return " COLLATE " + known
	}
	return ""
}

// inlineKey returns the primary key if it must be written in its column's definition: a key with
// AUTOINCREMENT, or an INTEGER key that is not an alias of the rowid.
func inlineKey(t schema.Table) *schema.Key {
	for _, k := range t.Keys {
		if !k.Primary || len(k.Columns) != 1 {
			continue
		}
		at := slices.IndexFunc(t.Columns, func(c schema.Column) bool { return c.Name == k.Columns[0].Name })
		if c := t.Columns[at]; c.Identity != nil || isInteger(c.Type) && k.Columns[0].Desc {
			return &k
		}
	}
	return nil
}

func primaryClause(k schema.Key, c schema.Column) string {
	text := " PRIMARY KEY"
	if k.Columns[0].Desc {
		text += " DESC"
	}
	text += conflict(k.OnConflict)
	if c.Identity != nil {
		text += " AUTOINCREMENT"
	}
	return text
}

// constraints returns the keys, checks and foreign keys of a table, without its inline key.
func constraints(t schema.Table, inline *schema.Key) ([]string, error) {
	var all []string
	for _, k := range t.Keys {
		kind := "UNIQUE"
		if k.Primary {
			kind = "PRIMARY KEY"
		}
		if !k.Primary || inline == nil {
			all = append(all, constraintName(k.Name)+kind+" ("+keyColumns(k.Columns)+")"+conflict(k.OnConflict))
		}
	}
	for _, c := range t.Checks {
		e, err := c.Expr.SQL(schema.SQLite)
		if err != nil {
			return nil, err
		}
		all = append(all, constraintName(c.Name)+"CHECK ("+e+")")
	}
	for _, k := range t.ForeignKeys {
		all = append(all, foreignKey(k))
	}
	return all, nil
}

func constraintName(name string) string {
	if name == "" {
		return ""
	}
	return "CONSTRAINT " + quote(name) + " "
}

func keyColumns(columns []schema.KeyColumn) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = quote(c.Name) + collate(c.Collation)
		if c.Desc {
			all[i] += " DESC"
		}
	}
	return strings.Join(all, ", ")
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = quote(name)
	}
	return strings.Join(all, ", ")
}

func foreignKey(k schema.ForeignKey) string {
	text := constraintName(k.Name) + "FOREIGN KEY (" + quoted(k.Columns) + ") REFERENCES " + quote(k.To.Name)
	if len(k.ToColumns) > 0 {
		text += " (" + quoted(k.ToColumns) + ")"
	}
	for _, a := range [][2]string{{" ON DELETE ", k.OnDelete}, {" ON UPDATE ", k.OnUpdate}} {
		if slices.Contains([]string{"SET NULL", "SET DEFAULT", "CASCADE", "RESTRICT"}, a[1]) {
			text += a[0] + a[1]
		}
	}
	if k.Deferrable {
		text += " DEFERRABLE"
		if k.InitiallyDeferred {
			text += " INITIALLY DEFERRED"
		}
	}
	return text
}

func tableOptions(t schema.Table) string {
	var all []string
	if t.Options[withoutRowid] != "" {
		all = append(all, "WITHOUT ROWID")
	}
	if t.Options[strict] != "" {
		all = append(all, "STRICT")
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, ", ")
}

// createIndex returns the statement that creates an index.
func createIndex(table string, i schema.Index) string {
	unique := ""
	if i.Unique {
		unique = "UNIQUE "
	}
	return "CREATE " + unique + "INDEX " + quote(i.Name) + " ON " + quote(table) + " (" + keyColumns(i.Columns) + ")"
}

// createVirtual returns the statement that creates a full-text table or an r-tree.
func createVirtual(t schema.Table) (string, error) {
	var args []string
	for _, c := range t.Columns {
		text := quote(c.Name)
		switch {
		case t.Virtual == fts5 && c.Type.Name == unindexed:
			text += " UNINDEXED"
		case t.Virtual == rtree && c.Type.Name == auxiliary:
			text = "+" + text
		}
		args = append(args, text)
	}
	wrong := len(t.Columns) == 0 || t.Virtual != fts5 && (t.Virtual != rtree || len(t.Options) > 0 || !isTree(t))
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		wrong = wrong || !searchOption(name, t.Options[name])
		args = append(args, name+"="+schema.QuoteText(schema.SQLite, t.Options[name]))
	}
	if wrong {
		return "", &snap.Error{
			Code:   snap.CodeCorrupt,
			Detail: fmt.Sprintf("the snapshot's description of the virtual table %q is not supported", t.Name.Name),
			Hint:   "ask the snapshot's author to rebuild it",
		}
	}
	return "CREATE VIRTUAL TABLE " + quote(t.Name.Name) + " USING " + t.Virtual + "(" + strings.Join(args, ", ") +
		")", nil
}
