package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
)

// ruleSet holds the rules of a target, with its tables in the order of their source file.
type ruleSet struct {
	tables []string
	rules  map[string]map[string]string
}

// set sets the mask of a column, and reports whether the column had none before.
func (r *ruleSet) set(table, column, mask string) bool {
	if r.rules == nil {
		r.rules = map[string]map[string]string{}
	}
	if r.rules[table] == nil {
		r.rules[table] = map[string]string{}
		r.tables = append(r.tables, table)
	}
	_, had := r.rules[table][column]
	r.rules[table][column] = mask
	return !had
}

// text returns the rules file, or "" if there are no rules.
func (r *ruleSet) text(from string) string {
	if len(r.tables) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Imported from %s. Every other column needs a rule too; the rule can be `keep`.\n"+
		"# If a column has none, sanitizing stops and lists all such columns. For suggestions, run:\n"+
		"# snapcli sanitize TARGET --init --rules all.rules.yaml\ntables:\n", snap.CleanText(from))
	for _, table := range r.tables {
		fmt.Fprintf(&b, "  %s:\n    columns:\n", key(table))
		for _, column := range slices.Sorted(maps.Keys(r.rules[table])) {
			fmt.Fprintf(&b, "      %s: %s\n", key(column), r.rules[table][column])
		}
	}
	return b.String()
}

// key quotes a name as a YAML key where necessary.
func key(name string) string {
	text, err := yaml.Marshal(name)
	if err != nil {
		return fmt.Sprintf("%q", name)
	}
	return strings.TrimSpace(string(text))
}
