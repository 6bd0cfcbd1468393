package operator

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"snap"
	"snap/internal/cloud"
	"snap/internal/command"
	"snap/internal/move"
)

func (p *program) backup() *cobra.Command {
	var to string
	var keep int
	c := &cobra.Command{
		Use:   "backup --to DIR",
		Short: "Back up the SQLite database and the objects, even while the service runs",
		Long: "Backup adds a backup to a folder of backups: the SQLite database as of one moment,\n" +
			"and every object that the database refers to at that moment. The service may\n" +
			"keep running. Objects of earlier backups are not copied again. A backup becomes\n" +
			"visible only when it is complete. After an interrupted run, the next run reuses\n" +
			"the objects that were already copied.\n\n" +
			"The folder holds the snapshots themselves and secrets: signing keys and hashes of\n" +
			"API keys. Only its owner can read it. It does not include the configuration file.\n\n" +
			"If the service uses PostgreSQL or S3, back those up with their own tools.",
		Example: "  snapcloud backup --config snapcloud.yaml --to /mnt/backups/snap --keep 14",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := p.embedded()
			if err != nil {
				return err
			}
			if keep < 0 {
				return snap.Usage(fmt.Sprintf("--keep %d is less than zero", keep),
					"give a number of backups, or 0 to keep all")
			}
			b, err := move.BackUp(c.Context(),
				move.Options{DataDir: config.DataDir, Dir: to, Version: p.version, Keep: keep},
				progress(p.stderr, "copied"))
			if err != nil {
				return err
			}
			return p.report(b, "backed up as %s: %s, %d of them new (%s); the database is %s\n", b.Name,
				objects(b.Objects, b.Bytes), b.Added, size(b.AddedBytes), size(b.Database))
		},
	}
	c.Flags().StringVar(&to, "to", "", "the folder of backups (required)")
	c.Flags().IntVar(&keep, "keep", 0, "how many backups to keep, including this one; 0 keeps all")
	c.MarkFlagRequired("to")
	c.AddCommand(p.backupList(), p.backupVerify())
	return c
}

func (p *program) backupList() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "list --from DIR", Short: "List the backups in a folder, newest first", Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, damage := move.Backups(from)
			if all == nil && damage != nil {
				return damage
			}
			if p.asJSON {
				return cmp.Or(p.json(append([]move.Backup{}, all...)), damage)
			}
			var table [][]string
			for _, b := range all {
				table = append(table, []string{b.Name, strconv.FormatInt(b.Objects, 10), size(b.Bytes),
					size(b.AddedBytes), size(b.Database), b.Version})
			}
			return cmp.Or(p.table([]string{"BACKUP", "OBJECTS", "SIZE", "NEW", "DATABASE", "VERSION"}, table), damage)
		},
	}
	c.Flags().StringVar(&from, "from", "", "the folder of backups (required)")
	c.MarkFlagRequired("from")
	return c
}

func (p *program) backupVerify() *cobra.Command {
	var from, at string
	c := &cobra.Command{
		Use: "verify --from DIR", Short: "Read a whole backup and check that it is unchanged",
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := move.Verify(c.Context(), from, at, progress(p.stderr, "verified"))
			if err != nil {
				return err
			}
			return p.report(b, "the backup %s is intact: %s, the database and every audit chain\n", b.Name,
				objects(b.Objects, b.Bytes))
		},
	}
	c.Flags().StringVar(&from, "from", "", "the folder of backups (required)")
	c.Flags().StringVar(&at, "at", "", "the backup's name (default: the newest)")
	c.MarkFlagRequired("from")
	return c
}

func (p *program) restore() *cobra.Command {
	var from, at string
	c := &cobra.Command{
		Use:   "restore --from DIR",
		Short: "Restore a backup into an empty data_dir",
		Long: "Restore puts a backup into the data_dir of the configuration, which must be empty.\n" +
			"It verifies everything before it puts anything in place. No service can start on\n" +
			"this data_dir until the restore is complete. Run an interrupted restore again to\n" +
			"resume it.\n\n" +
			"Logins and keys are as they were when the backup was made. Pushes that were in\n" +
			"progress at that time start over.",
		Example: "  snapcloud restore --config snapcloud.yaml --from /mnt/backups/snap",
		Args:    command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := p.embedded()
			if err != nil {
				return err
			}
			b, err := move.Restore(c.Context(), from, at, config.DataDir, progress(p.stderr, "restored"))
			if err != nil {
				return err
			}
			return p.report(b, "restored %s into %s: %s, everything verified\n", b.Name, config.DataDir,
				objects(b.Objects, b.Bytes))
		},
	}
	c.Flags().StringVar(&from, "from", "", "the folder of backups (required)")
	c.Flags().StringVar(&at, "at", "", "the backup's name (default: the newest)")
	c.MarkFlagRequired("from")
	return c
}

// embedded returns the configuration of a service that uses SQLite and a folder. It fails for any
// other service.
func (p *program) embedded() (cloud.Config, error) {
	config, err := p.config()
	if err == nil && (config.Database.URL != "" || config.Blob.URL != "") {
		err = snap.Usage(
			"this command works only with SQLite and a data folder, but the configuration sets database.url or "+
				"blob.url",
			"back up and restore PostgreSQL and the bucket with their own tools; back up the database before the "+
				"bucket")
	}
	return config, err
}

// report prints a result as JSON or as a sentence.
func (p *program) report(v any, format string, args ...any) error {
	if p.asJSON {
		return p.json(v)
	}
	_, err := fmt.Fprintf(p.stdout, format, args...)
	return err
}

func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

func objects(n, bytes int64) string {
	if n == 1 {
		return "1 object of " + size(bytes)
	}
	return fmt.Sprintf("%d objects of %s in total", n, size(bytes))
}

// printEvery is the shortest time between two lines of progress.
const printEvery = 5 * time.Second

// progress returns functions that print the progress of an operation. verb says what was done.
func progress(out io.Writer, verb string) move.Progress {
	var mu sync.Mutex
	last := time.Now()
	show := func(done string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) >= printEvery {
			last = time.Now()
			fmt.Fprintln(out, verb, done)
		}
	}
	return move.Progress{
		Objects: func(done, of, bytes int64) { show(fmt.Sprintf("%d of %s", done, objects(of, bytes))) },
		Table:   func(name string, rows int64) { show(fmt.Sprintf("the table %s: %d rows", name, rows)) },
	}
}
