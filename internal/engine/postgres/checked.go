package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// If programs of a snapshot that this user did not build are loaded, pg_restore runs the dump's own
// SQL. Before that, review checks that the statements of each entry are of the entry's kind and
// only create or change the object that the entry names.

// forms maps a kind of entry to patterns for its first statement and for the statements that may
// follow. NAME is the entry's name, ANY is any name, and a word in brackets is optional.
var forms = map[string]struct{ first, then []string }{
	"SCHEMA": {first: []string{"create schema NAME"}},
	"TYPE":   {first: []string{"create type NAME as"}}, "SHELL TYPE": {first: []string{"create type NAME"}},
	"DOMAIN":    {first: []string{"create domain NAME as"}},
	"FUNCTION":  {first: []string{"create [or] [replace] function NAME ("}},
	"PROCEDURE": {first: []string{"create [or] [replace] procedure NAME ("}},
	"AGGREGATE": {first: []string{"create aggregate NAME ("}}, "OPERATOR": {first: []string{"create operator"}},
	"CAST":       {first: []string{"create cast ("}},
	"COLLATION":  {first: []string{"create collation NAME ("}},
	"CONVERSION": {first: []string{"create [default] conversion NAME for"}},
	"TEXT SEARCH CONFIGURATION": {first: []string{"create text search configuration NAME ("},
		then: []string{"alter text search configuration NAME add mapping"}},
	"TEXT SEARCH DICTIONARY": {first: []string{"create text search dictionary NAME ("}},
	"STATISTICS": {first: []string{"create statistics NAME"},
		then: []string{"alter statistics NAME set statistics"}},
	"SEQUENCE": {first: []string{"create [unlogged] sequence NAME",
		"alter table [only] ANY alter column ANY add generated"}, then: []string{"alter sequence NAME set"}},
	"SEQUENCE OWNED BY": {first: []string{"alter sequence NAME owned by"}},
	"SEQUENCE SET":      {first: []string{"select pg_catalog . setval ("}},
	"TABLE": {first: []string{"create [unlogged] table NAME (", "create [unlogged] table NAME of",
		"create [unlogged] table NAME partition of"}, then: []string{"alter table [only] NAME"}},
	"TABLE ATTACH": {first: []string{"alter table only ANY attach partition NAME"}},
	"INDEX": {first: []string{"create [unique] index NAME on"},
		then: []string{"alter table [only] ANY cluster on NAME",
			"alter table [only] ANY replica identity using index NAME",
			"alter index NAME"}},
	"INDEX ATTACH": {first: []string{"alter index ANY attach partition NAME"}},
	"CONSTRAINT": {first: []string{"alter table [only] ANY add constraint"},
		then: []string{"alter table [only] ANY cluster on", "alter table [only] ANY replica identity using index"}},
	"FK CONSTRAINT": {first: []string{"alter table [only] ANY add constraint"}},
	"CHECK CONSTRAINT": {first: []string{"alter table [only] ANY add constraint",
		"alter domain ANY add constraint"}},
	"DEFAULT": {first: []string{"alter table [only] ANY alter column ANY set default"}},
	"VIEW": {first: []string{"create [or] [replace] [recursive] view NAME"},
		then: []string{"alter table [only] NAME alter column", "alter view NAME alter column"}},
	"MATERIALIZED VIEW": {first: []string{"create materialized view NAME"},
		then: []string{"alter table [only] NAME", "alter materialized view NAME"}},
	"MATERIALIZED VIEW DATA": {first: []string{"refresh materialized view NAME"}},
	"RULE": {first: []string{"create [or] [replace] rule ANY as on"},
		then: []string{"alter table [only] ANY enable", "alter table [only] ANY disable"}},
	"TRIGGER": {first: []string{"create [constraint] trigger ANY"},
		then: []string{"alter table [only] ANY enable", "alter table [only] ANY disable"}},
	"POLICY": {first: []string{"create policy ANY on"}},
	"ROW SECURITY": {first: []string{"alter table [only] NAME enable row level security",
		"alter table [only] NAME force row level security"},
		then: []string{"alter table [only] NAME force row level security"}},
	"PUBLICATION":                  {first: []string{"create publication NAME"}},
	"PUBLICATION TABLE":            {first: []string{"alter publication ANY add table"}},
	"PUBLICATION TABLES IN SCHEMA": {first: []string{"alter publication ANY add tables in schema"}},
	"COMMENT":                      {first: []string{"comment on"}},
	"BLOB":                         {first: []string{"select pg_catalog . lo_create ("}},
	"ENCODING":                     {first: []string{"set client_encoding ="}},
	"STDSTRINGS":                   {first: []string{"set standard_conforming_strings ="}},
	"SEARCHPATH":                   {first: []string{"select pg_catalog . set_config ("}},
	"TABLE DATA":                   {}, "BLOBS": {}, "BLOB METADATA": {},
}

