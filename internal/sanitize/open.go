package sanitize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
	"snap/internal/schema"
)

// OpenColumns holds the columns of a dump that a rules file does not decide on, with a proposal for
// each: columns without a rule, and columns whose rule is [Undecided]. Callers can read names,
// rules and reasons from it, but not its sampled values.
type OpenColumns struct {
	Columns []OpenColumn

	path  string
	base  []byte // the content that was read; nil if there was no file
	draft []byte // base, with an undecided rule added for each column without a rule
	known map[string]*column
}

// OpenColumn is a column to decide on.
type OpenColumn struct {
	Table, Name string // as in the rules file, where they can be patterns
	Subject     string // the kind of its values
	Reason      string
	Rule        string // a rule that the column can hold, as written in a rules file
	Sure        bool   // Rule is proposed; otherwise a person has to judge
}

// Label returns the names of the table and the column, joined by a dot.
func (c OpenColumn) Label() string { return c.Table + "." + c.Name }

// Pattern reports whether the rule can apply to several tables or columns.
func (c OpenColumn) Pattern() bool { return strings.Contains(c.Label(), "*") }

// samplesToTry is how many sampled values of a column are kept to try masks with.
const samplesToTry = 20

// ReadOpenColumns reads a rules file, which need not exist, and returns the columns of a dump that
// it does not decide on.
func ReadOpenColumns(path string, c engine.Contents) (*OpenColumns, error) {
	o := &OpenColumns{path: path, known: map[string]*column{}}
	rules := &Rules{}
	base, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.draft = []byte(beginning(c))
	case err != nil:
		return nil, fmt.Errorf("read the rules file: %w", err)
	default:
		if rules, err = parseRules(path, base); err != nil {
			return nil, err
		}
		o.base, o.draft = base, base
	}
	f := factsOf(c)
	sure, err := o.addMissing(rules, f, propose(f))
	if err != nil {
		return nil, err
	}
	v, err := parseReview(path, o.draft)
	if err != nil {
		return nil, err
	}
	for _, p := range v.all {
		if p.Mask != Undecided {
			continue
		}
		col := OpenColumn{Table: p.table, Name: p.name}
		col.Reason, col.Rule = splitReason(p.Reason)
		col.Subject = personal.Subject(col.Reason)
		if rule := sure[p.Column]; rule != "" {
			col.Rule, col.Sure = rule, true
		}
		if col.Rule == "" {
			col.Rule = "redact"
		}
		o.Columns = append(o.Columns, col)
	}
	o.keepFacts(f)
	return o, nil
}

// keepFacts stores the known information about the open columns, so that other masks can be tried.
func (o *OpenColumns) keepFacts(f *facts) {
	open := map[string]bool{}
	for _, c := range o.Columns {
		open[c.Label()] = true
	}
	for _, c := range f.columns {
		if open[c.label] {
			c.samples = slices.Clone(c.samples[:min(len(c.samples), samplesToTry)])
			o.known[c.label] = c
		}
	}
}

// addMissing adds an undecided rule with the proposal's reason for every column that no rule
// covers. It returns the proposed rules by the columns' labels.
func (o *OpenColumns) addMissing(rules *Rules, f *facts, proposals map[columnID]proposal) (map[string]string, error) {
	rules.inherit(f)
	edit, err := newEdit(o.path, o.draft)
	if err != nil {
		return nil, err
	}
	sure := map[string]string{}
	for _, t := range f.tables {
		var lines []missingRule
		for _, col := range t.Columns {
			if _, _, ok := rules.find(t, col.Name); ok {
				continue
			}
			key, err := yamlKey(col.Name)
			if err != nil {
				return nil, err
			}
			p := proposals[columnID{t.Schema, t.Name, col.Name}]
			reason := p.reason
			if p.rule.Mask != Undecided {
				sure[tableLabel(t)+"."+col.Name] = p.text()
				reason += "; " + p.text() + wouldWork
			}
			lines = append(lines, missingRule{key, reason})
		}
		if err := edit.add(tableLabel(t), lines); err != nil {
			return nil, err
		}
	}
	o.draft = edit.text()
	return sure, nil
}

// CheckUnchanged returns an error of code conflict if the file has changed since it was read.
func (o *OpenColumns) CheckUnchanged() error {
	now, err := os.ReadFile(o.path)
	exists := err == nil
	if !exists && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the rules file: %w", err)
	}
	if exists == (o.base != nil) && bytes.Equal(now, o.base) {
		return nil
	}
	return &snap.Error{Code: snap.CodeConflict, Detail: o.path + " was changed after the rules were proposed",
		Hint: "propose the rules again; your decisions are kept"}
}

