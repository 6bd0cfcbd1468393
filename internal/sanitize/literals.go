package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// The values of the setting schema_literals. Without the setting, a run stops if it finds originals
// in the schema.
const (
	LiteralsKeep   = "keep"
	LiteralsRedact = "redact"
	LiteralsStop   = "stop"
)

// Literals searches the SQL of a schema for original values: in defaults, comments, views,
// policies, enum labels, bounds of partitions and conditions of indexes.
type Literals struct {
	redact  bool
	f       *finder
	found   map[string][]string // for each column, the objects that contain its values
	changed map[string]bool     // objects that were redacted
	stuck   []string            // objects that cannot be redacted
}

// Literals returns a search for the originals of a plan. mode is the value of schema_literals in
// the rules.
func (p Prepared) Literals(mode string) *Literals {
	l := NewLiterals(p.Originals)
	l.redact = mode == LiteralsRedact
	l.f = newFinder(append(l.f.watched, p.Watch...)) // the encoding of the schema can differ from that of the rows
	return l
}

// NewLiterals returns a search for originals, which are UTF-8 text.
func NewLiterals(originals []Watched) *Literals {
	var watched []Watched
	for _, w := range originals {
		for _, form := range append(formsOf(w.Value), strings.ReplaceAll(w.Value, "'", "''")) {
			watched = append(watched, Watched{w.Column, form})
		}
	}
	return &Literals{f: newFinder(watched), found: map[string][]string{}, changed: map[string]bool{}}
}

// Search searches the SQL of an object for originals. If the rules say redact, it overwrites them.
func (l *Literals) Search(kind, name string, sql []byte) {
	object := kind + " " + name
	var spans []span
	l.f.find(sql, len(sql), nil, func(watched, at int) {
		w := l.f.watched[watched]
		if !slices.Contains(l.found[w.Column], object) {
			l.found[w.Column] = append(l.found[w.Column], object)
		}
		if !l.redact {
			return
		}
		if spans == nil {
			spans = spansOf(sql)
		}
		if !changeable(kind, spans, at, at+len(w.Value)) {
			l.stuck = append(l.stuck, object)
			return
		}
		l.changed[object] = true
		overwrite(sql[at : at+len(w.Value)])
	})
}

// overwrite replaces letters and digits and keeps the length.
func overwrite(b []byte) {
	for i, c := range b {
		switch {
		case isDigit(c):
			b[i] = '0'
		case c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z':
			b[i] = 'x'
		}
	}
}

// Found returns the number of objects in which originals were found.
func (l *Literals) Found() int { return len(l.objects()) }

func (l *Literals) objects() []string {
	all := map[string]bool{}
	for _, objects := range l.found {
		for _, o := range objects {
			all[o] = true
		}
	}
	return sortedKeys(all)
}

// Result returns an error if originals are in the schema and the rules do not say how to treat
// them, or if the rules say redact and that is impossible.
func (l *Literals) Result(mode string) error {
	switch {
	case len(l.found) == 0, mode == LiteralsKeep:
		return nil
	case mode == LiteralsRedact && len(l.stuck) == 0:
		return nil
	case mode == LiteralsRedact:
		slices.Sort(l.stuck)
		return snap.Invalid("original values in the schema cannot be redacted, because rows depend on them: "+
			upToTen(slices.Compact(l.stuck)), "change them in the database, or use schema_literals: keep")
	}
	return l.stop("add schema_literals: redact, or schema_literals: keep, to the rules; if the values of a column " +
		"are not secret, add shared: true to its rule")
}

// ResultOfSQL returns an error if originals that a SQL file masked are in the schema.
func (l *Literals) ResultOfSQL() error {
	if len(l.found) == 0 {
		return nil
	}
	return l.stop(shareBySQL)
}

func (l *Literals) stop(otherwise string) error {
	var where []string
	for _, column := range sortedKeys(l.found) {
		where = append(where, fmt.Sprintf("those of %s in %s", column, upToTen(l.found[column])))
	}
	return snap.Invalid("original values are in the schema: "+upToTen(where),
		"change them in the database, or "+otherwise)
}

// Explains reports whether the schema can account for everything that s found: for each column
// whose original values s found, the schema contains some too.
func (l *Literals) Explains(s *Scanner) bool {
	for _, column := range s.columns() {
		if l.found[column] == nil {
			return false
		}
	}
	return true
}

