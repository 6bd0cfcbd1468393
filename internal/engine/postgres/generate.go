package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// This file generates the statements that create a described database. The names, strings and
// numbers in the statements come from a description that [schema.Schema.Check] and
// [validator.check] have accepted. They are quoted here or by package schema.

// generator writes the statements of one description for one server.
type generator struct {
	into       *existing // the database whose content is replaced; nil for a scratch database
	s          *schema.Schema
	opClasses  map[string]string // the schemas of the server's operator classes, by name
	collations []string          // the names of the server's collations in pg_catalog

	sequences map[schema.Name]*schema.Sequence // the sequences of identity columns, by name
	err       error
}

func newGenerator(s *schema.Schema) *generator {
	g := &generator{s: s, opClasses: map[string]string{}, sequences: map[schema.Name]*schema.Sequence{}}
	all := map[schema.Name]*schema.Sequence{}
	for i := range s.Sequences {
		all[s.Sequences[i].Name] = &s.Sequences[i]
	}
	for _, t := range s.Tables {
		for _, c := range t.Columns {
			if c.Identity != nil && c.Identity.Sequence != nil && all[*c.Identity.Sequence] != nil {
				g.sequences[*c.Identity.Sequence] = all[*c.Identity.Sequence]
			}
		}
	}
	return g
}

func (g *generator) fail(format string, args ...any) {
	if g.err == nil {
		g.err = wrongDescription(format, args...)
	}
}

func wrongDescription(format string, args ...any) error {
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: "the snapshot's description of its database is invalid: " + fmt.Sprintf(format, args...),
		Hint:   "ask the snapshot's author to rebuild it; nothing was replaced",
	}
}

func quote(name string) string         { return schema.Quote(dialect, name) }
func quoteName(n schema.Name) string   { return n.Quote(dialect) }
func quoteText(text string) string     { return schema.QuoteText(dialect, text) }
func columnList(names []string) string { return "(" + list(names, quote) + ")" }
func typeSQL(t schema.Type) string     { return t.SQL(dialect) }
func qualify(s, name string) string    { return quoteName(schema.Name{Schema: s, Name: name}) }

// list calls text for each element and joins the results with commas.
func list[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, x := range all {
		texts[i] = text(x)
	}
	return strings.Join(texts, ", ")
}

func (g *generator) expr(e schema.Expr) string {
	text, err := e.SQL(dialect)
	if err != nil {
		g.fail("an expression is not allowed")
	}
	return text
}

// definitions returns the statements for everything that must exist before the rows.
func (g *generator) definitions() (all []string, err error) {
	for _, n := range g.s.Namespaces {
		all = append(all, "CREATE SCHEMA IF NOT EXISTS "+quote(n.Name))
	}
	for _, e := range g.s.Enums {
		all = append(all, "CREATE TYPE "+quoteName(e.Name)+" AS ENUM ("+list(e.Labels, quoteText)+")")
	}
	for _, q := range g.s.Sequences {
		if g.sequences[q.Name] == nil {
			all = append(all, "CREATE SEQUENCE "+quoteName(q.Name)+g.sequenceOptions(q, true))
		}
	}
	domains, err := sortByDependency(g.s.Domains, func(x schema.Domain) schema.Name { return x.Name },
		func(x schema.Domain) []schema.Name {
			return []schema.Name{{Schema: x.Type.Schema, Name: x.Type.Name}}
		})
	if err != nil {
		return nil, err
	}
	for _, x := range domains {
		all = append(all, g.domain(x))
	}
	tables, err := sortByDependency(g.s.Tables, tableName, func(t schema.Table) []schema.Name { return t.Inherits })
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		all = append(all, g.table(t)...)
	}
	parts, err := sortByDependency(g.s.Tables, tableName, func(t schema.Table) []schema.Name {
		if t.PartitionOf == nil {
			return nil
		}
		return []schema.Name{t.PartitionOf.Table}
	})
	for _, t := range parts {
		if t.PartitionOf != nil {
			all = append(all,
				"ALTER TABLE ONLY "+quoteName(t.PartitionOf.Table)+" ATTACH PARTITION "+quoteName(t.Name)+
					" "+g.bound(t.PartitionOf.Bound))
		}
	}
	return all, cmp.Or(g.err, err)
}

func tableName(t schema.Table) schema.Name { return t.Name }

