package mysql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// statementsFor returns the statements that create the described objects. Names and strings are
// quoted here, and every other word comes from fixed lists. The statements have the form of SHOW
// CREATE, with one column or key per line.
func statementsFor(d *schema.Schema, mariadb bool) (structure, error) {
	var s structure
	if d == nil {
		return s, errNoDescription()
	}
	if err := d.Check(schema.MySQL); err != nil {
		return s, err
	}
	if len(d.Sequences) > 0 && !mariadb {
		return s, &snap.Error{Code: snap.CodeInvalid, Detail: "the snapshot has sequences, which MySQL does not have",
			Hint: "load the snapshot into the kind of server that it was built from; nothing was replaced"}
	}
	for _, q := range d.Sequences {
		text, err := sequenceSQL(q)
		if err != nil {
			return s, err
		}
		s.Sequences = append(s.Sequences, definition{Name: q.Name.Name, SQL: text, Next: cmp.Or(q.Last, q.Start, "1")})
	}
	for _, t := range d.Tables {
		g := &generator{table: t, mariadb: mariadb}
		text, err := g.tableSQL()
		if err != nil {
			return s, err
		}
		s.Tables = append(s.Tables, definition{Name: t.Name.Name, SQL: text})
	}
	return s, nil
}

func errNoDescription() error {
	return &snap.Error{
		Code: snap.CodeInvalid, Detail: "the snapshot is from somebody else and has no description of its " +
			"tables, so it cannot be loaded",
		Hint: "ask its owner to rebuild it with a current snapcli",
	}
}

func badSchema(format string, args ...any) error {
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the snapshot's description of its database is invalid: " +
		fmt.Sprintf(format, args...), Hint: "ask the snapshot's author to rebuild it"}
}

// checkName returns an error for a name that a server could misinterpret. For example, servers
// treat a name that begins with #mysql50# as the name of a file.
func checkName(names ...string) error {
	for _, n := range names {
		lower := strings.ToLower(n)
		if n == "" || len([]rune(n)) > 64 || strings.HasPrefix(lower, "#mysql50#") ||
			strings.HasPrefix(lower, "#sql") || strings.ContainsRune(n, 0) || strings.TrimRight(n, " ") != n {
			return badSchema("%.40q cannot be a name", n)
		}
	}
	return nil
}

func sequenceSQL(q schema.Sequence) (string, error) {
	if err := checkName(q.Name.Name); err != nil {
		return "", err
	}
	if q.Name.Schema != "" {
		return "", badSchema("the sequence %q is in another database", q.Name.Name)
	}
	text := "CREATE SEQUENCE " + quote(q.Name.Name)
	switch q.Type {
	case "":
	case "tinyint", "smallint", "int", "bigint":
		text += " AS " + q.Type
	default:
		return "", badSchema("the sequence %q has an unknown type", q.Name.Name)
	}
	for _, part := range []struct{ word, value string }{{"START WITH", q.Start}, {"MINVALUE", q.Min},
		{"MAXVALUE", q.Max}, {"INCREMENT BY", q.Increment}, {"CACHE", q.Cache}} {
		if part.value != "" { // an integer, because the description was checked
			text += " " + part.word + " " + part.value
		}
	}
	if q.Cycle {
		text += " CYCLE"
	}
	return text + commentSQL(q.Comment), nil
}

// generator writes the CREATE TABLE statement of one table.
type generator struct {
	table   schema.Table
	mariadb bool
	lines   []string
}

func (g *generator) tableSQL() (string, error) {
	t := g.table
	if t.Name.Schema != "" {
		return "", badSchema("the table %q is in another database", t.Name.Name)
	}
	if err := checkName(t.Name.Name); err != nil {
		return "", err
	}
	for _, c := range t.Columns {
		if c.Computed {
			continue
		}
		if err := g.column(c); err != nil {
			return "", err
		}
	}
	if len(g.lines) == 0 {
		return "", badSchema("the table %q has no column", t.Name.Name)
	}
	if err := g.keys(); err != nil {
		return "", err
	}
	options, err := g.options()
	if err != nil {
		return "", err
	}
	parts, err := g.partitions()
	return "CREATE TABLE " + quote(t.Name.Name) + " (\n" + strings.Join(g.lines, ",\n") + "\n) " + options + parts, err
}

