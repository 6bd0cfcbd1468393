package mysql

import (
	"slices"
	"strings"

	"snap/internal/engine"
	"snap/internal/schema"
)

// omissions describes what a dump omits. The zero value omits nothing.
type omissions struct {
	fates   map[string]engine.Fate // of tables and views, by name
	empty   []engine.Table         // the tables whose rows are left out
	omitted schema.Schema          // only Omitted is set
}

// leaveOut removes from the definitions the objects that a choice leaves out. It returns the tables
// whose rows are read, and the omissions.
func leaveOut(s *structure, tables []engine.Table, c engine.Choice) (kept []engine.Table, left omissions, err error) {
	if c.Empty() {
		return tables, left, nil
	}
	if err := c.RequireTablesOnly(); err != nil {
		return nil, left, err
	}
	var all []engine.Relation
	for _, t := range s.Tables {
		all = append(all, engine.Relation{Name: t.Name})
	}
	for _, v := range s.Views {
		all = append(all, engine.Relation{Name: v.Name, View: true})
	}
	fates, err := c.Fates(all, nil)
	if err != nil {
		return nil, left, err
	}
	left.fates = map[string]engine.Fate{}
	var leftOut, empty []string
	for i, r := range all {
		left.fates[r.Name] = fates[i]
		switch fates[i] {
		case engine.LeftOut:
			leftOut = append(leftOut, r.Name)
		case engine.NoRows:
			empty = append(empty, r.Name)
		}
	}
	left.omitted.AddOmission(schema.OmittedTables, leftOut)
	left.omitted.AddOmission(schema.OmittedRows, empty)
	if err := left.removeKeys(s); err != nil {
		return nil, left, err
	}
	if err := left.leaveOutViews(s); err != nil {
		return nil, left, err
	}
	isLeftOut := func(d definition) bool { return left.fates[d.Name] == engine.LeftOut }
	s.Tables, s.Views = slices.DeleteFunc(slices.Clone(s.Tables), isLeftOut), slices.DeleteFunc(s.Views, isLeftOut)
	s.Triggers = slices.DeleteFunc(s.Triggers, func(d definition) bool { return left.fates[d.On] == engine.LeftOut })
	for _, t := range tables {
		switch left.fates[t.Name] {
		case engine.Whole:
			kept = append(kept, t)
		case engine.NoRows:
			t.Rows = 0
			left.empty = append(left.empty, t)
		}
	}
	return kept, left, nil
}

// report adds the omissions to info.Schema, and a warning for each kind to info.Warnings.
func (l omissions) report(info *engine.Info) {
	info.Schema.Omitted = append(info.Schema.Omitted, l.omitted.Omitted...)
	info.Warnings = append(info.Warnings, l.omitted.Omissions()...)
}

// removeKeys removes the foreign keys that reference a table that is left out, and the foreign keys
// of a table with rows that reference a table without rows.
func (l *omissions) removeKeys(s *structure) error {
	byLower := map[string]engine.Fate{} // some servers write referenced names in lower case
	for name, fate := range l.fates {
		byLower[strings.ToLower(name)] = fate
	}
	var removed []string
	tables := slices.Clone(s.Tables)
	for i, t := range tables {
		if l.fates[t.Name] == engine.LeftOut {
			continue
		}
		text, names, err := withoutKeys(t.SQL, func(to string) bool {
			fate := byLower[strings.ToLower(to)]
			return fate == engine.LeftOut || fate == engine.NoRows && l.fates[t.Name] == engine.Whole
		})
		if err != nil {
			return errNotParsed("TABLE", t.Name, err)
		}
		tables[i].SQL = text
		for _, name := range names {
			removed = append(removed, name+" on "+t.Name)
		}
	}
	s.Tables = tables
	l.omitted.AddOmission(schema.OmittedForeignKeys, removed)
	return nil
}

