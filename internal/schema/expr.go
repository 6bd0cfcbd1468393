package schema

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Expr is an expression tree. Exactly one of the fields Literal, Column, Op, Call, Cast and
// NextValue is set.
type Expr struct {
	Literal *Literal `json:"literal,omitempty"`
	Column  string   `json:"column,omitempty"`
	Op      string   `json:"op,omitempty"`   // an allowed operator, in upper case
	Call    string   `json:"call,omitempty"` // an allowed built-in function, in lower case
	Cast    *Type    `json:"cast,omitempty"` // a cast of the single argument
	Args    []Expr   `json:"args,omitempty"`

	NextValue *Name `json:"next_value,omitempty"` // of a sequence in the description
}

// Literal is a constant. Kind is string, number, boolean, null, bytes or bits. Bytes are written in
// hexadecimal, bits in binary digits.
type Literal struct {
	Kind  string `json:"kind"`
	Value string `json:"value,omitempty"`
}

// allowed reports whether [ParseExpr] could have returned the expression. A description from a file
// can contain other expressions. If known is not nil, allowed also rejects columns for which known
// returns false.
func (e Expr) allowed(d Dialect, known func(column string) bool) bool {
	nodes := 0
	return e.allowedNode(d, known, 0, &nodes)
}

// maxGrowing is the maximum nesting of expressions that multiply the length of a string. With thirty
// of them, a row of a few bytes could use all of a server's memory.
const maxGrowing = 3

// grows reports whether the result of a call can be several times as long as its arguments, or that
// of a cast or of reading JSON, which can write bytes as digits and escape quotes. A cast of a column
// or constant cannot be repeated.
func (e Expr) grows() bool {
	if e.Cast != nil || slices.Contains([]string{"json", "json_extract", "->", "->>"}, e.Call+e.Op) {
		return len(e.Args) > 0 && len(e.Args[0].Args) > 0
	}
	return slices.Contains([]string{"hex", "json_array", "json_object"}, e.Call)
}

// growing returns the nesting depth of the expressions for which grows is true.
func (e Expr) growing() (deepest int) {
	for _, arg := range e.Args {
		deepest = max(deepest, arg.growing())
	}
	if e.grows() {
		deepest++
	}
	return deepest
}

func (e Expr) allowedNode(d Dialect, known func(string) bool, depth int, nodes *int) bool {
	if *nodes++; *nodes > maxNodes || depth > maxDepth*2 || e.forms() != 1 {
		return false
	}
	if e.grows() && e.growing() > maxGrowing || !e.allowedForm(d, known) {
		return false
	}
	for _, arg := range e.Args {
		if !arg.allowedNode(d, known, depth+1, nodes) {
			return false
		}
	}
	return true
}

