package sanitize

import (
	"slices"
	"strings"

	"snap/internal/engine"
	"snap/internal/personal"
	"snap/internal/schema"
)

// columnID is a table's schema and name, and a column's name.
type columnID [3]string

// column is the known information about one column, from the dump and from its schema description.
type column struct {
	engine.Column
	id              columnID
	label           string
	typ             personal.Type
	key             bool        // it alone is the primary key
	unique          bool        // part of a primary key, or of a unique constraint or index
	checks          []boundExpr // the checks that apply to it
	partitionKey    bool        // it is part of the table's partition key
	sqlChecks       int         // number of the table's checks in SQL that mention it
	references      []columnID  // the columns its foreign keys reference
	linked          bool        // it is part of a foreign key, on either side
	ignoresCase     bool        // its database compares its values without case
	referencedTable string      // the table it references
	comment         string
	samples         []string
	fields          []*column // of a composite type
}

// boundExpr is a check and the name by which it refers to the column.
type boundExpr struct {
	expr  schema.Expr
	value string
}

// facts holds the columns of a dump.
type facts struct {
	tables  []engine.Shape
	columns map[columnID]*column
	folded  map[columnID]*column // the columns of tables without a schema, by their names in lower case
}

// factsOf combines a dump's contents with its schema description, which is nil in snapshots of
// older versions.
func factsOf(c engine.Contents) *facts {
	f := &facts{tables: c.Tables, columns: map[columnID]*column{}, folded: map[columnID]*column{}}
	for _, t := range c.Tables {
		for i, col := range t.Columns {
			id := columnID{t.Schema, t.Name, col.Name}
			f.columns[id] = &column{Column: col, id: id, label: tableLabel(t) + "." + col.Name, samples: t.Samples[i],
				typ: personal.ParseType(col.Type)}
			if t.Schema == "" {
				f.folded[id.folded()] = f.columns[id]
			}
		}
		f.definitions(t)
	}
	if c.Schema != nil {
		f.addSchema(c.Schema)
	}
	f.addCompositeFields(c.Composites)
	return f
}

func (id columnID) folded() columnID {
	return columnID{id[0], strings.ToLower(id[1]), strings.ToLower(id[2])}
}

// find returns a column by its name, or nil. In SQLite and MySQL, where tables have no schema, the
// name can be written in another case.
func (f *facts) find(table schema.Name, name string) *column {
	id := columnID{table.Schema, table.Name, name}
	if c := f.columns[id]; c != nil {
		return c
	}
	return f.folded[id.folded()]
}

// addSchema adds the facts in a schema description.
func (f *facts) addSchema(s *schema.Schema) {
	for _, t := range s.Tables {
		for _, col := range t.Columns {
			if known := f.find(t.Name, col.Name); known != nil {
				known.describe(col, s)
				known.ignoresCase = foldsCase(col, t)
			}
		}
		f.constraints(t, s)
	}
	f.partitions(s)
}

// partitions marks the columns of partition keys, in partitioned tables and in all their partitions.
func (f *facts) partitions(s *schema.Schema) {
	for _, t := range s.Tables {
		if t.Partitions == nil {
			continue
		}
		var names []string
		for _, k := range t.Partitions.Columns {
			names = append(names, k.Name)
			if k.Expr != nil {
				names = append(names, columnsOf(*k.Expr)...)
			}
		}
		if t.Partitions.Expr != nil {
			names = append(names, columnsOf(*t.Partitions.Expr)...)
		}
		for _, table := range partitionsOf(s, t.Name) {
			for _, name := range names {
				if c := f.find(table, name); c != nil {
					c.partitionKey = true
				}
			}
		}
	}
}

// describe adds the information in a column's description.
func (c *column) describe(d schema.Column, s *schema.Schema) {
	c.comment = d.Comment
	t := d.Type
	if t.Name == "citext" || t.Name == "hstore" {
		c.typ = typeOf(t) // the dump also writes the extension's schema
	}
	if d.Check != nil {
		c.checks = append(c.checks, boundExpr{*d.Check, d.Name})
	}
	if len(t.Labels) > 0 { // a label can have a character that ParseType does not expect
		c.typ = personal.Type{Class: personal.Enum, Name: t.Name, Labels: t.Labels}
	}
	same := func(n schema.Name) bool { return t.Own && n.Name == t.Name && n.Schema == t.Schema }
	for depth := 0; depth < 10 && t.Own; depth++ {
		i := slices.IndexFunc(s.Domains, func(d schema.Domain) bool { return same(d.Name) })
		if i < 0 {
			break
		}
		domain := s.Domains[i]
		for _, check := range domain.Checks {
			c.checks = append(c.checks, boundExpr{check.Expr, "value"})
		}
		c.NotNull = c.NotNull || domain.NotNull
		dims := t.Dims
		t = domain.Type
		c.typ = typeOf(t)
		c.typ.Dims += dims
	}
	for _, e := range s.Enums {
		if same(e.Name) {
			c.typ = personal.Type{Class: personal.Enum, Name: e.Name.Name, Labels: e.Labels, Dims: t.Dims}
		}
	}
}

