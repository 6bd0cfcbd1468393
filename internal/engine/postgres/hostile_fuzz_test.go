package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// nasty are strings that a hostile description may have anywhere.
var nasty = []string{
	"a", "b", "public",
	`a"b`, `a"; DROP DATABASE prod; --`, "a'; DROP DATABASE prod; --", `\'; DROP ROLE x; --`, "a\x00b",
	strings.Repeat("x", 64), strings.Repeat("y", 600), "pg_catalog", "information_schema",
	`\`, "$$", "$a$", "/*", "*/", "--", "\n\\! id\n", "é", "a\u202eb", "a\u200b", "\xff", "btree",
	"btree (a); DROP TABLE x; --", "int4_ops", "C", "en_US); DROP TABLE x; --", "1", "-5", "1; DROP TABLE x",
	"9999999999999999999999",
	"integer", "text", "numeric", "regclass", "integer); DROP TABLE x; --", "text[]", "mood", "CASCADE",
	"CASCADE; DROP TABLE x", "SET NULL", "range", "list", "hash", "hash; DROP TABLE x", "fillfactor", "70",
	"autovacuum_enabled", "on", "user_catalog_table",
	"pg_read_file", "lower", "now", "set_config", "COPY", "=", "AND", "||", "OPERATOR(x.=)", "IS NULL", "string",
	"number", "bytes", "hstore", "plpython3u", "full", "smallint", "",
}

// drawing draws the parts of a description. All but a few of its strings are valid.
type drawing struct {
	*rapid.T
	hostile int // how many more strings may be invalid
}

func (d *drawing) one(usual ...string) string {
	if d.hostile > 0 && rapid.IntRange(0, 15).Draw(d.T, "here") == 0 {
		d.hostile--
		return rapid.SampledFrom(nasty).Draw(d.T, "nasty")
	}
	return rapid.SampledFrom(usual).Draw(d.T, "text")
}

func (d *drawing) maybe(do func()) {
	if rapid.Bool().Draw(d.T, "maybe") {
		do()
	}
}

func (d *drawing) named(usual ...string) schema.Name {
	return schema.Name{Schema: d.one("public"), Name: d.one(usual...)}
}

func (d *drawing) typ() schema.Type {
	switch t := (schema.Type{Name: d.one("integer", "text", "numeric")}); rapid.IntRange(0, 9).Draw(d.T, "type") {
	case 0:
		return schema.Type{Schema: d.one("public"), Name: d.one("mood"), Own: true}
	case 1:
		return schema.Type{Schema: d.one("public"), Name: d.one("hstore"), Extension: d.one("hstore")}
	case 2:
		t.Args = []string{d.one("10"), d.one("2")}
		return t
	default:
		return t
	}
}

func (d *drawing) expr(depth int, columns ...string) schema.Expr {
	arg := func() schema.Expr { return d.expr(depth-1, columns...) }
	switch form := rapid.IntRange(0, 5).Draw(d.T, "form"); {
	case depth > 0 && form == 0:
		return schema.Expr{Op: d.one("=", "AND", "||", "<"), Args: []schema.Expr{arg(), arg()}}
	case depth > 0 && form == 1:
		return schema.Expr{Call: d.one("lower", "upper"), Args: []schema.Expr{arg()}}
	case depth > 0 && form == 2:
		t := d.typ()
		return schema.Expr{Cast: &t, Args: []schema.Expr{arg()}}
	case form == 3:
		n := d.named("q")
		return schema.Expr{NextValue: &n}
	case form == 4 && len(columns) > 0:
		return schema.Expr{Column: d.one(columns...)}
	}
	if kind := d.one("string", "number"); kind == "number" {
		return schema.Expr{Literal: &schema.Literal{Kind: kind, Value: d.one("1", "2")}}
	}
	return schema.Expr{Literal: &schema.Literal{Kind: "string", Value: d.text()}}
}

func (d *drawing) text() string { return rapid.SampledFrom(nasty).Draw(d.T, "string") }

func (d *drawing) keys() []schema.KeyColumn {
	k := schema.KeyColumn{Name: d.one("a", "b")}
	d.maybe(func() { k.OpClass = d.one("int4_ops") })
	d.maybe(func() { k.Collation = &schema.Name{Schema: d.one("pg_catalog"), Name: d.one("C")} })
	return []schema.KeyColumn{k}
}

func (d *drawing) table(name string) schema.Table {
	t := schema.Table{Name: d.named(name), Comment: d.text(),
		Options: map[string]string{d.one("fillfactor"): d.one("70")}}
	for _, name := range []string{d.one("a"), d.one("b")} {
		c := schema.Column{Name: name, Type: d.typ(), Comment: d.one("c")}
		d.maybe(func() { e := d.expr(2); c.Default = &e })
		d.maybe(func() { n := d.named("q"); c.Identity = &schema.Identity{Sequence: &n} })
		t.Columns = append(t.Columns, c)
	}
	d.maybe(func() { t.Keys = append(t.Keys, schema.Key{Name: d.one("k"), Columns: d.keys(), Comment: d.one("c")}) })
	d.maybe(func() { t.Checks = append(t.Checks, schema.Check{Name: d.one("k2"), Expr: d.expr(3, "a", "b")}) })
	d.maybe(func() {
		t.Indexes = append(t.Indexes, schema.Index{Name: d.one("i"), Method: d.one("btree"), Columns: d.keys()})
	})
	d.maybe(func() {
		t.ForeignKeys = append(t.ForeignKeys, schema.ForeignKey{Name: d.one("f"), Columns: []string{d.one("a")},
			To: d.named("t", "u"), ToColumns: []string{d.one("a")}, OnDelete: d.one("CASCADE"),
			OnUpdate: d.one("SET NULL")})
	})
	d.maybe(func() { t.Partitions = &schema.Partitions{Method: d.one("range"), Columns: d.keys()} })
	d.maybe(func() {
		ends := func() []schema.Expr { return []schema.Expr{d.expr(1, "minvalue")} }
		t.PartitionOf = &schema.PartitionOf{Table: d.named("t"), Bound: schema.Bound{From: ends(), To: ends()}}
	})
	return t
}

func hostileSchema(r *rapid.T) *schema.Schema {
	d := &drawing{r, rapid.IntRange(0, 3).Draw(r, "hostile")}
	s := &schema.Schema{Namespaces: []schema.Namespace{{Name: "public", Comment: d.one("c")}}}
	d.maybe(func() { s.Namespaces = append(s.Namespaces, schema.Namespace{Name: d.one("n")}) })
	s.Extensions = []schema.Extension{{Name: d.one("hstore"), Schema: d.one("public")}}
	s.Enums = []schema.Enum{{Name: d.named("mood"), Labels: []string{d.one("x"), d.one("y")}, Comment: d.one("c")}}
	d.maybe(func() {
		e := d.expr(1)
		s.Domains = append(s.Domains, schema.Domain{Name: d.named("d"), Type: d.typ(), Default: &e,
			Checks: []schema.Check{{Name: d.one("k"), Expr: d.expr(2, "value")}}})
	})
	s.Sequences = []schema.Sequence{{
		Name: d.named("q"), Type: d.one("integer"), Start: d.one("1"), Increment: d.one("1"), Min: d.one("1"),
		Max: d.one("9"), Cache: d.one("1"), Last: d.one("1"), Comment: d.one("c"),
		Owner: &schema.Owner{Table: d.named("t"), Column: d.one("a")},
	}}
	s.Tables = []schema.Table{d.table("t"), d.table("u")}
	return s
}

// generatedWords are the words that may be outside of quotes in statements that are generated from
// a description.
var generatedWords = strings.Fields(`create schema if not exists type as enum sequence increment by minvalue ` +
	`maxvalue start with cache cycle domain default null check constraint no inherit table unlogged
	inherits partition of range list hash collate alter only column set drop attach for values in from to modulus ` +
	`remainder index unique on using btree add primary key include deferrable initially deferred foreign references ` +
	`match full update delete cascade
	restrict action valid owned select pg_catalog setval regclass replica identity nothing comment is true false ` +
	`database cluster generated always by name nextval cast and or value
	lower now integer text numeric smallint regclass fillfactor autovacuum_enabled off desc nulls first last ` +
	`int4_ops hstore option e b upper copy bytea character collation`)

// hostileDescription checks that an accepted description becomes single statements of the expected
// kinds, with none of its strings outside of quotes.
func hostileDescription(r *rapid.T) {
	s, err := describedBy(engine.Info{Schema: hostileSchema(r)})
	if err != nil {
		return
	}
	g := newGenerator(s)
	g.opClasses["int4_ops"], g.collations = "pg_catalog", []string{"C"}
	all, err := g.definitions()
	if err != nil {
		return
	}
	for _, t := range s.Tables {
		all = append(all, g.indexes(t)...)
	}
	all = slices.Concat(all, g.foreignKeys(), g.rest())
	if g.err != nil {
		return
	}
	for _, text := range all {
		parsed, err := statements(text + ";")
		if err != nil || len(parsed) != 1 {
			r.Fatalf("%q is %d statements: %v", text, len(parsed), err)
		}
		for i, t := range parsed[0] {
			if t.kind == word && !slices.Contains(generatedWords, t.text) || i == 0 &&
				!slices.Contains([]string{"create", "alter", "comment", "select"}, t.text) {
				r.Fatalf("%q has the word %q", text, t.text)
			}
		}
	}
}

func TestHostileDescriptions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, hostileDescription)
}

func FuzzHostileDescriptions(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hostileDescription)) }

// entriesOfDumps are definitions as pg_dump writes them.
var entriesOfDumps = []dumpEntry{
	{desc: "FUNCTION", tag: "f()",
		definition: "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS $a$ SELECT 1; $a$;\n"},
	{desc: "VIEW", tag: "f", definition: "CREATE VIEW public.f AS SELECT 'a;b' AS x, E'\\'' AS y;\n"},
	{desc: "TABLE", tag: "f",
		definition: "CREATE TABLE public.f (\n a integer DEFAULT 1\n);\nALTER TABLE ONLY public.f ALTER COLUMN a SET " +
			"STATISTICS 5;\n"}, {desc: "COMMENT", tag: "TABLE f",
		definition: "COMMENT ON TABLE public.f IS 'it''s';\n"},
	{desc: "RULE", tag: "t f", definition: "CREATE RULE f AS ON INSERT TO public.t DO INSTEAD (SELECT 1; SELECT 2);\n"},
	{desc: "INDEX", tag: "f", definition: "CREATE INDEX f ON public.t USING btree (lower(a));\n"},
	{desc: "FUNCTION", tag: "f()",
		definition: "CREATE FUNCTION public.f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;\n"},
	{desc: "SEQUENCE SET", tag: "f", definition: "SELECT pg_catalog.setval('public.f', 5, true);\n"},
}

// hostileEntry draws an entry of a table of contents, with pieces of SQL added or removed.
func hostileEntry(r *rapid.T) dumpEntry {
	pieces := []string{
		"(", ")", ";", "'",
		`"`, "$$", "$a$", "E'", `\`, "--", "\n", "/*", "*/", "; DROP DATABASE prod;", "; ALTER ROLE x SUPERUSER;",
		" AS ", "BEGIN ATOMIC ", " END;", " CASE ", " LANGUAGE c ", "U&'", "1", "''", "'\n'", "a$", "\x00", "é", "DO ",
		"COPY ", "; DO $$ x $$;",
	}
	e := rapid.SampledFrom(entriesOfDumps).Draw(r, "entry")
	e.id, e.namespace = 1, "public"
	for range rapid.IntRange(0, 4).Draw(r, "changes") {
		at := rapid.IntRange(0, len(e.definition)).Draw(r, "at")
		end := min(len(e.definition), at+rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(r, "cut"))
		e.definition = e.definition[:at] + rapid.SampledFrom(pieces).Draw(r, "piece") + e.definition[end:]
	}
	return e
}

