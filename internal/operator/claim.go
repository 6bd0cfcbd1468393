package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"snap/internal/cloud"
	"snap/internal/command"
)

func (p *program) claim() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "claim --from URL",
		Short: "Take over the object store of a service whose database is lost",
		Long: "Claim the object store in the configuration for this service, in place of the\n" +
			"service at the public URL --from. Two services cannot share an object store, so the\n" +
			"old one must never run again.\n\n" +
			"If the database has a backup, restore it instead: that brings the snapshots back,\n" +
			"and claim does not. The objects of the lost service stay in the object store, but\n" +
			"no snapshot refers to them.",
		Example: "  snapcloud claim --config snapcloud.yaml --from https://snap.example.com",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(s *opened) error {
				if err := cloud.Claim(c.Context(), s.Store, s.config, from); err != nil {
					return err
				}
				fmt.Fprintf(p.stderr, "the object store belonged to %s and now belongs to this service\n", from)
				return nil
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "public URL of the service that this one replaces (required)")
	c.MarkFlagRequired("from")
	return c
}
