package sanitize

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"snap"
	"snap/internal/disk"
)

// Rules is a rules file: what becomes of every column of every table.
//
//	key: ${SHOP_MASK_KEY}          # equal keys mask equal values equally
//	keep: ["*.id", "country.*"]    # columns that nobody minds
//	large_objects: drop            # or keep
//	tables:
//	  public.customer:
//	    columns:
//	      email: email
//	      born: {mask: shift, days: 30}
//	  public.audit: {rows: drop}
//
// Tables and columns may have * for any run of characters. What no rule and no
// keep covers stops the run and is named: a column that appeared since the
// rules were written must not slip through.
type Rules struct {
	Key          string               `yaml:"key"`
	Keep         []string             `yaml:"keep"`
	LargeObjects string               `yaml:"large_objects"`
	Tables       map[string]TableRule `yaml:"tables"`

	path   string
	sha256 string
}

// TableRule is the rule of one table, or of those that match its name.
type TableRule struct {
	Rows    string                `yaml:"rows"` // "drop" or nothing
	Columns map[string]ColumnRule `yaml:"columns"`
}

// ColumnRule is the rule of one column.
type ColumnRule struct {
	Mask    string   `yaml:"mask"`
	Value   string   `yaml:"value"`   // of the mask constant
	Percent float64  `yaml:"percent"` // of the mask noise; 10 when not given
	Days    int      `yaml:"days"`    // of the mask shift; 30 when not given
	Values  []string `yaml:"values"`  // of the mask choice
	Meters  float64  `yaml:"meters"`  // of the mask coordinates; 5000 when not given
	Shared  bool     `yaml:"shared"`  // its values may stand elsewhere too: no leak scan
}

// UnmarshalYAML takes a mask's name alone, or a mapping with more.
func (c *ColumnRule) UnmarshalYAML(decode func(any) error) error {
	if err := decode(&c.Mask); err == nil {
		return nil
	}
	type plain ColumnRule
	return decode((*plain)(c))
}

// Digest is the SHA-256 of the rules file, for the manifest.
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

// CheckRules reads a rules file's text without using it.
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
	r.sha256 = hex.EncodeToString(sum[:])
	return r, r.validate()
}

// validate finds what no database is needed for.
func (r *Rules) validate() error {
	if r.LargeObjects != "" && r.LargeObjects != "keep" && r.LargeObjects != "drop" {
		return r.bad("large_objects", "must be keep or drop")
	}
	for table, t := range r.Tables {
		if t.Rows != "" && t.Rows != "drop" {
			return r.bad(table+": rows", "can only be drop")
		}
		for column, c := range t.Columns {
			if c.Mask == Undecided {
				continue // named together with all others, later
			}
			if _, ok := makers()[c.Mask]; !ok {
				return r.bad(table+"."+column, fmt.Sprintf("has the unknown mask %q; there are %s", c.Mask,
					strings.Join(MaskNames(), ", ")))
			}
			if (c.Mask == "choice") != (len(c.Values) > 0) {
				return r.bad(table+"."+column, "needs values for the mask choice, and for no other")
			}
			if c.Mask == "noise" && (c.Percent < 0 || c.Percent > 100) || c.Mask == "shift" && c.Days < 0 ||
				c.Mask == "coordinates" && (c.Meters < 0 || c.Meters > 10_000_000) {
				return r.bad(table+"."+column, "has a number that is out of range")
			}
		}
	}
	return nil
}

func (r *Rules) bad(where, why string) error {
	return snap.Usage(fmt.Sprintf("%s: %s %s", r.path, where, why), "correct the rules file")
}

// match reports whether a name matches a pattern with * for any run.
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
