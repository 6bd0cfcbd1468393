package sanitize

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"snap/internal/engine"
	"snap/internal/personal"
)

// rest returns the mask for the parts of values that a rule does not name. By default, it redacts
// them, so that nothing is left unmasked by accident.
func (c ColumnRule) rest(key []byte, limit int) engine.Mask {
	return partMask(key, ColumnRule{Mask: cmp.Or(c.Otherwise, "redact"), avoid: c.avoid}, limit)
}

// partMask returns the mask of a rule for parts of values. Unlike [maskOf], it never returns nil.
func partMask(key []byte, rule ColumnRule, limit int) engine.Mask {
	mask := rule.avoid.wrap(makers()[rule.Mask](key, rule, limit), rule.Mask, key, limit)
	if mask == nil { // keep
		return func(v string) (string, bool) { return v, false }
	}
	return mask
}

// dictionary replaces values according to its map.
func dictionary(key []byte, c ColumnRule, limit int) engine.Mask {
	rest := c.rest(key, limit)
	return func(v string) (string, bool) {
		if to, ok := c.Map[v]; ok {
			return cut(to, limit), false
		}
		return rest(v)
	}
}

// replaced replaces the parts of a value that match a pattern. A value without a match gets the
// mask that the setting "otherwise" names.
func replaced(key []byte, c ColumnRule, limit int) engine.Mask {
	rest := c.rest(key, limit)
	pattern := regexp.MustCompile(c.Pattern) // checked when the rules are read
	return func(v string) (string, bool) {
		if !pattern.MatchString(v) {
			return rest(v)
		}
		return cut(pattern.ReplaceAllString(v, c.With), limit), false
	}
}

// byPath masks the strings and numbers of a JSON document, the keys that may be data, and the
// booleans that have a path.
func byPath(key []byte, c ColumnRule, limit int) engine.Mask {
	d := newDocumentMask(key, c, pathOf)
	whole := c.rest(key, limit)
	return func(v string) (string, bool) {
		decoder := json.NewDecoder(strings.NewReader(v))
		decoder.UseNumber()
		var tree any
		if decoder.Decode(&tree) != nil || decoder.More() {
			return whole(v) // not a document
		}
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if e.Encode(d.masked(tree, nil)) != nil {
			return "", true
		}
		return strings.TrimSuffix(out.String(), "\n"), false
	}
}

// pathOf splits a path such as "$.items[*].name" into its keys; * is any key or index.
func pathOf(path string) []string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".")
	return strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

type pathMask struct {
	keys []string
	mask engine.Mask
	keep bool // mask changes nothing
}

// documentMask masks JSON documents and XML. Names that do not look like names of a schema may be
// data: if schema is set, it redacts such keys and refuses XML with such names. It accepts names
// that are written in a path or are below a path that is kept.
type documentMask struct {
	paths  []pathMask
	rest   engine.Mask
	schema bool
}

// newDocumentMask returns the mask of a rule with paths. split divides a path into its steps.
func newDocumentMask(key []byte, c ColumnRule, split func(path string) []string) documentMask {
	d := documentMask{rest: c.rest(key, 0), schema: c.Otherwise != "keep"}
	for _, path := range sortedKeys(c.Paths) {
		rule := c.Paths[path]
		rule.avoid = c.avoid
		d.paths = append(d.paths, pathMask{split(path), partMask(key, rule, 0), rule.Mask == "keep"})
	}
	slices.SortStableFunc(d.paths, func(a, b pathMask) int { // the most specific path decides
		return cmp.Or(cmp.Compare(len(b.keys), len(a.keys)), cmp.Compare(a.stars(), b.stars()))
	})
	return d
}

// stars returns the number of steps that match any name.
func (p pathMask) stars() (n int) {
	for _, k := range p.keys {
		if k == "*" {
			n++
		}
	}
	return n
}

// maskAt returns the mask for a path: that of the most specific rule that matches the path or one
// of its parents.
func (d documentMask) maskAt(at []string) engine.Mask {
	if p, ok := d.pathAt(at); ok {
		return p.mask
	}
	return d.rest
}

func (d documentMask) pathAt(at []string) (p pathMask, ok bool) {
	for _, p := range d.paths {
		if len(p.keys) <= len(at) && pathMatches(p.keys, at) {
			return p, true
		}
	}
	return p, false
}

// accepts reports whether the last name of a path is written in a path of the rule or is below one
// that is kept.
func (d documentMask) accepts(at []string) bool {
	n := len(at)
	if p, ok := d.pathAt(at[:n-1]); ok && p.keep {
		return true
	}
	return slices.ContainsFunc(d.paths, func(p pathMask) bool {
		return len(p.keys) >= n && p.keys[n-1] == at[n-1] && pathMatches(p.keys[:n], at)
	})
}

