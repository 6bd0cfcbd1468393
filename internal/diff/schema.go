package diff

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// Change is one object of a schema that differs. Kind is its SQL name, singular and in lower case,
// such as "table" or "column". Name includes the schema of objects that have one. On is the table
// that the object belongs to. Detail describes the change, if one line is enough.
type Change struct {
	Change Kind
	Kind   string
	Name   string
	On     string
	Detail string
}

// object is a part of a schema. Two objects with the same kind, name and table are equal if their
// contents are.
type object struct {
	kind, name, on string
	content        any
	text           string // for display
}

func (o object) key() [3]string { return [3]string{o.kind, o.name, o.on} }

// compareSchemas compares the descriptions of both sides and then their SQL. Some parts of a
// schema, such as the body of a function, are only in the SQL.
func compareSchemas(before, after Side) []Change {
	var all []Change
	// The names of reported objects, of their tables, and of the parts of added and removed tables.
	reported := map[string]bool{}
	if before.Schema != nil && after.Schema != nil {
		b, a := objectList{before.Schema, nil}, objectList{after.Schema, nil}
		common := commonTables(b.schema, a.schema)
		all = compareObjects(b.all(common), a.all(common))
		for _, c := range all {
			reported[unqualified(c.Name)], reported[unqualified(c.On)] = true, true
		}
		for _, t := range slices.Concat(before.Schema.Tables, after.Schema.Tables) {
			if !common[t.Name] {
				maps.Copy(reported, namesOf(t))
			}
		}
	}
	delete(reported, "")
	b, a := texts(before), texts(after)
	if len(b) == 0 || len(a) == 0 {
		b, a = programs(before.Schema), programs(after.Schema)
	}
	for _, c := range compareObjects(b, a) {
		if !describable[c.Kind] || !reported[unqualified(c.Name)] && !reported[c.On] {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.On, a.Name), cmp.Or(b.On, b.Name)), cmp.Compare(a.On, b.On))
	})
	return all
}

// describable are the kinds of SQL objects that descriptions contain too, at least in most cases.
var describable = map[string]bool{"table": true, "index": true, "constraint": true, "check constraint": true,
	"fk constraint": true, "default": true, "sequence": true, "sequence owned by": true, "type": true, "domain": true,
	"schema": true, "extension": true, "table attach": true, "index attach": true}

