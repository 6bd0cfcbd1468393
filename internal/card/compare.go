package card

import (
	"cmp"
	"slices"
	"strings"

	"snap/api"
)

// Compare returns the changes from an earlier card to a later one, by table: added and removed
// tables, columns that were added, removed or defined differently, and numbers of rows. It depends
// on the two cards only. Columns are compared only if both cards list those of the table.
func Compare(before, after []api.CardTable) []api.CardChange {
	changes, old := []api.CardChange{}, map[string]api.CardTable{}
	for _, t := range before {
		old[t.Label()] = t
	}
	for _, t := range after {
		was, known := old[t.Label()]
		delete(old, t.Label())
		if !known {
			changes = append(changes, api.CardChange{Table: t.Label(), Change: "added", Rows: max(0, t.Rows),
				More: max(0, t.Rows)})
			continue
		}
		changes = append(changes, compareColumns(t.Label(), was.Columns, t.Columns)...)
		if t.Rows >= 0 && was.Rows >= 0 && t.Rows != was.Rows {
			changes = append(changes, api.CardChange{Table: t.Label(), Change: "rows", Rows: t.Rows,
				More: t.Rows - was.Rows})
		}
	}
	for label, t := range old {
		changes = append(changes, api.CardChange{Table: label, Change: "removed", More: -max(0, t.Rows)})
	}
	slices.SortStableFunc(changes, func(a, b api.CardChange) int { return cmp.Compare(a.Table, b.Table) })
	return changes
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
