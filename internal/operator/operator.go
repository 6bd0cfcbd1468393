// Package operator is the command line of snapcloud for the service's operator: serve, and the
// commands that manage the service on its own machine. These commands use the same configuration
// and database as the service. Most of them can be used while it runs.
package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/cloud"
	"snap/internal/command"
)

// Main runs snapcloud with these arguments and returns its exit code. It writes results to stdout
// and everything else to stderr. It stops when ctx is done.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string, version string) int {
	result := command.NewResult(stdout)
	p := &program{stdout: result, stderr: stderr, environ: environ, version: version}
	root := p.root()
	root.SetArgs(args)
	root.SetOut(result)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = result.Err()
	}
	if err == nil {
		return snap.ExitOK
	}
	e := command.Fault(err)
	fmt.Fprintf(stderr, "snapcloud: %s\n", snap.CleanText(e.Error()))
	if e.Hint != "" {
		fmt.Fprintf(stderr, "  hint: %s\n", snap.CleanText(e.Hint))
	}
	return e.Code.Info().Exit
}

// program is one run of the command line.
type program struct {
	stdout, stderr io.Writer
	environ        []string
	version        string
	configFile     string
	listen         string
	asJSON         bool
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "snapcloud",
		Short:         "The service where teams share database snapshots",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          command.RequireKnown,
		RunE:          command.ShowHelp,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return command.CheckFlags(c)
		},
	}
	root.SetFlagErrorFunc(command.FlagError)
	root.PersistentFlags().StringVar(&p.configFile, "config", "", "the configuration file (YAML)")
	root.PersistentFlags().BoolVar(&p.asJSON, "json", false, "print JSON")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(p.serve(), p.migrate(), p.check(), p.openapi(), p.versionCommand(),
		p.audit(), p.key(), p.org(), p.user(),
		p.backup(), p.restore(), p.transfer(), p.claim())
	command.CheckHelp(root)
	return root
}

func (p *program) config() (cloud.Config, error) { return cloud.LoadConfig(p.configFile, p.environ) }

func (p *program) serve() *cobra.Command {
	var again bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long: `Serve runs the service until it gets SIGTERM or Ctrl-C. Requests that are running
at that time have 20 seconds to finish; a second signal ends the process at once.
When it starts, it updates the database's schema and applies the organizations
and local users of the configuration.`,
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := p.config()
			if err != nil {
				return err
			}
			if p.listen != "" {
				if config.PublicURL == "http://"+config.Listen {
					config.PublicURL = "http://" + p.listen
				}
				config.Listen = p.listen
				if err := config.Check(); err != nil { // again, because the address decides what is allowed
					return err
				}
			}
			return cloud.Run(c.Context(), config, cloud.Options{Version: p.version, Again: again}, func(a net.Addr) {
				fmt.Fprintf(p.stderr, "snapcloud is serving %s (listening on %s)\n", config.PublicURL, a)
			})
		},
	}
	c.Flags().StringVar(&p.listen, "listen", "", "address to listen on; overrides the configuration")
	c.Flags().BoolVar(&again, "again", false, "start even though a transfer moved the service elsewhere")
	return c
}

func (p *program) migrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Update the database's schema",
		Long: `Migrate updates the database to the schema of this version. If a SQLite database
does not exist, migrate creates it. Serve does the same at every start.`,
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withStore(c.Context(), func(*database) error {
				fmt.Fprintln(p.stdout, "the database is up to date")
				return nil
			})
		},
	}
}

func (p *program) openapi() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI document of the API",
		Args:  command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			doc, err := cloud.Document(c.Context(), p.version)
			if err != nil {
				return err
			}
			_, err = p.stdout.Write(doc)
			return err
		},
	}
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return p.report(map[string]string{"version": p.version}, "snapcloud %s\n", p.version)
		},
	}
}

