package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"snap/internal/schema"
)

// dialect is the SQL dialect of the descriptions.
const dialect = schema.PostgreSQL

// describeSchema describes the database's objects as data, as the current transaction of conn sees
// them. It lists every object with code as a program.
func describeSchema(ctx context.Context, conn *pgconn.PgConn) (*schema.Schema, error) {
	c, err := readCatalog(ctx, conn)
	if err != nil {
		return nil, err
	}
	return c.schema(), nil
}

// schema returns the description.
func (c *catalog) schema() *schema.Schema {
	d := &describer{
		catalog: c,
		s: &schema.Schema{Namespaces: c.namespaces, Enums: c.enums, Sequences: c.sequences, Programs: c.programs,
			Comment: c.comment},
		types: map[string]catalogType{}, own: map[schema.Name]bool{}, extended: map[schema.Name]string{},
		sequences: map[schema.Name]bool{}, tables: map[string]*described{}, indexes: map[string]*catalogIndex{},
	}
	d.index()
	for _, x := range c.domains {
		d.s.Domains = append(d.s.Domains, d.domain(x))
	}
	for i := range c.tables {
		d.table(&c.tables[i])
	}
	for i := range c.constraints {
		d.constraint(&c.constraints[i])
	}
	for i := range c.indexes {
		d.plainIndex(&c.indexes[i])
	}
	d.partitioning()
	for i := range c.tables {
		d.s.Tables = append(d.s.Tables, d.tables[c.tables[i].OID].Table)
	}
	return d.s
}

// describer derives the description from a catalog.
type describer struct {
	*catalog
	s         *schema.Schema
	types     map[string]catalogType
	own       map[schema.Name]bool   // enums and domains
	extended  map[schema.Name]string // types of allowed extensions
	sequences map[schema.Name]bool
	tables    map[string]*described
	indexes   map[string]*catalogIndex
}

// described is a table that is being described.
type described struct {
	schema.Table
	from   *catalogTable
	asText map[string]bool // columns described as text, because descriptions do not support their types
}

func (d *describer) index() {
	for _, x := range d.extensions {
		if allowedExtension(x.Name) {
			d.s.Extensions = append(d.s.Extensions, x)
		} else {
			d.program("extension", schema.Name{Name: x.Name}, "")
		}
	}
	for _, t := range d.catalog.types {
		d.types[t.OID] = t
		if t.Extension != "" && allowedExtension(t.Extension) {
			d.extended[schema.Name{Schema: t.Schema, Name: t.Name}] = t.Extension
		}
	}
	for _, e := range d.enums {
		d.own[e.Name] = true
	}
	for _, x := range d.domains {
		d.own[x.Name] = true
	}
	for _, q := range d.s.Sequences {
		d.sequences[q.Name] = true
	}
	for i := range d.catalog.indexes {
		d.indexes[d.catalog.indexes[i].OID] = &d.catalog.indexes[i]
	}
}

func (d *describer) program(kind string, name schema.Name, on string) {
	d.s.Programs = append(d.s.Programs, schema.Program{Kind: kind, Name: name, On: on})
}

// typeOf returns the type with this oid. full is its full form with modifiers. If descriptions do
// not support the type, typeOf returns the type text, which can store the values of every type, and
// asText is true.
func (d *describer) typeOf(oid, full string) (t schema.Type, asText bool) {
	from, dims := d.types[oid], 0
	if element, ok := d.types[from.Element]; ok {
		from, dims = element, 1
	}
	name := schema.Name{Schema: from.Schema, Name: from.Name}
	t = schema.Type{Schema: from.Schema, Name: from.Name, Dims: dims}
	switch {
	case d.own[name]:
		t.Own = true
	case d.extended[name] != "":
		t.Extension, t.Args = d.extended[name], typeArgs(full)
	default:
		return builtin(from.Text, full, dims)
	}
	return orText(t)
}

// orText returns the type text instead of a type that descriptions do not support.
func orText(t schema.Type) (_ schema.Type, asText bool) {
	if !t.Allowed(dialect) {
		return schema.Type{Name: "text"}, true
	}
	return t, false
}

