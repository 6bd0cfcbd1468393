package engine

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"snap"
)

// Pattern matches names of tables, by the rules of pg_dump except for its regular expressions: *
// matches any characters and ? matches one. A dot separates the schema from the table, and a
// pattern without a dot matches in every schema. Inside double quotes, every character stands for
// itself, and "" stands for one quotation mark. Outside double quotes, case is ignored.
type Pattern struct {
	schema []part // nil matches every schema
	name   []part
}

// part is one character of a pattern.
type part struct {
	r    rune
	kind partKind
}

type partKind int

const (
	exact partKind = iota
	folded
	one
	many
)

// ParsePattern parses a pattern. For an invalid pattern, the error has code usage.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	bad := func(why string) (Pattern, error) {
		return Pattern{}, snap.Usage(fmt.Sprintf("the pattern %q %s", text, why),
			`write it as table, schema.table, orders_* or "Odd.Name"`)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return bad("is not text")
	}
	var current []part // the name that is being parsed
	quoted, hasQuotes := false, false
	for rest := []rune(text); len(rest) > 0; rest = rest[1:] {
		switch r := rest[0]; {
		case r == '"' && quoted && len(rest) > 1 && rest[1] == '"':
			current, rest = append(current, part{r: '"'}), rest[1:]
		case r == '"':
			quoted, hasQuotes = !quoted, true
		case quoted:
			current = append(current, part{r: r})
		case r == '.':
			if p.schema != nil || len(current) == 0 {
				return bad("has a dot in the wrong place")
			}
			p.schema, current = current, nil
		case r == '*':
			current = append(current, part{kind: many})
		case r == '?':
			current = append(current, part{kind: one})
		default:
			current = append(current, part{r: r, kind: folded})
		}
	}
	switch p.name = current; {
	case quoted:
		return bad("has a quotation mark that is not closed")
	case len(current) == 0 && (hasQuotes || text == "" || p.schema != nil):
		return bad("has no name")
	}
	return p, nil
}

// Matches reports whether the pattern matches a table. In databases without schemas, schema is
// empty and a dot in the pattern is part of the name.
func (p Pattern) Matches(schema, name string) bool {
	if schema == "" && p.schema != nil {
		return match(slices.Concat(p.schema, []part{{r: '.'}}, p.name), []rune(name))
	}
	return (p.schema == nil || match(p.schema, []rune(schema))) && match(p.name, []rune(name))
}

// match reports whether a pattern matches text. After a mismatch, it lets the last * match one more
// character. In the worst case, this takes time proportional to the product of both lengths.
func match(pattern []part, text []rune) bool {
	star, resume := -1, 0 // the index of the last *, and the end of the text that it matches
	at := 0
	for i := 0; i < len(text); {
		switch {
		case at < len(pattern) && pattern[at].kind == many:
			star, resume = at, i
			at++
		case at < len(pattern) && pattern[at].is(text[i]):
			at++
			i++
		case star >= 0:
			resume++
			at, i = star+1, resume
		default:
			return false
		}
	}
	for at < len(pattern) && pattern[at].kind == many {
		at++
	}
	return at == len(pattern)
}

func (p part) is(r rune) bool {
	switch p.kind {
	case one:
		return true
	case folded:
		return p.r == r || strings.EqualFold(string(p.r), string(r))
	}
	return p.r == r
}
