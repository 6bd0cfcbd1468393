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
		Long: "Claim makes this service the owner of the object store in the configuration, in\n" +
			"place of the service with the public URL --from. Two services cannot share an object\n" +
			"store, so the old service must never run again.\n\n" +
			"If you have a backup of the lost database, restore it instead. A restore brings the\n" +
			"snapshots back; claim does not. The objects of the lost service stay in the object\n" +
			"store, but no snapshot refers to them.",
		Example: "  snapcloud claim --config snapcloud.yaml --from https://snap.example.com",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(s *database) error {
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
