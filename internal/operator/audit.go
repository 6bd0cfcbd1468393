package operator

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"snap/internal/cloud"
	"snap/internal/command"
)

func (p *program) audit() *cobra.Command {
	c := command.Parent("audit", "Work with an organization's audit log", "")
	c.AddCommand(p.auditReplay())
	return c
}

func (p *program) auditReplay() *cobra.Command {
	var org, file string
	c := &cobra.Command{
		Use:   "replay --org SLUG --revocations FILE",
		Short: "End in a restored database what had ended after the restored moment",
		Long: "Read an export of the audit log, and end what it says had ended after the last line\n" +
			"of the database: shares, also of snapshots that were deleted, users who were disabled\n" +
			"or left, and keys. It never gives access to anybody.\n\n" +
			"Run it after the database was restored to an earlier moment and before the service\n" +
			"starts. The export must continue the database's log line by line.",
		Example: "  snapcloud audit replay --config snapcloud.yaml --org acme --revocations acme.jsonl",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			lines, err := os.Open(file)
			if err != nil {
				return err
			}
			defer lines.Close()
			return p.withStore(c.Context(), func(s *opened) error {
				o, err := s.OrgBySlug(c.Context(), org)
				if err != nil {
					return err
				}
				r, err := cloud.ReplayRevocations(c.Context(), s.Store, o.OrgRef, lines)
				if err != nil {
					return err
				}
				if p.asJSON {
					return p.json(r)
				}
				fmt.Fprintf(p.stderr, "after %d lines: ended %d shares, disabled %d users, revoked %d keys\n", r.Lines,
					len(r.Shares), len(r.Users), len(r.Keys))
				return nil
			})
		},
	}
	c.Flags().StringVar(&org, "org", "", "slug of the organization (required)")
	c.Flags().StringVar(&file, "revocations", "", "output of `snapcli cloud audit export` (required)")
	c.MarkFlagRequired("org")
	c.MarkFlagRequired("revocations")
	return c
}
