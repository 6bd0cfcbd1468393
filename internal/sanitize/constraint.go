package sanitize

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"snap/internal/schema"
)

// answer is the result of a condition.
type answer int

const (
	unsure answer = iota
	yes
	no
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

// evaluate evaluates a check for one value of one column. The result is unsure if the check
// involves other columns or unknown functions.
func evaluate(e schema.Expr, column, value string) answer {
	c := condition{of: func(name string) (string, bool) { return value, strings.EqualFold(name, column) }, valued: true}
	return c.answer(e)
}

// condition evaluates expressions for a row, or for one value of it.
type condition struct {
	of     func(column string) (value string, known bool)
	valued bool // every column has a value; otherwise unknown columns are NULL
}

func (c condition) answer(e schema.Expr) answer {
	switch op := e.Op; {
	case e.Cast != nil && len(e.Args) == 1:
		return c.answer(e.Args[0])
	case op == "AND" || op == "OR":
		return c.joined(e)
	case op == "NOT" && len(e.Args) == 1:
		return negated(c.answer(e.Args[0]))
	case op == "IS NULL" || op == "IS NOT NULL":
		return c.isNull(e.Args, op == "IS NOT NULL")
	case op == "NOT LIKE" && len(e.Args) == 2:
		return negated(c.compare("LIKE", e.Args[0], e.Args[1]))
	case e.Column != "":
		return c.truth(e.Column)
	case op == "IN" || op == "NOT IN":
		return c.among(e.Args[0], e.Args[1:], op == "NOT IN")
	case op == "= ANY" && len(e.Args) == 2 && uncast(e.Args[1]).Op == "ARRAY":
		return c.among(e.Args[0], uncast(e.Args[1]).Args, false)
	case op == "BETWEEN" && len(e.Args) == 3:
		return both(c.compare(">=", e.Args[0], e.Args[1]), c.compare("<=", e.Args[0], e.Args[2]))
	case len(e.Args) == 2:
		return c.compare(op, e.Args[0], e.Args[1])
	}
	return unsure
}

// uncast returns an expression without its casts. PostgreSQL writes IN on a varchar as
// = ANY ((ARRAY['a'::character varying])::text[]).
func uncast(e schema.Expr) schema.Expr {
	for e.Cast != nil && len(e.Args) == 1 {
		e = e.Args[0]
	}
	return e
}

func (c condition) isNull(args []schema.Expr, not bool) answer {
	if c.valued && not {
		return yes
	}
	if c.valued || len(args) != 1 || args[0].Column == "" {
		return unsure
	}
	_, known := c.of(args[0].Column)
	return answerOf(known == not)
}

// truth interprets the value of a column as yes or no.
func (c condition) truth(column string) answer {
	v, known := c.of(column)
	is, ok := booleanOf(v)
	if !known || !ok {
		return unsure
	}
	return answerOf(is)
}

// booleanOf parses a boolean in the forms in which databases write it.
func booleanOf(v string) (is, ok bool) {
	for _, pair := range booleans {
		if strings.EqualFold(v, pair[0]) || strings.EqualFold(v, pair[1]) {
			return strings.EqualFold(v, pair[0]), true
		}
	}
	return false, false
}

func negated(a answer) answer {
	switch a {
	case yes:
		return no
	case no:
		return yes
	}
	return unsure
}

func both(a, b answer) answer {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return unsure
}

func (c condition) joined(e schema.Expr) answer {
	all := yes
	if e.Op == "OR" {
		all = no
	}
	for _, arg := range e.Args {
		a := c.answer(arg)
		if e.Op == "AND" {
			all = both(all, a)
			continue
		}
		all = negated(both(negated(all), negated(a)))
	}
	return all
}

func (c condition) among(of schema.Expr, list []schema.Expr, not bool) answer {
	left, known := c.text(of)
	if !known {
		return unsure
	}
	for _, item := range list {
		right, known := c.text(item)
		if !known {
			return unsure
		}
		if left == right {
			return answerOf(!not)
		}
	}
	return answerOf(not)
}

// text returns the value of an expression that is a literal, a known column, or a simple function
// of such expressions.
func (c condition) text(e schema.Expr) (string, bool) {
	switch {
	case e.Literal != nil && slices.Contains([]string{"string", "number", "boolean"}, e.Literal.Kind):
		return e.Literal.Value, true
	case e.Column != "":
		return c.of(e.Column)
	case e.Cast != nil && len(e.Args) == 1:
		return c.text(e.Args[0])
	case e.Op == "NEG" && len(e.Args) == 1:
		v, ok := c.text(e.Args[0])
		return "-" + v, ok
	case e.Call != "" && len(e.Args) == 1:
		return c.call(e)
	}
	return "", false
}

func (c condition) call(e schema.Expr) (string, bool) {
	v, known := c.text(e.Args[0])
	if !known {
		return "", false
	}
	switch e.Call {
	case "lower", "lcase":
		return strings.ToLower(v), true
	case "upper", "ucase":
		return strings.ToUpper(v), true
	case "trim", "btrim":
		return strings.TrimSpace(v), true
	case "char_length", "character_length":
		return strconv.Itoa(utf8.RuneCountInString(v)), true
	case "length": // counts characters or bytes, depending on the database
		return strconv.Itoa(utf8.RuneCountInString(v)), utf8.RuneCountInString(v) == len(v)
	case "octet_length":
		return strconv.Itoa(len(v)), true
	}
	return "", false
}

func (c condition) compare(op string, a, b schema.Expr) answer {
	left, known := c.text(a)
	right, known2 := c.text(b)
	if !known || !known2 {
		return unsure
	}
	switch op {
	case "=":
		return c.same(left, right)
	case "<>", "!=":
		return negated(c.same(left, right))
	case "<", "<=", ">", ">=":
		x, y, ok := numbers(left, right)
		if !ok {
			return unsure
		}
		return answerOf(op[0] == '<' && x < y || op[0] == '>' && x > y || len(op) == 2 && x == y)
	case "LIKE", "ILIKE", "~~":
		return answerOf(like(left, right, op == "ILIKE"))
	case "~", "~*":
		return matches(left, right, op == "~*")
	}
	return unsure
}

func (c condition) same(left, right string) answer {
	if x, ok := booleanOf(left); ok && len(left) > 1 || len(right) > 1 {
		if y, ok2 := booleanOf(right); ok && ok2 {
			return answerOf(x == y)
		}
	}
	if x, y, ok := numbers(left, right); ok {
		return answerOf(x == y)
	}
	return answerOf(left == right)
}

// numbers parses two numbers.
func numbers(left, right string) (x, y float64, ok bool) {
	x, err := strconv.ParseFloat(left, 64)
	if err != nil {
		return 0, 0, false
	}
	y, err = strconv.ParseFloat(right, 64)
	return x, y, err == nil
}

// like reports whether a value matches a LIKE pattern.
func like(v, pattern string, fold bool) bool {
	var form strings.Builder
	form.WriteString("(?s")
	if fold {
		form.WriteString("i")
	}
	form.WriteString(")^")
	for _, r := range pattern {
		switch r {
		case '%':
			form.WriteString(".*")
		case '_':
			form.WriteString(".")
		default:
			form.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	ok, err := regexp.MatchString(form.String()+"$", v)
	return ok || err != nil
}

// matches reports whether a value matches a regular expression. The result is unsure if Go and the
// database might interpret the expression differently.
func matches(v, pattern string, fold bool) answer {
	if slices.ContainsFunc([]string{`\m`, `\M`, `\y`, `(?`, `\1`, `[[`}, func(s string) bool {
		return strings.Contains(pattern, s)
	}) {
		return unsure
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	ok, err := regexp.MatchString(pattern, v)
	if err != nil {
		return unsure
	}
	return answerOf(ok)
}