// withoutKeys returns a table's definition, which a server wrote, without the foreign keys to
// tables for which leftOut returns true. It also returns the names of these keys. Keys to tables in
// other databases remain.
func withoutKeys(text string, leftOut func(table string) bool) (string, []string, error) {
	items, err := listItems(text)
	if err != nil {
		return "", nil, err
	}
	var names []string
	for _, item := range slices.Backward(items) {
		name, to, ok := foreignKeyOf(item.tokens)
		if ok && leftOut(to) {
			names = append(names, name)
			text = text[:item.from] + text[item.to:]
		}
	}
	slices.Reverse(names)
	return text, names, nil
}

// listItem is one entry of the list of columns, keys and constraints in a table's definition. Its
// span begins at the comma before the entry.
type listItem struct {
	from, to int
	tokens   []token
}

// listItems returns the entries after the first one, which is always a column.
func listItems(text string) (all []listItem, err error) {
	depth := 0
	var item *listItem
	for i := 0; i < len(text); {
		if executable(text[i:]) {
			if i, err = after(text, i+2, "*/"); err != nil {
				return nil, err
			}
			continue
		}
		t, err := lexOne(text, i, lexMode{})
		if err != nil {
			return nil, err
		}
		i = t.to
		depth += t.nesting()
		if t.isSign(",") && depth == 1 || t.isSign(")") && depth == 0 {
			if item != nil {
				item.to = t.from
				all = append(all, *item)
			}
			if depth == 0 {
				for j := range all { // the white space before the end of the list belongs to the list
					all[j].to = all[j].from + len(strings.TrimRight(text[all[j].from:all[j].to], " \n"))
				}
				return all, nil
			}
			item = &listItem{from: t.from}
		} else if item != nil && t.kind != endToken {
			item.tokens = append(item.tokens, t)
		}
	}
	return nil, errNotClosed
}

// foreignKeyOf returns the name of a foreign key and the table of the same database that it
// references.
func foreignKeyOf(tokens []token) (name, to string, ok bool) {
	word := func(i int, text string) bool {
		return i < len(tokens) && tokens[i].kind == wordToken && strings.EqualFold(tokens[i].value, text)
	}
	if !word(0, "CONSTRAINT") || len(tokens) < 4 || !word(2, "FOREIGN") || !word(3, "KEY") {
		return "", "", false
	}
	for i := range tokens {
		if word(i, "REFERENCES") && i+2 < len(tokens) && tokens[i+1].kind == nameToken && tokens[i+2].value != "." {
			return tokens[1].value, tokens[i+1].value, true
		}
	}
	return "", "", false
}

// leaveOutViews leaves out the views that depend on a table or view that is left out.
func (l *omissions) leaveOutViews(s *structure) error {
	uses := map[string][]string{}
	for _, v := range s.Views {
		tokens, err := lex(v.SQL, lexMode{})
		if err != nil {
			return errNotParsed("VIEW", v.Name, err)
		}
		uses[v.Name] = tablesIn(tokens)
	}
	var lost []string
	for found := true; found; {
		found = false
		for _, v := range s.Views {
			if l.fates[v.Name] != engine.LeftOut && slices.ContainsFunc(uses[v.Name], l.isLeftOut) {
				l.fates[v.Name], found = engine.LeftOut, true
				lost = append(lost, "view "+v.Name)
			}
		}
	}
	slices.Sort(lost)
	l.omitted.AddOmission(schema.OmittedPrograms, lost)
	return nil
}

func (l *omissions) isLeftOut(name string) bool {
	fate, known := l.fates[name]
	if !known {
		for other := range l.fates {
			if strings.EqualFold(other, name) {
				fate = l.fates[other]
			}
		}
	}
	return fate == engine.LeftOut
}

// tablesIn returns the tables and views that a view reads. Servers write a table's name after FROM,
// JOIN, a comma or a parenthesis and with no dot after it. A column's name comes after a table's
// name and a dot.
func tablesIn(tokens []token) (all []string) {
	for i, t := range tokens {
		if t.kind != nameToken || i == 0 || i+1 < len(tokens) && tokens[i+1].value == "." {
			continue
		}
		before := tokens[i-1]
		word := strings.ToLower(before.value)
		if before.kind == wordToken && (word == "from" || strings.HasSuffix(word, "join")) ||
			before.isSign("(") || before.isSign(",") {
			all = append(all, t.value)
		}
	}
	return all
}
