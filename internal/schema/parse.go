package schema

import "strings"

// The limits of an expression.
const (
	maxDepth = 60
	maxNodes = 2000
	maxText  = 64 << 10
)

// ParseExpr parses a check, a default or a bound as written by the database. It fails for anything
// except columns, constants and the allowed built-in operators and functions. On PostgreSQL, the
// server must have written the text with an empty search_path, so that only built-in names are
// unqualified.
func ParseExpr(d Dialect, text string) (Expr, error) {
	if len(text) > maxText {
		return Expr{}, errNotAllowed
	}
	tokens, err := scanner{d, text}.all()
	if err != nil {
		return Expr{}, err
	}
	p := &parser{d: d, tokens: tokens}
	e, err := p.expr(0)
	if err == nil && (p.peek().kind != end || !e.allowed(d, nil)) {
		err = errNotAllowed
	}
	return e, err
}

// parser is a precedence-climbing parser. A higher power binds more tightly.
type parser struct {
	d      Dialect
	tokens []token
	depth  int
}

// The powers. Those of a few operators differ between dialects: see [parser.power] and
// [parser.infixWord].
const (
	powerOr    = 10
	powerXor   = 15
	powerAnd   = 20
	powerNot   = 30
	powerIs    = 35
	powerEqual = 40
	powerLess  = 45
	powerOther = 50
	powerAdd   = 55
	powerMul   = 60
	powerTight = 65
	powerUnary = 75
	powerCast  = 85
)

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) advance() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept consumes the given words or symbols if they come next, and reports whether they did.
func (p *parser) accept(texts ...string) bool {
	for i, want := range texts {
		if i >= len(p.tokens) || p.tokens[i].text != want || p.tokens[i].kind != word && p.tokens[i].kind != symbol {
			return false
		}
	}
	p.tokens = p.tokens[len(texts):]
	return true
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return errNotAllowed
	}
	return nil
}

// expr parses an expression whose operators bind at least as tightly as power.
func (p *parser) expr(power int) (Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return Expr{}, errNotAllowed
	}
	defer func() { p.depth-- }()
	left, err := p.prefix()
	for err == nil {
		var more bool
		if left, more, err = p.infix(left, power); !more {
			break
		}
	}
	return left, err
}

// exprBefore parses an expression and the word or symbol after it.
func (p *parser) exprBefore(text string) (Expr, error) {
	e, err := p.expr(0)
	if err == nil {
		err = p.expect(text)
	}
	return e, err
}

// prefix parses an expression without the operators that follow it.
func (p *parser) prefix() (Expr, error) {
	switch t := p.advance(); t.kind {
	case text:
		return literal("string", t.text), nil
	case number:
		return literal("number", t.text), nil
	case bytes:
		return literal("bytes", t.text), nil
	case bits:
		return literal("bits", t.text), nil
	case quoted:
		if p.d == PostgreSQL && p.peek().text == "(" { // a function named like a keyword, such as "left"
			return p.call(t.text)
		}
		return p.column(t.text)
	case symbol:
		return p.prefixSymbol(t.text)
	case word:
		return p.prefixWord(t.text)
	}
	return Expr{}, errNotAllowed
}

func literal(kind, value string) Expr { return Expr{Literal: &Literal{Kind: kind, Value: value}} }

// column returns the column whose name was just read. It rejects a qualified name, which may belong
// to another table, and the name of a function.
func (p *parser) column(name string) (Expr, error) {
	if next := p.peek(); next.kind == symbol && (next.text == "." || next.text == "(") {
		return Expr{}, errNotAllowed
	}
	return Expr{Column: name}, nil
}

func (p *parser) prefixSymbol(sym string) (Expr, error) {
	switch sym {
	case "(":
		return p.exprBefore(")")
	case "-", "+", "~", "!":
		op := map[string]string{"-": "NEG", "+": "POS", "~": "INVERT", "!": "NOT"}[sym]
		e, err := p.expr(powerUnary)
		return Expr{Op: op, Args: []Expr{e}}, err
	}
	return Expr{}, errNotAllowed
}

