package scim

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// condition is one comparison of a filter: this attribute equals this value.
type condition struct {
	attribute string // in lower case, without the URN of its schema
	value     string
}

// maxFilter limits the bytes of a filter or a PATCH path, and maxConditions its comparisons.
const (
	maxFilter     = 4 << 10
	maxConditions = 8
)

// parseFilter reads a filter (RFC 7644 section 3.4.2.2) that consists of eq comparisons joined by
// "and". Identity providers send such filters to find a resource. parseFilter refuses all other
// filters.
func parseFilter(text string) ([]condition, error) {
	p, err := newParser(text, "invalidFilter")
	if err != nil {
		return nil, err
	}
	all, err := p.conditions()
	if err != nil {
		return nil, err
	}
	if p.rest() != "" {
		return nil, p.fail("unexpected %q at the end", p.rest())
	}
	return all, nil
}

// path is the target of a PATCH operation (RFC 7644 section 3.5.2).
type path struct {
	attribute string      // in lower case, without the URN of its schema
	where     []condition // which values of the attribute; nil means all
	sub       string      // sub-attribute, in lower case; empty means none
}

// parsePath reads the target of a PATCH operation: an attribute, a sub-attribute, or some values of
// an attribute, as in members[value eq "id"].
func parsePath(text string) (path, error) {
	p, err := newParser(text, "invalidPath")
	if err != nil {
		return path{}, err
	}
	var out path
	if out.attribute, err = p.attribute(); err != nil {
		return path{}, err
	}
	out.attribute, out.sub, _ = strings.Cut(out.attribute, ".")
	if p.consume("[") {
		if out.sub != "" {
			return path{}, p.fail("a sub-attribute cannot have a filter")
		}
		if out.where, err = p.conditions(); err != nil {
			return path{}, err
		}
		p.space()
		if !p.consume("]") {
			return path{}, p.fail("the filter does not end with ]")
		}
		if p.consume(".") {
			if out.sub, err = p.name(); err != nil {
				return path{}, err
			}
		}
	}
	if p.rest() != "" {
		return path{}, p.fail("unexpected %q at the end", p.rest())
	}
	return out, nil
}

// parser reads a filter or a path from its beginning.
type parser struct {
	text string // the part that has not been read yet
	kind string // the scimType of its errors
}

func newParser(text, kind string) (*parser, error) {
	p := &parser{strings.TrimSpace(text), kind}
	switch {
	case len(text) > maxFilter:
		return nil, p.fail("the filter or path has more than %d bytes", maxFilter)
	case !utf8.ValidString(text):
		return nil, p.fail("the filter or path is not UTF-8")
	}
	return p, nil
}

func (p *parser) fail(format string, args ...any) error { return invalid(p.kind, format, args...) }

func (p *parser) space() { p.text = strings.TrimLeft(p.text, " \t") }

func (p *parser) rest() string {
	p.space()
	return p.text
}

// consume reads mark if the text begins with it, and reports whether it did.
func (p *parser) consume(mark string) bool {
	rest, ok := strings.CutPrefix(p.text, mark)
	p.text = rest
	return ok
}

// conditions reads comparisons that are joined by "and".
func (p *parser) conditions() (all []condition, err error) {
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if all = append(all, c); len(all) > maxConditions {
			return nil, p.fail("the filter has more than %d comparisons", maxConditions)
		}
		before := p.text
		p.space()
		if len(before) == len(p.text) || !p.keyword("and") {
			return all, nil
		}
	}
}

func (p *parser) condition() (c condition, err error) {
	p.space()
	if c.attribute, err = p.attribute(); err != nil {
		return c, err
	}
	p.space()
	if !p.keyword("eq") {
		return c, p.fail(`only "eq" comparisons joined by "and" are supported`)
	}
	p.space()
	c.value, err = p.value()
	return c, err
}

// keyword is like consume, for a word in upper or lower case that is followed by a space.
func (p *parser) keyword(word string) bool {
	if len(p.text) <= len(word) || !strings.EqualFold(p.text[:len(word)], word) || p.text[len(word)] != ' ' {
		return false
	}
	p.text = p.text[len(word):]
	return true
}

// extension represents all attributes of other schemas.
const extension = "extension"

// attribute reads the path of an attribute (RFC 7644 section 3.10), as in userName or
// urn:ietf:params:scim:schemas:core:2.0:User:userName, and returns it without the URN. It returns
// extension for an attribute of another schema.
func (p *parser) attribute() (string, error) {
	if len(p.text) > 4 && strings.EqualFold(p.text[:4], "urn:") {
		end := strings.IndexAny(p.text, " \t[")
		if end < 0 {
			end = len(p.text)
		}
		colon := strings.LastIndexByte(p.text[:end], ':')
		schema := p.text[:colon]
		if !strings.EqualFold(schema, schemaUser) && !strings.EqualFold(schema, schemaGroup) {
			p.text = p.text[end:]
			return extension, nil
		}
		p.text = p.text[colon+1:]
	}
	name, err := p.name()
	if err == nil && p.consume(".") {
		var sub string
		sub, err = p.name()
		name += "." + sub
	}
	return name, err
}

// name reads the name of an attribute, and returns it in lower case.
func (p *parser) name() (string, error) {
	n := 0
	for n < len(p.text) && isNameByte(p.text[n], n) {
		n++
	}
	if n == 0 {
		return "", p.fail("the name of an attribute is expected before %q", p.text)
	}
	name := p.text[:n]
	p.text = p.text[n:]
	return strings.ToLower(name), nil
}

func isNameByte(b byte, at int) bool {
	letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	return letter || at == 0 && b == '$' || at > 0 && (b >= '0' && b <= '9' || b == '-' || b == '_')
}

// value reads a JSON string, number or boolean, and returns it as a string.
func (p *parser) value() (string, error) {
	d := json.NewDecoder(strings.NewReader(p.text))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return "", p.fail("a string in double quotes, a number, true or false is expected at %q", p.text)
	}
	switch token.(type) {
	case string, bool, json.Number:
	default:
		return "", p.fail("a string in double quotes, a number, true or false is expected at %q", p.text)
	}
	p.text = p.text[d.InputOffset():]
	text := fmt.Sprint(token)
	if strings.ContainsRune(text, 0) { // PostgreSQL cannot compare it
		return "", p.fail("the value has a NUL character")
	}
	return text, nil
}
