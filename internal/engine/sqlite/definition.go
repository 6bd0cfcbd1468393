package sqlite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// definition is the CREATE statement of a table as data.
type definition struct {
	schema.Table
	programs []schema.Program // parts of the table that can run code; the description of the table omits them
	virtual  []bool           // by column: computed when read, so that rows do not store its values
	position int              // the table's position in the catalog
}

// maxColumns is SQLite's maximum number of columns in a table.
const maxColumns = 2000

// The options of a table in a description.
const (
	withoutRowid = "without_rowid"
	strict       = "strict"
)

// tableDefinition parses a CREATE TABLE statement.
func tableDefinition(text string) (definition, error) {
	list, err := tokens(text)
	if err != nil {
		return definition{}, err
	}
	p := &tableParser{reader: reader{list: list}, text: text}
	if !p.acceptAll("CREATE", "TABLE") {
		return definition{}, errStatement
	}
	name, ok := p.name()
	if !ok || !p.accept("(") {
		return definition{}, errStatement
	}
	p.Name.Name = charset.Readable(name)
	if err := p.body(); err != nil {
		return definition{}, err
	}
	return p.definition, p.finish()
}

// tableParser parses a CREATE TABLE statement into its definition.
type tableParser struct {
	reader
	definition
	text       string
	constraint string // the name for the next constraint
}

// body parses the columns, the constraints and the options after them.
func (p *tableParser) body() error {
	for p.startsColumn() {
		if err := p.column(); err != nil {
			return err
		}
		if !p.accept(",") {
			break
		}
	}
	for !p.accept(")") {
		if err := p.tableConstraint(); err != nil {
			return err
		}
		p.accept(",") // optional in SQLite
	}
	for !p.done() {
		switch {
		case p.acceptAll("WITHOUT", "ROWID"):
			p.option(withoutRowid)
		case p.accept("STRICT"):
			p.option(strict)
		default:
			return errStatement
		}
		p.accept(",")
	}
	return nil
}

func (p *tableParser) option(name string) {
	if p.Options == nil {
		p.Options = map[string]string{}
	}
	p.Options[name] = "true"
}

func (p *tableParser) startsColumn() bool {
	return !slices.ContainsFunc([]string{"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", ")"}, p.peek)
}

// column parses a column with its constraints.
func (p *tableParser) column() error {
	name, ok := p.name()
	if !ok || len(p.Columns) >= maxColumns {
		return errStatement
	}
	p.Columns, p.definition.virtual = append(p.Columns, schema.Column{Name: charset.Readable(name)}),
		append(p.definition.virtual, false)
	c := &p.Columns[len(p.Columns)-1]
	c.Type = p.columnType()
	p.constraint = ""
	for !p.done() && !p.peek(",") && !p.peek(")") {
		named := p.peek("CONSTRAINT")
		if err := p.columnConstraint(c); err != nil {
			return err
		}
		if !named {
			p.constraint = ""
		}
	}
	return nil
}

// columnType parses the declared type: words and up to two numbers. If the type is quoted, SQLite
// uses the string in the first quotes as the whole type. A type in any other form becomes a type
// with the same affinity.
func (p *tableParser) columnType() schema.Type {
	var words []string
	var inQuotes []bool
	for !p.done() && !p.startsConstraint() {
		word, ok := p.name()
		if !ok {
			break
		}
		words, inQuotes = append(words, word), append(inQuotes, p.list[p.at-1].kind != wordToken)
	}
	if len(words) == 0 {
		return schema.Type{}
	}
	var args []string
	if p.accept("(") {
		args = p.typeArgs()
	}
	switch {
	case inQuotes[0]:
		words, args = strings.Fields(words[0]), nil
	case slices.Contains(inQuotes, true):
		return schema.Type{Name: affinity(strings.Join(words, " "))}
	}
	t := schema.Type{Name: strings.Join(words, " "), Args: args}
	if slices.ContainsFunc(words, func(word string) bool { return !isTypeWord(word) }) {
		t.Name = affinity(t.Name)
	}
	return t
}

