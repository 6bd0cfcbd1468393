package sanitize

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// shopSchema returns a table with constraints of every kind and a table that refers to it.
func shopSchema() (engine.Contents, *schema.Schema) {
	column := func(name string, typ schema.Type) schema.Column { return schema.Column{Name: name, Type: typ} }
	text := schema.Type{Name: "text"}
	s := &schema.Schema{
		Enums:   []schema.Enum{{Name: schema.Name{Schema: "public", Name: "mood"}, Labels: []string{"good", "bad"}}},
		Domains: []schema.Domain{{Name: schema.Name{Schema: "public", Name: "contact_hint"}, Type: text}},
		Tables: []schema.Table{{
			Name: schema.Name{Schema: "public", Name: "person"},
			Columns: []schema.Column{column("id", schema.Type{Name: "bigint"}), column("email", text),
				column("ssn", schema.Type{Name: "integer"}), column("hint", schema.Type{Name: "contact_hint",
					Schema: "public", Own: true}), column("mood",
					schema.Type{Name: "mood", Schema: "public", Own: true}),
				column("code", schema.Type{Name: "character varying", Args: []string{"6"}}), column("gender", text),
				column("born", schema.Type{Name: "date"})},
			Keys: []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}},
				{Columns: []schema.KeyColumn{{Name: "email"}}}, {Columns: []schema.KeyColumn{{Name: "ssn"}}}},
			Checks: []schema.Check{{Expr: schema.Expr{Op: "IN", Args: []schema.Expr{{Column: "gender"},
				{Literal: &schema.Literal{Kind: "string", Value: "F"}},
				{Literal: &schema.Literal{Kind: "string", Value: "M"}}}}}},
		}, {
			Name:    schema.Name{Schema: "public", Name: "orders"},
			Columns: []schema.Column{column("id", schema.Type{Name: "bigint"}), column("email", text)},
			Keys:    []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}}},
			ForeignKeys: []schema.ForeignKey{{Columns: []string{"email"},
				To:        schema.Name{Schema: "public", Name: "person"},
				ToColumns: []string{"email"}}},
		}},
	}
	c := engine.Contents{Schema: s, Tables: []engine.Shape{{
		Schema: "public", Name: "person",
		Columns: []engine.Column{{Name: "id", Type: "bigint", NotNull: true},
			{Name: "email", Type: "text", NotNull: true},
			{Name: "ssn", Type: "integer"}, {Name: "hint", Type: "public.contact_hint"},
			{Name: "mood", Type: "public.mood"},
			{Name: "code", Type: "character varying(6)"}, {Name: "gender", Type: "text", NotNull: true},
			{Name: "born", Type: "date"}},
		Samples: [][]string{{"1", "2"}, {"a@b.example", "c@d.example"}, {"123456789", "987654321"}, {"call him"},
			{"good"},
			{"A1"}, {"F", "M"}, {"1980-01-02"}},
	}, {
		Schema: "public", Name: "orders",
		Columns: []engine.Column{{Name: "id", Type: "bigint", NotNull: true}, {Name: "email", Type: "text"}},
		Samples: [][]string{{"1"}, {"a@b.example"}},
	}}}
	return c, s
}

const shopRules = `
keep: ["*.id"]
tables:
  public.person: {columns: {email: email, ssn: key, hint: redact, mood: keep, code: redact, gender: keep, born: shift}}
  public.orders: {columns: {email: email}}
`

var placeForm = regexp.MustCompile(` \(line 4, column [0-9]+\)`)

