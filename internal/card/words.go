package card

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/api"
)

// This file has the words in which the command line and the web pages describe a card.

// Field is a name and a value that describe how a snapshot was made.
type Field struct{ Name, Value string }

// Fields describes how a snapshot was made. It omits unknown fields.
func Fields(c api.Card, e snap.Engine) (all []Field) {
	encoding := c.Encoding
	if c.Collation != "" {
		encoding = strings.TrimPrefix(encoding+", sorted as "+c.Collation, ", ")
	}
	for _, f := range []Field{
		{"Server", strings.TrimSpace(serverName(e) + " " + c.ServerVersion)}, {"Encoding", encoding},
		{"Made from", c.From}, {"Masking", masking(c.Masking)},
	} {
		if f.Value != "" {
			all = append(all, f)
		}
	}
	return all
}

func serverName(e snap.Engine) string {
	return cmp.Or(map[snap.Engine]string{snap.Postgres: "PostgreSQL", snap.MySQL: "MySQL or MariaDB",
		snap.SQLite: "SQLite"}[e], string(e))
}

// masking describes how a masked copy was made.
func masking(m *api.Masking) string {
	if m == nil {
		return ""
	}
	var parts []string
	if m.Rules != "" {
		parts = append(parts, fmt.Sprintf("%s masked, %d kept", counted(int64(m.Masked), "column"), m.Kept))
	}
	if m.Dropped > 0 {
		parts = append(parts, "rows of "+counted(int64(m.Dropped), "table")+" dropped")
	}
	if m.SQL != "" {
		parts = append(parts, "changed by a SQL file")
	}
	return strings.Join(parts, "; ")
}

// Subset describes how the rows of a subset were chosen. It is empty for other snapshots.
func Subset(s *api.CardSubset) string {
	if s == nil {
		return ""
	}
	where := map[string]string{}
	for _, c := range s.Conditions {
		where[c.Table] = c.Where
	}
	return strings.TrimPrefix(Chosen(where, s.Percent)+"; started from "+strings.Join(s.Start, ", "), "; ")
}

// Chosen describes which rows a subset starts from: the conditions by table and the percentage of
// the rows of the other tables.
func Chosen(where map[string]string, percent float64) string {
	var parts []string
	for table, condition := range where {
		if condition != "" {
			condition = " where " + condition
		}
		parts = append(parts, table+condition)
	}
	slices.Sort(parts)
	if percent > 0 {
		parts = append(parts, fmt.Sprintf("%v%%", percent))
	}
	return strings.Join(parts, "; ")
}

// Mask describes how a column was masked. It is empty for a column of an original.
func Mask(t api.CardTable, c api.CardColumn) string {
	switch {
	case t.Dropped:
		return "rows dropped"
	case c.Mask == Kept:
		return "kept"
	}
	return c.Mask
}

// Change describes one difference between two cards, such as "orders: +12 rows, now 40".
func Change(c api.CardChange) string {
	name := c.Table
	if c.Column != "" {
		name += "." + c.Column
	}
	if c.Part != "" {
		table := strings.TrimPrefix(name+": ", ": ")
		if c.Change == "added" {
			return strings.TrimSpace(table + "new " + c.Part + " " + c.After)
		}
		name = table + c.Part
	}
	switch {
	case c.Change == "rows" && c.Differ != nil:
		return fmt.Sprintf("%s: %s, now %d", name, differing(*c.Differ), c.Rows)
	case c.Change == "rows":
		return fmt.Sprintf("%s: %+d rows, now %d", name, c.More, c.Rows)
	case c.Change == "changed":
		return fmt.Sprintf("%s: %s, was %s", name, c.After, c.Before)
	case c.Change == "added" && c.Column == "":
		return fmt.Sprintf("%s: new table with %s", name, counted(c.Rows, "row"))
	case c.Change == "added":
		return fmt.Sprintf("%s: new column, %s", name, c.After)
	}
	return name + ": removed"
}

// differing describes rows that differ, such as "2 rows added, 1 removed".
func differing(d api.CardRows) string {
	var parts []string
	for _, one := range []struct {
		n    int64
		word string
	}{{d.Added, "added"}, {d.Removed, "removed"}, {d.Changed, "changed"}} {
		switch {
		case one.n == 0:
		case len(parts) == 0:
			parts = append(parts, counted(one.n, "row")+" "+one.word)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.word))
		}
	}
	return strings.Join(parts, ", ")
}

// Certificate describes the certificate of a sanitized snapshot. It is "" for an original, which has
// none.
func Certificate(s api.Snapshot) string {
	switch {
	case s.Certificate != nil:
		return s.Certificate.String()
	case s.Type == snap.TypeSanitized:
		return snap.Certificate{State: snap.CertificateMissing}.String()
	}
	return ""
}

// PullCommand returns the command line that pulls a snapshot.
func PullCommand(s api.Snapshot) string {
	return fmt.Sprintf("snapcli pull %s --cloud --snapshot-id %s", snap.ShellWord(s.Target), s.ID)
}

// LoadCommand returns the command line that loads a snapshot right after it was pulled.
func LoadCommand(s api.Snapshot) string { return "snapcli load " + snap.ShellWord(s.Target) }

// counted formats a count with its noun, such as "1 row" or "2 rows".
func counted(n int64, noun string) string { return snap.Plural(n, noun, noun+"s") }