// skippedKinds are the kinds of entries that pg_restore does not restore. The load itself creates
// the extensions.
var skippedKinds = []string{"ACL", "DEFAULT ACL", "DATABASE", "DATABASE PROPERTIES", "SECURITY LABEL",
	"STATISTICS DATA", "SUBSCRIPTION", "SUBSCRIPTION TABLE", "EXTENSION"}

// superuserKinds are the kinds of objects that only a superuser may create, or that reach outside
// the database. A load omits them and notifies the user.
var superuserKinds = []string{
	"PROCEDURAL LANGUAGE", "EVENT TRIGGER", "FOREIGN DATA WRAPPER", "SERVER", "USER MAPPING", "FOREIGN TABLE",
	"ACCESS METHOD", "OPERATOR CLASS", "OPERATOR FAMILY", "TRANSFORM", "TEXT SEARCH PARSER", "TEXT SEARCH TEMPLATE",
}

// clientEncodings are encodings whose multi-byte characters can contain ASCII bytes.
var clientEncodings = []string{"SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB"}

// review checks the entries of a dump before pg_restore gets them.
type review struct {
	stored    *charset.Charset
	announced *schema.Schema // the schema that a foreign snapshot announces; nil for others
	leftOut   []string       // labels of the entries that are left out
	classes   []schema.Name  // the operator classes that are left out
}

func notRestored(e dumpEntry, why string) error {
	return &snap.Error{
		Code:   snap.CodeInvalid,
		Detail: fmt.Sprintf("the snapshot's %s %q cannot be loaded: %s", strings.ToLower(e.desc), e.tag, why),
		Hint:   "load the snapshot without programs, or ask the snapshot's author to rebuild it; nothing was replaced",
	}
}

// entries checks all entries. It returns the numbers of the entries that pg_restore restores, which
// do not include the rows of tables, and the extensions to create first. Entries come after those
// that they need.
func (r *review) entries(all []dumpEntry) (ids []int, wanted []schema.Extension, err error) {
	seen := map[int]bool{}
	omitted := map[string]string{}             // the kinds of the entries that are left out, by number
	created := map[string]bool{"public": true} // schemas that exist before pg_restore runs
	for _, e := range all {
		if e.desc != "EXTENSION" {
			continue
		}
		x, err := r.extension(e)
		if err != nil {
			return nil, nil, err
		}
		wanted, created[x.Schema] = append(wanted, x), true
	}
	for _, e := range all {
		if seen[e.id] || e.broken {
			return nil, nil, notRestored(e, "its name contains a line break, or another entry has the same number")
		}
		seen[e.id] = true
		switch {
		case slices.Contains(skippedKinds, e.desc), e.desc == "SCHEMA" && created[e.tag],
			e.desc == "COMMENT" && leftComment(e.tag):
			continue
		case slices.Contains(superuserKinds, e.desc):
			r.leftOut = append(r.leftOut, strings.ToLower(e.desc)+" "+e.tag)
			if e.desc == "OPERATOR CLASS" {
				r.classes = append(r.classes, schema.Name{Schema: e.namespace, Name: e.tag})
			}
			omitted[strconv.Itoa(e.id)] = e.desc
			continue
		}
		if err := r.checkEntry(e); err != nil {
			return nil, nil, err
		}
		switch {
		case e.dependent(omitted):
			omitted[strconv.Itoa(e.id)] = e.desc
			if e.desc != "COMMENT" {
				r.leftOut = append(r.leftOut, strings.ToLower(e.desc)+" "+e.tag)
			}
		case e.desc != "TABLE DATA":
			ids = append(ids, e.id)
		}
	}
	return ids, wanted, nil
}

// dependent reports whether an entry is left out because it needs an entry that is left out. Tables
// and their keys and indexes are never left out. If one of them needs such an entry, the load
// fails.
func (e dumpEntry) dependent(omitted map[string]string) bool {
	return slices.ContainsFunc(e.needs, func(id string) bool {
		switch e.desc {
		case "TABLE", "TABLE DATA", "CONSTRAINT":
			return false
		case "INDEX":
			return omitted[id] == "MATERIALIZED VIEW"
		}
		return omitted[id] != ""
	})
}

// leftComment reports whether the object of a comment is left out, or is the schema public.
func leftComment(tag string) bool {
	return tag == "SCHEMA public" || slices.ContainsFunc(append([]string{"EXTENSION"}, superuserKinds...),
		func(kind string) bool { return strings.HasPrefix(tag, kind+" ") })
}