// hostileContents checks that the statements of an accepted entry begin only with CREATE, ALTER and
// COMMENT. It splits them with the parser that the review uses, which [asTheServerReads] checks.
func hostileContents(r *rapid.T) {
	e := hostileEntry(r)
	if _, _, err := (&review{}).entries([]dumpEntry{e}); err != nil {
		return
	}
	all, err := statements(e.definition)
	if err != nil || len(all) == 0 {
		r.Fatalf("%q is accepted", e.definition)
	}
	for _, s := range all {
		if !slices.Contains([]string{"create", "alter", "comment"}, s[0].text) && e.desc != "SEQUENCE SET" {
			r.Fatalf("%q is accepted with %q", e.definition, s[0].text)
		}
	}
}

func TestHostileContents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, hostileContents)
}

func FuzzHostileContents(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hostileContents)) }

// asTheServerReads checks that an accepted entry with one statement is one statement for the server
// too. The server only parses it.
func asTheServerReads(conn *pgconn.PgConn) func(*rapid.T) {
	return func(r *rapid.T) {
		e := hostileEntry(r)
		if _, _, err := (&review{}).entries([]dumpEntry{e}); err != nil {
			return
		}
		if all, err := statements(e.definition); err != nil || len(all) != 1 {
			return
		}
		_, err := conn.Prepare(context.Background(), "", e.definition, nil)
		if err != nil && (state(err) == "" || strings.Contains(err.Error(), "multiple commands")) {
			r.Fatalf("%q is more than one statement: %v", e.definition, err)
		}
	}
}

func TestHostileContentsAreReadAsTheServerReads(t *testing.T) {
	t.Parallel()
	conn := connectTo(t, servertest.Postgres(t)).PgConn()
	if _, err := conn.Prepare(t.Context(), "", "SELECT 1; SELECT 2", nil); err == nil ||
		!strings.Contains(err.Error(), "multiple commands") {
		t.Fatalf("the server accepts two statements: %v", err)
	}
	rapid.Check(t, asTheServerReads(conn))
}

func FuzzHostileContentsOnAServer(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(asTheServerReads(connectTo(f, servertest.Postgres(f)).PgConn())))
}
