package postgres

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// A dump describes every object as data, or lists it as a program.
func TestDumpDescribesTheDatabase(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	psql(t, url, script(t, preamble+strings.Join(features, ";\n")+`; COMMENT ON TABLE gen IS 'it''s';
		CREATE TABLE kinds (m own.mood DEFAULT 'sad', p own.positive, o own.pair,
			n numeric(12,3) CHECK (n > 0 AND n < 1e6), t citext, d text DEFAULT current_user,
			k text CHECK (cat(k, k) <> '') CHECK (left(k, 1) <> 'x'));
		CREATE FUNCTION many(`+strings.Repeat("varchar, ", 40)+`int) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE INDEX part_idx ON kinds (n) WHERE n > 5;
			CREATE TABLE byexpr (a timestamp) PARTITION BY RANGE (date_trunc('month', a));
		CREATE TABLE byexpr_1 PARTITION OF byexpr FOR VALUES FROM (MINVALUE) TO ('2020-01-01')`))
	d, _ := dumped(t, url)
	s := d.Info.Schema
	if err := s.Check(schema.PostgreSQL); err != nil {
		t.Fatal(err)
	}
	for _, p := range []schema.Program{
		{Kind: "function", Name: schema.Name{Schema: "public", Name: "fn(integer, text[])"}},
		{Kind: "function", Name: schema.Name{Schema: "public",
			Name: "many(" + strings.Repeat("character varying, ", 40) + "integer)"}},
		{Kind: "procedure", Name: schema.Name{Schema: "public", Name: "pc(integer)"}},
		{Kind: "aggregate", Name: schema.Name{Schema: "public", Name: "agg(text)"}},
		{Kind: "trigger", Name: schema.Name{Schema: "public", Name: "t1"}, On: "trg"},
		{Kind: "event trigger", Name: schema.Name{Name: "et"}},
		{Kind: "rule", Name: schema.Name{Schema: "public", Name: "rl"}, On: "vw"},
		{Kind: "policy", Name: schema.Name{Schema: "public", Name: "p"}, On: "rls"},
		{Kind: "view", Name: schema.Name{Schema: "public", Name: "vw2"}},
		{Kind: "materialized view", Name: schema.Name{Schema: "public", Name: "mv1"}},
		{Kind: "expression index", Name: schema.Name{Schema: "public", Name: "idx_lower_idx"}, On: "idx"},
		{Kind: "partial index", Name: schema.Name{Schema: "public", Name: "part_idx"}, On: "kinds"},
		{Kind: "generated column", Name: schema.Name{Schema: "public", Name: "b"}, On: "gen"},
		{Kind: "cast", Name: schema.Name{Name: "CAST (integer AS own.pair)"}},
		{Kind: "operator", Name: schema.Name{Schema: "public", Name: "###"}},
		{Kind: "extension", Name: schema.Name{Name: "postgres_fdw"}},
		{Kind: "publication", Name: schema.Name{Name: "pb"}},
		{Kind: "foreign server", Name: schema.Name{Name: "far"}},
		{Kind: "statistics", Name: schema.Name{Schema: "public", Name: "stt"}},
		{Kind: "text search configuration", Name: schema.Name{Schema: "public", Name: "cfg"}},
		{Kind: "collation", Name: schema.Name{Schema: "public", Name: "coll"}},
		{Kind: "default", Name: schema.Name{Schema: "public", Name: "d"}, On: "kinds"},
		{Kind: "check constraint", Name: schema.Name{Schema: "public", Name: "kinds_k_check"}, On: "kinds"},
		{Kind: "type", Name: schema.Name{Schema: "own", Name: "pair"}},
		{Kind: "operator class", Name: schema.Name{Schema: "public", Name: "oc"}},
		{Kind: "access method", Name: schema.Name{Name: "am"}},
		{Kind: "exclusion constraint", Name: schema.Name{Schema: "public", Name: "idx_a_r_excl"}, On: "idx"},
		{Kind: "conversion", Name: schema.Name{Schema: "public", Name: "cv"}},
		{Kind: "foreign table", Name: schema.Name{Schema: "public", Name: "ft"}},
		{Kind: "user mapping", Name: schema.Name{Name: "USER MAPPING public SERVER far"}},
	} {
		if !slices.Contains(s.Programs, p) {
			t.Errorf("%+v is not among the programs", p)
		}
	}
	kinds := tableNamed(s, "public", "kinds")
	for i, want := range []string{"own.mood", "own.positive", "text", "numeric(12,3)", "public.citext"} {
		if got := strings.ReplaceAll(kinds.Columns[i].Type.SQL(schema.PostgreSQL), `"`, ""); got != want {
			t.Errorf("the type %s, want %s", got, want)
		}
	}
	if kinds.Columns[0].Default == nil || len(kinds.Checks) != 2 || tableNamed(s, "public", "gen").Comment != "it's" {
		t.Errorf("%+v", kinds)
	}
	if part := tableNamed(s, "public", "byexpr_1").PartitionOf; part == nil ||
		part.Bound.From[0].Column != "minvalue" ||
		tableNamed(s, "public", "byexpr").Partitions.Columns[0].Expr == nil {
		t.Errorf("partitions: %+v", part)
	}
	q := s.Sequences[slices.IndexFunc(s.Sequences, func(q schema.Sequence) bool { return q.Name.Name == "q" })]
	if q.Last != "5" || !q.Called || q.Increment != "-2" || q.Type != "smallint" || !q.Cycle {
		t.Errorf("the sequence %+v", q)
	}
}

