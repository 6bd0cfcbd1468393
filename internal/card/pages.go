package card

import (
	"slices"
	"strings"

	"snap/api"
)

// The limits of a page. They keep it small, however large the database is.
const (
	pageTables  = 50
	pageColumns = 500
)

// Pages splits tables into pages of at most 50 tables and 500 columns and parts. A table with more
// columns and parts has a page of its own. There is at least one page, which may be empty.
func Pages(tables []api.CardTable) [][]api.CardTable {
	pages := [][]api.CardTable{}
	first, columns := 0, 0
	for i, t := range tables {
		if i > first && (i-first == pageTables || columns+len(t.Columns)+len(t.Parts) > pageColumns) {
			pages, first, columns = append(pages, tables[first:i]), i, 0
		}
		columns += len(t.Columns) + len(t.Parts)
	}
	return append(pages, tables[first:])
}

// Page returns a page of a whole card or, with words to search for, of the tables that [Find] returns.
// Pages are counted from 1. A page beyond the last one has no tables.
func Page(c api.Card, q string, page int) api.SnapshotCard {
	tables, sums := c.Tables, Totals(c.Tables)
	out := api.SnapshotCard{Card: &c, Totals: &sums, Page: page}
	if strings.TrimSpace(q) != "" {
		tables = Find(tables, q)
		found := Totals(tables)
		out.Found = &found
	}
	pages := Pages(tables)
	out.Pages, c.Tables = len(pages), nil
	if page >= 1 && page <= len(pages) {
		c.Tables = pages[page-1]
	}
	return out
}

// Find returns the tables whose name has every word of q, and the tables with a column for which
// the table's name and the column's name, type and mask together have every word. Case is ignored.
// A table that matches by its own name keeps all columns; any other table keeps only the matching
// columns.
func Find(tables []api.CardTable, q string) []api.CardTable {
	words := strings.Fields(strings.ToLower(q))
	if len(words) == 0 {
		return tables
	}
	found := []api.CardTable{}
	for _, t := range tables {
		label := strings.ToLower(t.Label())
		if hasAll(label, words) {
			found = append(found, t)
			continue
		}
		var columns []api.CardColumn
		for _, c := range t.Columns {
			if hasAll(label+" "+strings.ToLower(c.Name+" "+c.Type+" "+c.Mask), words) {
				columns = append(columns, c)
			}
		}
		if t.Columns = columns; len(columns) > 0 {
			found = append(found, t)
		}
	}
	return found
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
