package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"snap"
)

// TestAllowedExpressions parses expressions and checks how they are written.
func TestAllowedExpressions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		d          Dialect
		text, want string
	}{
		{PostgreSQL, `'draft'::character varying`, `CAST('draft' AS character varying)`},
		{PostgreSQL,
			`nextval('public."Order_seq"'::regclass)`,
			`pg_catalog.nextval('"public"."Order_seq"'::pg_catalog.regclass)`},
		{PostgreSQL, `(price > (0)::numeric)`, `("price" > CAST(0 AS numeric))`},
		{PostgreSQL, `CURRENT_TIMESTAMP`, `CURRENT_TIMESTAMP`},
		{PostgreSQL, `now() + '30 days'::interval`, `(now() + CAST('30 days' AS interval))`},
		{PostgreSQL, `((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))`,
			`(CAST("status" AS text) = ANY ` +
				`(CAST((ARRAY[CAST('a' AS character varying), CAST('b' AS character varying)]) AS text[])))`},
		{PostgreSQL, `(kind = 'x'::shop.kind)`, `("kind" = CAST('x' AS "shop"."kind"))`},
		{PostgreSQL,
			`'2020-01-01 00:00:00+00'::timestamp(3) with time zone`,
			`CAST('2020-01-01 00:00:00+00' AS timestamp(3) with time zone)`},
		{PostgreSQL,
			`EXTRACT(year FROM born) > (1900)::numeric`, `(EXTRACT('year' FROM "born") > CAST(1900 AS numeric))`},
		{PostgreSQL,
			`a IS NOT NULL AND b IS DISTINCT FROM 'x'::text OR NOT c`,
			`((("a" IS NOT NULL) AND ("b" IS DISTINCT FROM CAST('x' AS text))) OR (NOT "c"))`},
		{PostgreSQL, `CASE WHEN a THEN 1 ELSE 2 END`, `(CASE WHEN "a" THEN 1 ELSE 2 END)`},
		{PostgreSQL, `E'a\\b'::text`, `CAST(E'a\\b' AS text)`},
		{PostgreSQL, `VALUE ~ '^\d+$'::text`, `(VALUE ~ CAST(E'^\\d+$' AS text))`},
		{PostgreSQL, `B'101'::"bit"`, `CAST(B'101' AS "bit")`},
		{PostgreSQL, `POSITION(('@'::text) IN (email)) > 1`, `(POSITION(CAST('@' AS text) IN ("email")) > 1)`},
		{PostgreSQL, `replace(a, '-'::text, ''::text)`, `replace("a", CAST('-' AS text), CAST('' AS text))`},
		{PostgreSQL, `("left"(a, 1) = "right"(b, 1))`, `(left("a", 1) = right("b", 1))`},
		{PostgreSQL, `"substring"(a, 'x'::text)`, `substring("a", CAST('x' AS text))`},
		{PostgreSQL, `"overlaps"(a, b, c, d)`, `overlaps("a", "b", "c", "d")`},
		{PostgreSQL, `"left" > "current_date"`, `("left" > "current_date")`},
		{PostgreSQL,
			`(((a -> 'x'::text) -> 'y'::text) ->> 'z'::text)::integer`,
			`CAST(((("a" -> CAST('x' AS text)) -> CAST('y' AS text)) ->> CAST('z' AS text)) AS integer)`},
		{PostgreSQL, `- 1`, `(- 1)`},
		{PostgreSQL, `a COLLATE pg_catalog."C" < 'b'::text`, `(("a" COLLATE pg_catalog."C") < CAST('b' AS text))`},
		{MySQL, "(`age` >= 0) and (`age` < 150)", "((`age` >= 0) AND (`age` < 150))"},
		{MySQL, `_utf8mb4'it''s'`, `'it''s'`},
		{MySQL, `_utf8mb4'a\\b'`, `_utf8mb4 X'615c62'`},
		{MySQL, `'a\%\_\q'`, `_utf8mb4 X'615c255c5f71'`},
		{MySQL,
			"cast(json_unquote(json_extract(`a`,_utf8mb4'$.b')) as unsigned)",
			"CAST(json_unquote(json_extract(`a`, '$.b')) AS unsigned)"},
		{MySQL, "concat_ws('-',`a`,`b`)", "concat_ws('-', `a`, `b`)"},
		{MySQL, "json_valid(`data`)", "json_valid(`data`)"},
		{MySQL, "current_timestamp(6)", "current_timestamp(6)"},
		{MySQL, "`a` in (1,2,3)", "(`a` IN (1, 2, 3))"},
		{MySQL, "`a` | `b` & `c` << 1", "(`a` | (`b` & (`c` << 1)))"},
		{MySQL, "nextval(`s`.`q`)", "NEXTVAL(`q`)"},
		{SQLite, `length("name") BETWEEN 1 AND 50`, `(length("name") BETWEEN 1 AND 50)`},
		{SQLite, `a||b = 'x' AND [c d] IS NOT NULL`, `((("a" || "b") = 'x') AND ("c d" IS NOT NULL))`},
		{SQLite, `strftime('%Y', a)`, `strftime('%Y', "a")`},
		{SQLite, `x'CAFE'`, `X'cafe'`},
		{SQLite, `a LIKE '%\%' ESCAPE '\'`, `("a" LIKE '%\%' ESCAPE '\')`},
		{MySQL, "cast(`a` as unsigned) > 1", "(CAST(`a` AS unsigned) > 1)"},
		{SQLite, `a > 0xFF + 1_000`, `("a" > (255 + 1000))`},
		{SQLite, `CAST(a AS INTEGER) = a`, `(CAST("a" AS "integer") = "a")`},
	}
	for _, tt := range tests {
		e, err := ParseExpr(tt.d, tt.text)
		if err != nil {
			t.Errorf("%s: %s: %v", tt.d, tt.text, err)
			continue
		}
		got, err := e.SQL(tt.d)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s is written as\n%s (%v), want\n%s", tt.d, tt.text, got, err, tt.want)
		}
	}
}

