package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"snap/internal/local"
)

// choiceFlags adds the flags that choose the objects of a snapshot.
func choiceFlags(cmd *cobra.Command, c *local.Choice) {
	for _, flag := range []struct {
		name string
		into *[]string
		help string
	}{
		{"table", &c.Tables, "take only the tables that match a pattern"},
		{"schema", &c.Schemas, "take only the PostgreSQL schemas that match a pattern"},
		{"exclude-table", &c.Exclude, "leave out the tables and views that match a pattern"},
		{"exclude-data", &c.ExcludeData, "leave out the rows of the tables that match a pattern"},
		{"exclude-extension", &c.Extensions, "leave out the PostgreSQL extensions that match a pattern"},
		{"omit", &c.Omit, "leave out a kind of object: " + strings.Join(local.OmitKinds(), ", ")},
	} {
		cmd.Flags().StringArrayVar(flag.into, flag.name, nil, flag.help+"; can be repeated")
	}
	_ = cmd.RegisterFlagCompletionFunc("omit", cobra.FixedCompletions(local.OmitKinds(),
		cobra.ShellCompDirectiveNoFileComp))
}

// choiceView is the output form of a target's choice of objects.
type choiceView struct {
	Include           []string `json:"include,omitempty" doc:"patterns of the tables to build; absent means all"`
	Schemas           []string `json:"schemas,omitempty" doc:"patterns of schemas to build; absent means all"`
	Exclude           []string `json:"exclude,omitempty" doc:"patterns of the tables and views that are left out"`
	ExcludeData       []string `json:"exclude_data,omitempty" doc:"patterns of the tables whose rows are left out"`
	ExcludeExtensions []string `json:"exclude_extensions,omitempty" doc:"patterns of the extensions that are left out"`
	Omit              []string `json:"omit,omitempty" doc:"kinds of objects that are left out"`
}

func viewChoice(c local.Choice) choiceView {
	return choiceView{c.Tables, c.Schemas, c.Exclude, c.ExcludeData, c.Extensions, c.Omit}
}

// choiceOf describes a target's choice of objects.
func choiceOf(c local.Choice) string {
	var parts []string
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"include", c.Tables}, {"schemas", c.Schemas}, {"exclude", c.Exclude}, {"exclude data", c.ExcludeData},
		{"exclude extensions", c.Extensions}, {"omit", c.Omit}} {
		if len(list.patterns) > 0 {
			parts = append(parts, list.name+" "+strings.Join(list.patterns, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