// sortByDependency sorts objects so that each one comes after the objects that it depends on.
func sortByDependency[T any](all []T, name func(T) schema.Name, needs func(T) []schema.Name) (sorted []T, err error) {
	at, state := map[schema.Name]int{}, make([]int, len(all))
	for i, x := range all {
		at[name(x)] = i
	}
	type step struct{ i, need int }
	for i := range all {
		for stack := []step{{i, 0}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if top.need == 0 {
				if state[top.i] == 2 {
					stack = stack[:len(stack)-1]
					continue
				}
				state[top.i] = 1
			}
			wanted := needs(all[top.i])
			if top.need == len(wanted) {
				state[top.i], sorted = 2, append(sorted, all[top.i])
				stack = stack[:len(stack)-1]
				continue
			}
			next, known := at[wanted[top.need]]
			top.need++
			if known && state[next] == 1 {
				return nil, wrongDescription("%q depends on itself", name(all[next]).Name)
			}
			if known && state[next] == 0 {
				stack = append(stack, step{next, 0})
			}
		}
	}
	return sorted, nil
}

// sequenceOptions returns the options of a sequence. With typed, they include the type of the
// sequence. The sequence of an identity column takes its type from the column.
func (g *generator) sequenceOptions(q schema.Sequence, typed bool) string {
	var b strings.Builder
	if typed && q.Type != "" {
		b.WriteString(" AS " + q.Type)
	}
	for _, option := range [][2]string{{"INCREMENT BY", q.Increment}, {"MINVALUE", q.Min}, {"MAXVALUE", q.Max},
		{"START WITH", q.Start}, {"CACHE", q.Cache}} {
		if option[1] != "" {
			b.WriteString(" " + option[0] + " " + option[1])
		}
	}
	if q.Cycle {
		b.WriteString(" CYCLE")
	}
	return b.String()
}

func (g *generator) domain(x schema.Domain) string {
	text := "CREATE DOMAIN " + quoteName(x.Name) + " AS " + typeSQL(x.Type) + g.collation(x.Collation)
	if x.Default != nil {
		text += " DEFAULT " + g.expr(*x.Default)
	}
	if x.NotNull {
		text += " NOT NULL"
	}
	for _, k := range x.Checks {
		text += g.check(k)
	}
	return text
}

// constraintName returns the clause that names a constraint, or "" if it has no name.
func constraintName(name string) string {
	if name == "" {
		return ""
	}
	return " CONSTRAINT " + quote(name)
}

func (g *generator) check(k schema.Check) string {
	text := constraintName(k.Name) + " CHECK (" + g.expr(k.Expr) + ")"
	if k.NoInherit {
		text += " NO INHERIT"
	}
	return text
}

// table returns the statements for a table without its keys and indexes.
func (g *generator) table(t schema.Table) []string {
	inherits, parts := len(t.Inherits) > 0, []string{}
	var after []string
	for _, c := range t.Columns {
		switch {
		case c.Computed:
		case inherits && !c.Local:
			after = append(after, g.inherited(t, c)...)
		default:
			parts = append(parts, g.column(c))
		}
	}
	for _, k := range t.Checks {
		if !k.NotValid && !(inherits && k.Inherited) {
			parts = append(parts, strings.TrimPrefix(g.check(k), " "))
		}
	}
	text := "CREATE TABLE "
	if t.Options["unlogged"] == "true" && t.Partitions == nil {
		text = "CREATE UNLOGGED TABLE "
	}
	text += quoteName(t.Name) + " (" + strings.Join(parts, ", ") + ")"
	if inherits {
		text += " INHERITS (" + list(t.Inherits, quoteName) + ")"
	}
	if t.Partitions != nil {
		text += " PARTITION BY " + strings.ToUpper(t.Partitions.Method) + " " + g.keyColumns(t.Partitions.Columns)
	}
	return append([]string{text + g.options(t)}, after...)
}

// options returns the storage parameters of a table.
func (g *generator) options(t schema.Table) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		if allowedOption(name, t.Options[name]) && t.Partitions == nil {
			all = append(all, name+" = "+t.Options[name])
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " WITH (" + strings.Join(all, ", ") + ")"
}

// inherited returns the statements for the table's own settings of a column that it inherits.
func (g *generator) inherited(t schema.Table, c schema.Column) (all []string) {
	alter := "ALTER TABLE ONLY " + quoteName(t.Name) + " ALTER COLUMN " + quote(c.Name)
	if c.NotNull {
		all = append(all, alter+" SET NOT NULL")
	}
	if c.Default == nil {
		return append(all, alter+" DROP DEFAULT")
	}
	return append(all, alter+" SET DEFAULT "+g.expr(*c.Default))
}

