package sanitize

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"snap/internal/personal"
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
	of := func(name string) (string, bool) { return value, strings.EqualFold(name, column) }
	return condition{value: of, isCheck: true}.answer(e)
}

// condition evaluates the condition of a rule for a row, or a check for one value. The result for a
// rule is unsure if it can depend on the database; see certain.go.
type condition struct {
	value   func(column string) (value string, known bool)
	class   func(column string) personal.Class // of a rule's condition: see [column.comparedAs]
	isCheck bool                               // it is a check, in which unknown columns are not NULL
}

func (c condition) answer(e schema.Expr) answer {
	switch op := e.Op; {
	case e.Cast != nil && len(e.Args) == 1:
		return c.answer(e.Args[0])
	case op == "AND" || op == "OR":
		return c.andOr(e)
	case op == "NOT" && len(e.Args) == 1:
		return negated(c.answer(e.Args[0]))
	case op == "IS NULL" || op == "IS NOT NULL":
		return c.isNull(e.Args, op == "IS NOT NULL")
	case op == "NOT LIKE" && len(e.Args) == 2:
		return negated(c.compare("LIKE", e.Args[0], e.Args[1]))
	case e.Column != "":
		return c.truth(e.Column)
	case op == "IN":
		return c.oneOf(e.Args[0], e.Args[1:])
	case op == "NOT IN":
		return negated(c.oneOf(e.Args[0], e.Args[1:]))
	case op == "= ANY" && len(e.Args) == 2 && uncast(e.Args[1]).Op == "ARRAY":
		return c.oneOf(e.Args[0], uncast(e.Args[1]).Args)
	case op == "BETWEEN" && len(e.Args) == 3:
		return and(c.compare(">=", e.Args[0], e.Args[1]), c.compare("<=", e.Args[0], e.Args[2]))
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
	if c.isCheck && not {
		return yes
	}
	if c.isCheck || len(args) != 1 || args[0].Column == "" {
		return unsure
	}
	_, known := c.value(args[0].Column)
	return answerOf(known == not)
}

// truth interprets the value of a column as yes or no.
func (c condition) truth(column string) answer {
	v, known := c.value(column)
	is, ok := booleanOf(v)
	isNumber := v == "0" || v == "1"
	if !known || !ok || !c.isCheck && !isNumber && c.class(column) != personal.Bool {
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

func and(a, b answer) answer {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return unsure
}

func or(a, b answer) answer { return negated(and(negated(a), negated(b))) }

func (c condition) andOr(e schema.Expr) answer {
	combine, all := and, yes
	if e.Op == "OR" {
		combine, all = or, no
	}
	for _, arg := range e.Args {
		all = combine(all, c.answer(arg))
	}
	return all
}

func (c condition) oneOf(value schema.Expr, list []schema.Expr) answer {
	in := no
	for _, item := range list {
		in = or(in, c.compare("=", value, item))
	}
	return in
}

// operand returns the value of an expression that is a literal, a known column, or a simple function
// of such expressions.
func (c condition) operand(e schema.Expr) (operand, bool) {
	switch {
	case e.Literal != nil:
		class, ok := map[string]personal.Class{"string": "", "number": personal.Integer,
			"boolean": personal.Bool}[e.Literal.Kind]
		return operand{text: e.Literal.Value, class: class}, ok
	case e.Column != "":
		v, known := c.value(e.Column)
		if !known || c.isCheck {
			return operand{text: v}, known
		}
		return operand{text: v, class: c.class(e.Column)}, true
	case len(e.Args) != 1:
		return operand{}, false
	}
	v, known := c.operand(e.Args[0])
	switch {
	case !known:
	case e.Cast != nil:
		v.vague = v.vague || v.isPadded()
		return v, c.isCheck || v.keptBy(*e.Cast)
	case e.Op == "NEG":
		v.text = "-" + v.text
		return v, true
	case e.Call != "":
		return c.call(e.Call, v)
	}
	return operand{}, false
}

func (c condition) call(name string, of operand) (operand, bool) {
	v := of.text
	if !c.isCheck && !of.isIn(textClasses) {
		return operand{}, false
	}
	length := utf8.RuneCountInString(v)
	isSure := c.isCheck || !of.vague && !of.isPadded()
	number := func(n int) operand { return operand{text: strconv.Itoa(n), class: personal.Integer} }
	switch name {
	case "lower", "lcase":
		of.text, of.vague = strings.ToLower(v), of.vague || hasVagueCase(v, "I") || of.isPadded()
	case "upper", "ucase":
		of.text, of.vague = strings.ToUpper(v), of.vague || hasVagueCase(v, "i") || of.isPadded()
	case "trim", "btrim":
		of.text = strings.Trim(v, " ")
	case "char_length", "character_length":
		return number(length), isSure
	case "length": // counts characters or bytes, depending on the database
		return number(length), isSure && length == len(v)
	case "octet_length":
		return number(len(v)), isSure
	default:
		return operand{}, false
	}
	return of, true
}

func (c condition) compare(op string, a, b schema.Expr) answer {
	left, known := c.operand(a)
	right, known2 := c.operand(b)
	if !known || !known2 {
		return unsure
	}
	if !c.isCheck {
		return compareForRule(op, left, right)
	}
	return compareForCheck(op, left.text, right.text)
}

// compareForCheck compares two values as a check does. It does not know their types.
func compareForCheck(op, left, right string) answer {
	switch op {
	case "=":
		return same(left, right)
	case "<>", "!=":
		return negated(same(left, right))
	case "<", "<=", ">", ">=":
		x, y, ok := numbers(left, right)
		if !ok {
			return unsure
		}
		return answerOf(holds(op, cmp.Compare(x, y)))
	case "LIKE", "~~":
		if strings.Contains(right, `\`) { // an escape, but not in SQLite
			return unsure
		}
		return answerOf(like(left, right))
	case "~", "~*":
		return matches(left, right, op == "~*")
	}
	return unsure
}

// holds reports whether a comparison with the operator holds, given the order of its operands.
func holds(op string, order int) bool {
	return op[0] == '<' && order < 0 || op[0] == '>' && order > 0 || len(op) == 2 && order == 0
}

func same(left, right string) answer {
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

func numbers(left, right string) (x, y float64, ok bool) {
	x, err := strconv.ParseFloat(left, 64)
	if err != nil {
		return 0, 0, false
	}
	y, err = strconv.ParseFloat(right, 64)
	return x, y, err == nil
}

// like reports whether a value matches a LIKE pattern. It returns true for a pattern that cannot be
// evaluated.
func like(v, pattern string) bool {
	var form strings.Builder
	form.WriteString("(?s)^")
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
