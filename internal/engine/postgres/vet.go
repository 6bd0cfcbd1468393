package postgres

import (
	"slices"
	"strings"
	"unicode/utf8"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// maxName is the maximum length of a name in bytes. PostgreSQL truncates longer names, so two
// names could become equal.
const maxName = 63

// describedBy returns the description that a foreign dump is loaded from, after checking that it is
// a valid description of a PostgreSQL database.
func describedBy(info engine.Info) (*schema.Schema, error) {
	if info.Schema == nil {
		return nil, &snap.Error{
			Code: snap.CodeInvalid,
			Detail: "the snapshot was built by an older version of snapcli and does not describe its tables, so it " +
				"could only be loaded by running its SQL",
			Hint: "ask its owner to rebuild it with a current version of snapcli",
		}
	}
	if err := info.Schema.Check(dialect); err != nil {
		return nil, err
	}
	v := &validator{s: info.Schema, types: map[schema.Name]bool{}, tables: map[schema.Name]*schema.Table{}}
	v.check()
	return v.s, v.err
}

// validator checks the parts of a description that are specific to PostgreSQL.
type validator struct {
	s          *schema.Schema
	namespaces []string
	types      map[schema.Name]bool
	tables     map[schema.Name]*schema.Table
	err        error
}

func (v *validator) fail(format string, args ...any) {
	if v.err == nil {
		v.err = wrongDescription(format, args...)
	}
}

// name checks the name of an object that the load creates.
func (v *validator) name(name string) {
	if len(name) > maxName {
		v.fail("the name %.63q is too long", name)
	}
	v.text(name)
}

// checkName checks a name and its schema.
func (v *validator) checkName(n schema.Name) {
	v.name(n.Name)
	if !slices.Contains(v.namespaces, n.Schema) {
		v.fail("%q is in the schema %q, which is not described", n.Name, n.Schema)
	}
}

// text checks a name or a comment.
func (v *validator) text(text string) {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		v.fail("%.63q is not valid text", text)
	}
}

func (v *validator) check() {
	for _, n := range v.s.Namespaces {
		if strings.HasPrefix(n.Name, "pg_") || n.Name == "information_schema" {
			v.fail("the schema %q is reserved for the server", n.Name)
		}
		v.name(n.Name)
		v.text(n.Comment)
		v.namespaces = append(v.namespaces, n.Name)
	}
	for _, x := range v.s.Extensions {
		if !allowedExtension(x.Name) {
			v.fail("the extension %q is not allowed", x.Name)
		}
		if x.Schema != "pg_catalog" && !slices.Contains(v.namespaces, x.Schema) {
			v.fail("the extension %q is in the schema %q, which is not described", x.Name, x.Schema)
		}
	}
	for _, e := range v.s.Enums {
		v.checkName(e.Name)
		v.text(e.Comment)
		v.types[e.Name] = true
	}
	for _, x := range v.s.Domains {
		v.checkName(x.Name)
		v.text(x.Comment)
		v.types[x.Name] = true
	}
	for _, q := range v.s.Sequences {
		v.checkName(q.Name)
		v.text(q.Comment)
		if !slices.Contains([]string{"", "smallint", "integer", "bigint"}, q.Type) {
			v.fail("the sequence %q has an unknown type", q.Name.Name)
		}
	}
	for _, x := range v.s.Domains {
		v.typ(x.Type)
		v.expr(x.Default)
		v.checks(x.Checks)
	}
	for i := range v.s.Tables {
		v.tables[v.s.Tables[i].Name] = &v.s.Tables[i]
	}
	for i := range v.s.Tables {
		v.table(&v.s.Tables[i])
	}
}

func (v *validator) checks(all []schema.Check) {
	for i := range all {
		v.name(all[i].Name)
		v.text(all[i].Comment)
		v.expr(&all[i].Expr)
	}
}

// typ checks that a type is built in or described. The arguments of built-in types must be numbers.
func (v *validator) typ(t schema.Type) {
	for _, arg := range t.Args {
		if t.Extension == "" && strings.Trim(arg, "-0123456789") != "" {
			v.fail("the type %q has the invalid argument %q", t.Name, arg)
		}
	}
	switch {
	case t.Own && v.types[schema.Name{Schema: t.Schema, Name: t.Name}]:
	case t.Extension != "" && slices.Contains(v.s.Extensions, schema.Extension{Name: t.Extension, Schema: t.Schema}):
	case !t.Own && t.Extension == "" && t.Schema == "":
	default:
		v.fail("the type %q is not described", t.Name)
	}
}

func (v *validator) expr(e *schema.Expr) {
	if e == nil {
		return
	}
	if e.Cast != nil {
		v.typ(*e.Cast)
	}
	for i := range e.Args {
		v.expr(&e.Args[i])
	}
}

func (v *validator) table(t *schema.Table) {
	v.checkName(t.Name)
	v.text(t.Comment)
	stored := map[string]bool{}
	for _, c := range t.Columns {
		v.name(c.Name)
		v.text(c.Comment)
		v.typ(c.Type)
		v.expr(c.Default)
		stored[c.Name] = !c.Computed
	}
	v.checks(t.Checks)
	requireStored := func(columns ...string) {
		for _, name := range columns {
			if !stored[name] {
				v.fail("the table %q has no column %q with stored values", t.Name.Name, name)
			}
		}
	}
	checkKey := func(columns []schema.KeyColumn) {
		if len(columns) == 0 {
			v.fail("a key or index of the table %q has no columns", t.Name.Name)
		}
		for _, k := range columns {
			if v.expr(k.Expr); k.Expr == nil {
				requireStored(k.Name)
			}
		}
	}
	for _, k := range t.Keys {
		v.name(k.Name)
		v.text(k.Comment)
		checkKey(k.Columns)
		requireStored(k.Include...)
	}
	for _, x := range t.Indexes {
		if x.Name == "" {
			v.fail("an index of the table %q has no name", t.Name.Name)
		}
		v.name(x.Name)
		v.text(x.Comment)
		checkKey(x.Columns)
		requireStored(x.Include...)
	}
	for _, f := range t.ForeignKeys {
		v.name(f.Name)
		v.text(f.Comment)
		requireStored(f.Columns...)
		v.checkReference(t, f.To)
	}
	v.partitions(t, checkKey)
}

// checkReference checks that a table refers to a described table.
func (v *validator) checkReference(t *schema.Table, other schema.Name) {
	if v.tables[other] == nil {
		v.fail("the table %q refers to %q, which is not described", t.Name.Name, other.Name)
	}
}

// partitions checks the partitioning and the parents of a table.
func (v *validator) partitions(t *schema.Table, checkKey func([]schema.KeyColumn)) {
	for _, parent := range t.Inherits {
		v.checkReference(t, parent)
	}
	if t.Partitions != nil {
		checkKey(t.Partitions.Columns)
		if !slices.Contains([]string{"range", "list", "hash"}, t.Partitions.Method) || len(t.Inherits) > 0 {
			v.fail("the table %q is partitioned in an unknown way", t.Name.Name)
		}
	}
	if t.PartitionOf == nil {
		return
	}
	v.checkReference(t, t.PartitionOf.Table)
	b := t.PartitionOf.Bound
	for _, values := range append(slices.Clone(b.In), b.From, b.To) {
		for i := range values {
			v.expr(&values[i])
		}
	}
}
