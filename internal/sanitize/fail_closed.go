package sanitize

import (
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

// This file makes masking fail closed. Before any row is written, requireComplete refuses rules
// that do not decide on every column, and checkFits refuses masks that do not suit their columns.
// Two later checks back this up: engine.Plan.Masks refuses a column without a decision while rows
// are rewritten, and leak.go looks for originals in the result.

// Unknown is a column without a decision: no rule covers it, or its rule is [Undecided].
type Unknown struct {
	Table, Column, Type string
	Undecided           bool
	line                string // position of the undecided rule in the file, for messages
}

// Unknown returns the columns of a dump that the rules do not decide on, in the order of the dump.
func (r *Rules) Unknown(c engine.Contents) (all []Unknown) {
	r.inherit(factsOf(c))
	for _, t := range c.Tables {
		for _, column := range t.Columns {
			rule, where, ok := r.find(t, column.Name)
			if ok && rule.Mask != Undecided {
				continue
			}
			u := Unknown{Table: tableLabel(t), Column: column.Name, Type: column.Type, Undecided: ok}
			if ok {
				table, name, _ := strings.Cut(where, "\x00")
				u.line = r.line(table, name)
			}
			all = append(all, u)
		}
	}
	return all
}

// requireComplete returns an error unless every column has a rule, every decision is made and every
// rule matches something.
func (r *Rules) requireComplete(unknown []Unknown, used map[string]bool) error {
	var missing, open []string
	for _, u := range unknown {
		if label := u.Table + "." + u.Column; u.Undecided {
			open = append(open, label+u.line)
		} else {
			missing = append(missing, label)
		}
	}
	switch {
	case len(missing) > 0:
		return snap.Invalid(fmt.Sprintf("%s: no rule covers %s", r.path, upToTen(missing)),
			"give each column a mask, or list it under keep; new columns need a rule too")
	case len(open) > 0:
		return snap.Invalid(fmt.Sprintf("%s: no decision has been made on %s", r.path, upToTen(open)),
			"replace decide with a mask or with keep")
	}
	var stale []string
	for table, t := range r.Tables {
		if t.Rows == "drop" && !used[table] {
			stale = append(stale, table+r.line(table, ""))
		}
		for column := range t.Columns {
			if !used[table+"\x00"+column] {
				stale = append(stale, table+"."+column+r.line(table, column))
			}
		}
	}
	for _, pattern := range r.Keep {
		if !used[keepPlace+"\x00"+pattern] {
			stale = append(stale, pattern+r.line(keepPlace, pattern))
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return snap.Invalid(fmt.Sprintf("%s: there is no %s in the snapshot, or a more specific rule applies", r.path,
			upToTen(stale)), "correct or remove the rule: a renamed column would stay unmasked")
	}
	return nil
}

func upToTen(names []string) string {
	if len(names) > 10 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:10], ", "), len(names)-10)
	}
	return strings.Join(names, ", ")
}

// checkFits checks every rule against its column's type, length, uniqueness, checks and foreign
// keys before any row is written. The error names up to ten rules that cannot be used, each with
// one that can be used.
func (r *Rules) checkFits(f *facts, chosen map[columnID]ColumnRule, key []byte) error {
	var wrong []string
	for _, t := range f.tables {
		if r.drops(t) {
			continue
		}
		for _, col := range t.Columns {
			c := f.columns[columnID{t.Schema, t.Name, col.Name}]
			rule := chosen[c.id]
			if why := misfit(key, rule, c); why != "" {
				_, where, _ := r.find(t, col.Name)
				table, name, _ := strings.Cut(where, "\x00")
				wrong = append(wrong, fmt.Sprintf("%s%s cannot be masked by %s: %s; %s would work", c.label,
					r.line(table, name), rule.Mask, why, remedy(key, c)))
				continue
			}
			if why := r.filledMisfit(f, t, c, chosen, key); why != "" {
				wrong = append(wrong, why)
			}
			if why := r.brokenReference(f, c, chosen, key); why != "" {
				wrong = append(wrong, why)
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	more := ""
	if len(wrong) > 10 {
		wrong, more = wrong[:10], fmt.Sprintf("; and %d more", len(wrong)-10)
	}
	return snap.Invalid(fmt.Sprintf("%s: %s%s", r.path, strings.Join(wrong, "; "), more),
		"correct the rules; nothing was written")
}

// remedies are the rules to suggest, in the order in which they are tried.
var remedies = []string{"email", "key", "hash", "format", "noise", "shift", "ip", "mac", "coordinates", "redact",
	"null", "keep"}

// remedy returns a rule that can be used for a column, as written in a rules file.
func remedy(key []byte, c *column) string {
	for _, mask := range remedies {
		if mask == "email" && !strings.Contains(strings.ToLower(c.Name), "mail") {
			continue
		}
		if misfit(key, ColumnRule{Mask: mask}, c) == "" {
			return proposal{rule: ColumnRule{Mask: mask}}.text()
		}
	}
	return "keep"
}

// brokenReference returns the reason why a column would no longer match a column that it
// references, or "" if it would still match all of them.
func (r *Rules) brokenReference(f *facts, c *column, chosen map[columnID]ColumnRule, key []byte) string {
	rule := chosen[c.id]
	if rule.Mask == "null" || len(c.samples) == 0 {
		return ""
	}
	for _, id := range c.references {
		to := f.columns[id]
		if r.drops(engine.Shape{Schema: id[0], Name: id[1]}) {
			return fmt.Sprintf("%[1]s refers to %[2]s, whose rows are dropped; mask %[1]s by null, or set "+
				`"rows: drop" for its table too`, c.label, to.label)
		}
		if !maskAlike(key, rule, c, chosen[id], to) {
			return fmt.Sprintf("%s is masked by %s, and %s, which it refers to, by %s; %s for both would work", c.label,
				rule.Mask, to.label, chosen[id].Mask, sharedMask(key, c, to))
		}
	}
	return ""
}

// maskAlike reports whether two rules give equal results for each sampled value of their columns.
func maskAlike(key []byte, a ColumnRule, of *column, b ColumnRule, to *column) bool {
	x, y := maskOf(key, a, of), maskOf(key, b, to)
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	for _, v := range append(slices.Clone(of.samples), to.samples...) {
		one, oneNull := x(v)
		two, twoNull := y(v)
		if one != two || oneNull != twoNull {
			return false
		}
	}
	return true
}

// sharedMask returns a mask that can be used for all of the columns and keeps their values equal.
func sharedMask(key []byte, columns ...*column) string {
	for _, mask := range []string{"email", "key", "hash"} {
		rule := ColumnRule{Mask: mask}
		if mask == "email" && !slices.ContainsFunc(columns, func(c *column) bool {
			return strings.Contains(strings.ToLower(c.Name), "mail")
		}) {
			continue
		}
		ok := true
		for _, c := range columns {
			ok = ok && misfit(key, rule, c) == "" && maskAlike(key, rule, columns[0], rule, c)
		}
		if ok {
			return mask
		}
	}
	return "keep"
}