// builtin returns a built-in type. name is a name such as "character varying", and full the full
// form with modifiers, such as "character varying(20)[]".
func builtin(name, full string, dims int) (_ schema.Type, asText bool) {
	t := schema.Type{Name: name, Args: typeArgs(full), Dims: dims}
	if !t.Allowed(dialect) {
		t.Args = nil // such as the fields of an interval
	}
	return orText(t)
}

// typeArgs returns the arguments in a type's full form.
func typeArgs(text string) []string {
	_, args, ok := strings.Cut(text, "(")
	args, _, closed := strings.Cut(args, ")")
	if !ok || !closed {
		return nil
	}
	return strings.Split(args, ",")
}

// expr parses an expression over these columns. It returns nil if descriptions do not allow the
// expression.
func (d *describer) expr(text string, columns ...string) *schema.Expr {
	e, err := schema.ParseExpr(dialect, text)
	if err != nil || !d.resolve(&e, columns) {
		return nil
	}
	return &e
}

// resolve sets the extensions of an expression's types. It reports whether the types, columns and
// sequences of the expression are in the description.
func (d *describer) resolve(e *schema.Expr, columns []string) bool {
	if e.Column != "" && !slices.Contains(columns, e.Column) {
		return false // a word such as CURRENT_USER
	}
	if e.NextValue != nil && !d.sequences[*e.NextValue] {
		return false
	}
	if t := e.Cast; t != nil && t.Own {
		name := schema.Name{Schema: t.Schema, Name: t.Name}
		if x := d.extended[name]; x != "" {
			t.Own, t.Extension = false, x
		}
		if t.Own && !d.own[name] || !t.Allowed(dialect) {
			return false
		}
	}
	for i := range e.Args {
		if !d.resolve(&e.Args[i], columns) {
			return false
		}
	}
	return true
}

func (d *describer) domain(from catalogDomain) schema.Domain {
	t, asText := d.typeOf(from.Type, from.Mod)
	x := schema.Domain{Name: from.Name, Type: t, NotNull: from.NotNull, Comment: from.Comment}
	if builtinCollation(from.Collation) {
		x.Collation = from.Collation
	}
	if from.Default != "" && !asText {
		x.Default = d.expr(from.Default)
	}
	if from.Default != "" && x.Default == nil {
		d.program("default", from.Name, "")
	}
	for _, k := range from.Checks {
		if e := d.expr(k.Expr, "value"); e != nil && !asText {
			x.Checks = append(x.Checks, schema.Check{Name: k.Name, Expr: *e, Comment: k.Comment})
		} else {
			d.program("check constraint", schema.Name{Schema: from.Schema, Name: k.Name}, from.Name.Name)
		}
	}
	return x
}

// replicaIdentity returns the name of a table's replica identity, or "" if it is the default or an
// index.
func replicaIdentity(kind string) string { return map[string]string{"f": "full", "n": "nothing"}[kind] }

func (d *describer) table(from *catalogTable) {
	t := &described{from: from, asText: map[string]bool{}}
	t.Name, t.Comment = from.Name, from.Comment
	options := map[string]string{}
	for _, option := range from.Options {
		if name, value, ok := strings.Cut(option, "="); ok && allowedOption(name, value) {
			options[name] = value
		}
	}
	if from.Unlogged {
		options["unlogged"] = "true"
	}
	if identity := replicaIdentity(from.Identity); identity != "" {
		options["replica_identity"] = identity
	}
	if len(options) > 0 {
		t.Options = options
	}
	for i := range from.Columns {
		t.Columns = append(t.Columns, d.column(t, &from.Columns[i]))
	}
	d.tables[from.OID] = t
}

func (d *describer) column(t *described, from *catalogColumn) schema.Column {
	typ, asText := d.typeOf(from.Type, from.Mod)
	t.asText[from.Name] = asText
	c := schema.Column{Name: from.Name, Type: typ, NotNull: from.NotNull, Computed: from.Generated, Local: from.Local,
		Comment: from.Comment}
	if from.Default != "" {
		if !asText {
			c.Default = d.expr(from.Default)
		}
		if c.Default == nil {
			d.program("default", schema.Name{Schema: t.Schema, Name: from.Name}, t.Name.Name)
		}
	}
	if from.Sequence != nil && d.sequences[*from.Sequence] {
		c.Identity = &schema.Identity{Always: from.Identity == "a", Sequence: from.Sequence}
	}
	if builtinCollation(from.Collation) {
		c.Collation = from.Collation
	}
	return c
}