// typeArgs parses the numbers of a type.
func (p *tableParser) typeArgs() []string {
	var all []string
	for !p.done() && !p.accept(")") {
		sign := ""
		if p.accept("-") {
			sign = "-"
		} else {
			p.accept("+")
		}
		if !p.done() && p.list[p.at].kind == numberToken {
			all = append(all, sign+p.list[p.at].text)
		}
		p.at++
	}
	wrong := func(arg string) bool {
		_, err := strconv.Atoi(arg)
		return err != nil || len(arg) > 9
	}
	if len(all) > 2 || slices.ContainsFunc(all, wrong) {
		return nil
	}
	return all
}

// startsConstraint reports whether the next token starts a column's constraint.
func (p *tableParser) startsConstraint() bool {
	if p.peek("GENERATED") {
		return p.at+1 < len(p.list) && p.list[p.at+1].is("ALWAYS")
	}
	return slices.ContainsFunc([]string{"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT",
		"COLLATE", "REFERENCES", "DEFERRABLE", "AS"}, p.peek)
}

// columnConstraint parses a constraint of a column.
func (p *tableParser) columnConstraint(c *schema.Column) error {
	switch {
	case p.accept("CONSTRAINT"):
		return p.constraintName()
	case p.acceptAll("PRIMARY", "KEY"):
		return p.columnPrimary(c)
	case p.acceptAll("NOT", "NULL"):
		c.NotNull = true
		return p.onConflict(&c.NotNullConflict)
	case p.accept("NULL"):
		return p.onConflict(new(string))
	case p.accept("UNIQUE"):
		k := schema.Key{Name: p.constraint, Columns: []schema.KeyColumn{{Name: c.Name}}}
		err := p.onConflict(&k.OnConflict)
		p.Keys = append(p.Keys, k)
		return err
	case p.accept("CHECK"):
		return p.check()
	case p.accept("DEFAULT"):
		return p.columnDefault(c)
	case p.accept("COLLATE"):
		return p.collate(&c.Collation, c.Name)
	case p.accept("REFERENCES"):
		return p.references([]string{c.Name})
	case p.acceptAll("GENERATED", "ALWAYS", "AS"), p.accept("AS"):
		return p.computed(c)
	}
	found, err := p.deferrable()
	if !found {
		return errStatement
	}
	return err
}

func (p *tableParser) constraintName() error {
	name, ok := p.name()
	p.constraint = charset.Readable(name)
	if !ok {
		return errStatement
	}
	return nil
}

func (p *tableParser) columnPrimary(c *schema.Column) error {
	k := schema.Key{Name: p.constraint, Primary: true, Columns: []schema.KeyColumn{{Name: c.Name, Desc: p.direction()}}}
	if err := p.onConflict(&k.OnConflict); err != nil {
		return err
	}
	if p.accept("AUTOINCREMENT") {
		c.Identity = &schema.Identity{}
	}
	p.Keys = append(p.Keys, k)
	return nil
}

// direction parses ASC or DESC, and reports whether it was DESC.
func (p *tableParser) direction() bool { return !p.accept("ASC") && p.accept("DESC") }

// onConflict parses an ON CONFLICT clause, if there is one.
func (p *tableParser) onConflict(to *string) error {
	if !p.acceptAll("ON", "CONFLICT") {
		return nil
	}
	for _, action := range conflictActions() {
		if p.accept(action) {
			if *to = action; action == "ABORT" { // the default
				*to = ""
			}
			return nil
		}
	}
	return errStatement
}

func conflictActions() []string { return []string{"ROLLBACK", "ABORT", "FAIL", "IGNORE", "REPLACE"} }

// parenthesized consumes the SQL in parentheses and returns it.
func (p *tableParser) parenthesized() (string, error) {
	if !p.accept("(") || p.done() {
		return "", errStatement
	}
	start := p.list[p.at].start
	for depth := 1; !p.done(); p.at++ {
		switch {
		case p.peek("("):
			depth++
		case p.peek(")"):
			depth--
		}
		if depth == 0 {
			p.at++
			return p.text[start:p.list[p.at-1].start], nil
		}
	}
	return "", errStatement
}