func (g *generator) column(c schema.Column) string {
	text := quote(c.Name) + " " + typeSQL(c.Type) + g.collation(c.Collation)
	if c.Default != nil && c.Identity == nil {
		text += " DEFAULT " + g.expr(*c.Default)
	}
	if c.NotNull {
		text += " NOT NULL"
	}
	if c.Identity == nil || c.Identity.Sequence == nil || g.sequences[*c.Identity.Sequence] == nil {
		return text
	}
	kind := "BY DEFAULT"
	if c.Identity.Always {
		kind = "ALWAYS"
	}
	q := *g.sequences[*c.Identity.Sequence]
	return text + " GENERATED " + kind + " AS IDENTITY (SEQUENCE NAME " + quoteName(q.Name) +
		g.sequenceOptions(q, false) + ")"
}

// collation returns the COLLATE clause for a collation that this server also has in pg_catalog. It
// returns "" for one that only the source server has, usually from its operating system.
func (g *generator) collation(name *schema.Name) string {
	if !builtinCollation(name) || !slices.Contains(g.collations, name.Name) {
		return ""
	}
	return " COLLATE " + quoteName(*name)
}

func (g *generator) keyColumns(columns []schema.KeyColumn) string {
	return "(" + list(columns, func(k schema.KeyColumn) string {
		text := quote(k.Name)
		if k.Expr != nil {
			text = "(" + g.expr(*k.Expr) + ")"
		}
		text += g.collation(k.Collation)
		if k.OpClass != "" {
			if g.opClasses[k.OpClass] == "" && g.err == nil {
				g.err = &snap.Error{Code: snap.CodeDatabase,
					Detail: fmt.Sprintf("the destination's server has no operator class %q, which the snapshot needs",
						k.OpClass),
					Hint: "load the snapshot into a server that has it; nothing was replaced"}
			}
			text += " " + qualify(g.opClasses[k.OpClass], k.OpClass)
		}
		if k.Desc {
			text += " DESC"
		}
		switch {
		case k.NullsFirst:
			text += " NULLS FIRST"
		case k.NullsLast:
			text += " NULLS LAST"
		}
		return text
	}) + ")"
}

func (g *generator) bound(b schema.Bound) string {
	values := func(all []schema.Expr) string { return "(" + list(all, g.expr) + ")" }
	switch {
	case b.Default:
		return "DEFAULT"
	case b.Modulus > 0:
		return fmt.Sprintf("FOR VALUES WITH (MODULUS %d, REMAINDER %d)", b.Modulus, b.Remainder)
	case len(b.In) > 0:
		return "FOR VALUES IN " + values(slices.Concat(b.In...))
	}
	return "FOR VALUES FROM " + values(b.From) + " TO " + values(b.To)
}

// indexes returns the statements for the keys and indexes of a table.
func (g *generator) indexes(t schema.Table) (all []string) {
	for _, k := range t.Keys {
		all = append(all, g.key(t, k))
	}
	for _, x := range t.Indexes {
		if !slices.Contains(indexMethods, x.Method) {
			g.fail("the index %q is of an unknown kind", x.Name)
		}
		text := "CREATE INDEX "
		if x.Unique {
			text = "CREATE UNIQUE INDEX "
		}
		text += quote(x.Name) + " ON " + quoteName(t.Name) + " USING " + x.Method + " " + g.keyColumns(x.Columns) +
			include(x.Include)
		if x.NullsNotDistinct {
			text += " NULLS NOT DISTINCT"
		}
		all = append(all, text)
	}
	return all
}

func include(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	return " INCLUDE " + columnList(columns)
}

func (g *generator) key(t schema.Table, k schema.Key) string {
	text := "ALTER TABLE " + quoteName(t.Name) + " ADD" + constraintName(k.Name)
	switch {
	case k.Primary:
		text += " PRIMARY KEY ("
	case k.NullsNotDistinct:
		text += " UNIQUE NULLS NOT DISTINCT ("
	default:
		text += " UNIQUE ("
	}
	text += list(k.Columns, func(c schema.KeyColumn) string { return quote(c.Name) }) + ")"
	return text + include(k.Include) + deferrable(k.Deferrable, k.InitiallyDeferred)
}

func deferrable(can, initially bool) string {
	switch {
	case initially:
		return " DEFERRABLE INITIALLY DEFERRED"
	case can:
		return " DEFERRABLE"
	}
	return ""
}

