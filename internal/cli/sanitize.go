package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) sanitizeCommand() *cobra.Command {
	var o local.SanitizeOptions
	var draft, review, check bool
	cmd := &cobra.Command{
		Use:   "sanitize TARGET",
		Short: "Make a masked copy of a snapshot",
		Long: `Sanitize makes a masked copy of the target's newest unmasked snapshot, or of the
one that --snapshot names. The masks come from a file of column rules, a SQL
file or both, given here or in the target's configuration. The original does not
change, and nothing leaves this machine. SQL runs on a scratch copy, on the
server of the target's destination or on its scratch server, never on the
source. The copy of an encrypted original is encrypted too, unless you give
--no-encrypt.

A masked copy of another organization's snapshot has its tables and rows, but
not its functions, triggers, views and other programs. Making or loading the
copy cannot run code that the author of the original wrote, and cannot read or
change other databases, other files, user accounts or server settings.

--init drafts a rules file from the snapshot's tables and values. Review and
correct it. If the target's configuration names no rules file, --init adds the
new file to the configuration. --review goes through the drafted rules on the
terminal. One keystroke decides on all columns with the same proposed mask and
the same reason. Each decision is saved immediately.

--check masks nothing. It prints the columns that have no rule yet, such as
columns that were added after the rules were written, and those whose rule is
still ` + "`decide`" + `. The exit code is 0 if there are none, 1 if there are some, and
above 1 after an error.`,
		Example: examples(
			"draft rules from the snapshot", "snapcli sanitize shop --init --rules shop.rules.yaml",
			"decide on the columns that the draft left open", "snapcli sanitize shop --review",
			"check that every column has a rule", "snapcli sanitize shop --check",
			"mask as the target's configuration says", "snapcli sanitize shop",
			"run a SQL file on the copy", "snapcli sanitize shop --sql mask.sql"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			switch {
			case draft:
				return a.suggestRules(ctx, agent, args[0], o)
			case review:
				return a.reviewRules(ctx, agent, args[0], o.Rules)
			case check:
				return a.checkRules(ctx, agent, args[0], o)
			}
			return a.sanitize(ctx, agent, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "",
		"name of the snapshot to mask (default: the newest unmasked one)")
	cmd.Flags().StringVar(&o.SQL, "sql", "", "SQL file to run on the copy (default: the target's)")
	cmd.Flags().StringVar(&o.Rules, "rules", "", "file of column rules (default: the target's)")
	jobsFlag(cmd, &o.Jobs, "number of tables processed at once; 0 uses the target's setting")
	cmd.Flags().BoolVar(&draft, "init", false, "draft a rules file instead of masking")
	cmd.Flags().BoolVar(&review, "review", false, "accept or change the drafted rules, group by group")
	cmd.Flags().BoolVar(&check, "check", false, "only print the columns that still need a rule")
	identityFlag(cmd, &o.Identity)
	encryptFlags(cmd, &o.Encrypt)
	cmd.MarkFlagsMutuallyExclusive("init", "sql", "review", "check")
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) sanitize(ctx context.Context, agent *local.Agent, target string, o local.SanitizeOptions) error {
	report, end := a.progress()
	s, err := agent.Sanitize(ctx, target, o, report)
	end()
	if err != nil {
		return stopped(ctx, err, "the masking", "nothing was kept; run the same command again")
	}
	return a.printNewSnapshot("sanitized", s, "push it with `snapcli push %s --cloud --type sanitized`",
		snap.ShellWord(target))
}

// suggestRules writes a first rules file. If the target has no rules file yet, it also sets the
// file's name in the configuration.
func (a *app) suggestRules(ctx context.Context, agent *local.Agent, target string, o local.SanitizeOptions) error {
	t, err := agent.Target(target)
	if err != nil {
		return err
	}
	path, err := agent.RulesPath(t, o.Rules)
	if err != nil {
		return err
	}
	report, end := a.progress()
	err = agent.SuggestRules(ctx, target, o.Snapshot, path, report, o.Identity...)
	end()
	if err != nil {
		return err
	}
	if err := agent.UseRules(t, path); err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(rulesView{t.Name, path})
	}
	a.done(path, "drafted a rules file for %s: %s", t.Name, path)
	a.next("review it with `snapcli sanitize %[1]s --review`, then run `snapcli sanitize %[1]s`",
		snap.ShellWord(t.Name))
	return nil
}

// rulesView is the JSON output of sanitize --init.
type rulesView struct {
	Target string `json:"target"`
	Rules  string `json:"rules" doc:"path of the file"`
}