// Note returns a sentence for the user about originals in the schema that were kept or
// redacted, or "".
func (l *Literals) Note() string {
	if len(l.found) == 0 {
		return ""
	}
	did := "were kept"
	if l.redact {
		did = "were redacted"
	}
	return fmt.Sprintf("as the setting schema_literals says, original values %s in these objects of the schema: %s",
		did, upToTen(l.objects()))
}

// Description returns a schema description in which the originals are redacted as in the SQL.
func (l *Literals) Description(s *schema.Schema) (*schema.Schema, error) {
	if s == nil || !l.redact || len(l.changed) == 0 {
		return s, nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("redact the description: %w", err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("redact the description: %w", err)
	}
	if text, err = json.Marshal(l.redacted(tree)); err != nil {
		return nil, fmt.Errorf("redact the description: %w", err)
	}
	out := &schema.Schema{}
	return out, json.Unmarshal(text, out)
}

func (l *Literals) redacted(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for k := range v {
			v[k] = l.redacted(v[k])
		}
	case []any:
		for i := range v {
			v[i] = l.redacted(v[i])
		}
	case string:
		b := []byte(v)
		l.f.find(b, len(b), nil, func(watched, at int) { overwrite(b[at : at+len(l.f.watched[watched].Value)]) })
		return string(b)
	}
	return tree
}

// span is a part of SQL: a string, a quoted name or a comment.
type span struct {
	start, end int
	kind       byte   // ' for a string, " for a name, - for a comment
	after      string // the word that the span follows, in upper case
}

// spansOf returns the strings, quoted names and comments in SQL. It also looks inside the bodies of
// functions.
func spansOf(sql []byte) []span {
	var all []span
	word, after := []byte{}, ""
	for i := 0; i < len(sql); {
		c := sql[i]
		if isWord(c) {
			word = append(word, c)
			i++
			continue
		}
		if len(word) > 0 {
			after, word = strings.ToUpper(string(word)), word[:0]
		}
		end, kind := spanAt(sql, i)
		if kind != 0 {
			all = append(all, span{i, end, kind, after})
			if kind != '-' {
				after = ""
			}
		} else if c == ',' || c == ';' {
			after = ""
		}
		i = end
	}
	return all
}

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// spanAt returns the end and the kind of the span at position i. The kind is 0 for a byte that
// begins no span.
func spanAt(sql []byte, i int) (end int, kind byte) {
	rest := string(sql[i:min(len(sql), i+2)])
	until := func(from int, mark string) int {
		if at := bytes.Index(sql[from:], []byte(mark)); at >= 0 {
			return from + at + len(mark)
		}
		return len(sql)
	}
	switch {
	case rest == "--":
		return until(i, "\n"), '-'
	case rest == "/*":
		return until(i+2, "*/"), '-'
	case sql[i] == '\'' || sql[i] == '"' || sql[i] == '`':
		kind = '"'
		if sql[i] == '\'' {
			kind = '\''
		}
		for end = i + 1; end < len(sql); end++ {
			if sql[end] == '\\' && kind == '\'' && end+1 < len(sql) && sql[end+1] != '\'' {
				end++
				continue
			}
			if sql[end] != sql[i] {
				continue
			}
			if end+1 < len(sql) && sql[end+1] == sql[i] { // a doubled quote is part of the string
				end++
				continue
			}
			return end + 1, kind
		}
		return len(sql), kind
	}
	return i + 1, 0
}

// freeKinds are the kinds of objects whose strings can change without affecting the rows.
var freeKinds = []string{"view", "materialized view", "rule", "policy", "function", "procedure", "trigger", "event",
	"comment", "default", "aggregate", "routine", "package", "package body"}

// changeable reports whether the bytes from start to end are in a comment, or in a string on which
// no row depends.
func changeable(kind string, spans []span, start, end int) bool {
	for _, s := range spans {
		if start < s.start || end > s.end {
			continue
		}
		ofDefault := slices.Contains([]string{"table", "domain", "type"}, kind) &&
			(s.after == "DEFAULT" || s.after == "COMMENT")
		return s.kind == '-' || s.kind == '\'' && (slices.Contains(freeKinds, kind) || ofDefault)
	}
	return false
}