func (p *parser) prefixWord(name string) (Expr, error) {
	switch name {
	case "null":
		return literal("null", ""), nil
	case "true", "false":
		return literal("boolean", name), nil
	case "not":
		e, err := p.expr(powerNot)
		return Expr{Op: "NOT", Args: []Expr{e}}, err
	case "case":
		return p.caseOf()
	case "cast":
		return p.cast()
	case "array":
		if !p.accept("[") {
			return Expr{}, errNotAllowed
		}
		args, err := p.list("]")
		return Expr{Op: "ARRAY", Args: args}, err
	case "extract":
		return p.extract()
	case "pg_catalog":
		if p.d != PostgreSQL || !p.accept(".") || p.peek().kind != word {
			return Expr{}, errNotAllowed
		}
		name = p.advance().text
		if p.peek().text != "(" {
			return Expr{}, errNotAllowed
		}
	}
	return p.call(name)
}

// call parses a function call, or a column whose name is not quoted.
func (p *parser) call(name string) (Expr, error) {
	if name == "nextval" && p.d != SQLite && p.peek().text == "(" {
		return p.nextval()
	}
	if p.accept("(") {
		args, err := p.list(")")
		return Expr{Call: name, Args: args}, err
	}
	if withoutParentheses[name] {
		return Expr{Call: name}, nil
	}
	return p.column(name)
}

// nextval parses the next value of a sequence. PostgreSQL names the sequence with a string, MariaDB
// with a name.
func (p *parser) nextval() (Expr, error) {
	p.advance()
	in := p // parses the name
	if p.d == PostgreSQL {
		named := p.advance()
		if named.kind != text || !p.accept("::", "regclass") {
			return Expr{}, errNotAllowed
		}
		tokens, err := scanner{p.d, named.text}.all()
		if err != nil {
			return Expr{}, err
		}
		in = &parser{d: p.d, tokens: tokens}
	}
	name, err := in.sequenceName()
	if err == nil && in != p && in.peek().kind != end {
		err = errNotAllowed
	}
	if err != nil {
		return Expr{}, err
	}
	return Expr{NextValue: &name}, p.expect(")")
}

// sequenceName parses an optionally qualified name.
func (p *parser) sequenceName() (Name, error) {
	var parts []string
	for more := true; more; more = p.accept(".") {
		t := p.advance()
		if t.kind != word && t.kind != quoted {
			return Name{}, errNotAllowed
		}
		parts = append(parts, t.text)
	}
	switch len(parts) {
	case 1:
		return Name{Name: parts[0]}, nil
	case 2:
		return Name{Schema: parts[0], Name: parts[1]}, nil
	}
	return Name{}, errNotAllowed
}