func builtinCollation(name *schema.Name) bool { return name != nil && name.Schema == "pg_catalog" }

// exact reports whether the description has all of these columns, with their own types and stored
// values.
func (t *described) exact(columns ...string) bool {
	return t.stored(columns...) && !slices.ContainsFunc(columns, func(name string) bool { return t.asText[name] })
}

func (t *described) names() []string {
	all := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = c.Name
	}
	return all
}

// stored reports whether the values of all of these columns are stored, not computed.
func (t *described) stored(columns ...string) bool {
	return !slices.ContainsFunc(columns, func(name string) bool {
		at := slices.IndexFunc(t.Columns, func(c schema.Column) bool { return c.Name == name })
		return at < 0 || t.Columns[at].Computed
	})
}

func (d *describer) constraint(k *catalogConstraint) {
	t, ok := d.tables[k.Table], false
	switch {
	case !k.Enforced || k.Period:
	case k.Type == "c":
		ok = d.check(t, k)
	case k.Type == "p", k.Type == "u":
		ok = d.key(t, k)
	case k.Type == "f":
		ok = d.foreignKey(t, k)
	}
	if ok {
		return
	}
	kind := map[string]string{"c": "check constraint", "x": "exclusion constraint", "f": "foreign key"}[k.Type]
	if kind == "" {
		kind = "key"
	}
	d.program(kind, schema.Name{Schema: t.Schema, Name: k.Name}, t.Name.Name)
}

func (d *describer) check(t *described, k *catalogConstraint) bool {
	e := d.expr(k.Expr, k.Columns...)
	if e == nil || !t.exact(k.Columns...) {
		return false
	}
	t.Checks = append(t.Checks, schema.Check{Name: k.Name, Expr: *e, NotValid: !k.Valid, NoInherit: k.NoInherit,
		Inherited: !k.Local, Comment: k.Comment})
	return true
}

func (d *describer) key(t *described, k *catalogConstraint) bool {
	x := d.indexes[k.Index]
	columns, ok := t.unique(x)
	if !ok {
		return false
	}
	t.Keys = append(t.Keys, schema.Key{
		Name: k.Name, Primary: k.Type == "p", Columns: columns, Include: x.Include, Comment: k.Comment,
		NullsNotDistinct: x.NullsNotDistinct, Deferrable: k.Deferrable, InitiallyDeferred: k.Deferred,
	})
	return true
}

// unique returns the columns of a key's index. ok is false if descriptions do not allow the key.
func (t *described) unique(x *catalogIndex) (columns []schema.KeyColumn, ok bool) {
	if x == nil || x.Method != "btree" || !t.stored(x.Include...) {
		return nil, false
	}
	return t.keyColumns(x.Columns, x.Method)
}