// A rule that cannot be used is refused before anything is written. The error names
// the table, the column and a rule that would work.
func TestRulesThatCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	c, _ := shopSchema()
	if _, err := mustRules(t, shopRules).Prepare(c, testKey); err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		"ssn: key->ssn: hash": "public.person.ssn cannot be masked by " +
			"hash: its type integer cannot hold",
		"ssn: key->ssn: format": "public.person.ssn cannot be masked by " +
			"format: its values must stay unique; key would work",
		"email: email->email: name": "public.person.email cannot be masked " +
			"by name: its values must stay unique; email would work",
		"mood: keep->mood: redact": "public.person.mood cannot be masked " +
			"by redact",
		"gender: keep->gender: redact": "a check constraint rejects the " +
			"masked values",
		"gender: keep->gender: 'null'": "public.person.gender cannot be masked " +
			"by null: it cannot be null; keep would work",
		"born: shift->born: email": "public.person.born cannot be masked " +
			"by email",
		"code: redact->code: {mask: constant, value: longer than six}": "it holds at most 6 characters",
		"orders: {columns: {email: email}->orders: {columns: {email: hash}": "public.orders.email is masked by " +
			"hash, and public.person.email, which it refers to, by email; email for both would work",
		"public.person: {columns->public.person: {rows: drop, columns": "whose rows are dropped",
	} {
		from, to, _ := strings.Cut(change, "->")
		text := strings.Replace(shopRules, from, to, 1)
		if text == shopRules {
			t.Fatalf("%q changes nothing", change)
		}
		_, err := mustRules(t, text).Prepare(c, testKey)
		if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(placeForm.ReplaceAllString(err.Error(), ""),
			want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// A column of MySQL's type SET can hold several of its members, or none.
func TestConstantOfASet(t *testing.T) {
	t.Parallel()
	set := &column{Column: engine.Column{Type: "set('a','b','c')"}, typ: personal.ParseType("set('a','b','c')")}
	for v, fits := range map[string]bool{"": true, "b": true, "c,a": true, "d": false, "a,d": false, "a,,b": false} {
		if why := misfit(testKey, ColumnRule{Mask: "constant", Value: v}, set); (why == "") != fits {
			t.Errorf("%q: %s", v, why)
		}
	}
}

// The mask named key turns a text that is not ASCII into hexadecimal digits, and few of these fit
// into a short column.
func TestKeyOfShortTexts(t *testing.T) {
	t.Parallel()
	for sample, fits := range map[string]bool{"MÜ1234": false, "MU1234": true} {
		c := &column{typ: personal.ParseType("varchar(6)"), unique: true, samples: []string{sample}}
		if why := misfit(testKey, ColumnRule{Mask: "key"}, c); (why == "") != fits {
			t.Errorf("%s: %q", sample, why)
		}
	}
}

// A label of an enum can have any character. A column of MySQL's type BIT holds a number.
func TestConstantsOfLabelsAndBits(t *testing.T) {
	t.Parallel()
	labels := schema.Type{Name: "enum", Labels: []string{"Female", "Other (specify)"}}
	f := factsOf(engine.Contents{Tables: []engine.Shape{{Name: "person", Samples: make([][]string, 2),
		Columns: []engine.Column{{Name: "gender", Type: "enum('Female','Other (specify)')"},
			{Name: "active", Type: "bit(1)"}}}},
		Schema: &schema.Schema{Tables: []schema.Table{{Name: schema.Name{Name: "person"},
			Columns: []schema.Column{{Name: "gender", Type: labels}}}}}})
	for _, c := range []struct {
		column, value string
		fits          bool
	}{{"gender", "Other (specify)", true}, {"gender", "Male", false}, {"active", "1", true}, {"active", "yes", false}} {
		of := f.columns[columnID{"", "person", c.column}]
		if why := misfit(testKey, ColumnRule{Mask: "constant", Value: c.value}, of); (why == "") != c.fits {
			t.Errorf("%s %q: %s", c.column, c.value, why)
		}
	}
	if class := f.columns[columnID{"", "person", "active"}].comparedAs(); class != personal.Integer {
		t.Errorf("a condition compares bits as %s", class)
	}
}

// Every proposal can be used and has a reason.
func TestProposalsHold(t *testing.T) {
	t.Parallel()
	c, _ := shopSchema()
	text, err := Suggest(c)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "      ") && !strings.Contains(line, "# ") {
			t.Errorf("a proposal without a reason: %s", line)
		}
	}
	rules := mustRules(t, strings.ReplaceAll(string(text), ": decide", ": keep"))
	if _, err := rules.Prepare(c, testKey); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	person := rules.Tables["public.person"].Columns
	for column, want := range map[string]string{"id": "keep", "email": "email", "ssn": "key", "gender": "keep",
		"born": "shift"} {
		if person[column].Mask != want {
			t.Errorf("%s: %s, want %s in\n%s", column, person[column].Mask, want, text)
		}
	}
	if rules.Tables["public.orders"].Columns["email"].Mask != "email" {
		t.Errorf("a reference is not masked as what it refers to:\n%s", text)
	}
}