// list parses comma-separated expressions up to the closing symbol.
func (p *parser) list(closing string) ([]Expr, error) {
	var all []Expr
	if p.accept(closing) {
		return nil, nil
	}
	for {
		e, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if p.accept(closing) {
			return all, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

// caseOf parses CASE. Its arguments are the value, if any, each condition with its result, and the
// result of ELSE.
func (p *parser) caseOf() (Expr, error) {
	e := Expr{Op: "CASE"}
	add := func() error {
		arg, err := p.expr(0)
		e.Args = append(e.Args, arg)
		return err
	}
	if p.peek().text != "when" {
		e.Op = "CASE OF"
		if err := add(); err != nil {
			return e, err
		}
	}
	for p.accept("when") {
		if err := add(); err != nil {
			return e, err
		}
		if err := p.expect("then"); err != nil {
			return e, err
		}
		if err := add(); err != nil {
			return e, err
		}
	}
	if p.accept("else") {
		if err := add(); err != nil {
			return e, err
		}
	}
	return e, p.expect("end")
}

func (p *parser) cast() (Expr, error) {
	if err := p.expect("("); err != nil {
		return Expr{}, err
	}
	e, err := p.exprBefore("as")
	if err != nil {
		return Expr{}, err
	}
	t, err := p.typeName()
	if err == nil {
		err = p.expect(")")
	}
	return Expr{Cast: &t, Args: []Expr{e}}, err
}

// extract parses EXTRACT(field FROM value).
func (p *parser) extract() (Expr, error) {
	if p.d == SQLite || !p.accept("(") {
		return Expr{}, errNotAllowed
	}
	field := p.advance()
	if field.kind != word && field.kind != text || !p.accept("from") {
		return Expr{}, errNotAllowed
	}
	e, err := p.exprBefore(")")
	return Expr{Call: "extract", Args: []Expr{literal("string", field.text), e}}, err
}

// typeName parses the type of a cast.
func (p *parser) typeName() (Type, error) {
	first := p.advance()
	switch {
	case first.kind == quoted && p.d == PostgreSQL || first.kind == word && p.peek().text == ".":
		return p.qualifiedType(first)
	case first.kind != word:
		return Type{}, errNotAllowed
	}
	t, words := Type{}, []string{first.text}
	for p.peek().kind == word && typeWords[p.peek().text] {
		words = append(words, p.advance().text)
	}
	if err := p.typeArgs(&t); err != nil {
		return t, err
	}
	for p.peek().kind == word && (p.peek().text == "with" || p.peek().text == "without") {
		words = append(words, p.advance().text)
		if !p.accept("time", "zone") {
			return t, errNotAllowed
		}
		words = append(words, "time", "zone")
	}
	t.Name = strings.Join(words, " ")
	p.dims(&t)
	return t, nil
}

// typeWords are words that continue a type's name.
var typeWords = set(`precision, varying, unsigned, signed, integer, int`)

// qualifiedType parses a type that has a schema or a quoted name.
func (p *parser) qualifiedType(first token) (Type, error) {
	t := Type{Name: first.text}
	if p.accept(".") {
		second := p.advance()
		if second.kind != word && second.kind != quoted {
			return t, errNotAllowed
		}
		t = Type{Schema: first.text, Name: second.text, Own: first.text != "pg_catalog"}
		if !t.Own {
			t.Schema = ""
		}
	}
	if t.Name == "char" && !t.Own {
		t.Name = `"char"`
	}
	err := p.typeArgs(&t)
	p.dims(&t)
	return t, err
}

func (p *parser) typeArgs(t *Type) error {
	if !p.accept("(") {
		return nil
	}
	for {
		arg := p.advance()
		if arg.kind != number && arg.kind != word {
			return errNotAllowed
		}
		t.Args = append(t.Args, arg.text)
		if p.accept(")") {
			return nil
		}
		if err := p.expect(","); err != nil {
			return err
		}
	}
}

// dims parses the brackets of an array type.
func (p *parser) dims(t *Type) {
	for p.d == PostgreSQL && p.accept("[", "]") {
		t.Dims++
	}
}

// infix parses the operator after left and its operands, if it binds at least as tightly as power.
func (p *parser) infix(left Expr, power int) (Expr, bool, error) {
	t := p.peek()
	switch t.kind {
	case symbol:
		return p.infixSymbol(left, t.text, power)
	case word:
		return p.infixWord(left, power)
	}
	return left, false, nil
}

func (p *parser) infixSymbol(left Expr, sym string, power int) (Expr, bool, error) {
	switch {
	case sym == "::":
		p.advance()
		t, err := p.typeName()
		return Expr{Cast: &t, Args: []Expr{left}}, true, err
	case sym == "[" && p.d == PostgreSQL:
		p.advance()
		index, err := p.exprBefore("]")
		return Expr{Op: "SUBSCRIPT", Args: []Expr{left, index}}, true, err
	}
	own := p.power(sym)
	if own == 0 || own < power {
		return left, false, nil
	}
	p.advance()
	op := canonical(p.d, sym)
	for _, quantifier := range []string{"any", "all"} {
		if p.d == PostgreSQL && p.accept(quantifier, "(") {
			array, err := p.exprBefore(")")
			return Expr{Op: op + " " + strings.ToUpper(quantifier), Args: []Expr{left, array}}, true, err
		}
	}
	right, err := p.expr(own + 1)
	return Expr{Op: op, Args: []Expr{left, right}}, true, err
}

// canonical returns the standard spelling of an operator that has two.
func canonical(d Dialect, sym string) string {
	switch {
	case sym == "!=":
		return "<>"
	case sym == "==":
		return "="
	case sym == "&&" && d == MySQL:
		return "AND"
	}
	return sym
}

// power returns how tightly a symbol binds, or 0 if it is not an operator.
func (p *parser) power(sym string) int {
	switch sym {
	case "=", "==", "<>", "!=", "<=>":
		return powerEqual
	case "<", ">", "<=", ">=":
		if p.d == SQLite {
			return powerLess
		}
		return powerEqual
	case "+", "-":
		return powerAdd
	case "*", "/", "%":
		return powerMul
	case "^":
		return powerTight
	case "&&":
		if p.d == MySQL {
			return powerAnd
		}
	case "||", "->", "->>":
		if p.d == SQLite {
			return powerTight
		}
	case "&":
		if p.d == MySQL {
			return powerOther + 1
		}
	case "<<", ">>":
		if p.d == MySQL {
			return powerOther + 2
		}
	}
	if symbolOp(p.d, sym) {
		return powerOther
	}
	return 0
}

// wordOp is an operator that consists of words.
type wordOp struct {
	words []string
	op    string
	power int
	args  int // number of operands after the left one; -1 means a list, 2 means two with AND between them
}

// wordOps lists the word operators. An operator comes before every shorter operator that it begins
// with.
var wordOps = []wordOp{
	{[]string{"is", "not", "distinct", "from"}, "IS NOT DISTINCT FROM", powerIs, 1},
	{[]string{"is", "distinct", "from"}, "IS DISTINCT FROM", powerIs, 1},
	{[]string{"is", "not", "null"}, "IS NOT NULL", powerIs, 0},
	{[]string{"is", "not", "true"}, "IS NOT TRUE", powerIs, 0},
	{[]string{"is", "not", "false"}, "IS NOT FALSE", powerIs, 0},
	{[]string{"is", "not", "unknown"}, "IS NOT UNKNOWN", powerIs, 0},
	{[]string{"is", "null"}, "IS NULL", powerIs, 0},
	{[]string{"is", "true"}, "IS TRUE", powerIs, 0},
	{[]string{"is", "false"}, "IS FALSE", powerIs, 0},
	{[]string{"is", "unknown"}, "IS UNKNOWN", powerIs, 0},
	{[]string{"is", "not"}, "IS NOT", powerIs, 1},
	{[]string{"is"}, "IS", powerIs, 1},
	{[]string{"isnull"}, "IS NULL", powerIs, 0},
	{[]string{"notnull"}, "IS NOT NULL", powerIs, 0},
	{[]string{"not", "null"}, "IS NOT NULL", powerIs, 0},
	{[]string{"not", "between"}, "NOT BETWEEN", powerEqual, 2},
	{[]string{"between"}, "BETWEEN", powerEqual, 2},
	{[]string{"not", "in"}, "NOT IN", powerEqual, -1},
	{[]string{"in"}, "IN", powerEqual, -1},
	{[]string{"not", "like"}, "NOT LIKE", powerEqual, 1},
	{[]string{"like"}, "LIKE", powerEqual, 1},
	{[]string{"not", "glob"}, "NOT GLOB", powerEqual, 1},
	{[]string{"glob"}, "GLOB", powerEqual, 1},
	{[]string{"not", "regexp"}, "NOT REGEXP", powerEqual, 1},
	{[]string{"regexp"}, "REGEXP", powerEqual, 1},
	{[]string{"not", "rlike"}, "NOT REGEXP", powerEqual, 1},
	{[]string{"rlike"}, "REGEXP", powerEqual, 1},
	{[]string{"at", "time", "zone"}, "AT TIME ZONE", powerUnary, 1},
	{[]string{"collate"}, "COLLATE", powerCast, 1},
	{[]string{"div"}, "DIV", powerMul, 1},
	{[]string{"mod"}, "MOD", powerMul, 1},
	{[]string{"xor"}, "XOR", powerXor, 1},
	{[]string{"and"}, "AND", powerAnd, 1},
	{[]string{"or"}, "OR", powerOr, 1},
}

func (p *parser) infixWord(left Expr, power int) (Expr, bool, error) {
	for _, op := range wordOps {
		own := op.power
		if p.d == SQLite && own == powerIs {
			own = powerEqual
		}
		if own < power || !p.accept(op.words...) {
			continue
		}
		e := Expr{Op: op.op, Args: []Expr{left}}
		err := p.operands(&e, op, own)
		return e, true, err
	}
	return left, false, nil
}

// operands parses the operands of a word operator.
func (p *parser) operands(e *Expr, op wordOp, own int) error {
	switch {
	case op.op == "COLLATE":
		return p.collation(e)
	case op.args == -1:
		if err := p.expect("("); err != nil {
			return err
		}
		list, err := p.list(")")
		e.Args = append(e.Args, list...)
		return err
	}
	for i := range op.args {
		if i > 0 {
			if err := p.expect("and"); err != nil {
				return err
			}
		}
		arg, err := p.expr(own + 1)
		if err != nil {
			return err
		}
		e.Args = append(e.Args, arg)
	}
	if strings.HasSuffix(op.op, "LIKE") && p.accept("escape") {
		arg, err := p.expr(own + 1)
		e.Args = append(e.Args, arg)
		return err
	}
	return nil
}

// collation parses the name of a built-in collation.
func (p *parser) collation(e *Expr) error {
	t := p.advance()
	if t.kind == word && t.text == "pg_catalog" && p.accept(".") {
		t = p.advance()
	}
	if t.kind != word && t.kind != quoted || p.peek().text == "." {
		return errNotAllowed
	}
	e.Args = append(e.Args, literal("string", t.text))
	return nil
}