// extension parses CREATE EXTENSION IF NOT EXISTS x WITH SCHEMA y.
func (r *review) extension(e dumpEntry) (x schema.Extension, err error) {
	all, err := statements(e.definition)
	if err != nil || len(all) != 1 {
		return x, notRestored(e, "it must be a single statement")
	}
	rest, ok := r.match("create extension if not exists NAME with schema", all[0], e)
	if !ok || len(rest) != 1 || rest[0].kind > name {
		return x, notRestored(e, "its statement is not of the expected kind")
	}
	return schema.Extension{Name: e.tag, Schema: r.stored.Label(rest[0].text)}, nil
}

func (r *review) checkEntry(e dumpEntry) error {
	form, ok := forms[e.desc]
	if !ok {
		return notRestored(e, "objects of this kind are not supported")
	}
	if form.first == nil {
		return r.checkRows(e)
	}
	all, err := statements(e.definition)
	if err != nil {
		return notRestored(e, err.Error())
	}
	if len(all) == 0 {
		return notRestored(e, "it has no statement")
	}
	for i, statement := range all {
		patterns := form.first
		if i > 0 {
			patterns = form.then
		}
		if !slices.ContainsFunc(patterns, func(p string) bool { _, ok := r.match(p, statement, e); return ok }) {
			return notRestored(e, "one of its statements does something else")
		}
		if why := reasonToRefuse(e, statement); why != "" {
			return notRestored(e, why)
		}
		if err := r.checkClasses(e, statement); err != nil {
			return err
		}
	}
	return r.requireAnnounced(e)
}

// checkClasses refuses an index, constraint or partitioned table that needs an operator class that
// is not restored.
func (r *review) checkClasses(e dumpEntry, s []token) error {
	if !slices.Contains([]string{"INDEX", "CONSTRAINT", "TABLE"}, e.desc) {
		return nil
	}
	for i := range max(0, len(s)-2) {
		if s[i].kind > name || !s[i+1].is(symbol, ".") || s[i+2].kind > name {
			continue
		}
		used := schema.Name{Schema: r.stored.Label(s[i].text), Name: r.stored.Label(s[i+2].text)}
		if slices.Contains(r.classes, used) {
			return &snap.Error{
				Code: snap.CodeInvalid,
				Detail: fmt.Sprintf("the %s %q of the snapshot needs the operator class %q, which only a superuser "+
					"may create", strings.ToLower(e.desc), e.tag, used.Name),
				Hint: "load the snapshot as data (if it is your organization's, set trust: {own_organization: false} " +
					"in the configuration), or build it without operator classes; nothing was replaced",
			}
		}
	}
	return nil
}

// reasonToRefuse checks all of a statement, for kinds whose statement could do more than create the
// object. It returns the reason for refusing the entry, or "".
func reasonToRefuse(e dumpEntry, s []token) string {
	has := func(i int, texts ...string) bool {
		return i+1 < len(s) && s[i].kind == word && slices.Contains(texts, s[i].text)
	}
	depth := 0
	for i, t := range s {
		switch {
		case t.is(symbol, "("):
			depth++
		case t.is(symbol, ")"):
			depth--
		case (e.desc == "FUNCTION" || e.desc == "PROCEDURE") && has(i, "language") &&
			slices.Contains([]string{"c", "internal"}, lower(s[i+1].text)):
			return "only superusers may use its language"
		case e.desc == "TABLE" && depth == 0 && t.is(word, "as"):
			return "it runs a query"
		}
	}
	exact := map[string][]string{
		"STDSTRINGS": {"set", "standard_conforming_strings", "=", "on"},
		"SEARCHPATH": {"select", "pg_catalog", ".", "set_config", "(", "search_path", ",", "", ",", "false", ")"},
	}
	if want := exact[e.desc]; want != nil && !slices.EqualFunc(s, want,
		func(t token, w string) bool { return t.text == w }) {
		return "it changes another setting"
	}
	kinds := map[string][]tokenKind{"ENCODING": {word, word, symbol, str},
		"SEQUENCE SET": {word, word, symbol, word, symbol, str, symbol, number, symbol, word, symbol},
		"BLOB":         {word, word, symbol, word, symbol, str, symbol}}
	if want := kinds[e.desc]; want != nil {
		s = slices.DeleteFunc(slices.Clone(s), func(t token) bool { return t.is(symbol, "-") }) // of a negative value
		if !slices.EqualFunc(s, want, func(t token, k tokenKind) bool { return t.kind == k }) {
			return "its values are not constants"
		}
		if e.desc == "ENCODING" && slices.Contains(clientEncodings, strings.ToUpper(s[3].text)) {
			return "no database can have its encoding"
		}
	}
	return ""
}

