package card

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"snap/api"
)

// Compare returns the changes from an earlier card to a later one, by table: tables that were added
// or removed; columns and parts, such as indexes, that were added, removed or defined differently;
// and numbers of rows that changed. Programs that belong to no table come first. The columns of a
// table are compared only if both cards list them, and parts only if both cards list any. The
// number of rows that differ is included only if the later card counts them relative to the earlier
// snapshot; sha256 is the checksum of that snapshot's file.
func Compare(before, after api.Card, sha256 string) []api.CardChange {
	if !Counts(after, sha256) {
		after = Uncounted(after)
	}
	changes, old := []api.CardChange{}, map[string]api.CardTable{}
	for _, t := range before.Tables {
		old[t.Label()] = t
	}
	listed := parts(before) > 0 && parts(after) > 0
	if listed {
		changes = compareParts("", before.Programs, after.Programs)
	}
	for _, t := range after.Tables {
		was, known := old[t.Label()]
		delete(old, t.Label())
		if !known {
			changes = append(changes, api.CardChange{Table: t.Label(), Change: "added", Rows: max(0, t.Rows),
				More: max(0, t.Rows)})
			continue
		}
		changes = append(changes, compareColumns(t.Label(), was.Columns, t.Columns)...)
		if listed {
			changes = append(changes, compareParts(t.Label(), was.Parts, t.Parts)...)
		}
		if differ := rowsBetween(was, t); t.Rows >= 0 && was.Rows >= 0 && (t.Rows != was.Rows || differ != nil) {
			changes = append(changes, api.CardChange{Table: t.Label(), Change: "rows", Rows: t.Rows,
				More: t.Rows - was.Rows, Differ: differ})
		}
	}
	for label, t := range old {
		changes = append(changes, api.CardChange{Table: label, Change: "removed", More: -max(0, t.Rows)})
	}
	slices.SortStableFunc(changes, func(a, b api.CardChange) int { return cmp.Compare(a.Table, b.Table) })
	return changes
}

// Counts reports whether a card counts the rows that differ from those of the snapshot with this
// SHA-256.
func Counts(c api.Card, sha256 string) bool { return c.Since != "" && c.Since == sha256 }

// Uncounted returns a card without the numbers of rows that differ from an earlier snapshot. It is
// for people who have no access to the earlier snapshot.
func Uncounted(c api.Card) api.Card {
	c.Since, c.Tables = "", UncountedTables(c.Tables)
	return c
}

// UncountedTables is like [Uncounted], for the tables of a card.
func UncountedTables(tables []api.CardTable) []api.CardTable {
	tables = slices.Clone(tables)
	for i := range tables {
		tables[i].Differ = nil
	}
	return tables
}

// rowsBetween returns how many rows of a table differ, or nil if that is unknown. Counts that
// contradict the numbers of rows are treated as unknown.
func rowsBetween(was, now api.CardTable) *api.CardRows {
	d := now.Differ
	if d == nil || was.Rows+d.Added-d.Removed != now.Rows || d.Removed+d.Changed > was.Rows {
		return nil
	}
	return d
}

func compareColumns(table string, before, after []api.CardColumn) (changes []api.CardChange) {
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	old := map[string]api.CardColumn{}
	for _, c := range before {
		old[c.Name] = c
	}
	for _, c := range after {
		was, known := old[c.Name]
		delete(old, c.Name)
		if !known {
			changes = append(changes, api.CardChange{Table: table, Column: c.Name, Change: "added",
				After: Definition(c)})
		} else if was != c {
			changes = append(changes, api.CardChange{Table: table, Column: c.Name, Change: "changed",
				Before: Definition(was), After: Definition(c)})
		}
	}
	for _, c := range before { // in the table's order
		if _, gone := old[c.Name]; gone {
			changes = append(changes, api.CardChange{Table: table, Column: c.Name, Change: "removed",
				Before: Definition(c)})
		}
	}
	return changes
}

// compareParts compares parts of a table, or programs if table is "". Several parts can have the same
// name, such as overloaded functions.
func compareParts(table string, before, after []api.CardPart) []api.CardChange {
	changes, old := []api.CardChange{}, map[string][]api.CardPart{}
	for _, p := range before {
		old[p.Kind+" "+p.Name] = append(old[p.Kind+" "+p.Name], p)
	}
	for _, p := range after {
		part := p.Kind + " " + p.Name
		was := old[part]
		if len(was) == 0 {
			changes = append(changes, api.CardChange{Table: table, Part: part, Change: "added", After: p.Definition})
			continue
		}
		if old[part] = was[1:]; was[0].Definition != p.Definition {
			changes = append(changes, api.CardChange{Table: table, Part: part, Change: "changed",
				Before: was[0].Definition, After: p.Definition})
		}
	}
	for _, part := range slices.Sorted(maps.Keys(old)) {
		for _, p := range old[part] {
			changes = append(changes, api.CardChange{Table: table, Part: part, Change: "removed", Before: p.Definition})
		}
	}
	return changes
}

// Definition describes a column in words, such as "integer, not null, primary key".
func Definition(c api.CardColumn) string {
	parts := []string{}
	if c.Type != "" {
		parts = append(parts, c.Type)
	}
	if c.NotNull {
		parts = append(parts, "not null")
	}
	if c.Key != "" {
		parts = append(parts, c.Key+" key")
	}
	if c.Refers != "" {
		parts = append(parts, "references "+c.Refers)
	}
	switch c.Mask {
	case "":
	case Kept:
		parts = append(parts, "kept")
	default:
		parts = append(parts, "masked: "+c.Mask)
	}
	return strings.Join(parts, ", ")
}

// Kept is the mask of a column that was kept by a rule.
const Kept = "keep"
