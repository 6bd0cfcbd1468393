package sanitize

import (
	"fmt"
	"slices"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
	"snap/internal/schema"
)

// needsRow reports whether a rule needs other columns of the row: it has a condition or is a
// template.
func (c ColumnRule) needsRow() bool { return c.When != "" || c.Mask == "template" }

// unconditional returns the rule without its condition.
func (c ColumnRule) unconditional() ColumnRule {
	c.When, c.Else = "", ""
	return c
}

// elseRule returns the rule for rows that do not meet the condition.
func (c ColumnRule) elseRule() ColumnRule { return ColumnRule{Mask: c.Else, avoid: c.avoid} }

// rowMasks holds the rules of a table, for masks that need other columns of the row.
type rowMasks struct {
	key   []byte
	plan  engine.TablePlan
	known map[string]*column
	rules map[string]ColumnRule
}

// all returns the row masks by column.
func (r rowMasks) all() map[string]engine.RowMask {
	masks := map[string]engine.RowMask{}
	for name, rule := range r.rules {
		if !rule.needsRow() {
			continue
		}
		needs := r.needs(name)
		masks[name] = engine.RowMask{Needs: needs, Mask: func(v string, others []*string) (string, bool) {
			return r.masked(name, v, func(column string) *string {
				if at := slices.Index(needs, column); at >= 0 {
					return others[at]
				}
				return nil
			})
		}}
	}
	return masks
}

