package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/diff"
	"snap/internal/local"
)

// The exit codes of diff and of sanitize --check. They are those of the Unix command diff.
const (
	exitDifferent = 1
	exitTrouble   = 2
)

func (a *app) diffCommand() *cobra.Command {
	var o local.DiffOptions
	cmd := &cobra.Command{
		Use:   "diff BEFORE [AFTER]",
		Short: "Compare two snapshots, or a snapshot with its source as it is now",
		Long: `Diff compares two snapshots on this machine, or one with the current database of
its target. It prints the tables, columns, indexes, constraints and programs
(such as views, functions and triggers) that differ, and how many rows of each
table were added, removed or changed. --rows TABLE lists those rows of one
table.

Rows are matched by their primary key, and compared in the columns that both
sides have. Without a primary key, or with NULL in it, a changed row counts as
one removed and one added. The comparison runs on this machine, and nothing is
changed.

The exit code is 0 if the two are equal, 1 if they differ, and above 1 after an
error.`,
		Example: examples(
			"two snapshots", "snapcli diff shop-20261121T011600Z shop-20261122T011600Z",
			"what changed in the database since then", "snapcli diff shop-20261121T011600Z",
			"the rows themselves", "snapcli diff shop-20261121T011600Z --rows orders"),
		Args:              diffArgs,
		ValidArgsFunction: a.completeLocal,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			return a.diff(ctx, agent, args, o)
		}),
	}
	cmd.Flags().StringVar(&o.Table, "rows", "", "also list the rows of this table that differ")
	cmd.Flags().IntVar(&o.Limit, "limit", 100, "list at most this many rows")
	identityFlag(cmd, &o.Identity)
	a.jsonFlag(cmd)
	return cmd
}

// diffArgs requires one or two snapshots.
func diffArgs(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return command.ExactArgs("snapshot")(cmd, args)
	}
	return command.ExactArgs("snapshot", "second snapshot")(cmd, args)
}

func (a *app) diff(ctx context.Context, agent *local.Agent, names []string, o local.DiffOptions) error {
	if o.Limit < 1 {
		return snap.Usage(fmt.Sprintf("the limit %d is less than one", o.Limit), "give a number of rows")
	}
	report, end := a.progress()
	after := strings.Join(names[1:], "")
	d, err := agent.Diff(ctx, names[0], after, o, report)
	end()
	if err == nil {
		err = a.printDiff(d)
	}
	return a.reportComparison(ctx, err == nil && d.Equal(), err)
}

// reportComparison returns the exit code of a command that compares, such as diff: 0 if nothing
// differs, 1 if something differs, and above 1 after an error. It also reports the error.
func (a *app) reportComparison(ctx context.Context, equal bool, err error) error {
	switch {
	case err == nil && equal:
		return nil
	case err == nil:
		return exited(exitDifferent)
	}
	if exit := a.report(ctx, err); exit != exitDifferent {
		return exited(exit)
	}
	return exited(exitTrouble)
}

// diffView is the JSON output of diff.
type diffView struct {
	Before string       `json:"before" doc:"name of the snapshot"`
	After  string       `json:"after,omitempty" doc:"name of the snapshot; absent if the current database was compared"`
	Equal  bool         `json:"equal"`
	Schema []changeView `json:"schema" doc:"the objects that differ"`
	Tables []tableDiff  `json:"tables" doc:"the tables whose rows differ"`
	Rows   *rowsView    `json:"rows,omitempty" doc:"differing rows of the table given with --rows"`
}

type changeView struct {
	Change string `json:"change" doc:"added, removed or changed"`
	Kind   string `json:"kind" doc:"table, column, index, function and so on"`
	Name   string `json:"name" doc:"with its schema, if it has one"`
	On     string `json:"on,omitempty" doc:"the table that it belongs to"`
	Detail string `json:"detail,omitempty" doc:"what differs, as text for people"`
}

type tableDiff struct {
	Schema  string `json:"schema,omitempty"`
	Name    string `json:"name"`
	Before  int64  `json:"before" doc:"number of rows"`
	After   int64  `json:"after" doc:"number of rows"`
	Added   int64  `json:"added"`
	Removed int64  `json:"removed"`
	Changed int64  `json:"changed" doc:"rows with the same primary key and different values"`
	Keyed   bool   `json:"keyed" doc:"true if rows are matched by the primary key; if false, no row counts as changed"`
}

type rowsView struct {
	Columns []string  `json:"columns" doc:"the columns that both sides have"`
	Key     []string  `json:"key,omitempty" doc:"the columns of the primary key by which rows are matched"`
	List    []rowView `json:"list"`
	More    int64     `json:"more" doc:"number of differing rows beyond --limit"`
}

