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
	for _, t := range m.Tables {
		c.Tables = append(c.Tables, api.CardTable{Schema: t.Schema, Name: t.Name, Rows: t.Rows, Of: t.Of,
			Bytes: t.Bytes, Dropped: t.Dropped, Columns: cardColumns(t, described, dialectOf(m.Engine))})
	}
	return card.Bound(c)
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

// columnKeys returns the key that each column is part of.
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

// referencesOf returns the column that the first foreign key of each column refers to.
func referencesOf(t schema.Table, all map[schema.Name]schema.Table) map[string]string {
	refers := map[string]string{}
	for _, k := range t.ForeignKeys {
		to := api.CardTable{Schema: k.To.Schema, Name: k.To.Name}.Label()
		columns := k.ToColumns
		if len(columns) == 0 {
			columns = primaryKey(all[k.To])
		}
		for i, c := range k.Columns {
			if refers[c] != "" {
				continue
			}
			if refers[c] = to; i < len(columns) {
				refers[c] += "." + columns[i]
			}
		}
	}
	return refers
}

func primaryKey(t schema.Table) (columns []string) {
	for _, k := range t.Keys {
		if k.Primary {
			for _, c := range k.Columns {
				columns = append(columns, c.Name)
			}
		}
	}
	return columns
}