// TestRefusedExpressions has expressions that are not allowed, and strings that are not a single
// expression.
func TestRefusedExpressions(t *testing.T) {
	t.Parallel()
	refused := map[Dialect][]string{
		PostgreSQL: {
			`public.f(a)`, `pg_read_file('/etc/passwd')`, `pg_sleep(10)`, `(SELECT 1)`, `a); ` +
				`DROP TABLE x; --`, `lo_import('x')`,
			`a OPERATOR(public.+) b`, `'f'::regproc`, `'x'::regclass`, `query_to_xml('x',true,true,'')`,
			`repeat('x', 1000000000)`,
			`a /* x */`, `a -- x`, `$1`, `$$x$$`, `U&'x'`, `E'\x41'`, `current_setting('x')`,
			`set_config('a','b',true)`,
			`nextval('x; y'::regclass)`, `nextval((a)::regclass)`, `a COLLATE public."C"`, `t.a = 1`, ``, `)`, `(`,
			`a b`,
			strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000), `pg_catalog`, `pg_catalog.x`, `'a`, `"a`,
			`replace(a, 'x'::text, 'xx'::text)`, `replace(a, 'x'::text, a)`, `replace(a, a, ''::text)`,
			`replace(a, 'x')`, `a::character(10000000)`, `a::bit(10000000)`,
			`position(a, b)`, `position(a IN (b, c))`, `"position"(a, b)`, `"f"(a)`,
			nested(4, `ARRAY[`, `]::text`), nested(4, `coalesce(ARRAY[`, `])::text`),
			nested(4, `('{}'::text[] || `, `)::text`),
			nested(4, `replace(''::text || lower(`, `)::bytea, '\x'::text, ''::text)`),
			nested(4, `('x'::text || `, `)::bit varying`), `uuid_generate_v4()`,
		},
		MySQL: {
			"load_file('/etc/passwd')", "sleep(10)", "benchmark(1,1)", "@@version", "@a", "(select 1)",
			"`prod`.`users`",
			"a /*! b */",
			"# x", "-- x", "get_lock('a',1)", "a || b", "user()", "`f`(1)", "repeat('a',1000000)", "a := 1",
			"hex(lower(hex(upper(hex(lower(hex(a)))))))",
			"cast(a as binary(999999999))", nested(4, "cast(cast(", " as binary) as json)"),
			"concat_ws(a,'','')", "json_extract(a,'$','$')", "json_extract(a,'$**.b')", "json_extract(a,b)",
		},
		SQLite: {
			"load_extension('x')", "randomblob(1000000000)", "zeroblob(1000000000)", "writefile('a','b')", "(select 1)",
			"printf('%1000000d',1)",
			"a.b", "1; attach 'x' as y", "fts3_tokenizer('x')", "readfile('x')", "?1", ":a", "match(a,b)", "edit('x')",
			"a -- b", "replace(a, a, a)",
			"json_array(lower(json_object('a', lower(json_array(lower(json_array(a)))))))",
			nested(4, `json('''' || replace(`, `, '\', '"') || '''')`), nested(4, `('[''' || `, ` || ''']') -> '$'`),
			"strftime(a, 0)", "json_extract(a, '$', '$')",
		},
	}
	for d, texts := range refused {
		for _, text := range texts {
			if e, err := ParseExpr(d, text); err == nil {
				t.Errorf("%s: %s is accepted as %+v", d, text, e)
			}
		}
	}
}

// nested repeats the text before and after a column.
func nested(n int, before, after string) string {
	return strings.Repeat(before, n) + "a" + strings.Repeat(after, n)
}

