package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/foreign"
	"snap/internal/local"
)

func (a *app) configImportCommand() *cobra.Command {
	cmd := command.Parent("import", "Import the configuration of another tool",
		`Import reads the configuration of another tool and writes the targets, storage
profiles and masking rules that snapcli has an equivalent for. It lists every
other setting with its line. A column whose masking has no equivalent gets no
rule, so sanitizing stops until you add one.

If a URL in the file contains ${NAME}, connecting to that URL sends the value of
that environment variable to the host of the URL. Import asks about each of
these variables; scripts allow one with --allow-env NAME.`)
	cmd.AddCommand(a.importFrom("dbsnapper", "dbsnapper.yml",
		`Import dbsnapper imports targets with their databases and masking SQL, and
storage profiles. An encrypted secret in the file is replaced by a reference to
an environment variable, such as ${NAME}, which you then set.`), a.importFrom("greenmask", "greenmask.yml",
		`Import greenmask imports the databases as one target, the transformers of
columns as masking rules, and the storage as a storage profile.`))
	return cmd
}

func (a *app) importFrom(tool, file, long string) *cobra.Command {
	var target string
	var dry bool
	var allowed []string
	cmd := &cobra.Command{
		Use:   tool + " FILE",
		Short: "Import a " + file,
		Long:  long,
		Example: examples(
			"see the result first", "snapcli config import "+tool+" "+file+" --dry-run",
			"import it", "snapcli config import "+tool+" "+file),
		Args: command.ExactArgs("file"),
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			i, err := agent.ReadForeign(tool, args[0], target)
			if err == nil && !dry {
				err = a.allowVariables(ctx, i, allowed)
			}
			if err == nil && !dry {
				err = agent.Import(i)
			}
			if err != nil {
				return err
			}
			return a.printImport(i, dry)
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show the result")
	cmd.Flags().StringArrayVar(&allowed, "allow-env", nil,
		"let the imported URLs use this environment variable; can be repeated")
	if tool == "greenmask" {
		cmd.Flags().StringVar(&target, "target", "", "name of the target (default: the name of the database)")
	}
	a.jsonFlag(cmd)
	return cmd
}

// allowVariables asks for permission for each ${NAME} that an imported file uses in a URL: a later
// build would send the variable's value to the host of that URL.
func (a *app) allowVariables(ctx context.Context, i local.Import, allowed []string) error {
	for _, v := range i.Variables() {
		if slices.Contains(allowed, v.Name) {
			continue
		}
		problem := fmt.Sprintf("the file uses the environment variable %s in a URL of %s, so its value would be sent "+
			"there", v.Name, v.Host)
		if !a.canAsk() {
			return snap.Usage(problem, "if you want that, allow it with --allow-env "+v.Name)
		}
		yes, err := a.askYesNo(ctx, "Send the value of "+v.Name+" to "+v.Host+"?",
			"The file puts that environment variable into a URL of this host.")
		if err != nil {
			return err
		}
		if !yes {
			return snap.Usage(problem, "remove ${"+v.Name+"} from the file and import it again")
		}
	}
	return nil
}

// importView is the JSON output of config import.
type importView struct {
	Written  bool           `json:"written" doc:"false with --dry-run"`
	Targets  []targetView   `json:"targets"`
	Profiles []profileView  `json:"storage_profiles"`
	Files    []string       `json:"files" doc:"rules and SQL files"`
	Left     []foreign.Left `json:"left" doc:"settings without an equivalent, or with a different meaning here"`
}

// profileView is the output form of a storage profile.
type profileView struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (a *app) printImport(i local.Import, dry bool) error {
	v := importView{Written: !dry, Targets: viewAll(i.Targets, viewTarget), Profiles: []profileView{},
		Files: emptyNotNull(i.Files), Left: emptyNotNull(i.Left)}
	for _, name := range slices.Sorted(maps.Keys(i.Profiles)) {
		v.Profiles = append(v.Profiles, profileView{name, hidePassword(i.Profiles[name])})
	}
	if a.flags.json {
		return a.printJSON(v)
	}
	verb := "added"
	if dry {
		verb = "would add"
	}
	for _, t := range v.Targets {
		a.done(t.Name, "%s the target %s%s%s", verb, t.Name, withPrefix(", source ", t.Source),
			withPrefix(", destination ", t.Destination))
	}
	for _, p := range v.Profiles {
		a.done(p.Name, "%s the storage profile %s: %s", verb, p.Name, p.URL)
	}
	for _, file := range v.Files {
		a.done(file, "%s the file %s", verb, file)
	}
	for _, l := range v.Left { // printed even with --quiet: nothing is dropped silently
		a.warn("%s", l)
	}
	return nil
}
