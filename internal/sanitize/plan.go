package sanitize

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

// Coverage counts the columns that a plan masks and keeps, and the tables whose rows it drops. The
// columns of these tables are neither masked nor kept.
type Coverage struct{ Masked, Kept, Dropped int }

// Prepared is a plan for one dump and the originals to search its output for.
type Prepared struct {
	Plan     engine.Plan
	Coverage Coverage
	Watch    []Watched // the originals, in every form that the dump may contain

	Originals []Watched // the originals, as UTF-8 text

	Chosen map[[2]string]map[string]string // names of the masks by schema and table, and by column

	stored func(value string) []string // see [engine.Contents]
	random map[string]bool             // columns whose masks produce values that contain no part of the original
}

// Watched is an original value that must not be in the output.
type Watched struct{ Column, Value string }

// Samples is the number of values sampled per column.
const Samples = 200

// Prepare matches the rules against the contents of a dump. It fails if a column has no rule, a
// rule matches nothing, a decision is missing, or a rule cannot be used for its column. The error
// names up to ten of these columns or rules.
func (r *Rules) Prepare(c engine.Contents, key []byte) (Prepared, error) {
	p := Prepared{Plan: engine.Plan{Tables: map[[2]string]engine.TablePlan{},
		KeepLargeObjects: r.LargeObjects == "keep"}, Chosen: map[[2]string]map[string]string{}, stored: c.Stored,
		random: map[string]bool{}}
	if c.LargeObjects > 0 && r.LargeObjects == "" {
		return p, snap.Invalid(fmt.Sprintf("no rule covers the %d large objects", c.LargeObjects),
			"add large_objects: drop, or large_objects: keep, to the rules file")
	}
	used := r.matched(c)
	f, chosen := factsOf(c), map[columnID]ColumnRule{}
	originals := r.avoided(c)
	r.inherit(f)
	for _, t := range c.Tables {
		table, plan := [2]string{t.Schema, t.Name}, engine.TablePlan{Columns: map[string]engine.Mask{}}
		p.Chosen[table] = map[string]string{}
		before := p.Coverage
		rows := rowMasks{key: key, plan: plan, known: map[string]*column{}, rules: map[string]ColumnRule{}}
		for _, column := range t.Columns {
			rule, where, ok := r.find(t, column.Name)
			used[where] = true
			if !ok || rule.Mask == Undecided {
				continue // requireComplete reports it
			}
			known := f.columns[columnID{t.Schema, t.Name, column.Name}]
			rule.avoid = originals
			chosen[known.id], rows.rules[column.Name], rows.known[column.Name] = rule, rule, known
			p.Chosen[table][column.Name] = rule.Mask
			mask := maskOf(key, rule, known)
			plan.Columns[column.Name] = mask
			if mask == nil {
				p.Coverage.Kept++
				continue
			}
			p.Coverage.Masked++
			if rule.Mask == "key" && known.unique {
				plan.Permuted = append(plan.Permuted, column.Name)
			}
			p.random[known.label] = rule.replacesWhole() && !rule.needsRow()
			p.watch(rule, known, mask)
		}
		if r.drops(t) {
			plan.DropRows = true
			p.Coverage = before
			p.Coverage.Dropped++
		}
		if len(rows.rules) == len(t.Columns) {
			if err := r.checkRow(t, rows.rules); err != nil {
				return p, err
			}
			plan.Rows = rows.all()
		}
		p.Plan.Tables[table] = plan
	}
	if err := r.requireComplete(r.Unknown(c), used); err != nil {
		return p, err
	}
	return p, r.checkFits(f, chosen, key)
}

// avoided returns the originals that masks must not produce: all that [Rules.Every] collected, and
// the samples.
func (r *Rules) avoided(c engine.Contents) avoided {
	all := avoided{}
	for mask, originals := range r.originals {
		all[mask] = maps.Clone(originals)
	}
	for _, t := range c.Tables {
		for i, column := range t.Columns {
			rule, _, _ := r.find(t, column.Name)
			for _, mask := range rule.masks() {
				isDrawn := slices.Contains(listMasks, mask)
				if !isDrawn && !slices.Contains(formMasks, mask) {
					continue
				}
				if all[mask] == nil {
					all[mask] = map[string]bool{}
				}
				for _, v := range t.Samples[i] {
					leaves(v, 0, func(text string) {
						if isDrawn || len(text) >= minWatched {
							all[mask][strings.ToLower(text)] = true
						}
					})
				}
			}
		}
	}
	return all
}