// foreignKeys returns the statements for the foreign keys of all tables.
func (g *generator) foreignKeys() (all []string) {
	for _, t := range g.s.Tables {
		for _, f := range t.ForeignKeys {
			text := "ALTER TABLE " + quoteName(t.Name) + " ADD" + constraintName(f.Name) + " FOREIGN KEY " +
				columnList(f.Columns) + " REFERENCES " + quoteName(f.To)
			if len(f.ToColumns) > 0 {
				text += " " + columnList(f.ToColumns)
			}
			if f.MatchFull {
				text += " MATCH FULL"
			}
			if f.OnUpdate != "" {
				text += " ON UPDATE " + f.OnUpdate
			}
			if f.OnDelete != "" {
				text += " ON DELETE " + f.OnDelete
			}
			if len(f.SetColumns) > 0 {
				text += " " + columnList(f.SetColumns)
			}
			text += deferrable(f.Deferrable, f.InitiallyDeferred)
			if f.NotValid {
				text += " NOT VALID"
			}
			all = append(all, text)
		}
	}
	return all
}

// rest returns the statements that come last, after the foreign keys: for sequences, checks that
// are not validated, replica identities, clustering and comments.
func (g *generator) rest() (all []string) {
	for _, q := range g.s.Sequences {
		if q.Owner != nil && g.sequences[q.Name] == nil {
			all = append(all,
				"ALTER SEQUENCE "+quoteName(q.Name)+" OWNED BY "+quoteName(q.Owner.Table)+"."+quote(q.Owner.Column))
		}
		if q.Last != "" {
			all = append(all, fmt.Sprintf("SELECT pg_catalog.setval(%s::pg_catalog.regclass, %s, %t)",
				quoteText(quoteName(q.Name)), q.Last, q.Called))
		}
	}
	for _, t := range g.s.Tables {
		alter := "ALTER TABLE " + quoteName(t.Name)
		for _, k := range t.Checks {
			if k.NotValid {
				all = append(all, alter+" ADD"+g.check(k)+" NOT VALID")
			}
		}
		switch t.Options["replica_identity"] {
		case "full", "nothing":
			all = append(all, alter+" REPLICA IDENTITY "+strings.ToUpper(t.Options["replica_identity"]))
		}
		for _, x := range t.Indexes {
			if x.Clustered {
				all = append(all, alter+" CLUSTER ON "+quote(x.Name))
			}
			if x.ReplicaIdentity {
				all = append(all, alter+" REPLICA IDENTITY USING INDEX "+quote(x.Name))
			}
		}
	}
	return append(all, g.comments()...)
}

// comments returns a COMMENT ON statement for each object that has a comment.
func (g *generator) comments() (all []string) {
	add := func(object, comment string) {
		if comment != "" {
			all = append(all, "COMMENT ON "+object+" IS "+quoteText(comment))
		}
	}
	for _, n := range g.s.Namespaces {
		if n.Name != "public" && g.into.commentsOn(n.Name) { // the schema public belongs to the server
			add("SCHEMA "+quote(n.Name), n.Comment)
		}
	}
	for _, e := range g.s.Enums {
		add("TYPE "+quoteName(e.Name), e.Comment)
	}
	for _, x := range g.s.Domains {
		add("DOMAIN "+quoteName(x.Name), x.Comment)
		for _, k := range x.Checks {
			add("CONSTRAINT "+quote(k.Name)+" ON DOMAIN "+quoteName(x.Name), k.Comment)
		}
	}
	for _, q := range g.s.Sequences {
		add("SEQUENCE "+quoteName(q.Name), q.Comment)
	}
	for _, t := range g.s.Tables {
		add("TABLE "+quoteName(t.Name), t.Comment)
		for _, c := range t.Columns {
			if !c.Computed {
				add("COLUMN "+quoteName(t.Name)+"."+quote(c.Name), c.Comment)
			}
		}
		for _, x := range t.Indexes {
			add("INDEX "+qualify(t.Schema, x.Name), x.Comment)
		}
		constraint := func(name, comment string) {
			if name != "" {
				add("CONSTRAINT "+quote(name)+" ON "+quoteName(t.Name), comment)
			}
		}
		for _, k := range t.Keys {
			constraint(k.Name, k.Comment)
		}
		for _, k := range t.Checks {
			constraint(k.Name, k.Comment)
		}
		for _, f := range t.ForeignKeys {
			constraint(f.Name, f.Comment)
		}
	}
	return all
}