// check parses a check constraint. A check whose expression is not allowed in descriptions is
// recorded as a program.
func (p *tableParser) check() error {
	text, err := p.parenthesized()
	if err != nil {
		return err
	}
	name := p.constraint
	if e, err := schema.ParseExpr(schema.SQLite, charset.Readable(text)); err == nil {
		p.Checks = append(p.Checks, schema.Check{Name: name, Expr: e})
	} else {
		p.program("check constraint", cmp.Or(name, unnamed))
	}
	return p.onConflict(new(string)) // SQLite parses and ignores it
}

func (d *definition) program(kind, name string) {
	d.programs = append(d.programs, schema.Program{Kind: kind, Name: schema.Name{Name: name}, On: d.Name.Name})
}

// columnDefault parses a default: an expression in parentheses, a literal with or without a sign,
// or a word.
func (p *tableParser) columnDefault(c *schema.Column) error {
	text, err := p.defaultText()
	if err != nil {
		return err
	}
	if e, err := schema.ParseExpr(schema.SQLite, charset.Readable(text)); err == nil {
		c.Default = &e
	} else {
		p.program("default", c.Name)
	}
	return nil
}

func (p *tableParser) defaultText() (string, error) {
	if p.peek("(") {
		return p.parenthesized()
	}
	if p.done() {
		return "", errStatement
	}
	start := p.list[p.at]
	if start.is("-") || start.is("+") {
		p.at++
	}
	if p.done() || p.list[p.at].kind == symbolToken {
		return "", errStatement
	}
	last := p.list[p.at]
	p.at++
	if name, ok := last.name(); ok && !isConstantWord(last) {
		return "'" + strings.ReplaceAll(name, "'", "''") + "'", nil // SQLite treats any name as a string here
	}
	return p.text[start.start:last.end], nil
}

func isConstantWord(t token) bool {
	return slices.ContainsFunc([]string{"NULL", "TRUE", "FALSE", "CURRENT_TIME", "CURRENT_DATE",
		"CURRENT_TIMESTAMP"}, t.is)
}

// collate parses a collation. Descriptions support only the built-in collations.
func (p *tableParser) collate(to **schema.Name, column string) error {
	name, ok := p.name()
	if !ok {
		return errStatement
	}
	known := collation(name)
	if known == "" {
		p.program("collation", column)
		return nil
	}
	*to = &schema.Name{Name: known}
	return nil
}

