package sanitize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"snap/internal/engine"
	"snap/internal/personal"
)

// maxNested is the maximum nesting of composite types that is examined.
const maxNested = 10

// addCompositeFields adds the fields of composite types to the columns of these types.
func (f *facts) addCompositeFields(types map[[2]string][]engine.Column) {
	for _, c := range f.columns {
		c.addFields(types, 0)
	}
}

func (c *column) addFields(types map[[2]string][]engine.Column, depth int) {
	if c.typ.Class != personal.Other || depth == maxNested {
		return
	}
	fields := fieldsNamed(types, c.typ.Name)
	if fields == nil {
		return
	}
	c.typ.Class = personal.Composite
	for i, f := range fields {
		field := &column{Column: f, id: c.id, label: c.label + "." + f.Name, typ: personal.ParseType(f.Type)}
		for _, v := range c.samples {
			for _, row := range rowsOf(v, c.typ.Dims) {
				if values, ok := parseRow(row); ok && i < len(values) && values[i] != nil &&
					!slices.Contains(field.samples, *values[i]) {
					field.samples = append(field.samples, *values[i])
				}
			}
		}
		field.addFields(types, depth+1)
		c.fields = append(c.fields, field)
	}
}

// fieldsNamed returns the fields of the composite type with the given name, which may include its
// schema. It returns nil if several schemas have a type with that name.
func fieldsNamed(types map[[2]string][]engine.Column, name string) (fields []engine.Column) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, `"`, "")) }
	for id, of := range types {
		if plain(name) == plain(id[0]+"."+id[1]) {
			return of
		}
		if plain(name) == plain(id[1]) {
			if fields != nil {
				return nil
			}
			fields = of
		}
	}
	return fields
}

// rowsOf returns the elements of an array, or the value itself.
func rowsOf(v string, dims int) []string {
	if dims == 0 {
		return []string{v}
	}
	var all []string
	elements(func(element string) (string, bool) {
		all = append(all, element)
		return "", true
	})(v)
	return all
}

// parseRow splits a value of a composite type into its fields; nil is NULL.
func parseRow(v string) (fields []*string, ok bool) {
	body, opened := strings.CutPrefix(v, "(")
	body, closed := strings.CutSuffix(body, ")")
	if !opened || !closed {
		return nil, false
	}
	var field strings.Builder
	quoted, null := false, true
	end := func() {
		text := field.String()
		fields = append(fields, &text)
		if null {
			fields[len(fields)-1] = nil
		}
		field.Reset()
		null = true
	}
	for i := 0; i < len(body); i++ {
		switch b := body[i]; {
		case b == '\\' && i+1 < len(body), b == '"' && quoted && i+1 < len(body) && body[i+1] == '"':
			i++
			field.WriteByte(body[i])
			null = false
		case b == '"':
			quoted, null = !quoted, false
		case b == ',' && !quoted:
			end()
		default:
			field.WriteByte(b)
			null = false
		}
	}
	end()
	return fields, !quoted
}

// writeRow writes a value of a composite type.
func writeRow(fields []*string) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		if f != nil {
			texts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `""`).Replace(*f) + `"`
		}
	}
	return "(" + strings.Join(texts, ",") + ")"
}

// compositeMask returns a mask that masks every field of a composite value. A value with a
// different number of fields than its type becomes NULL.
func compositeMask(key []byte, rule ColumnRule, c *column) engine.Mask {
	masks := make([]engine.Mask, len(c.fields))
	for i, f := range c.fields {
		masks[i] = maskOf(key, fieldRule(rule, f), f)
	}
	return func(v string) (string, bool) {
		fields, ok := parseRow(v)
		if !ok || len(fields) != len(masks) {
			return "", true
		}
		for i, mask := range masks {
			if fields[i] == nil || mask == nil {
				continue
			}
			masked, null := mask(*fields[i])
			if fields[i] = &masked; null {
				fields[i] = nil
			}
		}
		return writeRow(fields), false
	}
}

