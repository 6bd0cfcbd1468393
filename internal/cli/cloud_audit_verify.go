package cli

import (
	"context"
	"strings"

	"snap"
	"snap/api"
)

// verifyAudit verifies the organization's audit log on this machine against the checkpoint saved by
// the previous run. If the log is intact, verifyAudit saves the new checkpoint.
func (a *app) verifyAudit(ctx context.Context) error {
	agent, conn, err := a.connectAgent()
	if err != nil {
		return err
	}
	verdict, err := conn.VerifyAudit(ctx, func(organization string) (api.AuditCheckpoint, error) {
		return agent.Checkpoint(conn.BaseURL(), organization)
	})
	if err != nil && verdict.Problem == "" {
		return err
	}
	if err == nil && verdict.Now != nil {
		if err := agent.KeepCheckpoint(conn.BaseURL(), verdict.Organization, *verdict.Now); err != nil {
			return err
		}
	}
	switch {
	case a.flags.json:
		if printErr := a.printJSON(verdict); printErr != nil {
			return printErr
		}
		return err
	case err != nil:
		a.showCheckpoint("The checkpoint that was saved here:", verdict.Seen)
		a.showCheckpoint("The checkpoint that the service signed now:", verdict.Now)
		return err
	case verdict.Now == nil:
		a.done("", "the audit log has no lines yet")
	case verdict.Seen == nil:
		a.done("", "the audit log is intact: %s. Its checkpoint is saved in %s; later runs prove that the log "+
			"has only grown.", snap.Plural(int(verdict.Lines), "line", "lines"), agent.CheckpointsPath())
	default:
		a.done("", "the audit log is intact: %s; it has only grown since the last checkpoint",
			snap.Plural(int(verdict.Lines), "line", "lines"))
	}
	return nil
}

func (a *app) showCheckpoint(title string, c *api.AuditCheckpoint) {
	if c == nil {
		return
	}
	a.result("%s", title)
	for line := range strings.Lines(c.Checkpoint) {
		a.result("  %s", strings.TrimRight(line, "\n"))
	}
}