// collation returns the name of a built-in collation of SQLite, or "" for others.
func collation(name string) string {
	for _, known := range []string{"BINARY", "NOCASE", "RTRIM"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// computed parses the expression of a generated column. The expression is a program.
func (p *tableParser) computed(c *schema.Column) error {
	if _, err := p.parenthesized(); err != nil {
		return err
	}
	c.Computed = true
	p.definition.virtual[len(p.Columns)-1] = !p.accept("STORED")
	p.accept("VIRTUAL")
	p.program("generated column", c.Name)
	return nil
}

// tableConstraint parses a constraint of the table.
func (p *tableParser) tableConstraint() error {
	p.constraint = ""
	if p.accept("CONSTRAINT") {
		if err := p.constraintName(); err != nil {
			return err
		}
	}
	switch {
	case p.acceptAll("PRIMARY", "KEY"):
		return p.tableKey(schema.Key{Name: p.constraint, Primary: true})
	case p.accept("UNIQUE"):
		return p.tableKey(schema.Key{Name: p.constraint})
	case p.accept("CHECK"):
		return p.check()
	case p.acceptAll("FOREIGN", "KEY"):
		columns, err := p.names()
		if err != nil || !p.accept("REFERENCES") {
			return errStatement
		}
		if err := p.references(columns); err != nil {
			return err
		}
		_, err = p.deferrable()
		return err
	case p.constraint != "": // a name without a constraint, which SQLite allows
		return nil
	}
	return errStatement
}

// tableKey parses the columns of a key.
func (p *tableParser) tableKey(k schema.Key) error {
	if !p.accept("(") {
		return errStatement
	}
	for {
		c, err := p.keyColumn()
		if err != nil {
			return err
		}
		k.Columns = append(k.Columns, c)
		if k.Primary && p.accept("AUTOINCREMENT") {
			if at := p.indexOf(c.Name); at >= 0 {
				p.Columns[at].Identity = &schema.Identity{}
			}
		}
		if p.accept(")") {
			break
		}
		if !p.accept(",") {
			return errStatement
		}
	}
	if err := p.onConflict(&k.OnConflict); err != nil {
		return err
	}
	if at := p.indexOf(k.Columns[0].Name); k.Primary && len(k.Columns) == 1 && at >= 0 &&
		isInteger(p.Columns[at].Type) {
		k.Columns[0].Desc = false // DESC has a meaning only in the column's own definition
	}
	p.Keys = append(p.Keys, k)
	return nil
}

// keyColumn parses a column of a key or an index. It fails for an expression.
func (p *tableParser) keyColumn() (schema.KeyColumn, error) {
	name, ok := p.name()
	c := schema.KeyColumn{Name: charset.Readable(name)}
	if !ok {
		return c, errStatement
	}
	if p.accept("COLLATE") {
		if err := p.collate(&c.Collation, c.Name); err != nil {
			return c, err
		}
	}
	c.Desc = p.direction()
	if !p.peek(",") && !p.peek(")") && !p.peek("AUTOINCREMENT") {
		return c, errStatement
	}
	return c, nil
}

// names parses a list of names in parentheses.
func (p *tableParser) names() ([]string, error) {
	if !p.accept("(") {
		return nil, errStatement
	}
	var all []string
	for {
		name, ok := p.name()
		if !ok {
			return nil, errStatement
		}
		all = append(all, charset.Readable(name))
		if p.accept(")") {
			return all, nil
		}
		if !p.accept(",") {
			return nil, errStatement
		}
	}
}

// references parses the rest of a foreign key.
func (p *tableParser) references(columns []string) error {
	name, ok := p.name()
	if !ok {
		return errStatement
	}
	k := schema.ForeignKey{Name: p.constraint, Columns: columns, To: schema.Name{Name: charset.Readable(name)}}
	if p.peek("(") {
		var err error
		if k.ToColumns, err = p.names(); err != nil {
			return err
		}
	}
	p.ForeignKeys = append(p.ForeignKeys, k)
	return p.actions(&p.ForeignKeys[len(p.ForeignKeys)-1])
}

func (p *tableParser) actions(k *schema.ForeignKey) error {
	for {
		switch {
		case p.accept("MATCH"): // SQLite parses and ignores it
			if _, ok := p.name(); !ok {
				return errStatement
			}
		case p.acceptAll("ON", "DELETE"):
			k.OnDelete = p.action()
		case p.acceptAll("ON", "UPDATE"):
			k.OnUpdate = p.action()
		case p.acceptAll("ON", "INSERT"): // SQLite parses and ignores it
			p.action()
		default:
			return nil
		}
	}
}

// action parses the action of a foreign key, such as CASCADE. "" is NO ACTION.
func (p *tableParser) action() string {
	for _, action := range [][]string{{"SET", "NULL"}, {"SET", "DEFAULT"}, {"CASCADE"}, {"RESTRICT"}} {
		if p.acceptAll(action...) {
			return strings.Join(action, " ")
		}
	}
	p.acceptAll("NO", "ACTION")
	return ""
}

// deferrable parses the clause that decides whether a foreign key is checked at the end of the
// transaction, if there is one.
func (p *tableParser) deferrable() (found bool, err error) {
	not := p.acceptAll("NOT", "DEFERRABLE")
	if !not && !p.accept("DEFERRABLE") {
		return false, nil
	}
	deferred := p.acceptAll("INITIALLY", "DEFERRED")
	if !deferred {
		p.acceptAll("INITIALLY", "IMMEDIATE")
	}
	if len(p.ForeignKeys) == 0 {
		return true, errStatement
	}
	k := &p.ForeignKeys[len(p.ForeignKeys)-1]
	k.Deferrable, k.InitiallyDeferred = !not, !not && deferred
	return true, nil
}

// finish removes the constraints on computed columns and records them as programs. It also checks
// that the columns of keys exist.
func (d *definition) finish() error {
	if len(d.Columns) == 0 {
		return errStatement
	}
	d.useDeclaredNames()
	d.Keys = slices.DeleteFunc(d.Keys, func(k schema.Key) bool {
		return d.onComputed("unique constraint", k.Name, keyNames(k.Columns))
	})
	d.ForeignKeys = slices.DeleteFunc(d.ForeignKeys, func(k schema.ForeignKey) bool {
		return d.onComputed("foreign key", k.Name, k.Columns)
	})
	d.Checks = slices.DeleteFunc(d.Checks, func(c schema.Check) bool {
		return d.onComputed("check constraint", c.Name, exprColumns(c.Expr))
	})
	for _, k := range d.Keys {
		if slices.ContainsFunc(k.Columns, func(c schema.KeyColumn) bool { return d.indexOf(c.Name) < 0 }) {
			return errStatement
		}
	}
	return nil
}

// useDeclaredNames replaces the column names in constraints with their declared spelling, because
// SQLite ignores case. A check that refers to anything except columns of the table is recorded as a
// program.
func (d *definition) useDeclaredNames() {
	for _, k := range d.Keys {
		for i := range k.Columns {
			k.Columns[i].Name, _ = d.declared(k.Columns[i].Name)
		}
	}
	for _, k := range d.ForeignKeys {
		for i := range k.Columns {
			k.Columns[i], _ = d.declared(k.Columns[i])
		}
	}
	d.Checks = slices.DeleteFunc(d.Checks, func(c schema.Check) bool {
		known := d.useDeclaredNamesIn(&c.Expr)
		if !known {
			d.program("check constraint", cmp.Or(c.Name, unnamed))
		}
		return !known
	})
}

// declared returns a column's name as it is declared, and whether the column exists.
func (d *definition) declared(column string) (string, bool) {
	if at := d.indexOf(column); at >= 0 {
		return d.Columns[at].Name, true
	}
	return column, false
}

// useDeclaredNamesIn replaces the column names in an expression with their declared spelling, and
// reports whether the table has all of the columns. It changes e and the expressions below it in
// place.
func (d *definition) useDeclaredNamesIn(e *schema.Expr) bool {
	known := true
	if e.Column != "" {
		e.Column, known = d.declared(e.Column)
	}
	for i := range e.Args {
		known = d.useDeclaredNamesIn(&e.Args[i]) && known
	}
	return known
}

// unnamed is the name shown for a constraint without a name.
const unnamed = "unnamed"

// onComputed reports whether a constraint is on a computed column. If so, it records the constraint
// as a program.
func (d *definition) onComputed(kind, name string, columns []string) bool {
	if !slices.ContainsFunc(columns, func(c string) bool {
		at := d.indexOf(c)
		return at >= 0 && d.Columns[at].Computed
	}) {
		return false
	}
	d.program(kind, cmp.Or(name, unnamed))
	return true
}

func keyNames(columns []schema.KeyColumn) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.Name
	}
	return all
}

// exprColumns returns the columns in an expression.
func exprColumns(e schema.Expr) []string {
	var all []string
	if e.Column != "" {
		all = append(all, e.Column)
	}
	for _, arg := range e.Args {
		all = append(all, exprColumns(arg)...)
	}
	return all
}

func (d *definition) indexOf(column string) int {
	return slices.IndexFunc(d.Columns, func(c schema.Column) bool { return strings.EqualFold(c.Name, column) })
}

// rowidAlias returns the index of the column that is an alias of the rowid, or -1.
func (d *definition) rowidAlias() int {
	if d.Options[withoutRowid] != "" {
		return -1
	}
	for _, k := range d.Keys {
		if at := d.indexOf(k.Columns[0].Name); k.Primary && len(k.Columns) == 1 && !k.Columns[0].Desc &&
			isInteger(d.Columns[at].Type) {
			return at
		}
	}
	return -1
}

func isInteger(t schema.Type) bool { return strings.EqualFold(t.Name, "INTEGER") && len(t.Args) == 0 }
