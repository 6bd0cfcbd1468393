package sanitize

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// template is a string with placeholders for the masked values of other columns of the row, such as
// "{first_name|lower}.{last_name|lower}@example.com". A filled template contains no originals, except
// those of columns that are kept.
type template []templatePart

// templatePart is a literal string, or a column whose masked value goes through functions.
type templatePart struct {
	text   string
	column string
	calls  []templateCall
}

type templateCall struct {
	name string
	arg  string
}

// templateFunctions returns the functions of templates. Each takes a value and an optional
// argument, which is "" if not given.
func templateFunctions() map[string]func(v, arg string) string {
	return map[string]func(v, arg string) string{
		"lower":   func(v, _ string) string { return strings.ToLower(v) },
		"upper":   func(v, _ string) string { return strings.ToUpper(v) },
		"title":   func(v, _ string) string { return titled(v) },
		"trim":    func(v, _ string) string { return strings.TrimSpace(v) },
		"letters": func(v, _ string) string { return keepRunes(v, unicode.IsLetter) },
		"digits":  func(v, _ string) string { return keepRunes(v, unicode.IsDigit) },
		"left":    func(v, n string) string { return cut(v, countOf(n)) },
		"right": func(v, n string) string {
			r := []rune(v)
			return string(r[max(0, len(r)-countOf(n)):])
		},
		"or": func(v, instead string) string {
			if v == "" {
				return instead
			}
			return v
		},
	}
}

// withCount lists the functions whose argument is a number. withText lists those whose argument is
// a string.
const (
	withCount = " left right "
	withText  = " or "
)

func countOf(text string) int {
	n, _ := strconv.Atoi(text) // checked when the rules were read
	return n
}

// titled returns v with the first letter in upper case and the others in lower case.
func titled(v string) string {
	_, size := utf8.DecodeRuneInString(v)
	return strings.ToUpper(v[:size]) + strings.ToLower(v[size:])
}

func keepRunes(v string, is func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if is(r) {
			return r
		}
		return -1
	}, v)
}

// parseTemplate reads a template. {{ and }} represent single braces.
func parseTemplate(text string) (template, error) {
	var t template
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			return append(t, templatePart{text: text}), nil
		}
		if at > 0 {
			t = append(t, templatePart{text: text[:at]})
		}
		brace := text[at]
		if text = text[at+1:]; strings.HasPrefix(text, string(brace)) {
			t, text = append(t, templatePart{text: string(brace)}), text[1:]
			continue
		}
		inside, rest, ok := strings.Cut(text, "}")
		if brace == '}' || !ok {
			return nil, fmt.Errorf("a single %c; a literal %[1]c is written %[1]c%[1]c", brace)
		}
		part, err := parsePart(inside)
		if err != nil {
			return nil, err
		}
		t, text = append(t, part), rest
	}
	return t, nil
}

func parsePart(text string) (templatePart, error) {
	words := strings.Split(text, "|")
	part := templatePart{column: strings.TrimSpace(words[0])}
	if part.column == "" {
		return part, fmt.Errorf("{%s}, which names no column", text)
	}
	known := templateFunctions()
	for _, w := range words[1:] {
		name, arg, has := strings.Cut(strings.TrimSpace(w), ":")
		_, ok := known[name]
		n, err := strconv.Atoi(arg)
		counts := strings.Contains(withCount, " "+name+" ")
		switch {
		case !ok:
			return part, fmt.Errorf("the unknown function %q; the functions are %s", name,
				strings.Join(sortedKeys(known), ", "))
		case counts && (err != nil || n < 1), !counts && has != strings.Contains(withText, " "+name+" "):
			return part, fmt.Errorf("an invalid argument of the function %q; use one like left:3 or or:unknown", name)
		}
		part.calls = append(part.calls, templateCall{name, arg})
	}
	return part, nil
}

// columns returns the columns that the template refers to.
func (t template) columns() []string {
	var all []string
	for _, p := range t {
		if p.column != "" {
			all = append(all, p.column)
		}
	}
	return all
}

// fill returns the template filled with the values of columns. NULL becomes an empty string.
func (t template) fill(value func(column string) string) string {
	known := templateFunctions()
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.text)
		if p.column == "" {
			continue
		}
		v := value(p.column)
		for _, c := range p.calls {
			v = known[c.name](v, c.arg)
		}
		b.WriteString(v)
	}
	return b.String()
}
