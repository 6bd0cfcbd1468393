package sanitize

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"snap/internal/personal"
	"snap/internal/schema"
)

// This file decides comparisons in the conditions of rules. Rows for which a condition is certainly
// false get the mask that the setting "else" names, often "keep". A comparison is therefore certain
// only if it has the same result in every database and with every collation.

// operand is a value that a condition compares.
type operand struct {
	text  string
	class personal.Class // only for the condition of a rule; "" for a string literal, which has no type
	vague bool           // the text in the database may differ in case or in spaces at its end
}

// comparedAs returns the class of types that decides how databases compare the column's values.
func (c *column) comparedAs() personal.Class {
	switch {
	case c.typ.Dims > 0:
		return personal.Other
	case c.loose():
		return personal.Text
	case c.id[0] == "" && c.typ.Class == personal.Bits: // a number, except in PostgreSQL
		return personal.Integer
	}
	return c.typ.Class
}

var (
	textClasses   = []personal.Class{"", personal.Text, personal.Enum, personal.UUID}
	numberClasses = []personal.Class{"", personal.Integer, personal.Decimal, personal.Float, personal.Year}
	boolClasses   = []personal.Class{"", personal.Bool, personal.Integer}
	// mixedClasses are the classes in which a text can be compared with a number, because databases
	// convert one of the two. For an enum, they compare the number of its label instead.
	mixedClasses = []personal.Class{"", personal.Text, personal.Integer, personal.Decimal}
	// plainClasses are the classes in which equal texts are equal values, but different texts can
	// be equal values too.
	plainClasses = []personal.Class{"", personal.Date, personal.Time, personal.IP, personal.MAC}
)

func (o operand) isIn(classes []personal.Class) bool { return slices.Contains(classes, o.class) }

func (o operand) isPadded() bool { return strings.HasSuffix(o.text, " ") }

// keptBy reports whether a cast changes nothing in a value except spaces at its end.
func (o operand) keptBy(t schema.Type) bool {
	isText := slices.Contains([]string{"text", "character varying", "varchar"}, t.Name)
	return o.isIn(textClasses) && isText && len(t.Args) == 0 && t.Dims == 0
}

// hasVagueCase reports whether a text has one of the letters, or a character that is not ASCII.
// Databases may disagree on the upper and lower case of such characters: Turkish has two letters I,
// and the collation C changes only ASCII.
func hasVagueCase(v, letters string) bool {
	return strings.ContainsFunc(v, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(letters, r) })
}

// compareForRule compares two values for the condition of a rule. The result is unsure if it can
// depend on the database.
func compareForRule(op string, l, r operand) answer {
	bothIn := func(classes []personal.Class) bool { return l.isIn(classes) && r.isIn(classes) }
	switch op {
	case "=":
		return certainlySame(l, r, bothIn)
	case "<>":
		return negated(certainlySame(l, r, bothIn))
	case "<", "<=", ">", ">=":
		if order, ok := ordered(l, r); ok && bothIn(numberClasses) && l.class+r.class != "" {
			return answerOf(holds(op, order))
		}
	case "LIKE":
		if (l.class == personal.Integer || l.isIn(textClasses)) && r.isIn(textClasses) {
			return certainlyLike(l, r)
		}
	case "~", "~*":
		if bothIn(textClasses) && !l.vague && !r.vague {
			return certainlyMatches(l.text, r.text, op == "~*")
		}
	}
	return unsure
}

func certainlySame(l, r operand, bothIn func([]personal.Class) bool) answer {
	order, ordered := ordered(l, r)
	switch {
	case bothIn(textClasses):
		if a := sameTexts(l, r); a == yes || !ordered || order != 0 {
			return a
		}
	case bothIn(numberClasses):
		if ordered {
			return answerOf(order == 0)
		}
	case bothIn(boolClasses):
		x, ok := booleanOf(l.text)
		if y, ok2 := booleanOf(r.text); ok && ok2 {
			return answerOf(x == y)
		}
	case bothIn(mixedClasses):
		if ordered && order != 0 {
			return no
		}
	case bothIn(plainClasses) && l.text == r.text:
		return yes
	case bothIn([]personal.Class{"", personal.Date}) && isoDate.MatchString(l.text) && isoDate.MatchString(r.text):
		return no
	}
	return unsure
}

func sameTexts(l, r operand) answer {
	switch {
	case l.text == r.text && !l.vague && !r.vague:
		return yes
	case !couldEqual(plain(l.text, ""), plain(r.text, "")):
		return no
	}
	return unsure
}

