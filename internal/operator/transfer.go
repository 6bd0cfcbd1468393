package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/cloud"
	"snap/internal/command"
	"snap/internal/move"
)

func (p *program) transfer() *cobra.Command {
	var to string
	var dryRun bool
	c := &cobra.Command{
		Use:   "transfer --to CONFIG",
		Short: "Copy the service to another database and object store",
		Long: "Transfer copies all data of the service in --config to the database and object\n" +
			"store of another configuration, for example from SQLite and a folder to PostgreSQL\n" +
			"and S3, or back. Stop the service first. Keys, sessions, shares and the audit log\n" +
			"stay as they are.\n\n" +
			"The destination must be empty. Transfer reads every object and row back from the\n" +
			"destination and compares it with the source. Run an interrupted transfer again to\n" +
			"resume it. Until the transfer ends, the service refuses to start on the\n" +
			"destination. Then the source is marked as moved, and `snapcloud serve` refuses to\n" +
			"start there; nothing else in the source changes.\n\n" +
			"SNAPCLOUD_ environment variables override only the file in --config. ${NAME} is\n" +
			"replaced in both configuration files.",
		Example: "  snapcloud transfer --config snapcloud.yaml --to replicas.yaml --dry-run\n" +
			"  snapcloud transfer --config snapcloud.yaml --to replicas.yaml",
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.moveService(c.Context(), to, dryRun) },
	}
	c.Flags().StringVar(&to, "to", "", "the configuration file of the destination (required)")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only check both sides, and report what would be copied")
	c.MarkFlagRequired("to")
	return c
}

func (p *program) moveService(ctx context.Context, to string, dryRun bool) error {
	source, err := p.config()
	if err != nil {
		return err
	}
	destination, err := cloud.LoadConfig(to, withoutOverrides(p.environ))
	if err != nil {
		return err
	}
	from, err := place(source)
	if err != nil {
		return err
	}
	target, err := place(destination)
	if err != nil {
		return err
	}
	r, err := move.Transfer(ctx, from, target, progress(p.stderr, "copied"), dryRun)
	if err != nil {
		return err
	}
	if source.PublicURL != destination.PublicURL {
		fmt.Fprintf(p.stderr, "public_url changes from %s to %s: people must sign in again; API keys keep working\n",
			source.PublicURL, destination.PublicURL)
	}
	if dryRun {
		return p.report(r, "would copy %d rows and %s\n", r.Rows, objects(r.Objects, r.Bytes))
	}
	if err := p.report(r, "copied and compared %d rows and %s\n", r.Rows, objects(r.Objects, r.Bytes)); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr,
		"start the service with %s; the source is marked as moved, and the service no longer starts there\n", to)
	return nil
}

// withoutOverrides returns an environment without the variables that override a configuration.
func withoutOverrides(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "SNAPCLOUD_")
	})
}

// place returns the database and the object store of a configuration.
func place(c cloud.Config) (move.Place, error) {
	sealer, err := auth.NewSealer(c.Auth.KeyEncryptionKey)
	if err != nil {
		return move.Place{}, snap.Usage("auth.key_encryption_key "+err.Error(), "")
	}
	return move.Place{
		Database:   c.StoreOptions(),
		Blobs:      func(ctx context.Context) (blob.Store, error) { return cloud.OpenBlobs(ctx, c) },
		CheckOwner: cloud.CheckOwner,
		Sealer:     sealer,
	}, nil
}
