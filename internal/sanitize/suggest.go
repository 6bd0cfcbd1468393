package sanitize

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
	"snap/internal/engine"
)

// Suggest writes an initial rules file for a dump. It uses the names, types, keys, comments and
// sampled values of columns, and sends them nowhere. The file contains no values. Every proposal
// has its reason as a comment, and every proposed mask can be used for its column. Columns that may
// be personal but are not recognized are left undecided; sanitizing rejects the file until somebody
// decides.
func Suggest(c engine.Contents) ([]byte, error) {
	var b strings.Builder
	b.WriteString(beginning(c))
	proposals := propose(factsOf(c))
	for _, t := range c.Tables {
		name, err := yamlKey(tableLabel(t))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "  %s:\n", name)
		if len(t.Columns) == 0 {
			b.WriteString("    columns: {}\n")
			continue
		}
		b.WriteString("    columns:\n")
		for _, column := range t.Columns {
			key, err := yamlKey(column.Name)
			if err != nil {
				return nil, err
			}
			p := proposals[columnID{t.Schema, t.Name, column.Name}]
			b.WriteString(ruleLine("      ", key, p.text(), p.reason))
		}
	}
	// CheckRules fails if two tables have the same label, because a rules file cannot distinguish them.
	return []byte(b.String()), CheckRules("the initial rules file", []byte(b.String()))
}

// beginning returns the start of a rules file, before the rules of tables.
func beginning(c engine.Contents) string {
	if c.LargeObjects == 0 {
		return head + "\ntables:\n"
	}
	return head + fmt.Sprintf("\nlarge_objects: drop   # or keep; there are %d\n\ntables:\n", c.LargeObjects)
}

// ruleLine returns the line of a column's rule, with its reason as a comment.
func ruleLine(indent, key, rule, reason string) string {
	return fmt.Sprintf("%-44s # %s\n", indent+key+": "+rule, snap.CleanText(reason))
}

const head = `# The mask of every column when a snapshot is sanitized.
# A column without a rule, or with "decide", stops the run, so that nothing is overlooked.
# Masks: keep, null, constant, redact, hash, key, email, name, first_name, last_name,
# user_name, company, phone, address, city, coordinates, ip, mac, card, iban, noise,
# shift, format, choice, integer, number, date, boolean, uuid, word, sentence, paragraph, url,
# domain, password, password_hash, time_zone, currency, dictionary, replace, json, xml, composite,
# template.
# With options: {mask: noise, percent: 5}, {mask: shift, days: 30}, {mask: constant, value: x}.
# "rows: drop" on a table removes all of its rows.
# With the same key, equal values get equal masks in all tables and, nearly always, in all snapshots.
# key: ${SNAPCLI_MASK_KEY}    # shares a key with a team; otherwise one is created on this machine
`

// yamlKey quotes a name so that YAML parses it to the same key. A name comes from the database and
// can contain any character, so the result is tested.
func yamlKey(name string) (string, error) {
	for _, write := range []func(any) ([]byte, error){yaml.Marshal, json.Marshal} {
		text, err := write(name)
		if err != nil {
			continue
		}
		key := strings.TrimSpace(string(text))
		var read map[string]map[string]int
		err = yaml.Unmarshal([]byte("outer:\n  "+key+": 1\n"), &read)
		if err == nil && !strings.Contains(key, "\n") && len(read["outer"]) == 1 && read["outer"][name] == 1 {
			return key, nil
		}
	}
	return "", snap.Invalid(fmt.Sprintf("the name %q cannot be written to a rules file", name),
		"rename it in the database, or mask with a SQL file")
}