// column writes a column.
func (g *generator) column(c schema.Column) error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	text, err := typeSQL(c.Type)
	if err != nil {
		return err
	}
	text = "  " + quote(c.Name) + " " + text
	if c.Charset != "" {
		text += " CHARACTER SET " + c.Charset // a valid name, because the description was checked
	}
	if c.Collation != nil {
		text += " COLLATE " + c.Collation.Name
	}
	if c.Compressed {
		text += " /*M!100301 COMPRESSED*/"
	}
	text += map[bool]string{true: " NOT NULL", false: " NULL"}[c.NotNull]
	if text, err = g.values(text, c); err != nil {
		return err
	}
	if c.Identity != nil {
		text += " AUTO_INCREMENT"
	}
	text += commentSQL(c.Comment)
	if c.Check != nil {
		check, err := c.Check.SQL(schema.MySQL)
		if err != nil {
			return err
		}
		text += " CHECK (" + check + ")"
	}
	g.lines = append(g.lines, text)
	return nil
}

// values appends a column's spatial reference system, visibility, default and ON UPDATE clause.
func (g *generator) values(text string, c schema.Column) (string, error) {
	if c.SRID != "" {
		if !digitsOrDefault.MatchString(c.SRID) {
			return "", badSchema("the column %q has an unknown spatial reference system", c.Name)
		}
		text += map[bool]string{true: " REF_SYSTEM_ID=", false: " SRID "}[g.mariadb] + c.SRID
	}
	if c.Invisible {
		text += " INVISIBLE"
	}
	if c.Default != nil {
		value, err := defaultSQL(c)
		if err != nil {
			return "", err
		}
		text += " DEFAULT " + value
	}
	if c.OnUpdate != nil {
		if !isNow(*c.OnUpdate) {
			return "", badSchema("the column %q has an unsupported ON UPDATE clause", c.Name)
		}
		value, err := c.OnUpdate.SQL(schema.MySQL)
		if err != nil {
			return "", err
		}
		text += " ON UPDATE " + value
	}
	return text, nil
}

// isNow reports whether an expression is the current time.
func isNow(e schema.Expr) bool {
	switch e.Call {
	case "current_timestamp", "now", "localtime", "localtimestamp":
		return true
	}
	return false
}

// isOwnNow reports whether the column's default is the current time in the column's own precision.
// Servers accept and write such a default without parentheses.
func isOwnNow(c schema.Column) bool {
	same := func(e schema.Expr, arg string) bool { return e.Literal != nil && e.Literal.Value == arg }
	return isNow(*c.Default) && (c.Type.Name == "timestamp" || c.Type.Name == "datetime") &&
		slices.EqualFunc(c.Default.Args, c.Type.Args, same)
}

// defaultSQL writes a default. Some types accept a constant only in parentheses.
func defaultSQL(c schema.Column) (string, error) {
	value, err := exprSQL(*c.Default)
	constant := c.Default.Literal != nil || negative(*c.Default)
	if constant && !needsParentheses(c.Type.Name) || isOwnNow(c) {
		return value, err
	}
	return "(" + value + ")", err
}

// exprSQL writes an expression. Unlike [schema.Expr.SQL], it writes a string constant with
// [quoteText].
func exprSQL(e schema.Expr) (string, error) {
	text, err := e.SQL(schema.MySQL)
	if e.Literal != nil && e.Literal.Kind == "string" {
		text = quoteText(e.Literal.Value)
	}
	return text, err
}

// needsParentheses reports whether MySQL requires parentheses around a constant default of a column
// of this type.
func needsParentheses(name string) bool {
	return strings.HasSuffix(name, "text") || strings.HasSuffix(name, "blob") || name == "json" ||
		kindOf(name) == kindBinary && !strings.HasSuffix(name, "binary")
}

// quoteText quotes a string for a session without NO_BACKSLASH_ESCAPES.
func quoteText(text string) string { return string(appendQuoted(nil, []byte(text))) }

func typeSQL(t schema.Type) (string, error) {
	if !types()[t.Name] || t.Schema != "" || t.Own || t.Extension != "" || t.Dims != 0 {
		return "", badSchema("%.40q is not a column type", t.Name)
	}
	text, args := t.Name, t.Args
	for _, a := range args {
		if !digitsOrDefault.MatchString(a) {
			return "", badSchema("%.40q is not a valid length of a type", a)
		}
	}
	if t.Name == "enum" || t.Name == "set" {
		args = nil
		for _, label := range t.Labels {
			args = append(args, quoteText(label))
		}
	}
	if len(args) > 0 {
		text += "(" + strings.Join(args, ",") + ")"
	}
	if t.Unsigned {
		text += " unsigned"
	}
	if t.Zerofill {
		text += " zerofill"
	}
	return text, nil
}