// watch records the samples that are distinctive enough not to occur elsewhere by chance, as text
// and in every form that the dump may contain.
func (p *Prepared) watch(rule ColumnRule, c *column, mask engine.Mask) {
	if rule.Else == "keep" {
		return
	}
	for _, v := range c.samples {
		kept := map[string]bool{}
		if masked, null := mask(v); !null {
			for _, piece := range c.pieces(masked) {
				kept[watchedPart(piece.value)] = true
			}
		}
		for _, piece := range c.pieces(v) {
			text := watchedPart(piece.value)
			if kept[text] || !worthWatching(text, piece.typ) || !watchedRule(rule, text) {
				continue
			}
			original := Watched{Column: c.label, Value: text}
			p.Originals = append(p.Originals, original)
			p.Watch = append(p.Watch, p.Forms(original)...)
		}
	}
}

// Forms returns originals in every form that the dump may contain.
func (p *Prepared) Forms(originals ...Watched) (all []Watched) {
	for _, w := range originals {
		for _, form := range formsOf(w.Value) {
			forms := []string{form}
			if p.stored != nil {
				forms = p.stored(form)
			}
			for _, f := range forms {
				if len(f) >= minWatched {
					all = append(all, Watched{Column: w.Column, Value: f})
				}
			}
		}
	}
	return all
}

func tableLabel(t engine.Shape) string { return snap.TableName(t.Schema, t.Name) }

// inherit records the rules that columns inherit from the columns they refer to.
func (r *Rules) inherit(f *facts) {
	r.inherited = map[string]ColumnRule{}
	for known := -1; known < len(r.inherited); { // a reference can refer to a reference
		known = len(r.inherited)
		for _, t := range f.tables {
			for _, col := range t.Columns {
				r.inheritAt(f.columns[columnID{t.Schema, t.Name, col.Name}])
			}
		}
	}
}

func (r *Rules) inheritAt(c *column) {
	for _, id := range c.references {
		rule, _, _ := r.find(engine.Shape{Schema: id[0], Name: id[1]}, id[2])
		if rule.ToReferences {
			r.inherited[c.label] = rule
		}
	}
}

// find returns the rule of a column. It looks first at the rule of its table by name, then at the
// rules of tables and columns by pattern, then at the rule of a column that this column refers to,
// and then at the list of the setting "keep". If the table's rows are dropped, the column needs no
// rule. where is the key of the rule in the result of [Rules.matched].
func (r *Rules) find(t engine.Shape, column string) (rule ColumnRule, where string, ok bool) {
	table := tableLabel(t)
	for _, pattern := range append([]string{table}, r.patterns...) {
		if !match(pattern, table) {
			continue
		}
		columns := r.Tables[pattern].Columns
		if rule, ok := columns[column]; ok {
			return rule, pattern + "\x00" + column, true
		}
		for _, c := range sortedKeys(columns) {
			if match(c, column) {
				return columns[c], pattern + "\x00" + c, true
			}
		}
		if r.dropsBy(pattern, table) {
			return ColumnRule{Mask: "null"}, pattern, true
		}
	}
	if rule, ok := r.inherited[table+"."+column]; ok {
		return rule, "", true
	}
	for _, pattern := range r.Keep {
		if match(pattern, table+"."+column) {
			return ColumnRule{Mask: "keep"}, "", true
		}
	}
	return ColumnRule{}, "", false
}

// matched returns the patterns of rules that drop the rows of at least one table, and the patterns
// in the list of the setting "keep" that match a column.
func (r *Rules) matched(c engine.Contents) map[string]bool {
	used := map[string]bool{}
	for _, pattern := range r.Keep {
		used[keepPlace+"\x00"+pattern] = slices.ContainsFunc(c.Tables, func(t engine.Shape) bool {
			return slices.ContainsFunc(t.Columns, func(col engine.Column) bool {
				return match(pattern, tableLabel(t)+"."+col.Name)
			})
		})
	}
	for pattern := range r.Tables {
		for _, t := range c.Tables {
			used[pattern] = used[pattern] || r.dropsBy(pattern, tableLabel(t))
		}
	}
	return used
}

// drops reports whether a rule drops the rows of a table.
func (r *Rules) drops(t engine.Shape) bool {
	for pattern := range r.Tables {
		if r.dropsBy(pattern, tableLabel(t)) {
			return true
		}
	}
	return false
}

// dropsBy reports whether the rule of a table or pattern drops the rows of a table. A pattern does
// not drop the rows of a table that has a rule of its own.
func (r *Rules) dropsBy(pattern, table string) bool {
	_, hasOwn := r.Tables[table]
	return r.Tables[pattern].Rows == "drop" && match(pattern, table) && (pattern == table || !hasOwn)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