// typeOf converts a type of the schema description.
func typeOf(t schema.Type) personal.Type {
	text := t.Name
	if len(t.Args) > 0 {
		text += "(" + strings.Join(t.Args, ",") + ")"
	}
	if t.Unsigned {
		text += " unsigned"
	}
	return personal.ParseType(text + strings.Repeat("[]", t.Dims))
}

// constraints adds the facts about columns that follow from their table's constraints.
func (f *facts) constraints(t schema.Table, s *schema.Schema) {
	at := func(name string) *column { return f.find(t.Name, name) }
	unique := func(columns []schema.KeyColumn, alone bool) {
		for _, k := range columns {
			if c := at(k.Name); c != nil {
				c.unique = true
				c.key = c.key || alone
				c.ignoresCase = c.ignoresCase || k.Collation != nil && foldingName(k.Collation.Name)
			}
		}
	}
	for _, k := range t.Keys {
		unique(k.Columns, k.Primary && len(k.Columns) == 1)
	}
	for _, x := range t.Indexes {
		if x.Unique {
			unique(x.Columns, false)
		}
	}
	for _, check := range t.Checks {
		for _, name := range columnsOf(check.Expr) {
			if c := at(name); c != nil {
				c.checks = append(c.checks, boundExpr{check.Expr, name})
			}
		}
	}
	for _, k := range t.ForeignKeys {
		f.foreignKey(t.Name, k, s)
	}
}

// foreignKey marks the columns of a table's foreign key. The rows of a partitioned table are in its
// partitions, so the key also connects the columns of the partitions.
func (f *facts) foreignKey(table schema.Name, k schema.ForeignKey, s *schema.Schema) {
	to := k.ToColumns
	if len(to) == 0 {
		to = primaryKey(s, k.To)
	}
	targets := partitionsOf(s, k.To)
	for _, from := range partitionsOf(s, table) {
		for i, name := range k.Columns[:min(len(k.Columns), len(to))] {
			c := f.find(from, name)
			if c == nil {
				continue
			}
			c.referencedTable, c.linked = k.To.Name, true
			for _, target := range targets {
				if other := f.find(target, to[i]); other != nil {
					c.references, other.linked = append(c.references, other.id), true
				}
			}
		}
	}
}

// partitionsOf returns a table and all its partitions, and the partitions of those.
func partitionsOf(s *schema.Schema, table schema.Name) []schema.Name {
	all := []schema.Name{table}
	for i := 0; i < len(all); i++ {
		for _, t := range s.Tables {
			if t.PartitionOf != nil && t.PartitionOf.Table == all[i] && !slices.Contains(all, t.Name) {
				all = append(all, t.Name)
			}
		}
	}
	return all
}

// primaryKey returns the columns of a table's primary key. In SQLite and MySQL, the case of the
// table's name is ignored.
func primaryKey(s *schema.Schema, table schema.Name) []string {
	for _, t := range s.Tables {
		if t.Name == table || table.Schema == "" && strings.EqualFold(t.Name.Name, table.Name) {
			return t.PrimaryKey()
		}
	}
	return nil
}

// columnsOf returns the columns in an expression, each once.
func columnsOf(e schema.Expr) []string {
	var names []string
	if e.Column != "" {
		names = append(names, e.Column)
	}
	for _, arg := range e.Args {
		for _, name := range columnsOf(arg) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// hasUnknownCheck reports whether the column has a check that the description does not contain.
func (c *column) hasUnknownCheck() bool {
	described := 0
	for _, check := range c.checks {
		if check.value == c.Name {
			described++
		}
	}
	return c.sqlChecks > described
}

// definitions reads the SQL of indexes and check constraints. The schema description may omit some
// of them, such as unique indexes with a condition. definitions marks the columns of a unique index
// as unique, except those that are only in its INCLUDE list or in its condition. For each column,
// it counts the checks that mention it.
func (f *facts) definitions(t engine.Shape) {
	for _, sql := range t.Definitions {
		sql = strings.ToLower(sql)
		isUnique, isCheck := strings.HasPrefix(sql, "create unique index"), strings.HasPrefix(sql, "check")
		if isUnique {
			_, sql, _ = strings.Cut(sql, "(")
			sql, _, _ = strings.Cut(sql, " include (")
			sql, _, _ = strings.Cut(sql, " where ")
		}
		words := wordsOf(sql)
		for _, col := range t.Columns {
			if !words[strings.ToLower(col.Name)] {
				continue
			}
			c := f.columns[columnID{t.Schema, t.Name, col.Name}]
			c.unique = c.unique || isUnique
			c.ignoresCase = c.ignoresCase || isUnique && (strings.Contains(sql, "lower(") ||
				strings.Contains(sql, "upper(") || strings.Contains(sql, "nocase"))
			if isCheck {
				c.sqlChecks++
			}
		}
	}
}

// wordsOf returns the quoted and unquoted names in SQL.
func wordsOf(sql string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(sql, func(r rune) bool {
		return strings.ContainsRune("()\"'`[],.:;=<>~!+-*/|& \t\r\n", r)
	}) {
		words[w] = true
	}
	return words
}
