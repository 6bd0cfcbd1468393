package operator

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/cloud"
	"snap/internal/command"
	"snap/internal/store"
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
		Short: "Repeat revocations that a restored database has lost",
		Long: "Replay reads an export of the audit log and repeats the revocations that come after\n" +
			"the last line of the database's own log. It ends shares, including those of deleted\n" +
			"snapshots, revokes keys, and disables users who were disabled or who left.\n" +
			"It never gives access to anybody. It also records that refresh tokens of identity\n" +
			"providers may be old, so that nobody is removed because a provider refuses an old\n" +
			"one.\n\n" +
			"Run it after you restored the database to an earlier moment and before the service\n" +
			"starts. The export must continue the database's log line by line. It may be empty.",
		Example: "  snapcloud audit replay --config snapcloud.yaml --org acme --revocations acme.jsonl",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			lines, err := os.Open(file)
			if err != nil {
				return snap.Usage("cannot read the export: "+err.Error(), "check the path in --revocations")
			}
			defer lines.Close()
			return p.withOrg(c.Context(), org, func(s *database, o store.Org) error {
				r, err := cloud.ReplayRevocations(c.Context(), s.Store, o.OrgRef, lines)
				if err != nil {
					return err
				}
				if p.asJSON {
					return p.json(r)
				}
				fmt.Fprintf(p.stderr, "replayed %s: ended %s, disabled %s, revoked %s\n",
					snap.Plural(r.Lines, "line", "lines"), snap.Plural(len(r.Shares), "share", "shares"),
					snap.Plural(len(r.Users), "user", "users"), snap.Plural(len(r.Keys), "key", "keys"))
				return nil
			})
		},
	}
	c.Flags().StringVar(&org, "org", "", "slug of the organization (required)")
	c.Flags().StringVar(&file, "revocations", "", "output `FILE` of \"snapcli cloud audit export\" (required)")
	c.MarkFlagRequired("org")
	c.MarkFlagRequired("revocations")
	return c
}