// forms counts how many of the fields that define the expression are set.
func (e Expr) forms() int {
	n := 0
	for _, set := range []bool{
		e.Literal != nil, e.Column != "", e.Op != "", e.Call != "", e.Cast != nil, e.NextValue != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

func (e Expr) allowedForm(d Dialect, known func(string) bool) bool {
	switch {
	case e.Literal != nil:
		return len(e.Args) == 0 && e.Literal.valid()
	case e.Column != "":
		return len(e.Args) == 0 && validName(e.Column) && (known == nil || known(e.Column))
	case e.Op != "":
		return e.allowedOp(d)
	case e.Call != "":
		return e.allowedCall(d)
	case e.Cast != nil:
		return len(e.Args) == 1 && e.Cast.Allowed(d)
	}
	return d != SQLite && len(e.Args) == 0 && e.NextValue.valid()
}

func (e Expr) allowedOp(d Dialect) bool {
	if e.Op == "COLLATE" {
		return len(e.Args) == 2 && e.Args[1].isWord(collationName)
	}
	return allowedOp(d, e.Op, len(e.Args))
}

func (e Expr) allowedCall(d Dialect) bool {
	switch {
	case e.Call == "extract":
		return d != SQLite && len(e.Args) == 2 && e.Args[0].isWord(extractField)
	case e.Call == "position" && (len(e.Args) != 1 || e.Args[0].Op != "IN" || len(e.Args[0].Args) != 2),
		e.repeats():
		return false
	}
	return calls[d][e.Call] && len(e.Args) <= 100 && (!withoutParentheses[e.Call] || len(e.Args) <= 1)
}

// repeats reports whether a call can repeat one argument as often as another requires: the last
// argument of replace, a separator, a time, or the document from which several paths read. The result
// could be millions of times as long as its arguments.
func (e Expr) repeats() bool {
	constant := func(i int) (value string, ok bool) {
		if i < len(e.Args) {
			value, ok = e.Args[i].constant()
		}
		return value, ok
	}
	switch e.Call {
	case "replace":
		from, ok := constant(1)
		to, also := constant(2)
		return len(e.Args) != 3 || !ok || !also || len(to) > len(from)
	case "concat_ws", "strftime":
		_, ok := constant(0)
		return !ok
	case "json_extract":
		path, ok := constant(1)
		return len(e.Args) != 2 || !ok || strings.Contains(path, "**")
	}
	return false
}

// constant returns the value of a string constant, which PostgreSQL writes with a cast to text.
func (e Expr) constant() (string, bool) {
	switch {
	case e.Cast != nil && e.Cast.Name == "text" && !e.Cast.Own && len(e.Args) == 1:
		return e.Args[0].constant()
	case e.Literal != nil && e.Literal.Kind == "string":
		return e.Literal.Value, true
	}
	return "", false
}

// extractField matches the field names of EXTRACT.
var extractField = regexp.MustCompile(`^[a-z_]{1,20}$`)

// isWord reports whether an expression is a string literal that matches form.
func (e Expr) isWord(form *regexp.Regexp) bool {
	return e.Literal != nil && e.Literal.Kind == "string" && form.MatchString(e.Literal.Value)
}

func (l Literal) valid() bool {
	switch l.Kind {
	case "string":
		return len(l.Value) <= maxText && utf8.ValidString(l.Value) && !strings.Contains(l.Value, "\x00")
	case "number":
		return len(l.Value) <= 1000 && isNumber(l.Value)
	case "boolean":
		return l.Value == "true" || l.Value == "false"
	case "null":
		return l.Value == ""
	case "bytes":
		return len(l.Value) <= maxText && len(l.Value)%2 == 0 && strings.Trim(l.Value, "0123456789abcdef") == ""
	case "bits":
		return len(l.Value) <= 1000 && strings.Trim(l.Value, "01") == ""
	}
	return false
}

// valid reports whether n can be the name of a database object.
func (n Name) valid() bool { return validName(n.Name) && (n.Schema == "" || validName(n.Schema)) }

// maxName is the maximum length of a name in bytes. PostgreSQL allows 63 bytes and MySQL 64
// characters; SQLite has no limit.
const maxName = 512

func validName(s string) bool { return validText(s, maxName) }

func validText(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// Allowed reports whether a type is one that [Schema.Check] accepts: it is built in, belongs to an
// allowed extension or is marked as defined by the description, and can be written as SQL.
func (t Type) Allowed(d Dialect) bool { return t.allowedName(d) && t.allowedParts(d) }

func (t Type) allowedName(d Dialect) bool {
	switch {
	case t.Own:
		return d == PostgreSQL && validName(t.Name) && Name{t.Schema, t.Name}.valid() && len(t.Args) == 0
	case t.Extension != "":
		return d == PostgreSQL && slices.Contains(extensionTypes[t.Extension], t.Name)
	case d == SQLite:
		return isSQLiteType(t.Name) || t.Name == "" && len(t.Args) == 0
	}
	return builtinTypes[d][t.Name]
}

// allowedParts checks everything about a type except its name.
func (t Type) allowedParts(d Dialect) bool {
	if t.Dims < 0 || t.Dims > 6 || t.Dims > 0 && d != PostgreSQL || len(t.Args) > 3 || len(t.Labels) > 65535 {
		return false
	}
	for _, arg := range t.Args {
		if n, _ := strconv.Atoi(arg); !typeArg.MatchString(arg) || d != SQLite && padded[t.Name] && n > maxPadded {
			return false
		}
	}
	for _, label := range t.Labels {
		if d != MySQL || len(label) > 1024 || !utf8.ValidString(label) || strings.Contains(label, "\x00") {
			return false
		}
	}
	return true
}
