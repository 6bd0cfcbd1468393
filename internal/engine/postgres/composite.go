package postgres

import (
	"strings"

	"snap/internal/engine"
)

// compositesOf returns the fields of the composite types in a table of contents, by the schema and
// the name of the type. A type whose definition cannot be read is left out.
func (d *dumpReader) compositesOf(entries []dumpEntry) map[[2]string][]engine.Column {
	all := map[[2]string][]engine.Column{}
	for _, e := range entries {
		_, body, ok := strings.Cut(e.definition, " AS (\n")
		if e.desc != "TYPE" || !ok {
			continue
		}
		body, _, ok = strings.Cut(body, "\n);")
		if fields := fieldsOf(d.stored.Label(body)); ok && len(fields) > 0 {
			all[[2]string{e.namespace, e.tag}] = fields
		}
	}
	return all
}

// fieldsOf reads the fields of a composite type as pg_dump writes them, one per line. It returns
// nil if a line is not a field.
func fieldsOf(body string) (fields []engine.Column) {
	for line := range strings.Lines(body) {
		name, rest, ok := fieldName(strings.TrimSuffix(strings.TrimSpace(line), ","))
		typ, _, _ := strings.Cut(rest, " COLLATE ")
		if !ok || typ == "" {
			return nil
		}
		fields = append(fields, engine.Column{Name: name, Type: typ})
	}
	return fields
}

// fieldName splits a field's name, which may be quoted, from its type.
func fieldName(line string) (field, rest string, ok bool) {
	inner, isQuoted := strings.CutPrefix(line, `"`)
	if !isQuoted {
		return strings.Cut(line, " ")
	}
	t, rest, err := quoted(inner, name, '"', false)
	return t.text, strings.TrimSpace(rest), err == nil
}