type rowView struct {
	Change string    `json:"change" doc:"added, removed or changed"`
	Before []*string `json:"before,omitempty" doc:"a value for each column; null is NULL"`
	After  []*string `json:"after,omitempty" doc:"a value for each column; null is NULL"`
}

func viewDiff(d local.Difference) diffView {
	v := diffView{Before: d.Before, After: d.After, Equal: d.Equal(), Schema: []changeView{}, Tables: []tableDiff{}}
	for _, c := range d.Schema {
		v.Schema = append(v.Schema, changeView{string(c.Change), c.Kind, c.Name, c.On, c.Detail})
	}
	for _, t := range d.Tables {
		v.Tables = append(v.Tables, tableDiff(t))
	}
	if d.Rows == nil {
		return v
	}
	v.Rows = &rowsView{Columns: d.Rows.Columns, Key: d.Rows.Key, List: []rowView{}, More: d.Rows.More}
	for _, r := range d.Rows.Rows {
		v.Rows.List = append(v.Rows.List, rowView{string(r.Change), r.Before, r.After})
	}
	return v
}

func (a *app) printDiff(d local.Difference) error {
	for _, w := range d.Warnings {
		a.warn("%s", w)
	}
	if a.flags.json {
		return a.printJSON(viewDiff(d))
	}
	if a.flags.quiet && d.Rows == nil {
		return nil
	}
	if d.Equal() {
		a.note("%s and %s are equal", d.Before, cmp.Or(d.After, "the current database"))
		return nil
	}
	if err := a.printSchemaDiff(d.Schema); err != nil {
		return err
	}
	if err := a.printTableDiff(d); err != nil {
		return err
	}
	if d.Rows != nil {
		a.printRowDiff(*d.Rows)
	}
	return nil
}

// diffSign is the sign that the first column shows for each kind of difference.
var diffSign = map[diff.Kind]string{diff.Added: "+", diff.Removed: "-", diff.Changed: "~"}

func (a *app) printSchemaDiff(all []diff.Change) error {
	if len(all) == 0 {
		return nil
	}
	t := a.newTable(column{}, column{title: "Object"}, column{title: "Name", least: 12, weight: 1},
		column{title: "Detail", least: 10})
	for _, c := range all {
		t.row(diffSign[c.Change], c.Kind, strings.TrimPrefix(c.On+"."+c.Name, "."), c.Detail)
	}
	return t.flush()
}

func (a *app) printTableDiff(d local.Difference) error {
	if len(d.Tables) == 0 {
		return nil
	}
	if len(d.Schema) > 0 {
		a.result("")
	}
	t := a.newTable(column{title: "Rows of", least: 12}, column{title: "Before", right: true},
		column{title: "After", right: true}, column{title: "Added", right: true},
		column{title: "Removed", right: true}, column{title: "Changed", right: true})
	for _, one := range d.Tables {
		changed := fmt.Sprint(one.Changed)
		if !one.Keyed {
			changed = "no key"
		}
		t.row(snap.TableName(one.Schema, one.Name), fmt.Sprint(one.Before), fmt.Sprint(one.After),
			fmt.Sprint(one.Added), fmt.Sprint(one.Removed), changed)
	}
	return t.flush()
}

// printRowDiff prints one line for each row. For a changed row, it prints the key and the values
// that changed.
func (a *app) printRowDiff(r diff.Rows) {
	a.result("")
	for _, row := range r.Rows {
		var parts []string
		for i, name := range r.Columns {
			switch {
			case row.Change == diff.Added:
				parts = append(parts, name+"="+shownValue(row.After[i]))
			case row.Change == diff.Removed:
				parts = append(parts, name+"="+shownValue(row.Before[i]))
			case !equalValues(row.Before[i], row.After[i]):
				parts = append(parts, name+": "+shownValue(row.Before[i])+" -> "+shownValue(row.After[i]))
			case slices.Contains(r.Key, name):
				parts = append(parts, name+"="+shownValue(row.After[i]))
			}
		}
		a.result("%s %s", diffSign[row.Change], strings.Join(parts, "  "))
	}
	if r.More > 0 {
		a.note("%d more rows differ; see more with --limit", r.More)
	}
}

func equalValues(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// longestValue is the number of characters after which a value is cut off.
const longestValue = 60

func shownValue(v *string) string {
	if v == nil {
		return "NULL"
	}
	if runes := []rune(*v); len(runes) > longestValue {
		return fmt.Sprintf("%q…", string(runes[:longestValue]))
	}
	return fmt.Sprintf("%q", *v)
}
