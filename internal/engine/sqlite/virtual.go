package sqlite

import (
	"slices"
	"strings"

	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// The description of a database can contain the virtual tables of these modules, because their
// content consists of rows.
const (
	fts5  = "fts5"
	rtree = "rtree"
)

// shadows returns the suffixes that a module appends to a virtual table's name to name its shadow
// tables.
func shadows(module string) []string {
	switch strings.ToLower(module) {
	case fts5:
		return []string{"_data", "_idx", "_content", "_docsize", "_config"}
	case "fts3", "fts4":
		return []string{"_content", "_segments", "_segdir", "_docsize", "_stat"}
	case rtree, "rtree_i32", "geopoly":
		return []string{"_node", "_rowid", "_parent"}
	}
	return nil
}

// virtualDefinition parses a CREATE VIRTUAL TABLE statement. If a description cannot contain the
// table, virtualDefinition returns an error, and the name of the module if that is known.
func virtualDefinition(text string) (t schema.Table, module string, err error) {
	list, err := tokens(text)
	if err != nil {
		return t, "", err
	}
	r := &reader{list: list}
	if !r.acceptAll("CREATE", "VIRTUAL", "TABLE") {
		return t, "", errStatement
	}
	name, ok := r.name()
	if !ok || !r.accept("USING") {
		return t, "", errStatement
	}
	t.Name.Name = charset.Readable(name)
	if module, ok = r.name(); !ok {
		return t, "", errStatement
	}
	switch strings.ToLower(module) {
	case fts5:
		t.Virtual = fts5
		err = searchArguments(r, &t)
	case rtree:
		t.Virtual = rtree
		err = treeArguments(r, &t)
	default:
		err = errStatement
	}
	return t, module, err
}

// arguments splits a module's parenthesized arguments at the commas.
func arguments(r *reader) ([]reader, error) {
	if !r.accept("(") {
		return nil, errStatement
	}
	var all []reader
	start := r.at
	for ; !r.done(); r.at++ {
		switch end := r.peek(")"); {
		case r.peek("("), end && r.at+1 < len(r.list):
			return nil, errStatement
		case end || r.peek(","):
			all = append(all, reader{list: r.list[start:r.at]})
			start = r.at + 1
		}
		if r.peek(")") {
			return all, nil
		}
	}
	return nil, errStatement
}

// searchArguments parses the columns and options of a full-text table. It refuses a table that does
// not store its strings in the file, because such a table cannot be rebuilt from rows.
func searchArguments(r *reader, t *schema.Table) error {
	list, err := arguments(r)
	if err != nil {
		return err
	}
	t.Options = map[string]string{}
	for _, a := range list {
		name, ok := a.name()
		switch {
		case !ok:
			return errStatement
		case a.accept("="):
			value, ok := a.value()
			if !ok || !a.done() || !searchOption(strings.ToLower(name), value) {
				return errStatement
			}
			t.Options[strings.ToLower(name)] = value
		default:
			c := schema.Column{Name: charset.Readable(name)}
			if a.accept("UNINDEXED") {
				c.Type.Name = unindexed
			}
			if !a.done() {
				return errStatement
			}
			t.Columns = append(t.Columns, c)
		}
	}
	if len(t.Columns) == 0 || t.Options["content_rowid"] != "" && t.Options["content"] == "" {
		return errStatement
	}
	return nil
}

// contentOf returns the table or view whose strings a full-text table indexes, or "" if the
// definition names none.
func contentOf(definition string) string {
	list, err := tokens(definition)
	if err != nil {
		return ""
	}
	for r := (&reader{list: list}); !r.done(); r.at++ {
		if r.acceptAll("content", "=") {
			name, _ := r.name()
			return name
		}
	}
	return ""
}

// fillable reports whether a load can fill a table. A full-text table that indexes the strings of
// another table needs the rows of that table, with every column.
func fillable(t schema.Table, all []schema.Table) bool {
	if t.Virtual != fts5 || t.Options["content"] == "" {
		return true
	}
	return slices.ContainsFunc(all, func(content schema.Table) bool {
		d := definition{Table: content}
		lacks := func(c schema.Column) bool { at := d.indexOf(c.Name); return at < 0 || d.Columns[at].Computed }
		return strings.EqualFold(content.Name.Name, t.Options["content"]) && content.Virtual == "" &&
			!slices.ContainsFunc(t.Columns, lacks)
	})
}

// value consumes a name, a string or a number.
func (r *reader) value() (string, bool) {
	if !r.done() && r.list[r.at].kind == numberToken {
		r.at++
		return r.list[r.at-1].text, true
	}
	name, ok := r.name()
	return charset.Readable(name), ok
}

// searchOption reports whether an option of a full-text table is allowed.
func searchOption(name, value string) bool {
	switch name {
	case "tokenize":
		return isTokenizer(value)
	case "prefix":
		return value != "" && strings.Trim(value, "0123456789 ") == ""
	case "content", "content_rowid":
		return value != ""
	case "columnsize", "tokendata":
		return value == "0" || value == "1"
	case "detail":
		return value == "full" || value == "column" || value == "none"
	}
	return false
}

// isTokenizer reports whether text names built-in tokenizers of SQLite, with their settings.
func isTokenizer(text string) bool {
	list, err := tokens(text)
	if err != nil || len(list) == 0 || len(text) > 1000 {
		return false
	}
	tokenizers := []string{"unicode61", "ascii", "porter", "trigram"}
	settings := []string{"remove_diacritics", "categories", "tokenchars", "separators", "case_sensitive"}
	for i, t := range list {
		word, _ := t.name()
		isSetting := slices.Contains(settings, word) || t.kind == stringToken || t.kind == numberToken
		if !slices.Contains(tokenizers, word) && (i == 0 || !isSetting) {
			return false
		}
	}
	return true
}

// treeArguments parses the columns of an r-tree. Columns after "+" are auxiliary.
func treeArguments(r *reader, t *schema.Table) error {
	list, err := arguments(r)
	if err != nil {
		return err
	}
	for _, a := range list {
		c := schema.Column{Type: schema.Type{Name: "REAL"}}
		if a.accept("+") {
			c.Type.Name = auxiliary
		}
		name, ok := a.name()
		if !ok {
			return errStatement
		}
		c.Name = charset.Readable(name)
		t.Columns = append(t.Columns, c)
	}
	if !isTree(*t) {
		return errStatement
	}
	return nil
}

// The types of columns that a module treats specially.
const (
	unindexed = "UNINDEXED" // a column of a full-text table that is only stored
	auxiliary = "AUXILIARY" // a column of an r-tree that is not a coordinate
)

// isTree reports whether the columns are valid for an r-tree: the rowid, two coordinates for each
// of one to five dimensions, and then auxiliary columns.
func isTree(t schema.Table) bool {
	n := coordinates(t)
	return n >= 2 && n <= 10 && n%2 == 0 && len(t.Columns) <= 100 && t.Columns[0].Type.Name != auxiliary
}

// coordinates returns the number of coordinate columns of an r-tree, or -1 if auxiliary columns are
// between them.
func coordinates(t schema.Table) int {
	n := 0
	for i, c := range t.Columns[1:] {
		switch {
		case c.Type.Name == auxiliary:
		case n < i:
			return -1
		default:
			n++
		}
	}
	return n
}
