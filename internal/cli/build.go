package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) buildCommand() *cobra.Command {
	var o local.BuildOptions
	var where []string
	cmd := &cobra.Command{
		Use:   "build TARGET",
		Short: "Take a snapshot of a target's source database",
		Long: `Build reads the target's source database and writes one snapshot file on this
machine. It only reads the database, in one consistent view.

--encrypt-to makes a file that only the named recipients can read, wherever it
is pushed. A recipient is the public key of an age identity (age1...) or of an
SSH key (ssh-ed25519 ..., ssh-rsa ...), or a file with one of them on each line.

--where and --percent take a subset: some rows to start from, the rows that
reference them, and every row that any of these rows references, so that every
foreign key stays valid. --rows and --max-size take the largest percentage that
fits into a number of rows, or into a size before compression.
docs/sanitizing.md explains the rules. These flags replace the subset of the
target's configuration.

--table, --schema, --exclude-table, --exclude-data and --exclude-extension take
patterns: * matches any characters, ? matches one, and inside double quotes both
are ordinary. Foreign keys, views and other objects that depend on an excluded
object are left out too, and build lists them. Either of --table and --schema
replaces both of these lists in the target's configuration; the other flags add
to its lists.`,
		Example: examples("take a snapshot", "snapcli build shop", "keep only its name, for a script",
			"name=$(snapcli build shop --quiet)",
			"about a tenth of the rows of each table", "snapcli build shop --percent 10",
			"a subset that fits on a laptop", "snapcli build shop --max-size 200MB",
			"leave out some tables, and the rows of another",
			"snapcli build shop --exclude-table 'log_*' --exclude-data sessions",
			"one customer, and the rows that belong to it", "snapcli build shop --where 'customers=id = 17'",
			"encrypt it for a colleague", "snapcli build shop --encrypt-to colleague.pub"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Subset.Where, err = conditions(where); err != nil {
				return err
			}
			return a.build(cmd.Context(), args[0], o)
		},
	}
	jobsFlag(cmd, &o.Jobs, "number of tables read at once; 0 uses the target's setting")
	encryptFlags(cmd, &o.Encrypt)
	subsetFlags(cmd, &o, &where)
	choiceFlags(cmd, &o.Choice)
	cmd.Flags().BoolVar(&o.WithGrants, "with-grants", false,
		"include the names and privileges of other users, for load --with-grants (PostgreSQL)")
	cmd.Flags().Bool("no-push", false, "has no effect, because a build never pushes; accepted for old scripts")
	a.jsonFlag(cmd)
	return cmd
}

// subsetFlags adds the flags that choose rows.
func subsetFlags(cmd *cobra.Command, o *local.BuildOptions, where *[]string) {
	cmd.Flags().StringArrayVar(where, "where", nil,
		"take only rows of a table that satisfy a condition, as TABLE=CONDITION, and the rows that belong to them; "+
			"can be repeated")
	cmd.Flags().Var((*percentValue)(&o.Subset.Percent), "percent",
		"take about this percentage of each table's rows, and the rows that they reference")
	cmd.Flags().Int64Var(&o.Subset.Rows, "rows", 0, "take a subset of up to about this number of rows")
	cmd.Flags().StringVar(&o.Subset.MaxSize, "max-size", "",
		"take a subset of up to about this size before compression, such as 200MB")
	cmd.Flags().BoolVar(&o.Whole, "no-subset", false, "take every row, whatever the target's configuration says")
	for _, flag := range []string{"where", "percent"} {
		cmd.MarkFlagsMutuallyExclusive(flag, "rows", "max-size", "no-subset")
	}
}

func (a *app) build(ctx context.Context, target string, o local.BuildOptions) error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	report, end := a.progress()
	s, err := agent.Build(ctx, target, o, report)
	end()
	if err != nil {
		return stopped(ctx, err, "the build", "nothing was kept; run the same command again")
	}
	if warning := unevenShares(s); warning != "" {
		a.warn("%s", warning)
	}
	if err := a.printPortions(s, requestedSubset(agent, target, o.Subset)); err != nil {
		return err
	}
	return a.printNewSnapshot("built", s,
		"mask it with `snapcli sanitize %[1]s`, or push it with `snapcli push %[1]s --cloud`", snap.ShellWord(target))
}

// printNewSnapshot prints the local snapshot that a command made, after its warnings.
func (a *app) printNewSnapshot(verb string, s local.Snapshot, next string, args ...any) error {
	for _, w := range s.Warnings {
		a.warn("%s", w)
	}
	if a.flags.json {
		return a.printJSON(viewSnapshot(s))
	}
	a.done(s.Name, "%s %s (%s, %s%s%s)", verb, s.Name, s.Type, size(s.Size), contentsOf(s),
		encryptedTo(", ", s.Encrypted))
	a.next(next, args...)
	return nil
}

// conditions parses the TABLE=CONDITION values of a flag.
func conditions(list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, entry := range list {
		table, condition, ok := strings.Cut(entry, "=")
		table, condition = strings.TrimSpace(table), strings.TrimSpace(condition)
		if !ok || table == "" || condition == "" {
			return nil, snap.Usage(fmt.Sprintf("%q is not TABLE=CONDITION", entry),
				"write it as: --where 'orders=total > 100'")
		}
		if _, duplicate := all[table]; duplicate {
			return nil, snap.Usage(fmt.Sprintf("the table %s has two conditions", table), "join them with AND or OR")
		}
		all[table] = condition
	}
	return all, nil
}

// contentsOf returns, after a comma, the number of tables in a snapshot and, for a subset, how many
// of the source's rows it has.
func contentsOf(s local.Snapshot) string {
	if s.Subset == nil {
		return tableCount(len(s.Tables))
	}
	var rows, of int64
	for _, t := range s.Tables {
		rows, of = rows+max(t.Rows, 0), of+t.Of
	}
	return fmt.Sprintf("%s, a subset of %d of %d rows", tableCount(len(s.Tables)), rows, of)
}

// tableCount returns the number of tables as text, after a comma, or "" if it is unknown.
func tableCount(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + snap.Plural(n, "table", "tables")
}