// needs returns the columns whose originals determine the masked value of a column.
func (r rowMasks) needs(name string) []string {
	rule := r.rules[name]
	all := columnsOf(rule.parsedWhen)
	if rule.Mask == "template" {
		for _, column := range rule.parsedTemplate.columns() {
			all = append(append(all, column), r.needs(column)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// masked masks a value of a column. It uses the mask in Else only if the condition is certainly
// false.
func (r rowMasks) masked(name, v string, original func(column string) *string) (string, bool) {
	rule, mask := r.rules[name], r.plan.Columns[name]
	class := func(column string) personal.Class { return r.known[column].comparedAs() }
	value := func(column string) (string, bool) {
		if column == name {
			return v, true
		}
		if text := original(column); text != nil {
			return *text, true
		}
		return "", false
	}
	switch {
	case rule.When != "" && condition{class: class, value: value}.answer(rule.parsedWhen) == no:
		mask = maskOf(r.key, rule.elseRule(), r.known[name])
	case rule.Mask == "template":
		filled := rule.parsedTemplate.fill(func(column string) string {
			text := original(column)
			if text == nil {
				return ""
			}
			masked, null := r.masked(column, *text, original)
			if null {
				return ""
			}
			return masked
		})
		return cut(filled, limitOf(r.known[name])), false
	}
	if mask == nil {
		return v, false
	}
	return mask(v)
}

// rowMisfit returns the reason why a rule with a condition or a template cannot be used for a
// column, or "".
func rowMisfit(key []byte, rule ColumnRule, c *column) string {
	switch {
	case c.unique:
		return "its values must stay unique, which a condition or a template cannot promise"
	case c.linked:
		return "it is part of a foreign key, and values of other tables would no longer match"
	case rule.Mask == "template" && c.typ.Dims > 0:
		return "it holds arrays"
	}
	if rule.When != "" {
		if why := misfit(key, rule.elseRule(), c); why != "" {
			return why
		}
	}
	if rule.Mask == "template" {
		return ""
	}
	return misfit(key, rule.unconditional(), c)
}

// checkRow returns an error if a rule refers to columns that do not exist, or to another template.
func (r *Rules) checkRow(t engine.Shape, rules map[string]ColumnRule) error {
	for _, name := range sortedKeys(rules) {
		rule := rules[name]
		filled := rule.parsedTemplate.columns()
		for _, column := range append(columnsOf(rule.parsedWhen), filled...) {
			var why string
			other, ok := rules[column]
			switch {
			case !ok:
				why = fmt.Sprintf("the table has no column %q", column)
			case other.Mask == "template" && slices.Contains(filled, column):
				why = fmt.Sprintf("a template cannot refer to %q, which is a template too", column)
			default:
				continue
			}
			return snap.Invalid(fmt.Sprintf("%s: %s.%s%s: %s", r.path, tableLabel(t), name, r.line(tableLabel(t), name),
				why), "correct the rules; nothing was written")
		}
	}
	return nil
}

// holdsFilled returns the reason why a column cannot hold its template when it is filled with
// sampled values, or "".
func (r rowMasks) holdsFilled(name string) string {
	c := r.known[name]
	for i, v := range c.samples {
		filled, _ := r.masked(name, v, func(column string) *string {
			samples := r.known[column].samples
			if len(samples) == 0 {
				return nil
			}
			return &samples[i%len(samples)]
		})
		if why := c.holds(filled); why != "" {
			return why
		}
	}
	return ""
}

// filledMisfit returns the reason why a column cannot hold its filled template, or "".
func (r *Rules) filledMisfit(f *facts, t engine.Shape, c *column, chosen map[columnID]ColumnRule, key []byte) string {
	if chosen[c.id].Mask != "template" {
		return ""
	}
	rows := rowMasks{key: key, plan: engine.TablePlan{Columns: map[string]engine.Mask{}}, known: map[string]*column{},
		rules: map[string]ColumnRule{}}
	for _, col := range t.Columns {
		known := f.columns[columnID{t.Schema, t.Name, col.Name}]
		rows.known[col.Name], rows.rules[col.Name] = known, chosen[known.id]
		rows.plan.Columns[col.Name] = maskOf(key, chosen[known.id], known)
	}
	if why := rows.holdsFilled(c.Name); why != "" {
		return fmt.Sprintf("%s%s cannot be filled by its template: %s; %s would work", c.label,
			r.line(tableLabel(t), c.Name), why, remedy(key, c))
	}
	return ""
}

// checkRowSettings parses the condition and the template of a rule. It returns the reason why they
// are wrong, or "".
func (c *ColumnRule) checkRowSettings() string {
	if (c.When != "") != (c.Else != "") {
		return `needs "when" and "else" together: "else" is the mask for the rows that do not meet the condition`
	}
	if (c.Mask == "template") != (c.Template != "") {
		return `needs a template for "mask: template", and no template for other masks`
	}
	if c.When != "" && c.Mask == "keep" {
		return `keeps the rows that meet its condition; write the opposite condition, with "else: keep"`
	}
	if c.When != "" {
		if _, ok := makers()[c.Else]; !ok || slices.Contains(withSettings, c.Else) {
			return `needs the name of a mask without settings as "else"`
		}
		e, err := schema.ParseExpr(schema.PostgreSQL, c.When)
		if err != nil || !decidable(e) {
			return fmt.Sprintf("has the condition %q, which cannot be used; write one such as role <> 'staff' AND "+
				"age >= 18", c.When)
		}
		c.parsedWhen = e
	}
	var err error
	if c.parsedTemplate, err = parseTemplate(c.Template); err != nil {
		return fmt.Sprintf("has a template with %v", err)
	}
	return ""
}

// decidable reports whether conditions support all operators and functions of an expression.
func decidable(e schema.Expr) bool {
	known := e.Op == "" || slices.Contains([]string{"AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "IN", "NOT IN",
		"BETWEEN", "=", "<>", "<", "<=", ">", ">=", "LIKE", "NOT LIKE", "~", "~*", "NEG"}, e.Op)
	known = known && (e.Call == "" || slices.Contains([]string{"lower", "upper", "trim", "btrim", "char_length",
		"length"}, e.Call)) && e.NextValue == nil
	for _, arg := range e.Args {
		known = known && decidable(arg)
	}
	return known
}