// A type that would pad values to more than 64 KiB has no length in a description.
func TestPaddedTypesAreLimited(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{"character(65536)": "character(65536)", "character(65537)": "bpchar",
		"bit(65537)": `"bit"`, "character varying(65537)": "character varying(65537)"} {
		name, _, _ := strings.Cut(full, "(")
		if got, asText := builtin(name, full, 0); asText || typeSQL(got) != want {
			t.Errorf("%s is described as %s", full, typeSQL(got))
		}
	}
}

func tableNamed(s *schema.Schema, namespace, name string) *schema.Table {
	for i := range s.Tables {
		if s.Tables[i].Name == (schema.Name{Schema: namespace, Name: name}) {
			return &s.Tables[i]
		}
	}
	return &schema.Table{}
}

// A subset and a masked copy have a description too.
func TestSubsetAndMaskedCopyAreDescribed(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	psql(t, url,
		script(t,
			"CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT n, 'x' FROM generate_series(1, 50) n"))
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &b, engine.Options{Jobs: 1, Subset: &engine.Subset{Percent: 20}})
	if err != nil || info.Schema == nil {
		t.Fatalf("%+v, %v", info.Schema, err)
	}
	d, plan := dumpOf(b.Bytes(), info),
		engine.Plan{Tables: map[[2]string]engine.TablePlan{{"public",
			"t"}: {Columns: map[string]engine.Mask{"a": nil, "b": nil}}}}
	masked, err := Engine{}.Rewrite(t.Context(), d, plan, &bytes.Buffer{}, engine.Options{Jobs: 1})
	if err != nil || masked.Schema == nil || len(tableNamed(masked.Schema, "public", "t").Keys) != 1 {
		t.Errorf("%+v, %v", masked.Schema, err)
	}
}

// Names and comments are described correctly in encodings other than UTF-8.
func TestDescriptionOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	for encoding, want := range map[string]string{"LATIN1": "Größe", "SQL_ASCII": `Gr\xF6\xDFe`} {
		from := emptyCopy(t, url, encoding)
		psql(t, from,
			script(t,
				"SET client_encoding = "+encoding+"; CREATE TABLE \"Gr\xf6\xdfe\" (\"\xe4\" int); COMMENT ON TABLE "+
					"\"Gr\xf6\xdfe\" IS 'a \"b\"\\ \xe4'"))
		d, _ := dumped(t, from)
		if len(d.Info.Schema.Tables) != 1 || d.Info.Schema.Tables[0].Name.Name != want ||
			!strings.HasPrefix(d.Info.Schema.Tables[0].Comment, `a "b"\ `) {
			t.Errorf("%s: %+v", encoding, d.Info.Schema.Tables)
		}
	}
}

// emptyCopy returns a new database of an encoding on the server of url.
func emptyCopy(t *testing.T, url, encoding string) string {
	t.Helper()
	conn := connectTo(t, url)
	name := conn.Config().Database + "_" + strings.ToLower(encoding)
	conn.Close(t.Context())
	psql(t, url,
		script(t, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING "+encoding))
	t.Cleanup(func() { psql(t, url, script(t, "DROP DATABASE "+name+" WITH (FORCE)")) })
	return strings.Replace(url, "/"+strings.TrimSuffix(name, "_"+strings.ToLower(encoding)), "/"+name, 1)
}