// The mask named key is a permutation: different values of one form stay different.
func TestKeyIsAPermutation(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	small := &column{Column: engine.Column{Type: "smallint"}, typ: personal.ParseType("smallint")}
	mask := maskOf(testKey, ColumnRule{Mask: "key"}, small)
	seen := map[string]bool{}
	for i := -32767; i <= 32767; i += 9 {
		v, _ := mask(fmt.Sprint(i))
		if seen[v] || misfit(testKey, ColumnRule{Mask: "constant", Value: v}, small) != "" {
			t.Fatalf("%d becomes %s again, or %s does not fit", i, v, v)
		}
		seen[v] = true
	}
	tiny := maskOf(testKey, ColumnRule{Mask: "key"}, &column{Column: engine.Column{Type: "tinyint"},
		typ: personal.ParseType("tinyint")})
	seen = map[string]bool{}
	for i := -1200; i <= 1200; i++ { // SQLite stores larger integers too
		v, _ := tiny(fmt.Sprint(i))
		n, err := strconv.Atoi(v)
		fits := n >= -128 && n <= 127
		if err != nil || seen[v] || fits != (i >= -128 && i <= 127) || len(v) != len(fmt.Sprint(i)) {
			t.Fatalf("%d becomes %s", i, v)
		}
		seen[v] = true
	}
	p := permutation{newSource(testKey, "key")}
	rapid.Check(t, func(t *rapid.T) {
		form := rapid.SampledFrom([]string{`[0-9]{1,20}`, `[a-z]{1,9}[0-9]{0,3}`, `\+[0-9]{2} [0-9]{6,9}`,
			`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
			`[A-Z]{2}[0-9]{2}-[a-z]{2}`}).Draw(t, "form")
		a, b := rapid.StringMatching(form).Draw(t, "a"), rapid.StringMatching(form).Draw(t, "b")
		x, y := p.text(a), p.text(b)
		if (a == b) != (x == y) || len(x) != len(a) {
			t.Fatalf("%s becomes %s, and %s becomes %s", a, x, b, y)
		}
	})
	bound := big.NewInt(1000)
	hit := map[string]bool{}
	for i := range int64(1000) {
		hit[p.below(big.NewInt(i), bound).String()] = true
	}
	if len(hit) != 1000 {
		t.Errorf("%d of 1000 numbers", len(hit))
	}
}

// The mask named key gives an integer and the same digits in a text equal results.
func TestKeyOfNumbersInTexts(t *testing.T) {
	t.Parallel()
	ofType := func(name string) engine.Mask {
		return maskOf(testKey, ColumnRule{Mask: "key"}, &column{typ: personal.ParseType(name)})
	}
	integer, text := ofType("bigint"), ofType("text")
	for i := range 10_001 {
		one, _ := integer(strconv.Itoa(i))
		two, _ := text(strconv.Itoa(i))
		if one != two {
			t.Fatalf("%d becomes %s, and in a text %s", i, one, two)
		}
	}
}

// Masks for networks, places and documents produce values of their kind and hide the original.
func TestNetworksPlacesAndDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mask, typ, value string
		is               func(string) bool
	}{
		{"ip", "inet", "198.51.100.7", func(v string) bool { return strings.HasPrefix(v, "10.") }},
		{"ip", "cidr", "198.51.100.0/24", func(v string) bool { return strings.HasSuffix(v, ".0/24") }},
		{"ip", "inet", "2001:db8::1", func(v string) bool { return strings.HasPrefix(v, "fd") }},
		{"mac", "macaddr", "00:1b:44:11:3a:b7", func(v string) bool { return len(v) == 17 }},
		{"mac", "macaddr8", "00:1b:44:11:3a:b7:01:02", func(v string) bool { return len(v) == 23 }},
		{"coordinates", "double precision", "52.52", func(v string) bool { return strings.HasPrefix(v, "52.") }},
		{"coordinates", "text", "POINT(13.4 52.5) Maria", func(v string) bool {
			return strings.HasPrefix(v, "POINT(13.") && strings.HasSuffix(v, ") xxxxx")
		}},
		{"coordinates", "text", "SRID=4326;POINT(13.4 52.5)", func(v string) bool {
			return strings.HasPrefix(v, "SRID=4326;POINT(13.")
		}},
		{"coordinates", "text", "MULTIPOINT ZM ((13.4 52.5 34 1))", func(v string) bool {
			return strings.HasPrefix(v, "MULTIPOINT ZM ((13.")
		}},
		{"coordinates", "text", "POINTM(13.4 52.5 1)", func(v string) bool {
			return strings.HasPrefix(v, "POINTM(13.")
		}},
		{"coordinates", "point", "(13.4,52.5)", func(v string) bool { return strings.HasPrefix(v, "(13.") }},
		{"user_name", "text", "maria.meyer", func(v string) bool { return strings.Contains(v, "_") }},
		{"redact", "jsonb", `{"email": "maria@x.example", "n": 17, "ok": true}`, func(v string) bool {
			return v == `{"email":"xxxxx@x.xxxxxxx","n":0,"ok":true}`
		}},
		{"redact", "json",
			`[{"maria@x.example": null}]`, func(v string) bool { return v == `[{"xxxxx@x.xxxxxxx":null}]` }},
		{"email", "text[]", `{maria@x.example,"a \"b\"",NULL}`, func(v string) bool {
			return strings.Count(v, "@example.com") == 2 && strings.HasSuffix(v, ",NULL}")
		}},
		{"key", "integer[]", "{{12,34},{56,78}}",
			func(v string) bool { return len(v) == len(`{{"12","34"},{"56","78"}}`) }},
		{"hash", "uuid", "00000000-0000-4000-8000-000000000001", isUUID},
		{"noise", "numeric(4,2)", "99.99", func(v string) bool { return len(v) == 5 }},
		{"noise", "double precision", "1e-05", func(v string) bool { return strings.Contains(v, "e-0") }},
		{"noise", "smallint", "32767", func(v string) bool { return len(v) == 5 && v < "32767" }},
		{"noise", "bigint unsigned", "18446744073709551615", func(v string) bool { return len(v) == 20 }},
		{"noise", "year", "2101", func(v string) bool { return "1901" <= v && v <= "2155" }},
		{"shift", "year", "2155", func(v string) bool { return v == "2154" || v == "1901" }},
		{"card", "text", "4111 1111 1111 1111", func(v string) bool { return luhnHolds(v) && v[:1] == "4" }},
		{"card", "numeric(16,0)", "5500005555555559", luhnHolds},
		{"iban", "text", "DE89 3704 0044 0532 0130 00", func(v string) bool {
			bare := strings.ReplaceAll(v, " ", "")
			return strings.HasPrefix(v, "DE") && len(v) == 27 && remainder(bare[4:]+bare[:4]) == 1
		}},
		{"format", "smallint", "32767", func(v string) bool { return valid(v, personal.ParseType("smallint")) }},
	} {
		col := &column{Column: engine.Column{Type: c.typ}, typ: personal.ParseType(c.typ), samples: []string{c.value}}
		if why := misfit(testKey, ColumnRule{Mask: c.mask}, col); why != "" {
			t.Errorf("%s of %s: %s", c.mask, c.typ, why)
		}
		if got, _ := maskOf(testKey, ColumnRule{Mask: c.mask}, col)(c.value); !c.is(got) || got == c.value {
			t.Errorf("%s of %s %s: %s", c.mask, c.typ, c.value, got)
		}
	}
}

// luhnHolds reports whether the check digit of a number is right.
func luhnHolds(v string) bool {
	sum, double := 0, false
	for i := len(v) - 1; i >= 0; i-- {
		if v[i] < '0' || v[i] > '9' {
			continue
		}
		d := int(v[i] - '0')
		if double {
			d = d*2%10 + d/5
		}
		sum, double = sum+d, !double
	}
	return sum%10 == 0
}

// The values of a choice must be values that the column can hold.
func TestChoice(t *testing.T) {
	t.Parallel()
	c, _ := shopSchema()
	for values, want := range map[string]string{"[good, bad]": "",
		"[good, great]": "public.person.mood (line 4, column 67) cannot be masked by choice"} {
		text := strings.Replace(shopRules, "mood: keep", "mood: {mask: choice, values: "+values+"}", 1)
		if _, err := mustRules(t, text).Prepare(c, testKey); want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", values, err)
		}
	}
	if _, err := parseRules("r.yaml",
		[]byte("tables: {a: {columns: {b: choice}}}")); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a choice of nothing: %v", err)
	}
}

// Checks are evaluated, or the result is unsure.
func TestChecks(t *testing.T) {
	t.Parallel()
	for check, want := range map[string]map[string]answer{
		"length(x) = 5":              {"abcde": yes, "abc": no, "äöü": unsure},
		"x LIKE '%@%'":               {"a@b": yes, "ab": no},
		`x LIKE 'a\_%'`:              {"a_b": unsure},
		"x ~ '^[0-9]+$'":             {"12": yes, "1a": no},
		"x IN ('a', 'b') OR y = 'c'": {"a": yes, "c": unsure},
		"x = ANY (ARRAY['a', 'b'])":  {"a": yes, "c": no},
		"(x)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])": {"a": yes, "c": no},
		"x <> ''":                        {"": no, "a": yes},
		"char_length(x) BETWEEN 2 AND 3": {"a": no, "ab": yes},
		"lower(x) = x AND NOT x = 'z'":   {"a": yes, "A": no, "z": no},
		"y > 3":                          {"a": unsure},
	} {
		e, err := schema.ParseExpr(schema.PostgreSQL, check)
		if err != nil {
			t.Fatalf("%s: %v", check, err)
		}
		for v, answer := range want {
			if got := evaluate(e, "x", v); got != answer {
				t.Errorf("%s of %q: %d, want %d", check, v, got, answer)
			}
		}
	}
}

// A point in MySQL is binary. Moving its numbers would damage it.
func TestBinaryPoints(t *testing.T) {
	t.Parallel()
	for sample, fits := range map[string]bool{"(13.4,52.5)": true, "\x00\x00\x00\x00\x01\x01": false} {
		c := &column{samples: []string{sample}, typ: personal.ParseType("point")}
		if why := misfit([]byte("key"), ColumnRule{Mask: "coordinates"}, c); (why == "") != fits {
			t.Errorf("%q: %q", sample, why)
		}
	}
}

// A masked UUID has the version and the variant of the original: MariaDB refuses some others.
func TestUUIDsKeepTheirVersion(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 200 {
		v := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		masked := permutation{newSource(testKey, "key")}.uuid(v)
		if !isUUID(masked) || masked[14] != '4' || masked[19] != '8' || masked == v || seen[masked] {
			t.Fatalf("%s became %s", v, masked)
		}
		seen[masked] = true
	}
	hash := func(name string) string {
		c := &column{id: columnID{name}, typ: personal.ParseType("uuid")}
		v, _ := maskOf(testKey, ColumnRule{Mask: "hash"}, c)("a")
		return v
	}
	if masked := hash(""); !isUUID(masked) || masked[14] != '4' || masked[19] != '8' ||
		masked[20:] != hash("public")[20:] {
		t.Errorf("a hash in MariaDB is %s", masked)
	}
	for _, v := range []string{"--------------------------------8---", "+0000000-0000-4000-8000-000000000000"} {
		if isUUID(v) {
			t.Errorf("%s is no UUID", v)
		}
	}
}

// A column of JSON can hold scalars, which redact keeps valid.
func TestScalarDocuments(t *testing.T) {
	t.Parallel()
	samples := []string{"null", "15", "true", `"Maria"`, `{"a":"b"}`}
	text, err := Suggest(engine.Contents{Tables: []engine.Shape{{Schema: "public", Name: "users",
		Columns: []engine.Column{{Name: "settings", Type: "jsonb"}}, Samples: [][]string{samples}}}})
	if err != nil || !strings.Contains(string(text), "settings: redact") {
		t.Errorf("%v in\n%s", err, text)
	}
	c := &column{typ: personal.ParseType("jsonb"), samples: samples}
	if why := misfit(testKey, ColumnRule{Mask: "redact"}, c); why != "" {
		t.Error(why)
	}
}
