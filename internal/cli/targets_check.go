package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) targetCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Check that a target's databases can be used",
		Long: `Check connects to the source and the destination of a target, or of all targets.
It reports the versions of the server and of the database programs, programs
that are missing, and privileges that the user in the URL lacks, each with the
statement that grants it. It changes nothing, and it fails if anything is
missing.`,
		Example: examples("check one", "snapcli targets check shop", "check all, for a script",
			"snapcli targets check --json"),
		Args:              command.AtMostOneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE:              a.withAgent(a.checkTargets),
	}
	a.jsonFlag(cmd)
	return cmd
}

// checkedDatabase is the result of checking one database of a target.
type checkedDatabase struct {
	Target        string        `json:"target"`
	Role          string        `json:"role" doc:"source or destination"`
	URL           string        `json:"url" doc:"without its password"`
	Engine        snap.Engine   `json:"engine,omitempty"`
	Usable        bool          `json:"usable" doc:"nothing is missing"`
	Reachable     bool          `json:"reachable"`
	Exists        bool          `json:"exists"`
	ServerVersion string        `json:"server_version,omitempty"`
	ToolVersion   string        `json:"tool_version,omitempty" doc:"version of the dump program, if there is one"`
	Tables        int           `json:"tables"`
	Size          int64         `json:"size"`
	Missing       []missingView `json:"missing"`
	Warnings      []string      `json:"warnings"`
}

// missingView is one missing requirement.
type missingView struct {
	Code   snap.Code `json:"code"`
	What   string    `json:"what"`
	Remedy string    `json:"mend,omitempty" doc:"the statement that grants it, or what to do"`
}

// checkTargets checks the named targets, or all if none is named. If anything is missing, it
// returns an error with the code of the first problem.
func (a *app) checkTargets(ctx context.Context, agent *local.Agent, names []string) error {
	if len(names) == 0 {
		for _, t := range agent.Targets() {
			names = append(names, t.Name)
		}
	}
	x := &examination{app: a}
	views := []checkedDatabase{}
	for _, name := range names {
		checks, err := agent.CheckTarget(ctx, name)
		if err != nil {
			return err
		}
		for _, c := range checks {
			x.database(name+" "+c.Role, c)
			views = append(views, a.viewCheck(name, c))
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.flags.json {
		if err := a.printJSON(views); err != nil {
			return err
		}
	}
	return x.verdict("fix the problems marked above, and run `snapcli targets check` again")
}

func (a *app) viewCheck(target string, c local.DatabaseCheck) checkedDatabase {
	v := checkedDatabase{
		Target: target, Role: c.Role, URL: c.URL, Engine: c.Engine, Usable: c.Err == nil && len(c.Missing) == 0,
		Reachable: c.Reachable, Exists: c.Exists, ServerVersion: c.ServerVersion, ToolVersion: c.ToolVersion,
		Tables: c.Tables, Size: c.Size, Missing: []missingView{}, Warnings: emptyNotNull(c.Warnings),
	}
	if c.Err != nil {
		e := asError(c.Err)
		v.Missing = append(v.Missing, missingView{e.Code, a.secrets.redact(e.Error()), e.Hint})
	}
	for _, n := range c.Missing {
		v.Missing = append(v.Missing, missingView{n.Code, n.What, n.Remedy})
	}
	return v
}
