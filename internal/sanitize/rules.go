package sanitize

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
	"snap/internal/disk"
	"snap/internal/schema"
)

// Rules is a rules file. It sets how every column of every table is treated.
//
//	key: ${SHOP_MASK_KEY}          # equal keys mask equal values equally
//	keep: ["*.id", "country.*"]    # columns without personal data
//	large_objects: drop            # or keep
//	schema_literals: stop          # or redact, or keep
//	tables:
//	  public.customer:
//	    columns:
//	      email: email
//	      born: {mask: shift, days: 30}
//	  public.audit: {rows: drop}
//
// In table and column names, * matches any sequence of characters. A column that neither a rule nor
// keep matches is an error: a column that is added later must not be copied unmasked.
type Rules struct {
	Key          string               `yaml:"key"`
	Keep         []string             `yaml:"keep"`
	LargeObjects string               `yaml:"large_objects"`
	Tables       map[string]TableRule `yaml:"tables"`

	// SchemaLiterals says how to treat originals in the SQL of the schema: keep, redact or stop.
	SchemaLiterals string `yaml:"schema_literals"`

	path     string
	sha256   string
	places   map[[2]string]string // the lines and columns of rules; see positions
	patterns []string             // the keys of Tables with a *, sorted

	originals avoided // originals that masks could draw, by mask; see Every
	words     map[string]bool

	inherited map[string]ColumnRule // by the column's label; see ToReferences
}

// TableRule is the rule of one table, or of all tables whose names match.
type TableRule struct {
	Rows    string                `yaml:"rows"` // "drop" or empty
	Columns map[string]ColumnRule `yaml:"columns"`
}

// ColumnRule is the rule of one column.
type ColumnRule struct {
	Mask    string   `yaml:"mask"`
	Value   string   `yaml:"value"`   // of the mask constant
	Percent float64  `yaml:"percent"` // of the mask noise; default 10
	Days    int      `yaml:"days"`    // of the mask shift; default 30
	Values  []string `yaml:"values"`  // of the mask choice
	Meters  float64  `yaml:"meters"`  // of the mask coordinates; default 5000
	Shared  bool     `yaml:"shared"`  // the leak scan ignores the column, because its values may also occur elsewhere

	Min      bound `yaml:"min"` // of the masks integer, number and date
	Max      bound `yaml:"max"`
	Decimals *int  `yaml:"decimals"` // of the mask number; default 2

	Map       map[string]string     `yaml:"map"`       // of the mask dictionary
	Pattern   string                `yaml:"pattern"`   // of the mask replace: a regular expression (RE2)
	With      string                `yaml:"with"`      // the replacement; $1 is the first group
	Paths     map[string]ColumnRule `yaml:"paths"`     // of the masks json and xml; the fields of composite
	Otherwise string                `yaml:"otherwise"` // the mask of all other values or parts; default redact

	Template string `yaml:"template"` // of the mask template
	When     string `yaml:"when"`     // a condition; other rows get the mask in Else
	Else     string `yaml:"else"`

	// ToReferences also applies the rule to columns that refer to this one, unless they have a rule
	// of their own.
	ToReferences bool `yaml:"apply_to_references"`

	parsedWhen     schema.Expr // When; empty if there is no condition
	parsedTemplate template    // Template
	avoid          avoided     // the originals that its masks must not produce
}

// bound is a number or a date.
type bound string

// UnmarshalYAML accepts any scalar.
func (b *bound) UnmarshalYAML(text []byte) error {
	*b = bound(strings.Trim(strings.TrimSpace(string(text)), `"'`))
	return nil
}

// UnmarshalYAML accepts a mask's name, or a mapping with the mask and its settings.
func (c *ColumnRule) UnmarshalYAML(decode func(any) error) error {
	if err := decode(&c.Mask); err == nil {
		return nil
	}
	type plain ColumnRule
	return decode((*plain)(c))
}

// Digest returns the SHA-256 of the rules file, for the manifest.
func (r *Rules) Digest() string { return r.sha256 }

// ReadRules reads a rules file. Errors name the line and column.
func ReadRules(path string) (*Rules, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no rules file %s", path)}
	}
	if err != nil {
		return nil, fmt.Errorf("read the rules file: %w", err)
	}
	return parseRules(path, text)
}

// CheckRules parses the text of a rules file and returns any error.
func CheckRules(path string, text []byte) error {
	_, err := parseRules(path, text)
	return err
}

func parseRules(path string, text []byte) (*Rules, error) {
	r := &Rules{path: path}
	if err := yaml.UnmarshalWithOptions(text, r, yaml.DisallowUnknownField()); err != nil {
		return nil, &snap.Error{Code: snap.CodeUsage, Detail: disk.YAMLMistake(path, err),
			Hint:  "correct the rules file",
			Cause: err}
	}
	sum := sha256.Sum256(text)
	r.sha256, r.places = hex.EncodeToString(sum[:]), positions(text)
	for _, table := range sortedKeys(r.Tables) {
		if strings.Contains(table, "*") {
			r.patterns = append(r.patterns, table)
		}
	}
	return r, r.validate()
}

// validate checks everything that does not depend on a database.
func (r *Rules) validate() error {
	if r.LargeObjects != "" && r.LargeObjects != "keep" && r.LargeObjects != "drop" {
		return r.bad("", "large_objects", "large_objects must be keep or drop")
	}
	if !slices.Contains([]string{"", LiteralsKeep, LiteralsRedact, LiteralsStop}, r.SchemaLiterals) {
		return r.bad("", "schema_literals", "schema_literals must be keep, redact or stop")
	}
	for _, table := range sortedKeys(r.Tables) {
		t := r.Tables[table]
		if t.Rows != "" && t.Rows != "drop" {
			return r.bad(table, "", table+": rows can only be drop")
		}
		for _, column := range sortedKeys(t.Columns) {
			c := t.Columns[column]
			if c.Mask == Undecided {
				continue // reported later, together with all others
			}
			why := checkSettings(c)
			if why == "" {
				why = c.checkRowSettings()
			}
			if why != "" {
				return r.bad(table, column, table+"."+column+" "+why)
			}
			t.Columns[column] = c
		}
	}
	return nil
}

// checkSettings returns the reason why a rule's mask or settings are wrong, or "".
func checkSettings(c ColumnRule) string {
	if _, ok := makers()[c.Mask]; !ok {
		return fmt.Sprintf("has the unknown mask %q; the masks are %s", c.Mask, strings.Join(MaskNames(), ", "))
	}
	if (c.Mask == "choice") != (len(c.Values) > 0) {
		return "needs values for the mask choice, and no values for other masks"
	}
	switch {
	case c.Mask == "noise" && (c.Percent < 0 || c.Percent > 100):
		return "needs percent from 0 to 100"
	case c.Mask == "shift" && c.Days < 0:
		return "needs days of at least 0"
	case c.Mask == "coordinates" && (c.Meters < 0 || c.Meters > 10_000_000):
		return "needs meters from 0 to 10,000,000"
	}
	if why := checkBounds(c); why != "" {
		return why
	}
	return checkPartial(c)
}

// bad returns the error for a wrong rule. table and column are as for [positions].
func (r *Rules) bad(table, column, why string) error {
	return snap.Usage(r.path+r.places[[2]string{table, column}]+": "+why, "correct the rules file")
}

// match reports whether a name matches a pattern in which * matches any sequence of characters.
func match(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for i := 0; i <= len(name); i++ {
		if match(rest, name[i:]) {
			return true
		}
	}
	return false
}
