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
		Long: "Make the storage of the configuration this service's, in place of the service at the\n" +
			"public URL of --from. Services share no storage, so that one must never run again.\n\n" +
			"A backup of the database brings the snapshots back; this does not: the objects of the\n" +
			"lost service stay in the storage, and no snapshot names them.",
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