// PlainMasks returns the masks that need no settings.
func PlainMasks() (names []string) {
	for _, name := range MaskNames() {
		if c := (ColumnRule{Mask: name}); checkSettings(c) == "" && c.checkRowSettings() == "" {
			names = append(names, name)
		}
	}
	return names
}

// RuleText returns the rule for one of [PlainMasks], as written in a rules file.
func RuleText(mask string) string { return proposal{rule: ColumnRule{Mask: mask}}.text() }

// CheckSuits returns an error if a column cannot hold the values of one of [PlainMasks]. The error
// contains no value.
func (o *OpenColumns) CheckSuits(at int, mask string) error {
	if !slices.Contains(PlainMasks(), mask) {
		return snap.Invalid(fmt.Sprintf("there is no mask %q that needs no settings", mask), "choose one from the list")
	}
	label := o.Columns[at].Label()
	c := o.known[label]
	if c == nil || misfit(proposalKey, ColumnRule{Mask: mask}, c) == "" {
		return nil
	}
	return snap.Invalid(fmt.Sprintf("%s cannot hold the values of the mask %s", label, mask),
		"use "+o.Columns[at].Rule+", or another mask")
}

// Text returns the rules file with decisions. rules holds rules by their column's index in Columns.
// drop holds the tables whose rows are to be dropped. Other open columns remain undecided. Text
// fails if the file would then differ in anything but these decisions.
func (o *OpenColumns) Text(rules map[int]string, drop map[string]bool) ([]byte, error) {
	v, err := parseReview(o.path, o.draft)
	if err != nil {
		return nil, err
	}
	decided := map[[2]string]string{}
	n := 0
	for i, p := range v.all {
		if p.Mask != Undecided {
			continue
		}
		rule := rules[n]
		if rule == "" && drop[p.table] {
			rule = o.Columns[n].Rule // masked anyway, in case somebody keeps the rows later
		}
		if n++; rule != "" {
			v.Decide(Group{at: []int{i}}, rule)
			decided[[2]string{p.table, p.name}] = rule
		}
	}
	edit, err := newEdit(o.path, []byte(strings.Join(v.lines, "")))
	if err != nil {
		return nil, err
	}
	for _, table := range sortedKeys(drop) {
		if err := edit.drop(table); err != nil {
			return nil, err
		}
	}
	text := edit.text()
	return text, o.verify(text, decided, drop)
}

// verify parses a changed file. The file must still contain everything that it had before, and also
// the decisions.
func (o *OpenColumns) verify(text []byte, decided map[[2]string]string, drop map[string]bool) error {
	want, err := parseRules(o.path, o.draft)
	if err != nil {
		return err
	}
	got, err := parseRules(o.path, text)
	if err != nil {
		return err
	}
	for table := range drop {
		t := want.Tables[table]
		t.Rows = "drop"
		want.Tables[table] = t
	}
	meant := map[string]ColumnRule{}
	for id, rule := range decided {
		if _, ok := meant[rule]; !ok {
			one, err := parseRules(o.path, []byte("tables: {t: {columns: {c: "+rule+"}}}"))
			if err != nil {
				return err
			}
			meant[rule] = one.Tables["t"].Columns["c"]
		}
		want.Tables[id[0]].Columns[id[1]] = meant[rule]
	}
	if !reflect.DeepEqual(want.stated(), got.stated()) {
		return snap.Invalid("the decisions cannot be written to "+o.path, "edit the file instead")
	}
	return nil
}

// stated returns only the rules that the file itself states, without anything derived from them.
func (r *Rules) stated() Rules {
	s := Rules{Key: r.Key, Keep: r.Keep, LargeObjects: r.LargeObjects, SchemaLiterals: r.SchemaLiterals,
		Tables: map[string]TableRule{}}
	for table, t := range r.Tables {
		columns := map[string]ColumnRule{}
		for name, c := range t.Columns {
			c.parsedWhen, c.parsedTemplate = schema.Expr{}, nil
			columns[name] = c
		}
		s.Tables[table] = TableRule{Rows: t.Rows, Columns: columns}
	}
	return s
}

// edit adds lines to a rules file. Nothing else in the file changes.
type edit struct {
	path   string
	lines  []string
	tables map[string]block
	top    block          // the tables
	after  map[int]string // text to add, by the number of the line before the text
}