func (p *program) check() *cobra.Command {
	var offline, deep, remove bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check everything that the configuration names",
		Long: `Check reads the configuration, tests everything that it names and prints the
results: the database and its schema, the key that encrypts its signing keys, the
clock, writing to and reading from the object store, the free space of data_dir,
the bucket of checkpoints, each identity provider, the hosts of webhooks, the SMTP
server, and the collector of traces. It changes nothing, except that it writes a
small object to the object store and removes it again.

If the disk is nearly full, or if S3, the bucket of checkpoints, an identity
provider, a webhook's host, the SMTP server or the collector of traces cannot be
used, that is a warning, as are clocks of replicas that differ and organizations
that are missing from the configuration: the service still starts, and
everything else works. A problem with the configuration, the database, its keys,
its clock or a folder of objects fails the check, and so does an object store
that belongs to another service. With --offline, check only reads the
configuration and connects to nothing.

With --deep, check also compares the rows of the database with the objects in
the object store. It lists snapshots whose bytes are missing, which fails the
check, and objects that belong to no row. Use it after a restore. With
--remove-unused as well, the service removes the objects that belong to no row,
except those of the audit log, at its next garbage collection, within ten
minutes.`,
		Args: command.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if remove && !deep {
				return snap.Usage("--remove-unused needs --deep", "add --deep")
			}
			return p.runCheck(c.Context(), offline, deep, remove)
		},
	}
	c.Flags().BoolVar(&offline, "offline", false, "only read the configuration, without connecting to anything")
	c.Flags().BoolVar(&deep, "deep", false, "also compare the database with the object store")
	c.Flags().BoolVar(&remove, "remove-unused", false, "with --deep: let the service remove objects of no row")
	c.MarkFlagsMutuallyExclusive("offline", "deep")
	return c
}

func (p *program) runCheck(ctx context.Context, offline, deep, remove bool) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	if offline {
		return p.printVerdicts([]cloud.Verdict{cloud.Configured(config)})
	}
	all := cloud.Verdicts(ctx, config)
	if deep {
		var compared []cloud.Verdict
		compared, err = cloud.Deep(ctx, config)
		all = append(all, compared...)
	}
	if remove && err == nil {
		err = p.removeUnused(ctx, all)
	}
	return cmp.Or(err, p.printVerdicts(all))
}

// removeUnused lets the service remove the objects that a deep check found unused, unless they are
// used now.
func (p *program) removeUnused(ctx context.Context, found []cloud.Verdict) error {
	return p.withStore(ctx, func(s *database) error {
		n := 0
		defer func() { fmt.Fprintf(p.stderr, "unused objects that the service will remove: %d\n", n) }()
		for _, v := range found {
			for _, key := range v.Unused {
				unused, err := s.DiscardUnused(ctx, key)
				if err != nil {
					return err
				}
				if unused {
					n++
				}
			}
		}
		return nil
	})
}

// finding is a verdict in the JSON output of check.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Warn   bool   `json:"warning,omitempty"`
	Detail string `json:"detail"`
}

// printVerdicts prints all verdicts. It fails if one of them is an error and not just a warning.
func (p *program) printVerdicts(all []cloud.Verdict) error {
	findings, failed := []finding{}, false
	for _, v := range all {
		findings = append(findings, finding{v.What, v.Err == nil, v.Warning, v.Detail})
		failed = failed || v.Err != nil && !v.Warning
	}
	if p.asJSON {
		if err := p.json(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			mark := "FAIL"
			switch {
			case f.OK:
				mark = "ok  "
			case f.Warn:
				mark = "warn"
			}
			fmt.Fprintf(p.stdout, "%s  %-14s %s\n", mark, f.What, f.Detail)
		}
	}
	if failed {
		return &snap.Error{Code: snap.CodeUnavailable, Detail: "one or more checks failed",
			Hint: "see the lines marked FAIL"}
	}
	return nil
}

func (p *program) json(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows under headings, in columns. Names in them come from users and identity
// providers, so control characters are removed.
func (p *program) table(headings []string, rows [][]string) error {
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(headings, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = snap.CleanText(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
