package schema

import (
	"fmt"
	"strings"

	"snap"
)

// The limits of a description.
const (
	maxTables   = 50_000
	maxColumns  = 1_000_000
	maxPerTable = 40_000
	maxPrograms = 1_000_000

	maxSignature = 16 << 10 // bytes of a function's name with the types of its arguments
)

// Check reports the first entry of a description that no database could have, as an error of code
// corrupt_snapshot: invalid names, types and expressions that are not allowed, missing columns, and
// anything above the limits. A description that passes can be converted to SQL.
func (s *Schema) Check(d Dialect) error {
	c := &checker{d: d, seen: map[string]bool{}}
	small := len(s.Enums) + len(s.Domains) + len(s.Sequences) + len(s.Namespaces)
	if len(s.Tables) > maxTables || len(s.Programs) > maxPrograms || small > maxColumns {
		c.fail("it has too many objects")
	}
	for _, n := range s.Namespaces {
		c.name(Name{Name: n.Name})
		c.requireUnique("schema", n.Name)
	}
	for _, e := range s.Enums {
		c.name(e.Name)
		c.requireUnique("type", e.Schema+"\x00"+e.Name.Name)
		c.labels(e.Labels)
	}
	for _, x := range s.Domains {
		c.requireUnique("type", x.Schema+"\x00"+x.Name.Name)
		c.domain(x)
	}
	for _, q := range s.Sequences {
		c.sequence(q)
	}
	for i := range s.Tables {
		c.table(&s.Tables[i])
	}
	for _, p := range s.Programs {
		c.program(p)
	}
	c.omitted(s.Omitted)
	for _, g := range s.Grants { // a load checks the rest
		if len(g.Kind) > 40 || len(g.Rights) > 40 || g.To != "" && !validName(g.To) {
			c.fail("a grant is invalid")
		}
	}
	return c.err
}

// checker records the first fault.
type checker struct {
	d       Dialect
	columns int
	seen    map[string]bool // kinds and names of objects
	err     error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &snap.Error{
			Code:   snap.CodeCorrupt,
			Detail: "the snapshot's description of its database is invalid: " + fmt.Sprintf(format, args...),
			Hint:   "ask its owner to build a new snapshot",
		}
	}
}

func (c *checker) program(p Program) {
	if !validName(p.Kind) || len(p.Kind) > 40 || p.Schema != "" && !validName(p.Schema) ||
		p.Name.Name != "" && !validText(p.Name.Name, maxSignature) {
		c.fail("a program has an invalid name")
	}
}

func (c *checker) name(n Name) {
	if !n.valid() || n.Schema != "" && c.d != PostgreSQL {
		c.fail("%q is not a valid name", cut(n.Name))
	}
}

// cut truncates a name from a file to 80 bytes.
func cut(name string) string { return name[:min(len(name), 80)] }

func (c *checker) requireUnique(kind, name string) {
	key := kind + "\x00" + name
	if c.seen[key] {
		c.fail("it has the %s %q twice", kind, cut(name))
	}
	c.seen[key] = true
}

func (c *checker) labels(labels []string) {
	seen := map[string]bool{}
	for _, l := range labels {
		if len(l) > maxName || !(Literal{Kind: "string", Value: l}).valid() || seen[l] {
			c.fail("%q is not a valid enum label", cut(l))
		}
		seen[l] = true
	}
}

func (c *checker) domain(x Domain) {
	c.name(x.Name)
	c.typ(x.Name.Name, x.Type)
	c.expr(x.Name.Name, x.Default, nil)
	if !validCollation(x.Collation) {
		c.fail("the domain %q has an invalid collation", cut(x.Name.Name))
	}
	for _, check := range x.Checks {
		c.expr(x.Name.Name, &check.Expr, func(column string) bool { return column == "value" || column == "VALUE" })
	}
}

func (c *checker) sequence(q Sequence) {
	name := q.Name
	if c.d == SQLite {
		name.Schema = "" // a SQLite sequence has the name of its table
	}
	c.name(name)
	c.requireUnique("table", q.Schema+"\x00"+q.Name.Name)
	if q.Type != "" && !builtinTypes[c.d][q.Type] {
		c.fail("the sequence %q has an unknown type", cut(q.Name.Name))
	}
	for _, n := range []string{q.Start, q.Increment, q.Min, q.Max, q.Cache, q.Last} {
		if n != "" && !isInteger(n) {
			c.fail("the sequence %q has a value that is not a number", cut(q.Name.Name))
		}
	}
	if q.Owner != nil && (!q.Owner.Table.valid() || !validName(q.Owner.Column)) {
		c.fail("the sequence %q has an invalid owner", cut(q.Name.Name))
	}
}

func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && len(digits) <= 30 && strings.Trim(digits, "0123456789") == ""
}