var (
	isoDate     = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	plainNumber = regexp.MustCompile(`^-?\d{1,1000}(\.\d{1,1000})?$`)
)

// ordered compares two numbers; ok is false if the result is uncertain. Different numbers must also
// differ as floating-point numbers, because MySQL converts them. Approximate numbers must differ
// clearly.
func ordered(l, r operand) (order int, ok bool) {
	x, y, ok := numbers(l.text, r.text)
	if !ok {
		return 0, false
	}
	if (l.class == personal.Year || r.class == personal.Year) && (len(l.text) != 4 || len(r.text) != 4) {
		return 0, false // databases read the year 99 as 1999
	}
	isExact := l.class != personal.Float && r.class != personal.Float && plainNumber.MatchString(l.text) &&
		plainNumber.MatchString(r.text)
	if !isExact {
		ok := math.Abs(x-y) > 1e-5*max(math.Abs(x), math.Abs(y)) // false for NaN and infinity
		return cmp.Compare(x, y), ok
	}
	one, _ := new(big.Rat).SetString(l.text)
	two, _ := new(big.Rat).SetString(r.text)
	order = one.Cmp(two)
	return order, order == 0 || x != y
}

// plain returns the lower-case ASCII letters and digits of a text. Databases can ignore all other
// ASCII characters. The result has % for characters that can be equal to any text: those that the
// parameter wild lists, and all that are not ASCII. It has i for j and y, and u for v and w,
// because some collations regard them as equal.
func plain(v, wild string) string {
	var last rune
	return strings.Map(func(c rune) rune {
		isWild := c >= utf8.RuneSelf || strings.ContainsRune(wild, c)
		switch c = unicode.ToLower(c); {
		case isWild && last == '%':
			return -1
		case isWild:
			c = '%'
		case c == 'j' || c == 'y':
			c = 'i'
		case c == 'v' || c == 'w':
			c = 'u'
		case (c < 'a' || c > 'z') && (c < '0' || c > '9'):
			return -1
		}
		last = c
		return c
	}, v)
}

// couldEqual reports whether a database could regard two results of plain as equal. If both have a
// %, it compares only the beginnings and the ends.
func couldEqual(v, pattern string) bool {
	head, _, wild := strings.Cut(v, "%")
	wanted, _, wildPattern := strings.Cut(pattern, "%")
	tail, wantedTail := v[strings.LastIndexByte(v, '%')+1:], pattern[strings.LastIndexByte(pattern, '%')+1:]
	switch {
	case !wild && !wildPattern:
		return v == pattern
	case !strings.HasPrefix(head, wanted) && !strings.HasPrefix(wanted, head),
		!strings.HasSuffix(tail, wantedTail) && !strings.HasSuffix(wantedTail, tail):
		return false
	case !wild:
		return like(v, pattern)
	case !wildPattern:
		return len(v) <= 2*len(pattern)+1 && like(pattern, v) // a longer v cannot match
	}
	return true
}

func certainlyLike(l, r operand) answer {
	switch {
	case strings.Contains(r.text, `\`): // an escape, but not in SQLite
		return unsure
	case !couldEqual(plain(l.text, ""), plain(r.text, "%_")):
		return no
	case !l.vague && !r.vague && like(l.text, r.text) && like(strings.TrimRight(l.text, " "), r.text):
		return yes
	}
	return unsure
}

var (
	// ambiguous matches the parts of regular expressions that databases interpret differently.
	ambiguous = regexp.MustCompile(`\\[^\WdDsSwW]|&&|[^ -~]`)
	// byteDependent matches the parts whose result can differ for text that is not printable ASCII.
	byteDependent = regexp.MustCompile(`[.[{\\$]`)
	printable     = regexp.MustCompile(`^[ -~]*$`)
)

// certainlyMatches evaluates a regular expression. The result is unsure if databases that ignore
// case or spaces at the end could get a different result.
func certainlyMatches(v, pattern string, fold bool) answer {
	if ambiguous.MatchString(pattern) || !printable.MatchString(v) && byteDependent.MatchString(pattern) {
		return unsure
	}
	trimmed := strings.TrimRight(v, " ")
	exact := and(matches(v, pattern, false), matches(trimmed, pattern, false))
	folded := or(matches(v, pattern, true), matches(trimmed, pattern, true))
	switch {
	case exact == yes || folded == no:
		return folded
	case fold && !hasVagueCase(v, "iI"):
		return and(matches(v, pattern, true), matches(trimmed, pattern, true))
	}
	return unsure
}
