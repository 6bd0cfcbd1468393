package sanitize

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
	"snap/internal/engine"
)

// Suggest writes a first rules file for what a dump holds. It goes by the names
// of columns and by sampled values, all on this machine; no value is in what it
// writes. What could be personal and is not recognized is left to decide on,
// which sanitizing refuses until somebody has.
func Suggest(c engine.Contents) ([]byte, error) {
	var b strings.Builder
	b.WriteString(head)
	if c.LargeObjects > 0 {
		fmt.Fprintf(&b, "\nlarge_objects: drop   # or keep; there are %d\n", c.LargeObjects)
	}
	b.WriteString("\ntables:\n")
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
		for i, column := range t.Columns {
			mask, why := suggest(column, t.Samples[i])
			key, err := yamlKey(column.Name)
			if err != nil {
				return nil, err
			}
			if mask == "null" {
				mask = `"null"`
			}
			line := fmt.Sprintf("      %s: %s", key, mask)
			if why != "" {
				line = fmt.Sprintf("%-44s # %s", line, why)
			}
			b.WriteString(line + "\n")
		}
	}
	// Two tables can have the same label, which no rules file can tell apart.
	if err := CheckRules("the first rules file", []byte(b.String())); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

const head = `# What becomes of every column when a snapshot is sanitized.
# A column without a rule, or with "decide", stops the run: nothing slips through.
# Masks: keep, null, constant, redact, hash, email, name, first_name, last_name,
# company, phone, address, city, noise, shift, format. With more: {mask: noise, percent: 5},
# {mask: shift, days: 30}, {mask: constant, value: x}. A table's rows go with rows: drop.
# Equal values stay equal across tables and snapshots, as long as the key does.
# key: ${SNAPCLI_MASK_KEY}    # to share it with a team; else one is made on this machine
`

// yamlKey writes a name so that it is read back as the same key. A name comes
// from the database and can hold any character, so the result is tried.
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
	return "", snap.Invalid(fmt.Sprintf("the name %q cannot be written into a rules file", name),
		"rename it in the database, or mask with a SQL file")
}

// nameHints are what a column's name says, the first that matches.
var nameHints = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|pwd|secret|token|api_?key|salt|hash|digest|session|otp|pin)($|_)`), "hash"},
	{regexp.MustCompile(`(?i)e.?mail`), "email"},
	{regexp.MustCompile(`(?i)(phone|fax|mobile|tel(ephone)?($|_))`), "phone"},
	{regexp.MustCompile(`(?i)(^|_)(first|given|fore).?name`), "first_name"},
	{regexp.MustCompile(`(?i)(^|_)(last|family|sur).?name|^surname`), "last_name"},
	{regexp.MustCompile(`(?i)(full|contact|customer|user|employee|person|display|billing|shipping|ship).?name|username|login`), "name"},
	{regexp.MustCompile(`(?i)(company|organi[sz]ation|employer)`), "company"},
	{regexp.MustCompile(`(?i)(address|street)`), "address"},
	{regexp.MustCompile(`(?i)(^|_)(city|town)($|_)|city$`), "city"},
	{regexp.MustCompile(`(?i)(post(al)?.?code|zip)`), "format"},
	{regexp.MustCompile(`(?i)(birth|dob|born)`), "shift"},
	{regexp.MustCompile(`(?i)(ssn|social|passport|tax.?id|iban|card|account.?n|license|vat|national)`), "format"},
	{regexp.MustCompile(`(?i)(salary|income|wage|balance)`), "noise"},
	{regexp.MustCompile(`(?i)(^|_)(ip|ip.?addr(ess)?)($|_)`), "format"},
}

var (
	textType   = regexp.MustCompile(`(?i)char|text|clob|json|xml|citext|string`)
	binaryType = regexp.MustCompile(`(?i)blob|bytea|binary|image`)
	dateType   = regexp.MustCompile(`(?i)date|time`)
	searchType = regexp.MustCompile(`(?i)tsvector`)
	numberType = regexp.MustCompile(`(?i)int|serial|numeric|decimal|real|double|float|money|bool|bit|year|uuid`)
	codeValue  = regexp.MustCompile(`^[A-Z0-9][A-Z0-9_-]{0,11}$`)
	phoneValue = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{6,}[0-9]$`)
)

// suggest returns a mask for a column and why, if a person should look at it.
func suggest(c engine.Column, samples []string) (mask, why string) {
	text := c.Type == "" || textType.MatchString(c.Type)
	date := dateType.MatchString(c.Type)
	for _, hint := range nameHints {
		if !hint.pattern.MatchString(c.Name) {
			continue
		}
		switch {
		case hint.mask == "shift" && (date || text), hint.mask == "noise" && !date:
			return hint.mask, "by its name"
		case text && hint.mask != "shift":
			return hint.mask, "by its name"
		}
	}
	switch {
	case searchType.MatchString(c.Type), binaryType.MatchString(c.Type):
		if c.NotNull {
			return Undecided, "content that cannot be looked into"
		}
		return "null", "content that cannot be looked into"
	case date, !text && numberType.MatchString(c.Type):
		return "keep", ""
	}
	return byValues(samples)
}

// byValues judges text by what was sampled.
func byValues(samples []string) (mask, why string) {
	if len(samples) == 0 {
		return Undecided, "no values to judge by"
	}
	share := func(is func(string) bool) bool {
		n := 0
		for _, v := range samples {
			if is(v) {
				n++
			}
		}
		return n*2 > len(samples)
	}
	switch {
	case share(func(v string) bool { a, err := mail.ParseAddress(v); return err == nil && a.Address == v }):
		return "email", "its values look like e-mail addresses"
	case share(phoneValue.MatchString):
		return "phone", "its values look like telephone numbers"
	case share(codeValue.MatchString):
		return "keep", "its values look like codes"
	case len(samples) < 20 && share(func(v string) bool { return len(v) <= 24 }):
		return "keep", fmt.Sprintf("%d different short values", len(samples))
	}
	return Undecided, "text"
}