func pathMatches(keys, at []string) bool {
	for i, k := range keys {
		if k != "*" && k != at[i] {
			return false
		}
	}
	return true
}

func (d documentMask) masked(tree any, at []string) any {
	switch v := tree.(type) {
	case map[string]any:
		masked := make(map[string]any, len(v))
		for k, name := range d.names(v, at) {
			masked[name] = d.masked(v[k], append(slices.Clone(at), k))
		}
		return masked
	case []any:
		for i := range v {
			v[i] = d.masked(v[i], append(slices.Clone(at), fmt.Sprint(i)))
		}
	case string:
		if masked, null := d.maskAt(at)(v); !null {
			return masked
		}
		return nil
	case json.Number:
		masked, null := d.maskAt(at)(v.String())
		if null {
			return nil
		}
		var n json.Number
		if json.Unmarshal([]byte(masked), &n) == nil && n != "" {
			return n
		}
		return json.Number("0") // the mask's result is not a number, but the value must be one
	case bool:
		return d.boolean(v, at)
	}
	return tree
}

// boolean masks a boolean if it has a path. A result that is not a boolean becomes false.
func (d documentMask) boolean(v bool, at []string) any {
	p, ok := d.pathAt(at)
	if !ok {
		return v
	}
	masked, null := p.mask(strconv.FormatBool(v))
	if null {
		return nil
	}
	is, _ := booleanOf(masked)
	return is
}

// names returns the masked names of an object's keys. Different keys stay different.
func (d documentMask) names(object map[string]any, at []string) map[string]string {
	names, taken := map[string]string{}, map[string]bool{}
	var redacted []string
	for _, k := range sortedKeys(object) {
		if d.schema && !personal.IsSchemaKey(k) && !d.accepts(append(slices.Clone(at), k)) {
			redacted = append(redacted, k)
			continue
		}
		names[k], taken[k] = k, true
	}
	for _, k := range redacted {
		name := redact(k)
		for taken[name] {
			name += "x"
		}
		names[k], taken[name] = name, true
	}
	return names
}

// checkPartial returns the reason why the settings of a mask for parts of values are wrong, or "".
func checkPartial(c ColumnRule) string {
	byPath := slices.Contains([]string{"json", "xml", "composite"}, c.Mask)
	isPartial := byPath || c.Mask == "dictionary" || c.Mask == "replace"
	if c.Otherwise != "" {
		if _, ok := makers()[c.Otherwise]; !isPartial || !ok || slices.Contains(withSettings, c.Otherwise) {
			return `has an "otherwise" that cannot be used: it must name a mask without settings, and works only ` +
				"with dictionary, replace, json, xml and composite"
		}
	}
	switch {
	case (c.Mask == "dictionary") != (len(c.Map) > 0):
		return "needs a map for the mask dictionary, and no map for other masks"
	case byPath != (len(c.Paths) > 0):
		return "needs paths for the masks json, xml and composite, and no paths for other masks"
	case (c.Mask == "replace") != (c.Pattern != ""):
		return "needs a pattern for the mask replace, and no pattern for other masks"
	}
	if _, err := regexp.Compile(c.Pattern); err != nil {
		return fmt.Sprintf("has a pattern that is not a regular expression: %v", err)
	}
	for _, path := range sortedKeys(c.Paths) {
		if c.Mask == "json" && slices.Contains(pathOf(path), "") {
			return fmt.Sprintf("has the path %q, which is not a path such as $.user.email or items[*].name", path)
		}
		if c.Mask == "xml" && slices.Contains(xmlPath(path), "") {
			return fmt.Sprintf("has the path %q, which is not a path such as person/email or person/@id", path)
		}
		if c.Paths[path].needsRow() || c.Paths[path].Template != "" {
			return fmt.Sprintf("at %s cannot have a condition or a template", path)
		}
		if why := checkSettings(c.Paths[path]); why != "" {
			return fmt.Sprintf("at %s %s", path, why)
		}
	}
	return ""
}

// replacesWhole reports whether a rule produces values that contain no part of the original. A mask
// with paths does so if the masks of all of its paths do, and nothing is kept.
func (c ColumnRule) replacesWhole() bool {
	if c.Mask == "keep" || c.Otherwise == "keep" {
		return false
	}
	for _, at := range c.Paths {
		if !at.replacesWhole() {
			return false
		}
	}
	return len(c.Paths) > 0 || !slices.Contains(withSettings, c.Mask)
}

// withSettings are the masks that need settings in addition to their name. Their settings determine
// the results.
var withSettings = []string{"choice", "dictionary", "replace", "json", "xml", "composite", "constant",
	"template"}