// unqualified returns a name without its schema.
func unqualified(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func compareObjects(before, after []object) []Change {
	known := map[[3]string]object{}
	for _, o := range before {
		known[o.key()] = o
	}
	var all []Change
	for _, o := range after {
		old, ok := known[o.key()]
		delete(known, o.key())
		switch {
		case !ok:
			all = append(all, Change{Added, o.kind, o.name, o.on, o.text})
		case !reflect.DeepEqual(old.content, o.content):
			all = append(all, Change{Changed, o.kind, o.name, o.on, between(old.text, o.text)})
		}
	}
	for _, o := range before {
		if _, left := known[o.key()]; left {
			all = append(all, Change{Removed, o.kind, o.name, o.on, o.text})
			delete(known, o.key())
		}
	}
	return all
}

func between(before, after string) string {
	if before == after {
		return ""
	}
	return cmp.Or(before, "(none)") + " -> " + cmp.Or(after, "(none)")
}

// texts returns the SQL of a side as objects.
func texts(s Side) []object {
	var all []object
	for _, d := range s.Definitions() {
		all = append(all, object{d.Kind, snap.TableName(d.Schema, d.Name), d.On, d.Text, ""})
	}
	return all
}

// programs returns the names of a description's programs as objects.
func programs(s *schema.Schema) []object {
	if s == nil {
		return nil
	}
	var all []object
	for _, p := range s.Programs {
		all = append(all, object{p.Kind, snap.TableName(p.Schema, p.Name.Name), p.On, nil, ""})
	}
	return all
}

func commonTables(before, after *schema.Schema) map[schema.Name]bool {
	known, common := map[schema.Name]bool{}, map[schema.Name]bool{}
	for _, t := range before.Tables {
		known[t.Name] = true
	}
	for _, t := range after.Tables {
		common[t.Name] = known[t.Name]
	}
	return common
}

// namesOf returns the unqualified names of a table and of everything that belongs to it.
func namesOf(t schema.Table) map[string]bool {
	names := map[string]bool{t.Name.Name: true}
	for _, k := range t.Keys {
		names[k.Name] = true
	}
	for _, x := range t.Indexes {
		names[x.Name] = true
	}
	for _, f := range t.ForeignKeys {
		names[f.Name] = true
	}
	return names
}

// objectList collects the objects of a description.
type objectList struct {
	schema  *schema.Schema
	objects []object
}

func (d *objectList) add(kind string, name schema.Name, on string, content any, text string) {
	d.objects = append(d.objects, object{kind, snap.TableName(name.Schema, name.Name), on, content, text})
}

// all returns every object. It omits the columns, constraints and indexes of tables that exist on
// one side only.
func (d *objectList) all(common map[schema.Name]bool) []object {
	for _, n := range d.schema.Namespaces {
		d.add("schema", schema.Name{Name: n.Name}, "", n, "")
	}
	for _, x := range d.schema.Extensions {
		d.add("extension", schema.Name{Name: x.Name}, "", x, "")
	}
	for _, e := range d.schema.Enums {
		d.add("type", e.Name, "", e, strings.Join(e.Labels, ", "))
	}
	for _, x := range d.schema.Domains {
		d.add("domain", x.Name, "", x, x.Type.Name)
	}
	for _, q := range d.schema.Sequences {
		q.Last, q.Called = "", false // they are data
		d.add("sequence", q.Name, "", q, "")
	}
	for _, t := range d.schema.Tables {
		d.table(t, common[t.Name])
	}
	return d.objects
}

// table adds a table, and its parts if it exists on both sides.
func (d *objectList) table(t schema.Table, parts bool) {
	bare := t
	bare.Columns, bare.Keys, bare.Checks, bare.ForeignKeys, bare.Indexes = nil, nil, nil, nil, nil
	bare.Options = maps.Clone(t.Options)
	maps.DeleteFunc(bare.Options, func(name, _ string) bool { return strings.EqualFold(name, "auto_increment") })
	d.add("table", t.Name, "", bare, "")
	if !parts {
		return
	}
	on := snap.TableName(t.Schema, t.Name.Name)
	for _, c := range t.Columns {
		d.add("column", schema.Name{Name: c.Name}, on, c, columnText(c))
	}
	for _, k := range t.Keys {
		kind := "unique constraint"
		if k.Primary {
			kind = "primary key"
		}
		d.add(kind, schema.Name{Name: cmp.Or(k.Name, keyText(k.Columns))}, on, k, keyText(k.Columns))
	}
	for i, c := range t.Checks {
		d.add("check constraint", schema.Name{Name: cmp.Or(c.Name, fmt.Sprintf("number %d", i+1))}, on, c, "")
	}
	for _, f := range t.ForeignKeys {
		text := "(" + strings.Join(f.Columns, ", ") + ") to " + snap.TableName(f.To.Schema, f.To.Name)
		d.add("foreign key", schema.Name{Name: cmp.Or(f.Name, text)}, on, f, text)
	}
	for _, x := range t.Indexes {
		d.add("index", schema.Name{Name: x.Name}, on, x, keyText(x.Columns))
	}
}

// columnText describes a column as SQL would, without its default.
func columnText(c schema.Column) string {
	t := c.Type
	text := t.Name
	if len(t.Labels) > 0 {
		text += "('" + strings.Join(t.Labels, "', '") + "')"
	} else if len(t.Args) > 0 {
		text += "(" + strings.Join(t.Args, ",") + ")"
	}
	text += strings.Repeat("[]", t.Dims)
	if t.Unsigned {
		text += " unsigned"
	}
	if c.NotNull {
		text += " not null"
	}
	return strings.TrimSpace(text)
}

func keyText(columns []schema.KeyColumn) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		if c.Desc {
			names[i] += " desc"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}
