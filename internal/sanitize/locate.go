package sanitize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"snap"
	"snap/internal/engine"
)

// Locator finds the columns that contain original values. It observes the rows of a dump through
// masks that wrap those of a plan.
type Locator struct {
	originals []Watched
	f         *finder // of the originals in every form
	of        []int   // for each value of the finder, the index of its original

	mu   sync.Mutex
	rows map[place]int
	same map[int]bool // values still unchanged in their own column
	seen map[int]map[string]bool

	random       map[string]bool // columns whose masks draw values, which can equal an original by chance
	coincidences map[int]bool    // values that are in a masked copy by chance
}

// place records that values of one column were found in another column.
type place struct{ of, in string }

// NewLocator returns a locator for the given originals, which are UTF-8 text.
func NewLocator(originals []Watched) *Locator {
	l := &Locator{originals: originals, rows: map[place]int{}, same: map[int]bool{},
		seen: map[int]map[string]bool{}, coincidences: map[int]bool{}}
	var forms []Watched
	for i, w := range originals {
		for _, form := range formsOf(w.Value) {
			forms, l.of = append(forms, Watched{w.Column, form}), append(l.of, i)
		}
	}
	l.f = newFinder(forms)
	return l
}

// Locator returns a locator for the plan's originals that distinguishes coincidences from leaks.
func (p *Prepared) Locator() *Locator {
	l := NewLocator(p.Originals)
	l.random = p.random
	return l
}

// Plan returns a plan that masks like p and searches the masked values. If p has no tables, the
// returned plan changes nothing.
func (l *Locator) Plan(p engine.Plan, c engine.Contents) engine.Plan {
	all := engine.Plan{Tables: map[[2]string]engine.TablePlan{}, KeepLargeObjects: true}
	for _, t := range c.Tables {
		plan := p.Tables[[2]string{t.Schema, t.Name}]
		columns := map[string]engine.Mask{}
		for _, col := range t.Columns {
			columns[col.Name] = l.observe(tableLabel(t)+"."+col.Name, plan.Columns[col.Name])
		}
		plan.Columns, plan.Rows = columns, l.observeRows(tableLabel(t), plan.Rows)
		all.Tables[[2]string{t.Schema, t.Name}] = plan
	}
	return all
}

func (l *Locator) observe(label string, mask engine.Mask) engine.Mask {
	return func(v string) (string, bool) {
		masked, null := v, false
		if mask != nil {
			masked, null = mask(v)
		}
		if !null && len(masked) >= minWatched {
			l.record(label, v, masked)
		}
		return masked, null
	}
}

func (l *Locator) observeRows(table string, rows map[string]engine.RowMask) map[string]engine.RowMask {
	observed := map[string]engine.RowMask{}
	for name, row := range rows {
		observed[name] = engine.RowMask{Needs: row.Needs, Mask: func(v string, others []*string) (string, bool) {
			return l.observe(table+"."+name, func(v string) (string, bool) { return row.Mask(v, others) })(v)
		}}
	}
	return observed
}

// record notes the originals in a masked value. If the column's mask draws values and the unmasked
// value did not contain the original, the original is there by chance.
func (l *Locator) record(label, before, v string) {
	in := map[string]bool{}
	l.f.find([]byte(v), len(v), nil, func(form, _ int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := l.of[form]
		w := l.originals[at]
		if l.random[label] && !contains(before, w.Value) {
			l.coincidences[at] = true
			return
		}
		if w.Column == label && w.Value == watchedPart(v) {
			l.same[at] = true
			return
		}
		if l.seen[at] == nil {
			l.seen[at] = map[string]bool{}
		}
		l.seen[at][label] = true
		in[w.Column] = true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for of := range in {
		l.rows[place{of, label}]++
	}
}

// contains reports whether text contains value in any form and case.
func contains(text, value string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(formsOf(value), func(form string) bool {
		return strings.Contains(text, strings.ToLower(form))
	})
}

// Coincidences returns the originals that masks produced by chance from other values.
func (l *Locator) Coincidences() []Watched {
	var all []Watched
	for at := range l.coincidences {
		all = append(all, l.originals[at])
	}
	return all
}

// places returns the places in a fixed order. With changedOnly, it omits values that are also
// unchanged in their own column, because that column was not meant to be masked.
func (l *Locator) places(changedOnly bool) []place {
	found := map[place]bool{}
	for at, labels := range l.seen {
		if changedOnly && l.same[at] {
			continue
		}
		for label := range labels {
			found[place{l.originals[at].Column, label}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b place) int {
		return cmp.Or(strings.Compare(a.of, b.of), strings.Compare(a.in, b.in))
	})
}

// Changed returns the originals that are no longer in their own column.
func (l *Locator) Changed() []Watched {
	var all []Watched
	for i, w := range l.originals {
		if !l.same[i] {
			all = append(all, w)
		}
	}
	return all
}

// Result returns nil if nothing was found, otherwise an error that names the columns and, for each
// of them, a rule or, if bySQL is set, a SQL statement that masks it. With bySQL, it omits values
// that the SQL did not remove from their own column.
func (l *Locator) Result(bySQL bool) error {
	fix, otherwise := fixByRule, "if the values of a column are not secret, add shared: true to its rule"
	if bySQL {
		fix, otherwise = fixBySQL, shareBySQL
	}
	var where, lines []string
	for _, p := range l.places(bySQL) {
		where = append(where, fmt.Sprintf("those of %s in %s (rows: at least %d)", p.of, p.in, l.rows[p]))
		dot := strings.LastIndexByte(p.in, '.')
		if line := fix(p.in[:dot], p.in[dot+1:]); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(where) == 0 {
		return nil
	}
	return snap.Invalid("original values are still in the masked copy: "+upToTen(where),
		"mask them there: "+strings.Join(lines[:min(10, len(lines))], "; ")+"; "+otherwise)
}

// shareBySQL is the hint for originals that a SQL file may leave in the copy; see [Originals].
const shareBySQL = "if the values of a column are not secret, add the line \"-- shared: TABLE.COLUMN\" to the SQL file"

// fixByRule returns the rule that masks a column in which originals were found.
func fixByRule(table, column string) string {
	return fmt.Sprintf("%s: {columns: {%s: redact}}", table, column)
}

// fixBySQL returns the SQL that masks a column in which originals were found.
func fixBySQL(table, column string) string {
	return fmt.Sprintf("UPDATE %s SET %s = NULL", table, column)
}

// Originals returns the sampled values of a dump that are long enough not to occur elsewhere by
// chance. It omits the columns that the SQL declares as shared with a line "-- shared:
// customer.city".
func Originals(c engine.Contents, sql string) []Watched {
	shared := map[string]bool{}
	for line := range strings.Lines(sql) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- shared:"); ok {
			shared[strings.TrimSpace(name)] = true
		}
	}
	f := factsOf(c)
	var all []Watched
	for _, t := range c.Tables {
		for i, col := range t.Columns {
			k := f.columns[columnID{t.Schema, t.Name, col.Name}]
			if shared[k.label] || shared[t.Name+"."+col.Name] {
				continue
			}
			for _, v := range t.Samples[i] {
				if text := watchedPart(v); worthWatching(text, k.typ) {
					all = append(all, Watched{Column: k.label, Value: text})
				}
			}
		}
	}
	return all
}
