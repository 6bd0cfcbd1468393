package sanitize

import (
	"strings"
	"unicode"

	"snap/internal/engine"
	"snap/internal/schema"
)

// foldsCase reports whether a database compares the values of a column without case. This is true
// for citext, for SQLite's NOCASE, and in MySQL and MariaDB for the default collation and for
// collations with _ci in their name.
func foldsCase(c schema.Column, t schema.Table) bool {
	if c.Type.Name == "citext" || c.Collation != nil && foldingName(c.Collation.Name) {
		return true
	}
	charset, ofTable := t.Options["charset"], t.Options["collate"]
	if charset == "" && ofTable == "" || c.Collation != nil || c.Charset == "binary" {
		return false
	}
	if ofTable == "" {
		return charset != "binary"
	}
	return foldingName(ofTable)
}

// foldingName reports whether a collation with this name ignores case.
func foldingName(name string) bool {
	name = strings.ToLower(name)
	return name == "nocase" || strings.HasSuffix(name, "_ci") || strings.Contains(name, "_ci_")
}

// folded wraps the mask of a column whose values are compared without case. It does so if the
// column is part of a foreign key, or if its values must stay unique and its mask is key. Values
// that differ only in case then get results that differ at most in case.
func folded(mask engine.Mask, rule ColumnRule, c *column) engine.Mask {
	if !c.ignoresCase || !c.linked && !(c.unique && rule.Mask == "key") {
		return mask
	}
	return func(v string) (string, bool) {
		masked, null := mask(strings.ToLower(v))
		if null || rule.Mask != "key" {
			return masked, null
		}
		return cased(masked, v), false
	}
}

// cased changes letters of text to upper case where the parameter like has an upper-case letter at
// the same position. It returns text unchanged if their lengths differ.
func cased(text, like string) string {
	from, to := []rune(like), []rune(text)
	if len(from) != len(to) {
		return text
	}
	for i, r := range from {
		if unicode.IsUpper(r) {
			to[i] = unicode.ToUpper(to[i])
		}
	}
	return string(to)
}