func (c *checker) table(t *Table) {
	c.name(t.Name)
	c.requireUnique("table", t.Schema+"\x00"+t.Name.Name)
	if c.columns += len(t.Columns); c.columns > maxColumns || len(t.Columns) > maxPerTable {
		c.fail("it has too many columns")
	}
	columns := make(map[string]bool, len(t.Columns))
	for i := range t.Columns {
		col := &t.Columns[i]
		if !validName(col.Name) || columns[col.Name] {
			c.fail("%q is not a valid column of the table %q", cut(col.Name), cut(t.Name.Name))
		}
		columns[col.Name] = true
		c.column(t, col)
	}
	known := func(column string) bool { return columns[column] }
	c.keys(t, known)
	for _, check := range t.Checks {
		c.expr(t.Name.Name, &check.Expr, known)
		c.optional(check.Name)
	}
	c.partitions(t, known)
	for name, value := range t.Options {
		if !validName(name) || len(value) > 1000 || !(Literal{Kind: "string", Value: value}).valid() {
			c.fail("the table %q has an option that is not valid", cut(t.Name.Name))
		}
	}
}

func (c *checker) column(t *Table, col *Column) {
	c.typ(t.Name.Name+"."+col.Name, col.Type)
	c.expr(t.Name.Name+"."+col.Name, col.Default, nil)
	c.expr(t.Name.Name+"."+col.Name, col.OnUpdate, nil)
	c.expr(t.Name.Name+"."+col.Name, col.Check, anyColumn)
	if !validCollation(col.Collation) || col.Charset != "" && !collationName.MatchString(col.Charset) {
		c.fail("the column %q has an invalid collation or character set", cut(col.Name))
	}
	if col.Identity != nil && col.Identity.Sequence != nil {
		c.name(*col.Identity.Sequence)
	}
}

// keys checks the keys, indexes and foreign keys of a table.
func (c *checker) keys(t *Table, known func(string) bool) {
	for _, k := range t.Keys {
		c.optional(k.Name)
		c.keyColumns(t, k.Columns, known)
		c.allKnown(t, k.Include, known)
	}
	for _, x := range t.Indexes {
		c.optional(x.Name)
		c.keyColumns(t, x.Columns, known)
		c.allKnown(t, x.Include, known)
	}
	for _, f := range t.ForeignKeys {
		c.optional(f.Name)
		c.name(f.To)
		c.allKnown(t, f.Columns, known)
		c.allKnown(t, f.SetColumns, known)
		for _, column := range f.ToColumns {
			c.name(Name{Name: column})
		}
		c.action(f.OnUpdate)
		c.action(f.OnDelete)
	}
}

// anyColumn accepts every column. It is for MySQL, which compares names without case and rejects
// unknown columns itself.
func anyColumn(string) bool { return true }

// validCollation reports whether a collation is absent or has the form of a built-in one.
func validCollation(n *Name) bool { return n == nil || collationName.MatchString(n.Name) }

func (c *checker) optional(name string) {
	if name != "" {
		c.name(Name{Name: name})
	}
}

func (c *checker) action(action string) {
	switch action {
	case "", "NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT":
	default:
		c.fail("%q is not a valid action of a foreign key", cut(action))
	}
}

func (c *checker) keyColumns(t *Table, columns []KeyColumn, known func(string) bool) {
	for _, k := range columns {
		c.allKnown(t, []string{k.Name}, known)
		if k.OpClass != "" && !collationName.MatchString(k.OpClass) || !validCollation(k.Collation) {
			c.fail("a key or index of the table %q has an invalid operator class or collation", cut(t.Name.Name))
		}
	}
}

func (c *checker) allKnown(t *Table, columns []string, known func(string) bool) {
	for _, column := range columns {
		if !known(column) {
			c.fail("the table %q has no column %q", cut(t.Name.Name), cut(column))
		}
	}
}

// partitions checks how a table is partitioned and which table it is a partition of.
func (c *checker) partitions(t *Table, known func(string) bool) {
	for _, parent := range t.Inherits {
		c.name(parent)
	}
	if t.PartitionOf != nil {
		c.name(t.PartitionOf.Table)
		c.bound(t, t.PartitionOf.Bound)
	}
	if t.Partitions == nil {
		return
	}
	switch t.Partitions.Method {
	case "range", "list", "hash", "key":
	default:
		c.fail("the table %q has an unknown kind of partitioning", cut(t.Name.Name))
	}
	c.expr(t.Name.Name, t.Partitions.Expr, anyColumn)
	for _, k := range t.Partitions.Columns {
		if k.Expr == nil {
			c.keyColumns(t, []KeyColumn{k}, known)
			continue
		}
		c.expr(t.Name.Name, k.Expr, known)
	}
	for _, part := range t.Partitions.Parts {
		c.name(Name{Name: part.Name})
		c.bound(t, part.Bound)
	}
}

func (c *checker) bound(t *Table, b Bound) {
	for _, values := range append([][]Expr{b.From, b.To}, b.In...) {
		for _, v := range values {
			c.expr(t.Name.Name, &v, func(column string) bool { return column == "minvalue" || column == "maxvalue" })
		}
	}
}

func (c *checker) typ(label string, t Type) {
	if !t.Allowed(c.d) {
		c.fail("%q has a type that is not allowed: %q", cut(label), cut(t.Name))
	}
}

// expr checks an expression. If known is nil, the expression may not name a column.
func (c *checker) expr(label string, e *Expr, known func(string) bool) {
	if e == nil {
		return
	}
	if known == nil {
		known = func(string) bool { return false }
	}
	if !e.allowed(c.d, known) {
		c.fail("%q has an expression that is not allowed", cut(label))
	}
}