func (d *describer) foreignKey(t *described, k *catalogConstraint) bool {
	var to *described
	for _, other := range d.tables {
		if other.Name == k.To {
			to = other
		}
	}
	if to == nil || !t.stored(k.Columns...) {
		return false
	}
	if _, ok := to.unique(d.indexes[k.Index]); !ok { // the key that it refers to is left out
		return false
	}
	actions := map[string]string{"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
	t.ForeignKeys = append(t.ForeignKeys, schema.ForeignKey{
		Name: k.Name, Columns: k.Columns, To: k.To, ToColumns: k.ToColumns, SetColumns: k.SetColumns,
		OnUpdate: actions[k.Update], OnDelete: actions[k.Delete], MatchFull: k.Full, Deferrable: k.Deferrable,
		InitiallyDeferred: k.Deferred, NotValid: !k.Valid, Comment: k.Comment,
	})
	return true
}

// plainIndex describes an index that does not belong to a constraint.
func (d *describer) plainIndex(x *catalogIndex) {
	if x.Constraint {
		return
	}
	t := d.tables[x.Table]
	name := schema.Name{Schema: t.Schema, Name: x.Name}
	columns, ok := t.keyColumns(x.Columns, x.Method)
	switch {
	case x.Expression:
		d.program("expression index", name, t.Name.Name)
	case x.Partial:
		d.program("partial index", name, t.Name.Name)
	case !ok || !t.stored(x.Include...) || !slices.Contains(indexMethods, x.Method):
		d.program("index", name, t.Name.Name)
	default:
		t.Indexes = append(t.Indexes, schema.Index{
			Name: x.Name, Method: x.Method, Unique: x.Unique, Columns: columns, Include: x.Include,
			NullsNotDistinct: x.NullsNotDistinct, Clustered: x.Clustered, ReplicaIdentity: x.ReplicaIdentity,
			Comment: x.Comment,
		})
	}
}

// keyColumns returns the columns of an index. ok is false if one of them is not a stored column, or
// has an operator class or a collation that descriptions do not allow.
func (t *described) keyColumns(from []catalogKey, method string) (all []schema.KeyColumn, ok bool) {
	for _, k := range from {
		custom := k.OpSchema != "pg_catalog" && !allowedExtension(k.OpExtension)
		mismatch := t.asText[k.Name] && (k.OpClass != "" || method != "btree" && method != "hash")
		if k.Name == "" || custom || mismatch || !t.stored(k.Name) ||
			k.Collation != nil && !builtinCollation(k.Collation) {
			return nil, false
		}
		column := schema.KeyColumn{Name: k.Name, Desc: k.Desc, OpClass: k.OpClass, Collation: k.Collation}
		column.NullsFirst, column.NullsLast = k.NullsFirst && !k.Desc, k.Desc && !k.NullsFirst
		all = append(all, column)
	}
	return all, len(all) > 0
}

// partitioning describes partitioning and inheritance. If descriptions do not allow a table's
// partition key, the table is described as not partitioned, and its partitions as tables that
// inherit from it.
func (d *describer) partitioning() {
	byName, undivided := map[schema.Name]*described{}, map[schema.Name]bool{}
	for _, t := range d.tables {
		byName[t.Name] = t
		if t.from.PartitionKey != nil && !d.partitionKey(t) {
			undivided[t.Name] = true
			d.program("partition key", t.Name, "")
		}
	}
	for _, t := range d.tables {
		var parents []schema.Name
		for _, parent := range t.from.Parents {
			if byName[parent] != nil {
				parents = append(parents, parent)
			}
		}
		switch {
		case !t.from.Partition:
			t.Inherits = parents
		case len(parents) == 0:
		case undivided[parents[0]] && t.Partitions == nil:
			t.Inherits = parents
		case !undivided[parents[0]]:
			d.bound(t, parents[0])
		}
	}
}

// partitionKey describes the partition key of a table. It returns false if descriptions do not
// allow the key.
func (d *describer) partitionKey(t *described) bool {
	from := t.from.PartitionKey
	p := &schema.Partitions{Method: map[string]string{"r": "range", "l": "list", "h": "hash"}[from.Strategy]}
	for _, k := range from.Columns {
		if k.Name != "" {
			columns, ok := t.keyColumns([]catalogKey{k}, "")
			if !ok || t.asText[k.Name] {
				return false
			}
			p.Columns = append(p.Columns, columns...)
			continue
		}
		e := d.expr(from.Expr, t.names()...) // nil if the key has several expressions
		if e == nil || k.OpClass != "" || k.OpSchema != "pg_catalog" || k.Collation != nil &&
			!builtinCollation(k.Collation) {
			return false
		}
		p.Columns = append(p.Columns, schema.KeyColumn{Expr: e, Collation: k.Collation})
	}
	t.Partitions = p
	return p.Method != "" && len(p.Columns) > 0
}

// bound describes the bound of a partition, which decides which of the parent's rows it has.
func (d *describer) bound(t *described, parent schema.Name) {
	bound, ok := parseBound(t.from.Bound)
	for _, values := range append(slices.Clone(bound.In), bound.From, bound.To) {
		for i := range values {
			ok = ok && d.resolve(&values[i], []string{"minvalue", "maxvalue"})
		}
	}
	if !ok {
		d.program("partition bound", t.Name, "")
		return
	}
	t.PartitionOf = &schema.PartitionOf{Table: parent, Bound: bound}
}