// keys writes the keys, foreign keys and checks.
func (g *generator) keys() error {
	for _, k := range g.table.Keys {
		columns, err := g.keyColumns(k.Columns)
		if err != nil || !k.Primary {
			return cmp.Or(err, badSchema("the table %q has a key of an unknown kind", g.table.Name.Name))
		}
		g.lines = append(g.lines, "  PRIMARY KEY ("+columns+")"+commentSQL(k.Comment))
	}
	for _, x := range g.table.Indexes {
		if err := g.index(x); err != nil {
			return err
		}
	}
	for _, f := range g.table.ForeignKeys {
		if err := g.foreignKey(f); err != nil {
			return err
		}
	}
	for _, c := range g.table.Checks {
		if err := g.check(c); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) keyColumns(columns []schema.KeyColumn) (string, error) {
	var all []string
	for _, c := range columns {
		if !g.has(c.Name) {
			return "", badSchema("a key of the table %q includes a generated column", g.table.Name.Name)
		}
		text := quote(c.Name)
		if c.Prefix > 0 {
			text += fmt.Sprintf("(%d)", c.Prefix)
		}
		if c.Desc {
			text += " DESC"
		}
		all = append(all, text)
	}
	return strings.Join(all, ","), nil
}

// has reports whether the table has a column with this name that is not generated.
func (g *generator) has(name string) bool {
	return slices.ContainsFunc(g.table.Columns, func(c schema.Column) bool { return c.Name == name && !c.Computed })
}

func commentSQL(comment string) string {
	if comment == "" {
		return ""
	}
	return " COMMENT " + quoteText(comment)
}

func (g *generator) index(x schema.Index) error {
	columns, err := g.keyColumns(x.Columns)
	if err = cmp.Or(err, checkName(x.Name)); err != nil {
		return err
	}
	text, using := "KEY ", ""
	switch x.Method {
	case "":
	case "btree", "hash":
		using = " USING " + strings.ToUpper(x.Method)
	case "fulltext", "spatial":
		text = strings.ToUpper(x.Method) + " " + text
	default:
		return badSchema("the index %q is of an unknown kind", x.Name)
	}
	if x.Unique {
		text = "UNIQUE " + text
	}
	text = "  " + text + quote(x.Name) + " (" + columns + ")" + using + commentSQL(x.Comment)
	switch {
	case x.Parser == "":
	case (x.Parser == "ngram" || x.Parser == "mecab") && !g.mariadb:
		text += " WITH PARSER " + x.Parser
	default:
		return badSchema("the index %q has an unknown parser", x.Name)
	}
	if x.Invisible {
		text += map[bool]string{true: " IGNORED", false: " INVISIBLE"}[g.mariadb]
	}
	g.lines = append(g.lines, text)
	return nil
}

func (g *generator) foreignKey(f schema.ForeignKey) error {
	if f.To.Schema != "" {
		return badSchema("the foreign key %q refers to another database", f.Name)
	}
	if f.Name == "" {
		return badSchema("a foreign key of %q has no name", g.table.Name.Name)
	}
	if err := checkName(append(append([]string{f.To.Name}, f.Columns...), f.ToColumns...)...); err != nil {
		return err
	}
	text := "  CONSTRAINT " + quote(f.Name) + " FOREIGN KEY (" + quoteNames(f.Columns) + ") REFERENCES " +
		quote(f.To.Name) + " (" + quoteNames(f.ToColumns) + ")"
	if f.OnDelete != "" { // from a fixed list: the description was checked
		text += " ON DELETE " + f.OnDelete
	}
	if f.OnUpdate != "" {
		text += " ON UPDATE " + f.OnUpdate
	}
	g.lines = append(g.lines, text)
	return nil
}

func quoteNames(names []string) string {
	var all []string
	for _, n := range names {
		all = append(all, quote(n))
	}
	return strings.Join(all, ",")
}

func (g *generator) check(c schema.Check) error {
	if c.NotEnforced && g.mariadb {
		return nil // MariaDB would enforce it
	}
	expr, err := c.Expr.SQL(schema.MySQL)
	if err != nil {
		return err
	}
	text := "  "
	if c.Name != "" {
		if err := checkName(c.Name); err != nil {
			return err
		}
		text += "CONSTRAINT " + quote(c.Name) + " "
	}
	text += "CHECK (" + expr + ")"
	if c.NotEnforced {
		text += " NOT ENFORCED"
	}
	g.lines = append(g.lines, text)
	return nil
}

// options writes the engine, the other options sorted by name, and the table's comment. The server
// only requires that a character set precedes its collation, and charset sorts before collate.
func (g *generator) options() (string, error) {
	o := g.table.Options
	engine := cmp.Or(o["engine"], "InnoDB")
	if !engines[strings.ToLower(engine)] {
		return "", badSchema("the table %q has an unknown engine", g.table.Name.Name)
	}
	text := "ENGINE=" + engine
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value := o[name]
		pattern := optionPattern(name)
		if pattern == nil || !pattern.MatchString(value) {
			return "", badSchema("the table %q has an unknown option", g.table.Name.Name)
		}
		switch {
		case name == "engine", name == "compression" && g.mariadb: // MariaDB refuses compression
		case name == "compression":
			text += " COMPRESSION=" + quoteText(value)
		case name == "charset":
			text += " DEFAULT CHARSET=" + value
		case g.mariadb || !ofMariaDB(name):
			text += " " + strings.ToUpper(name) + "=" + value
		}
	}
	if g.table.Comment != "" {
		text += " COMMENT=" + quoteText(g.table.Comment)
	}
	return text, nil
}

