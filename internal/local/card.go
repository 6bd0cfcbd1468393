package local

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/card"
	"snap/internal/schema"
)

// cardOf makes the card of a snapshot from its manifest. Columns come from the description of the
// database, or from the list of the dump's columns in files without a description.
func cardOf(m archive.Manifest) api.Card {
	created := m.Created.UTC()
	c := api.Card{
		BuiltAt: &created, ServerVersion: m.ServerVersion,
		Encoding:  cmp.Or(m.Properties["encoding"], m.Properties["charset"]),
		Collation: cmp.Or(m.Properties["lc_collate"], m.Properties["collation"]),
	}
	if s := m.Sanitized; s != nil {
		c.From = s.From
		c.Masking = &api.Masking{Rules: s.Rules, SQL: s.SQL, Masked: s.Masked, Kept: s.Kept, Dropped: s.Dropped}
	}
	if s := m.Subset; s != nil {
		c.Subset = &api.CardSubset{Percent: s.Percent, Start: s.Start}
		for _, table := range slices.Sorted(maps.Keys(s.Where)) {
			c.Subset.Conditions = append(c.Subset.Conditions, api.CardCondition{Table: table, Where: s.Where[table]})
		}
	}
	described := map[schema.Name]schema.Table{}
	if m.Schema != nil {
		for _, t := range m.Schema.Tables {
			described[t.Name] = t
		}
	}
	parts := partsOf(m.Schema)
	c.Programs = parts[""]
	for _, t := range m.Tables {
		c.Tables = append(c.Tables, api.CardTable{Schema: t.Schema, Name: t.Name, Rows: t.Rows, Of: t.Of,
			Bytes: t.Bytes, Dropped: t.Dropped, Columns: cardColumns(t, described, dialectOf(m.Engine)),
			Parts: parts[snap.TableName(t.Schema, t.Name)]})
	}
	return card.Bound(c)
}

// partsOf returns the keys, indexes, constraints and programs of a description by table. Programs
// that belong to no table are under "".
func partsOf(s *schema.Schema) map[string][]api.CardPart {
	parts := map[string][]api.CardPart{}
	if s == nil {
		return parts
	}
	tables := map[schema.Name]bool{}
	for _, t := range s.Tables {
		tables[t.Name] = true
		on := snap.TableName(t.Schema, t.Name.Name)
		add := func(kind, name, definition string) {
			if name == "" {
				name, definition = definition, ""
			}
			parts[on] = append(parts[on], api.CardPart{Kind: kind, Name: name, Definition: definition})
		}
		for _, k := range t.Keys {
			kind := "unique constraint"
			if k.Primary {
				kind = "primary key"
			}
			add(kind, k.Name, columnsText(k.Columns))
		}
		for _, x := range t.Indexes {
			kind := "index"
			if x.Unique {
				kind = "unique index"
			}
			add(kind, x.Name, columnsText(x.Columns))
		}
		for _, f := range t.ForeignKeys {
			add("foreign key", f.Name, "("+strings.Join(f.Columns, ", ")+") to "+snap.TableName(f.To.Schema, f.To.Name))
		}
		for _, c := range t.Checks {
			if c.Name != "" {
				add("check constraint", c.Name, "")
			}
		}
	}
	for _, p := range s.Programs {
		on, name := "", snap.TableName(p.Schema, p.Name.Name)
		if tables[schema.Name{Schema: p.Schema, Name: p.On}] {
			on, name = snap.TableName(p.Schema, p.On), p.Name.Name
		}
		parts[on] = append(parts[on], api.CardPart{Kind: p.Kind, Name: name})
	}
	return parts
}

func columnsText(columns []schema.KeyColumn) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		if c.Desc {
			names[i] += " desc"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func dialectOf(e snap.Engine) schema.Dialect {
	switch e {
	case snap.MySQL:
		return schema.MySQL
	case snap.SQLite:
		return schema.SQLite
	}
	return schema.PostgreSQL
}

func cardColumns(t archive.Table, described map[schema.Name]schema.Table, d schema.Dialect) (all []api.CardColumn) {
	of, known := described[schema.Name{Schema: t.Schema, Name: t.Name}]
	if !known {
		for _, c := range t.Columns {
			all = append(all, api.CardColumn{Name: c.Name, Type: c.Type, NotNull: c.NotNull, Mask: t.Masks[c.Name]})
		}
		return all
	}
	keys, refers := columnKeys(of), referencesOf(of, described)
	for _, c := range of.Columns {
		typ := c.Type.SQL(d)
		if d != schema.MySQL { // for display, without the quotes of identifiers
			typ = strings.ReplaceAll(typ, `"`, "")
		}
		all = append(all, api.CardColumn{Name: c.Name, Type: typ, NotNull: c.NotNull, Key: keys[c.Name],
			Refers: refers[c.Name], Mask: t.Masks[c.Name]})
	}
	return all
}

// columnKeys returns the kind of key that each column is part of, by column. A primary key takes
// precedence.
func columnKeys(t schema.Table) map[string]string {
	keys := map[string]string{}
	note := func(key string, columns []schema.KeyColumn) {
		for _, c := range columns {
			if keys[c.Name] != card.Primary {
				keys[c.Name] = key
			}
		}
	}
	for _, i := range t.Indexes {
		if i.Unique {
			note(card.Unique, i.Columns)
		}
	}
	for _, k := range t.Keys {
		if k.Primary {
			note(card.Primary, k.Columns)
		} else {
			note(card.Unique, k.Columns)
		}
	}
	return keys
}

// referencesOf returns the column that the first foreign key of each column refers to, by column.
func referencesOf(t schema.Table, all map[schema.Name]schema.Table) map[string]string {
	refers := map[string]string{}
	for _, k := range t.ForeignKeys {
		to := api.CardTable{Schema: k.To.Schema, Name: k.To.Name}.Label()
		columns := k.ToColumns
		if len(columns) == 0 {
			columns = all[k.To].PrimaryKey()
		}
		for i, c := range k.Columns {
			if refers[c] != "" {
				continue
			}
			refers[c] = to
			if i < len(columns) {
				refers[c] += "." + columns[i]
			}
		}
	}
	return refers
}