// checkRows checks that an entry with rows has no statement except COPY.
func (r *review) checkRows(e dumpEntry) error {
	if strings.Trim(e.definition, "0123456789\n") != "" {
		if all, err := statements(e.definition); err != nil || len(all) > 0 {
			return notRestored(e, "it must not have a statement")
		}
	}
	if e.desc != "TABLE DATA" {
		return nil
	}
	all, err := statements(e.copy)
	if err != nil || len(all) != 1 {
		return notRestored(e, "its rows must be loaded by a single statement")
	}
	rest, ok := r.match("copy ANY", all[0], e)
	if ok && len(rest) > 2 && rest[0].is(symbol, "(") {
		end := slices.IndexFunc(rest, func(t token) bool { return t.is(symbol, ")") })
		ok = end > 0 && !slices.ContainsFunc(rest[1:end],
			func(t token) bool { return t.kind > name && !t.is(symbol, ",") })
		rest = rest[end+1:]
	}
	if !ok || len(rest) != 2 || !rest[0].is(word, "from") || !rest[1].is(word, "stdin") {
		return notRestored(e, "its statement does more than load rows")
	}
	return nil
}

// match matches a pattern at the start of a statement, and returns the tokens after the matched
// part.
func (r *review) match(pattern string, s []token, e dumpEntry) (rest []token, ok bool) {
	for want := range strings.FieldsSeq(pattern) {
		optional := strings.HasPrefix(want, "[")
		want = strings.Trim(want, "[]")
		switch {
		case want == "NAME" || want == "ANY":
			namespace, last, after, ok := qualified(s)
			if !ok || want == "NAME" && !r.named(e, namespace, last) {
				return nil, false
			}
			s = after
		case len(s) > 0 && s[0].text == want && (s[0].kind == word || s[0].kind == symbol):
			s = s[1:]
		case !optional:
			return nil, false
		}
	}
	return s, true
}

// qualified parses a name with at most one qualifier.
func qualified(s []token) (namespace, last string, rest []token, ok bool) {
	for range 2 {
		if len(s) == 0 || s[0].kind > name {
			return "", "", nil, false
		}
		namespace, last, s = last, s[0].text, s[1:]
		if len(s) == 0 || !s[0].is(symbol, ".") {
			return namespace, last, s, true
		}
		s = s[1:]
	}
	return "", "", nil, false
}

// named reports whether a name is that of the entry.
func (r *review) named(e dumpEntry, namespace, last string) bool {
	want := e.tag
	if e.desc == "FUNCTION" || e.desc == "PROCEDURE" || e.desc == "AGGREGATE" {
		return strings.HasPrefix(want, r.stored.Label(last)+"(") &&
			(namespace == "" || r.stored.Label(namespace) == e.namespace)
	}
	return r.stored.Label(last) == want && (namespace == "" || e.namespace == "" ||
		r.stored.Label(namespace) == e.namespace)
}

// announcedKinds are the kinds of entries that descriptions list as programs, under the same name
// in lower case.
var announcedKinds = []string{"FUNCTION", "PROCEDURE", "AGGREGATE", "TRIGGER", "RULE", "POLICY", "VIEW",
	"MATERIALIZED VIEW", "CAST", "OPERATOR", "COLLATION", "CONVERSION", "STATISTICS", "TEXT SEARCH CONFIGURATION",
	"TEXT SEARCH DICTIONARY", "PUBLICATION"}

// requireAnnounced checks that a foreign snapshot lists the entry among its programs or tables. The
// person who chose to load the programs has seen this list.
func (r *review) requireAnnounced(e dumpEntry) error {
	var listed bool
	switch {
	case r.announced == nil:
		return nil
	case e.desc == "TABLE":
		listed = slices.ContainsFunc(r.announced.Tables,
			func(t schema.Table) bool { return t.Schema == e.namespace && t.Name.Name == e.tag })
	case slices.Contains(announcedKinds, e.desc):
		listed = slices.ContainsFunc(r.announced.Programs, func(p schema.Program) bool {
			tag := p.Name.Name
			if p.On != "" {
				tag = p.On + " " + tag
			}
			return p.Kind == strings.ToLower(e.desc) && tag == e.tag && (p.Schema == "" || p.Schema == e.namespace)
		})
	default:
		return nil
	}
	if !listed {
		return notRestored(e, "the snapshot's list of objects does not include it")
	}
	return nil
}

// reviewOf returns the review for a dump, or nil if its entries are not checked.
func reviewOf(d engine.Dump) *review {
	switch d.Trust {
	case engine.Ours:
		return &review{}
	case engine.Foreign:
		return &review{announced: d.Info.Schema}
	}
	return nil
}