// TestCheckRefuses has descriptions that no database can have.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	users := func(change func(*Table)) *Schema {
		table := Table{Name: Name{"public", "users"}, Columns: []Column{{Name: "id", Type: Type{Name: "bigint"}}}}
		change(&table)
		return &Schema{Tables: []Table{table}}
	}
	if err := users(func(*Table) {}).Check(PostgreSQL); err != nil {
		t.Fatal(err)
	}
	refused := map[string]*Schema{
		"no name":     users(func(t *Table) { t.Name.Name = "" }),
		"NUL":         users(func(t *Table) { t.Name.Name = "a\x00b" }),
		"long name":   users(func(t *Table) { t.Columns[0].Name = strings.Repeat("x", 10000) }),
		"type":        users(func(t *Table) { t.Columns[0].Type.Name = "bigint); DROP TABLE x; --" }),
		"type arg":    users(func(t *Table) { t.Columns[0].Type.Args = []string{"1); DROP"} }),
		"two columns": users(func(t *Table) { t.Columns = append(t.Columns, t.Columns[0]) }),
		"key":         users(func(t *Table) { t.Keys = []Key{{Columns: []KeyColumn{{Name: "other"}}}} }),
		"action": users(func(t *Table) {
			t.ForeignKeys = []ForeignKey{{To: Name{"", "x"},
				OnDelete: "CASCADE; DROP"}}
		}),
		"op class": users(func(t *Table) {
			t.Indexes = []Index{{Name: "i",
				Columns: []KeyColumn{{Name: "id", OpClass: "a b"}}}}
		}),
		"default":    users(func(t *Table) { t.Columns[0].Default = &Expr{Call: "pg_read_file"} }),
		"operator":   users(func(t *Table) { t.Columns[0].Default = &Expr{Op: ") ; --", Args: make([]Expr, 2)} }),
		"two forms":  users(func(t *Table) { t.Columns[0].Default = &Expr{Call: "now", Column: "x"} }),
		"collation":  users(func(t *Table) { t.Columns[0].Collation = &Name{Name: `C" x`} }),
		"two tables": {Tables: []Table{{Name: Name{"a", "b"}}, {Name: Name{"a", "b"}}}},
		"label":      {Enums: []Enum{{Name: Name{"a", "b"}, Labels: []string{"x\x00"}}}},
		"sequence":   {Sequences: []Sequence{{Name: Name{"a", "b"}, Start: "1; DROP"}}},
	}
	for what, s := range refused {
		var e *snap.Error
		if err := s.Check(PostgreSQL); !errors.As(err, &e) || e.Code != snap.CodeCorrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, d := range []Dialect{MySQL, SQLite} { // neither has schemas
		inSchema := &Schema{Tables: []Table{{Name: Name{"prod", "users"},
			Columns: []Column{{Name: "id", Type: Type{Name: "int"}}}}}}
		if err := inSchema.Check(d); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("a table of another database in %s: %v", d, err)
		}
		if inSchema.Tables[0].Name.Schema = ""; inSchema.Check(d) != nil {
			t.Errorf("a table without a schema in %s: %v", d, inSchema.Check(d))
		}
	}
}

// FuzzParseExpr checks that the text of an accepted expression, if it can be parsed, is written in
// the same way again, and that the expression is still allowed after JSON.
func FuzzParseExpr(f *testing.F) {
	for _, seed := range []string{"a = 1", "now()", "'x'::text", "CASE WHEN a THEN b END", "x'00'", "a in (1)", "-1",
		"not a is null"} {
		f.Add(seed, 0)
		f.Add(seed, 1)
		f.Add(seed, 2)
	}
	dialects := []Dialect{PostgreSQL, MySQL, SQLite}
	f.Fuzz(func(t *testing.T, text string, n int) {
		d := dialects[((n%3)+3)%3]
		e, err := ParseExpr(d, text)
		if err != nil {
			return
		}
		packed, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Expr
		if err := json.Unmarshal(packed, &back); err != nil {
			t.Fatal(err)
		}
		if !back.allowed(d, nil) {
			t.Fatalf("%s: %q is not allowed after JSON", d, text)
		}
		first, err := e.SQL(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseExpr(d, first)
		if err != nil {
			return // some forms are only written, such as a name with the server's schema
		}
		second, err := again.SQL(d)
		if err != nil || first != second {
			t.Fatalf("%s: %q is written as %q and then %q (%v)", d, text, first, second, err)
		}
	})
}

// TestExprJSON fails if the names in the file format change.
func TestExprJSON(t *testing.T) {
	t.Parallel()
	e, err := ParseExpr(PostgreSQL, "lower(a) = 'x'::text")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := json.Marshal(e)
	want := `{"op":"=","args":[{"call":"lower","args":[{"column":"a"}]},{"cast":{"name":"text"}` +
		`,"args":[{"literal":{"kind":"string","value":"x"}}]}]}`
	if err != nil || string(packed) != want {
		t.Errorf("%s, want %s", packed, want)
	}
	var back Expr
	if err := json.Unmarshal([]byte(want), &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%+v, want %+v: %v", back, e, err)
	}
}

func TestSQLiteTypes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "integer": true, "VARYING CHARACTER": true, "_x9": true, "größe": true, "9x": false, " x": false,
		"x;": false, "x\n": false, "x\xff": false, strings.Repeat("ä", 121): true, strings.Repeat("ä", 122): false,
	} {
		if got := isSQLiteType(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