// ofMariaDB reports whether an option exists in MariaDB but not in MySQL.
func ofMariaDB(name string) bool {
	return strings.HasPrefix(name, "page_") || name == "transactional"
}

// partitions writes the partitioning clause.
func (g *generator) partitions() (string, error) {
	p := g.table.Partitions
	if p == nil {
		return "", nil
	}
	text, err := g.partitionBy(p)
	if err != nil {
		return "", err
	}
	if p.Count > 0 && len(p.Parts) == 0 {
		text += fmt.Sprintf(" PARTITIONS %d", p.Count)
	}
	var parts []string
	for _, part := range p.Parts {
		bound, err := boundSQL(p, part.Bound)
		if err = cmp.Or(err, checkName(part.Name)); err != nil {
			return "", err
		}
		parts = append(parts, "PARTITION "+quote(part.Name)+bound+commentSQL(part.Comment))
	}
	if len(parts) > 0 {
		text += "\n(" + strings.Join(parts, ",\n ") + ")"
	}
	return text, nil
}

func (g *generator) partitionBy(p *schema.Partitions) (string, error) {
	text := "\n PARTITION BY "
	if p.Linear && (p.Method == "hash" || p.Method == "key") {
		text += "LINEAR "
	}
	text += strings.ToUpper(p.Method) // from a fixed list: the description was checked
	if p.Expr != nil {
		expr, err := p.Expr.SQL(schema.MySQL)
		return text + " (" + expr + ")", err
	}
	var columns []string
	for _, c := range p.Columns {
		if !g.has(c.Name) {
			return "", badSchema("the table %q is partitioned by a generated column", g.table.Name.Name)
		}
		columns = append(columns, c.Name)
	}
	if p.Method != "key" {
		text += " COLUMNS"
	}
	return text + " (" + quoteNames(columns) + ")", nil
}

// boundSQL writes the bound of a partition.
func boundSQL(p *schema.Partitions, b schema.Bound) (string, error) {
	switch {
	case b.Default:
		return " DEFAULT", nil
	case len(b.To) == 1 && b.To[0].Column == "maxvalue" && p.Expr != nil:
		return " VALUES LESS THAN MAXVALUE", nil
	case len(b.To) > 0:
		values, err := valuesSQL(b.To)
		return " VALUES LESS THAN (" + values + ")", err
	case len(b.In) > 0:
		var all []string
		for _, in := range b.In {
			values, err := valuesSQL(in)
			if err != nil {
				return "", err
			}
			if len(in) > 1 {
				values = "(" + values + ")"
			}
			all = append(all, values)
		}
		return " VALUES IN (" + strings.Join(all, ",") + ")", nil
	}
	return "", nil
}

func valuesSQL(values []schema.Expr) (string, error) {
	var all []string
	for _, v := range values {
		if v.Column == "maxvalue" {
			all = append(all, "MAXVALUE")
			continue
		}
		text, err := exprSQL(v)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return strings.Join(all, ","), nil
}
