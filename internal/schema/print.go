package schema

import (
	"encoding/hex"
	"strings"
)

// Quote quotes a name in the dialect.
func Quote(d Dialect, name string) string {
	if d == MySQL {
		return "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Quote quotes a name with its schema, if it has one, in the dialect.
func (n Name) Quote(d Dialect) string {
	if n.Schema == "" {
		return Quote(d, n.Name)
	}
	return Quote(d, n.Schema) + "." + Quote(d, n.Name)
}

// QuoteText quotes a string constant in the dialect. The result is valid whatever the session's
// settings for backslashes are.
func QuoteText(d Dialect, value string) string {
	escaped := strings.ReplaceAll(value, "'", "''")
	switch {
	case !strings.Contains(value, `\`) || d == SQLite:
		return "'" + escaped + "'"
	case d == PostgreSQL:
		return "E'" + strings.ReplaceAll(escaped, `\`, `\\`) + "'"
	}
	return "_utf8mb4 X'" + hex.EncodeToString([]byte(value)) + "'"
}

// SQL returns an expression in the dialect, with every operation in parentheses. It fails for an
// expression that is not allowed.
func (e Expr) SQL(d Dialect) (string, error) {
	if !e.allowed(d, nil) {
		return "", errNotAllowed
	}
	var b strings.Builder
	e.write(&b, d)
	return b.String(), nil
}

func (e Expr) write(b *strings.Builder, d Dialect) {
	switch {
	case e.Literal != nil:
		e.Literal.write(b, d)
	case e.Column != "":
		e.writeColumn(b, d)
	case e.NextValue != nil:
		e.writeNextValue(b, d)
	case e.Cast != nil:
		b.WriteString("CAST(")
		e.Args[0].write(b, d)
		b.WriteString(" AS " + e.Cast.SQL(d) + ")")
	case e.Call != "":
		e.writeCall(b, d)
	default:
		b.WriteByte('(')
		e.writeOp(b, d)
		b.WriteByte(')')
	}
}

// writeColumn writes a column. In PostgreSQL, some names are keywords instead: VALUE in the checks
// of a domain, and MINVALUE and MAXVALUE in the bounds of a partition.
func (e Expr) writeColumn(b *strings.Builder, d Dialect) {
	switch e.Column {
	case "value", "minvalue", "maxvalue":
		if d == PostgreSQL {
			b.WriteString(strings.ToUpper(e.Column))
			return
		}
	}
	b.WriteString(Quote(d, e.Column))
}

func (e Expr) writeNextValue(b *strings.Builder, d Dialect) {
	if d == MySQL {
		b.WriteString("NEXTVAL(" + Quote(d, e.NextValue.Name) + ")")
		return
	}
	b.WriteString("pg_catalog.nextval(" + QuoteText(d, e.NextValue.Quote(d)) + "::pg_catalog.regclass)")
}

func (e Expr) writeCall(b *strings.Builder, d Dialect) {
	switch {
	case e.Call == "extract":
		b.WriteString("EXTRACT(" + e.extractField(d) + " FROM ")
		e.Args[1].write(b, d)
		b.WriteByte(')')
		return
	case e.Call == "position":
		b.WriteString("POSITION(")
		e.Args[0].writeOp(b, d) // without the parentheses of an operator
		b.WriteByte(')')
		return
	case withoutParentheses[e.Call] && len(e.Args) == 0:
		b.WriteString(strings.ToUpper(e.Call))
		return
	}
	b.WriteString(e.Call)
	e.writeArgs(b, d, "(", ")", e.Args)
}

// extractField returns the field as the dialect expects it: a keyword for MySQL, a string for
// PostgreSQL.
func (e Expr) extractField(d Dialect) string {
	if d == PostgreSQL {
		return QuoteText(d, e.Args[0].Literal.Value)
	}
	return strings.ToUpper(e.Args[0].Literal.Value)
}

func (e Expr) writeArgs(b *strings.Builder, d Dialect, open, closing string, args []Expr) {
	b.WriteString(open)
	for i, arg := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		arg.write(b, d)
	}
	b.WriteString(closing)
}

func (e Expr) writeOp(b *strings.Builder, d Dialect) {
	between := func(op string) {
		e.Args[0].write(b, d)
		b.WriteString(" " + op + " ")
		e.Args[1].write(b, d)
	}
	switch {
	case e.Op == "NOT", e.Op == "NEG", e.Op == "POS", e.Op == "INVERT":
		b.WriteString(map[string]string{"NOT": "NOT ", "NEG": "- ", "POS": "+ ", "INVERT": "~ "}[e.Op])
		e.Args[0].write(b, d)
	case len(e.Args) == 1 && strings.HasPrefix(e.Op, "IS "):
		e.Args[0].write(b, d)
		b.WriteString(" " + e.Op)
	case e.Op == "IN", e.Op == "NOT IN":
		e.Args[0].write(b, d)
		e.writeArgs(b, d, " "+e.Op+" (", ")", e.Args[1:])
	case strings.HasSuffix(e.Op, "BETWEEN"):
		between(e.Op)
		b.WriteString(" AND ")
		e.Args[2].write(b, d)
	case e.Op == "CASE", e.Op == "CASE OF":
		e.writeCase(b, d)
	case e.Op == "ARRAY":
		e.writeArgs(b, d, "ARRAY[", "]", e.Args)
	case e.Op == "SUBSCRIPT":
		e.writeArgs(b, d, "(", ")", e.Args[:1])
		e.writeArgs(b, d, "[", "]", e.Args[1:])
	case e.Op == "COLLATE":
		e.Args[0].write(b, d)
		b.WriteString(" COLLATE " + builtinCollation(d, e.Args[1].Literal.Value))
	case strings.HasSuffix(e.Op, " ANY"), strings.HasSuffix(e.Op, " ALL"):
		e.Args[0].write(b, d)
		e.writeArgs(b, d, " "+e.Op+" (", ")", e.Args[1:])
	default:
		between(e.Op)
		if len(e.Args) == 3 {
			b.WriteString(" ESCAPE ")
			e.Args[2].write(b, d)
		}
	}
}

// builtinCollation quotes a built-in collation.
func builtinCollation(d Dialect, name string) string {
	if d == PostgreSQL {
		return "pg_catalog." + Quote(d, name)
	}
	return Quote(d, name)
}

func (e Expr) writeCase(b *strings.Builder, d Dialect) {
	args := e.Args
	b.WriteString("CASE")
	if e.Op == "CASE OF" {
		b.WriteByte(' ')
		args[0].write(b, d)
		args = args[1:]
	}
	for ; len(args) >= 2; args = args[2:] {
		b.WriteString(" WHEN ")
		args[0].write(b, d)
		b.WriteString(" THEN ")
		args[1].write(b, d)
	}
	if len(args) == 1 {
		b.WriteString(" ELSE ")
		args[0].write(b, d)
	}
	b.WriteString(" END")
}

func (l Literal) write(b *strings.Builder, d Dialect) {
	switch l.Kind {
	case "string":
		b.WriteString(QuoteText(d, l.Value))
	case "null":
		b.WriteString("NULL")
	case "bytes":
		if d == PostgreSQL {
			b.WriteString(`'\x` + l.Value + `'::pg_catalog.bytea`)
			return
		}
		b.WriteString("X'" + l.Value + "'")
	case "bits":
		b.WriteString("B'" + l.Value + "'")
	default:
		b.WriteString(strings.ToUpper(l.Value))
	}
}

// SQL returns the SQL of a type that [Schema.Check] has accepted.
func (t Type) SQL(d Dialect) string {
	name := t.Name
	args := strings.Join(t.Args, ",")
	if len(t.Labels) > 0 {
		labels := make([]string, len(t.Labels))
		for i, label := range t.Labels {
			labels[i] = QuoteText(d, label)
		}
		args = strings.Join(labels, ",")
	}
	if args != "" {
		args = "(" + args + ")"
	}
	switch {
	case t.Own, t.Schema != "":
		name = Name{t.Schema, t.Name}.Quote(d)
	case d == SQLite && name != "":
		name = Quote(d, name)
	case d == PostgreSQL && args == "" && name == "bit":
		name = `"bit"` // of any length; bit without quotes has one digit
	case d == PostgreSQL && args == "" && name == "character":
		name = "bpchar"
	}
	if base, zone, ok := strings.Cut(name, " with"); ok && !t.Own {
		return base + args + " with" + zone + strings.Repeat("[]", t.Dims)
	}
	text := name + args + strings.Repeat("[]", t.Dims)
	if t.Unsigned {
		text += " unsigned"
	}
	if t.Zerofill {
		text += " zerofill"
	}
	return text
}