// block is a mapping to which lines can be added, after the line of its key.
type block struct {
	line   int    // counted from one
	indent string // of its entries
	braces bool   // the mapping is written in braces, so no line can be added
	inner  *block // of a table: its columns
}

// newEdit finds the tables of a rules file.
func newEdit(path string, text []byte) (*edit, error) {
	e := &edit{path: path, lines: strings.SplitAfter(string(text), "\n"), tables: map[string]block{},
		after: map[int]string{}}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("read the rules file: %w", err)
	}
	if len(file.Docs) > 0 {
		each(file.Docs[0].Body, func(key string, at ast.MapKeyNode, value ast.Node) {
			if key == "tables" {
				e.top = e.blockOf(at, value)
			}
		})
		eachTable(file.Docs[0].Body, func(table string, at ast.MapKeyNode, value ast.Node) {
			p := e.blockOf(at, value)
			each(value, func(key string, at ast.MapKeyNode, value ast.Node) {
				if key == "columns" {
					inner := e.blockOf(at, value)
					p.inner = &inner
				}
			})
			e.tables[table] = p
		})
	}
	if e.top.line == 0 {
		if last := len(e.lines) - 1; e.lines[last] != "" {
			e.lines[last] += "\n"
		} else {
			e.lines = e.lines[:last]
		}
		e.lines = append(e.lines, "\n", "tables:\n")
		e.top = block{line: len(e.lines), indent: "  "}
	}
	return e, nil
}

// blockOf returns where to add entries to a mapping. Entries are indented like the first one.
func (e *edit) blockOf(key ast.MapKeyNode, value ast.Node) block {
	t := key.GetToken()
	if t == nil || t.Position == nil {
		return block{braces: true}
	}
	p := block{line: t.Position.Line, indent: e.indentOf(t.Position.Line) + "  "}
	switch n := value.(type) {
	case *ast.NullNode, *ast.MappingValueNode:
	case *ast.MappingNode:
		p.braces = n.IsFlowStyle
	default:
		p.braces = true
	}
	first := true
	each(value, func(_ string, at ast.MapKeyNode, _ ast.Node) {
		if t := at.GetToken(); first && t != nil && t.Position != nil {
			p.indent, first = e.indentOf(t.Position.Line), false
			p.braces = p.braces || t.Position.Line == p.line
		}
	})
	return p
}

func (e *edit) indentOf(line int) string {
	text := e.lines[line-1]
	return text[:len(text)-len(strings.TrimLeft(text, " "))]
}

// missingRule is a column without a rule, as a rules file names it.
type missingRule struct{ key, reason string }

// add adds undecided rules of columns to a table.
func (e *edit) add(table string, rules []missingRule) error {
	if len(rules) == 0 {
		return nil
	}
	t, ok := e.tables[table]
	switch {
	case !ok && e.top.braces, ok && t.braces, ok && t.inner != nil && t.inner.braces:
		return e.inBraces(table)
	case !ok:
		key, err := yamlKey(table)
		if err != nil {
			return err
		}
		e.after[e.top.line] += e.top.indent + key + ":\n" + columnsBlock(e.top.indent+"  ", rules)
	case t.inner == nil:
		e.after[t.line] += columnsBlock(t.indent, rules)
	default:
		e.after[t.inner.line] += undecided(t.inner.indent, rules)
	}
	return nil
}

func columnsBlock(indent string, rules []missingRule) string {
	return indent + "columns:\n" + undecided(indent+"  ", rules)
}

func undecided(indent string, rules []missingRule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(ruleLine(indent, r.key, Undecided, r.reason))
	}
	return b.String()
}

// drop makes a table's rule drop its rows.
func (e *edit) drop(table string) error {
	t, ok := e.tables[table]
	if !ok || t.braces {
		return e.inBraces(table)
	}
	e.after[t.line] += t.indent + "rows: drop\n"
	return nil
}

func (e *edit) inBraces(table string) error {
	return snap.Invalid(
		fmt.Sprintf("%s: the rules of %s are written in braces, so no line can be added", e.path, table),
		"write each of its columns on a line of its own")
}

func (e *edit) text() []byte {
	var b bytes.Buffer
	for i, line := range e.lines {
		b.WriteString(line)
		if more := e.after[i+1]; more != "" {
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n")
			}
			b.WriteString(more)
		}
	}
	return b.Bytes()
}
