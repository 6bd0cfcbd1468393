package personal

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// sureSamples is how many sampled documents must contain only numbers before a document column is
// kept.
const sureSamples = 20

// document judges a column by the values in its documents, and each value also by its path.
func (j judge) document(c Column) Finding {
	d := &documents{judge: j}
	for _, v := range c.Samples {
		var value any
		if json.Unmarshal([]byte(v), &value) != nil {
			return Finding{Reason: "documents that cannot be read"}
		}
		d.walk("$", nil, value)
	}
	switch {
	case d.kind != "":
		return Finding{Mask, Document, fmt.Sprintf("its documents hold %s%s", d.kind, d.at)}
	case len(c.Samples) == 0:
		return Finding{Reason: "no documents to judge by"}
	case !d.texts && len(c.Samples) >= sureSamples:
		return Finding{Verdict: Keep, Reason: "its documents hold numbers and no strings"}
	}
	return Finding{Reason: "documents with strings"}
}

// documents is the result of walking through the documents of a column.
type documents struct {
	judge judge
	kind  Kind
	at    string // such as " at $.email"; "" if the path may contain data
	texts bool
}

// plainKey matches document keys that may be shown. Other keys may be data.
var plainKey = regexp.MustCompile(`^[A-Za-z_]{1,24}$`)

// IsSchemaKey reports whether a key of a document looks like a name of a schema: at most 64 ASCII
// letters, digits and underscores, of which the first is not a digit. Other keys may be data.
func IsSchemaKey(key string) bool {
	for i, c := range []byte(key) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return key != "" && len(key) <= 64
}

func (d *documents) walk(path string, words []string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) { // so that the reason is always the same
			inner := v[key]
			if !IsSchemaKey(key) {
				d.texts = true
				d.leaf("", nil, key, Type{Class: Text})
			}
			at := path + "." + key
			if path == "" || !plainKey.MatchString(key) {
				at = ""
			}
			d.walk(at, split(key), inner)
		}
	case []any:
		for _, inner := range v {
			d.walk(path, words, inner)
		}
	case string:
		d.texts = true
		d.leaf(path, words, v, Type{Class: Text})
	case float64:
		d.leaf(path, words, fmt.Sprint(v), Type{Class: Integer})
	}
}

// leaf judges one value of a document.
func (d *documents) leaf(path string, words []string, value string, t Type) {
	if d.kind != "" || value == "" {
		return
	}
	kind, at := d.judge.kindOf(words)
	if kind != "" && !onlyDescribes(words, t, kind, at) && holds(kind, t) {
		d.record(kind, path)
		return
	}
	if t.Class != Text {
		return
	}
	for _, known := range detectors {
		if known.matches(value) {
			d.record(known.kind, "")
			return
		}
	}
	if containsEmail(value) || d.judge.isName(value) || d.judge.mentions(value) {
		d.record(Name, "")
	}
}

func (d *documents) record(kind Kind, path string) {
	d.kind = kind
	if path != "" && path != "$" {
		d.at = " at " + path
	}
}
