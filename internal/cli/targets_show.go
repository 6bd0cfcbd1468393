package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) targetShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show one target",
		Long:              "Show prints a target's settings. Passwords in its URLs are hidden.",
		Example:           examples("show one", "snapcli targets show shop"),
		Args:              command.ExactArgs("name"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			t, err := agent.Target(args[0])
			if err != nil {
				return err
			}
			v := viewTarget(t)
			if a.flags.json {
				return a.printJSON(v)
			}
			jobs := strconv.Itoa(v.Jobs)
			if v.Jobs == 0 {
				jobs = "as many as cores"
			}
			production := ""
			if v.Production {
				production = "yes: load refuses the destination unless forced"
			}
			prove := ""
			if v.Prove != nil {
				prove = yesNo(*v.Prove)
			}
			a.fields("Name", v.Name, "Source", v.Source, "Destination", v.Destination, "Scratch", v.Scratch,
				"Jobs", jobs, "Production", production, "Rules", v.Rules, "SQL", v.SQL, "Prove", prove,
				"Encrypt to", strings.Join(v.EncryptTo, ", "), "Subset", limits(t.Subset),
				"Objects", choiceOf(t.Choice()), "After load", t.AfterLoad, "Grants", strings.Join(t.Grants, "; "),
				"Clones", clonesText(t.Clones), "Schedule", v.Schedule, "Time zone", v.TimeZone,
				"Checks", checksText(t.Checks))
			for _, s := range v.settings() {
				a.fields(s[0], s[1])
			}
			return nil
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

// clonesText describes the limits on a target's clones. It returns "" if none is configured.
func clonesText(c local.ClonesSpec) string {
	var parts []string
	if c.Max > 0 {
		parts = append(parts, fmt.Sprintf("at most %d", c.Max))
	}
	if c.TTL != "" {
		parts = append(parts, "lifetime "+c.TTL)
	}
	if c.Warm > 0 {
		parts = append(parts, fmt.Sprintf("%d kept warm", c.Warm))
	}
	return strings.Join(parts, ", ")
}

// checksText describes a target's checks, each with its query on one line.
func checksText(checks []local.Check) string {
	var parts []string
	for _, c := range checks {
		parts = append(parts, strings.Join(strings.Fields(c.SQL), " ")+" must return "+c.Expect)
	}
	return strings.Join(parts, "; ")
}