// fieldRule returns the rule of a field: its own, or the one for all other fields. A field that
// cannot hold the result becomes NULL.
func fieldRule(rule ColumnRule, f *column) ColumnRule {
	if own, ok := rule.Paths[f.Name]; ok && rule.Mask == "composite" {
		own.avoid = rule.avoid
		return own
	}
	name := "redact"
	if rule.Mask == "composite" && rule.Otherwise != "" {
		name = rule.Otherwise
	}
	if name != "keep" && misfit(proposalKey, ColumnRule{Mask: name}, f) != "" {
		name = "null"
	}
	return ColumnRule{Mask: name, avoid: rule.avoid}
}

// fieldsMisfit returns the reason why a rule for the fields of a composite type cannot be used, or
// "".
func fieldsMisfit(rule ColumnRule, c *column) string {
	if len(c.fields) == 0 {
		return "its type has no fields"
	}
	var names []string
	for _, f := range c.fields {
		names = append(names, f.Name)
		if own, ok := rule.Paths[f.Name]; ok {
			if why := misfit(proposalKey, own, f); why != "" {
				return fmt.Sprintf("its field %s cannot be masked by %s: %s", f.Name, own.Mask, why)
			}
		}
	}
	for _, name := range sortedKeys(rule.Paths) {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("it has no field %s; it has %s", name, upToTen(names))
		}
	}
	return ""
}

// proposeFields proposes a rule for a column of a composite type, based on the judgments of its
// fields.
func proposeFields(found personal.Finding, c *column, lists personal.Lists) proposal {
	table := personal.Table{Name: c.typ.Name}
	for _, f := range c.fields {
		table.Columns = append(table.Columns, personal.Column{Name: f.Name, Type: f.typ, Samples: f.samples})
	}
	rule := ColumnRule{Mask: "composite", Paths: map[string]ColumnRule{}}
	masked, open := found.Verdict == personal.Mask, false
	reason := found.Reason
	for i, finding := range personal.Judge(table, lists) {
		f := c.fields[i]
		p := proposalFor(finding, f)
		if len(f.fields) > 0 {
			p = proposeFields(finding, f, lists)
		}
		switch p.rule.Mask {
		case Undecided: // no rule of its own, so fieldRule redacts it
			open = true
		case "keep":
			if found.Verdict != personal.Mask {
				rule.Paths[f.Name] = p.rule
			}
		default:
			rule.Paths[f.Name] = p.rule
			if !masked {
				masked, reason = true, "its field "+f.Name+": "+p.reason
			}
		}
	}
	switch {
	case masked && len(rule.Paths) == 0:
		return firstFit(c, reason, ColumnRule{Mask: "redact"}, ColumnRule{Mask: "null"})
	case masked:
		return firstFit(c, reason, rule, ColumnRule{Mask: "redact"}, ColumnRule{Mask: "null"})
	case open:
		return proposal{rule: ColumnRule{Mask: Undecided}, reason: "fields whose meaning is unclear"}
	}
	return proposal{rule: ColumnRule{Mask: "keep"}, reason: "none of its fields is personal"}
}

// fieldRules returns the rules of fields as written in a rules file.
func fieldRules(r ColumnRule) string {
	var all []string
	for _, name := range sortedKeys(r.Paths) {
		quoted, _ := json.Marshal(name) // cannot fail
		all = append(all, string(quoted)+": "+proposal{rule: r.Paths[name]}.text())
	}
	return strings.Join(all, ", ")
}

// piece is a part of a value with its own type.
type piece struct {
	value string
	typ   personal.Type
}

// pieces returns the parts of a value that the leak scan searches for: the elements of arrays and
// the fields of composite values, or the value itself.
func (c *column) pieces(v string) []piece {
	if c.typ.Dims == 0 && len(c.fields) == 0 {
		return []piece{{v, c.typ}}
	}
	element := c.typ
	element.Dims = 0
	var all []piece
	for _, row := range rowsOf(v, c.typ.Dims) {
		if len(c.fields) == 0 {
			all = append(all, piece{row, element})
			continue
		}
		values, _ := parseRow(row)
		for i, f := range c.fields {
			if i < len(values) && values[i] != nil {
				all = append(all, f.pieces(*values[i])...)
			}
		}
	}
	return all
}
