package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/local"
)

// cardView selects the part of a card to print.
type cardView struct {
	columns bool
	search  string
}

func (v *cardView) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&v.columns, "columns", false,
		"list the columns with their types, keys and masks instead of the tables")
	cmd.Flags().StringVar(&v.search, "search", "",
		"only tables and columns whose names, types or masks contain these words")
}

// listsColumns reports whether columns are listed instead of tables. A search lists columns.
func (v cardView) listsColumns() bool { return v.columns || v.search != "" }

// cardFields returns names and values that describe how a snapshot was made, in the form that
// [app.fields] accepts.
func cardFields(c api.Card, engine snap.Engine) (pairs []string) {
	for _, f := range card.Fields(c, engine) {
		pairs = append(pairs, f.Name, f.Value)
	}
	return pairs
}

// printTables prints the tables of a card, or its columns.
func (a *app) printTables(tables []api.CardTable, v cardView, subset bool) error {
	if len(tables) == 0 {
		if v.search != "" {
			a.note("No table or column matches %q.", v.search)
		}
		return nil
	}
	a.result("")
	if v.listsColumns() {
		return a.printColumns(tables)
	}
	t := a.newTable(column{title: "Table", least: 10}, column{title: "Rows", right: true},
		column{title: "Size", right: true, optional: true}, column{title: "Columns", right: true, optional: true})
	for _, one := range tables {
		t.row(one.Label(), rowCount(one, subset), unlessZero(one.Bytes, size),
			unlessZero(int64(len(one.Columns)), digits))
	}
	return t.flush()
}

func rowCount(t api.CardTable, subset bool) string {
	switch {
	case t.Dropped:
		return "dropped"
	case t.Rows < 0:
		return "not counted"
	case subset:
		return fmt.Sprintf("%d of %d", t.Rows, t.Of)
	}
	return digits(t.Rows)
}

func digits(n int64) string { return fmt.Sprint(n) }

// unlessZero formats a number, or returns "" for 0, which means that it is unknown.
func unlessZero(n int64, format func(int64) string) string {
	if n == 0 {
		return ""
	}
	return format(n)
}

func (a *app) printColumns(tables []api.CardTable) error {
	masked := slices.ContainsFunc(tables, func(t api.CardTable) bool {
		return t.Dropped || slices.ContainsFunc(t.Columns, func(c api.CardColumn) bool { return c.Mask != "" })
	})
	columns := []column{{title: "Column", least: 16, weight: 2}, {title: "Type", least: 8, weight: 1},
		{title: "Key", least: 7}}
	if masked {
		columns = append(columns, column{title: "Masked", least: 6, weight: 3})
	}
	t := a.newTable(columns...)
	for _, one := range tables {
		for _, c := range one.Columns {
			cells := []string{one.Label() + "." + c.Name, columnType(c), keyText(c)}
			if masked {
				cells = append(cells, card.Mask(one, c))
			}
			t.row(cells...)
		}
	}
	return t.flush()
}

func columnType(c api.CardColumn) string {
	if c.NotNull {
		return strings.TrimSpace(c.Type + " not null")
	}
	return c.Type
}

// keyText describes the keys that a column is part of.
func keyText(c api.CardColumn) string {
	if c.Refers == "" {
		return c.Key
	}
	return strings.TrimSpace(c.Key + " → " + c.Refers)
}

// cardChoice is the flag --card.
type cardChoice struct{ to *local.CardChoice }

func (c *cardChoice) String() string {
	if c.to == nil {
		return ""
	}
	return string(*c.to)
}

func (c *cardChoice) Type() string { return "full|tables|none" }

func (c *cardChoice) Set(text string) error {
	if !slices.Contains(local.CardChoices(), local.CardChoice(text)) {
		return snap.Usage(fmt.Sprintf("%q is not a kind of card", text), "use --card full, tables or none")
	}
	*c.to = local.CardChoice(text)
	return nil
}

// cloudCard reads all pages of a cloud snapshot's card, with only the tables and columns that match
// the search. It returns nil if the snapshot has no card, or if the service is too old to have
// cards.
func (c *connection) cloudCard(ctx context.Context, id, search string) (*api.SnapshotCard, error) {
	all, err := c.Card(ctx, id, search, 1)
	if snap.CodeOf(err) == snap.CodeNotFound {
		return nil, nil //nolint:nilnil // there is no card
	}
	for page := 2; err == nil && page <= all.Pages && all.Card != nil; page++ {
		var next api.SnapshotCard
		if next, err = c.Card(ctx, id, search, page); err == nil && next.Card != nil {
			all.Card.Tables = append(all.Card.Tables, next.Card.Tables...)
		}
	}
	return &all, err
}
