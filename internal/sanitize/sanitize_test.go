package sanitize

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
)

var testKey = []byte("a key of the tests, long enough")

func mustRules(t *testing.T, text string) *Rules {
	t.Helper()
	r, err := parseRules("r.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contents() engine.Contents {
	return engine.Contents{Tables: []engine.Shape{
		{Schema: "public", Name: "customer", Columns: []engine.Column{{Name: "id", Type: "integer"},
			{Name: "email", Type: "character varying(40)"}, {Name: "born", Type: "date"}},
			Samples: [][]string{{"1", "2"}, {"maria@anders.example", "ana@trujillo.example"}, {"1980-05-01"}}},
		{Schema: "public", Name: "country", Columns: []engine.Column{{Name: "id", Type: "integer"},
			{Name: "title", Type: "text"}}, Samples: [][]string{{"1"}, {"Germany"}}},
	}}
}

// Prepare fails closed: every column needs a rule or a keep, and every rule needs a column.
func TestPrepareFailsClosed(t *testing.T) {
	t.Parallel()
	whole := "keep: ['*.id', 'public.country.*']\ntables:\n  public.customer: {columns: {email: email, born: shift}}\n"
	p, err := mustRules(t, whole).Prepare(contents(), testKey)
	if err != nil || p.Coverage != (Coverage{Masked: 2, Kept: 3}) || len(p.Watch) != 2 {
		t.Fatalf("%+v, %d watched, %v", p.Coverage, len(p.Watch), err)
	}
	appeared := contents()
	appeared.Tables[0].Columns = append(appeared.Tables[0].Columns, engine.Column{Name: "ssn", Type: "text"})
	appeared.Tables[0].Samples = append(appeared.Tables[0].Samples, nil)
	newTable := contents()
	newTable.Tables = append(newTable.Tables, engine.Shape{Schema: "audit", Name: "log",
		Columns: []engine.Column{{Name: "line"}}, Samples: [][]string{nil}})
	objects := contents()
	objects.LargeObjects = 3
	for name, c := range map[string]struct {
		rules string
		c     engine.Contents
		want  string
	}{
		"a column that appeared": {whole, appeared, "public.customer.ssn"},
		"a table that appeared":  {whole, newTable, "audit.log.line"},
		"large objects":          {whole, objects, "3 large objects"},
		"a rule for nothing": {strings.Replace(whole, "born: shift", "born: shift, phone: phone", 1), contents(),
			"public.customer.phone"},
		"a table that is gone": {whole + "  public.old: {rows: drop}\n", contents(), "public.old (line 4, column 3)"},
		"a pattern that matches nothing": {strings.Replace(whole, "'*.id'", "'*.id', '*.jd'", 1), contents(),
			"*.jd (line 1, column 16)"},
		"undecided": {strings.Replace(whole, "born: shift", "born: decide", 1), contents(),
			"public.customer.born"},
		"nothing at all": {"{}", contents(), "public.customer.id"},
	} {
		if _, err := mustRules(t, c.rules).Prepare(c.c, testKey); snap.CodeOf(err) != snap.CodeInvalid ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table's own rule decides alone whether its rows are dropped. A pattern does not apply to it.
func TestOwnRulesDecideOnRows(t *testing.T) {
	t.Parallel()
	table := func(name string) engine.Shape {
		return engine.Shape{Schema: "public", Name: name, Columns: []engine.Column{{Name: "id", Type: "integer"},
			{Name: "who", Type: "text"}}, Samples: [][]string{nil, nil}}
	}
	for own, want := range map[string]string{
		"{columns: {id: keep, who: redact}}":             "audit_log",
		"{rows: drop}":                                   "audit_log audit_settings",
		"{rows: drop, columns: {id: keep, who: redact}}": "audit_log audit_settings",
		"{columns: {who: redact}}":                       "no rule covers public.audit_settings.id",
	} {
		rules := mustRules(t, "tables: {'public.audit_*': {rows: drop}, public.audit_settings: "+own+"}")
		c := engine.Contents{Tables: []engine.Shape{table("audit_log"), table("audit_settings")}}
		p, err := rules.Prepare(c, testKey)
		var dropped []string
		for id, plan := range p.Plan.Tables {
			if plan.DropRows {
				dropped = append(dropped, id[1])
			}
		}
		slices.Sort(dropped)
		got := strings.Join(dropped, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", own, got, want)
		}
	}
	rules := mustRules(t, "{keep: ['*.id'], tables: {'public.audit_*': {rows: drop}, public.audit_settings: {columns: "+
		"{who: redact}}}}")
	if _, err := rules.Prepare(engine.Contents{Tables: []engine.Shape{table("audit_settings")}},
		testKey); err == nil || !strings.Contains(err.Error(), "there is no public.audit_*") {
		t.Errorf("a pattern that drops nothing: %v", err)
	}
}

func TestBadRulesNameThePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tables:\n  a: {columns: {b: nonsense}}\n":                   `unknown mask "nonsense"`,
		"tables:\n  a:\n    colums: {b: keep}\n":                     "r.yaml:3:5",
		"tables: [\n":                                                "r.yaml:1",
		"\nlarge_objects: maybe\n":                                   "r.yaml:2:1: large_objects must be keep or drop",
		"tables: {a: {rows: some}}\n":                                "can only be drop",
		"tables: {a: {columns: {b: {mask: noise, percent: 900}}}}\n": "needs percent from 0 to 100",
		"tables: {a: {columns: {b: {mask: shift, days: -1}}}}\n":     "needs days of at least 0",
	} {
		if _, err := parseRules("r.yaml", []byte(text)); snap.CodeOf(err) != snap.CodeUsage ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The result of every mask depends only on the key and the value. The results of hash, email and
// name fit the column's length.
func TestMasksAreDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(MaskNames()).Draw(t, "mask")
		value := rapid.String().Draw(t, "value")
		limit := rapid.IntRange(0, 60).Draw(t, "limit")
		rule := ColumnRule{Mask: name, Value: "x", Percent: 10, Days: 9}
		one, two := makers()[name](testKey, rule, limit), makers()[name](testKey, rule, limit)
		if one == nil {
			if name != "keep" {
				t.Fatal("no mask")
			}
			return
		}
		a, aNull := one(value)
		b, bNull := two(value)
		if a != b || aNull != bNull {
			t.Fatalf("%s(%q) is %q and %q", name, value, a, b)
		}
		if limit > 0 && len([]rune(a)) > limit && (name == "hash" || name == "email" || name == "name") {
			t.Fatalf("%s(%q) has %d characters, more than %d", name, value, len([]rune(a)), limit)
		}
	})
}

func TestMasks(t *testing.T) {
	t.Parallel()
	apply := func(name, value string) string {
		out, null := makers()[name](testKey, ColumnRule{Mask: name, Value: "v"}, 0)(value)
		if null {
			return "NULL"
		}
		return out
	}
	for _, c := range []struct{ mask, value, want string }{
		{"null", "x", "NULL"}, {"constant", "x", "v"}, {"redact", "Ab-12 é", "xx-00 x"},
		{"noise", "not a number", "NULL"}, {"shift", "not a date", "NULL"}, {"email", "", ""},
	} {
		if got := apply(c.mask, c.value); got != c.want {
			t.Errorf("%s(%q) = %q, want %q", c.mask, c.value, got, c.want)
		}
	}
	phone := apply("phone", "+49 (0)30 1234-567")
	if len(phone) != len("+49 (0)30 1234-567") || phone[0] != '+' || phone == "+49 (0)30 1234-567" ||
		!strings.Contains(phone, " (") {
		t.Errorf("phone: %q", phone)
	}
	for year := 1990; year < 2020; year++ {
		if v := strconv.Itoa(year); apply("shift", v) == v || len(apply("shift", v)) != 4 {
			t.Errorf("the year %s becomes %s", v, apply("shift", v))
		}
	}
	if got := apply("shift", "2024-02-29 12:34:56.7+02"); got == "NULL" || !strings.HasSuffix(got, " 12:34:56.7+02") ||
		strings.HasPrefix(got, "2024-02-29") {
		t.Errorf("shift: %q", got)
	}
	for tail, kept := range map[string]bool{"": true, " ": true, " 24:00": true, "T12:34:56.123456Z": true,
		"+02:00": true, " 7:08 UTC": true, " 12:34:56,7": true, " 12:34:56+0530": true, " 12:34:56 -05": true,
		" 12:34:56-00:53:28 BC": true, " BC": true,
		" Maria Meyer, Hauptstr. 5": false, " 12:34:56 Maria": false, " 0151-2345678": false, " 12:34:56 0151": false,
		" 12:34:56.0123456789": false, " BC Maria": false, " 12:34\nMaria": false, "-12345": false} {
		if got := apply("shift", "1984-05-06"+tail); (got != "NULL") != kept || kept && !strings.HasSuffix(got, tail) {
			t.Errorf("shift of a date and %q: %q", tail, got)
		}
	}
	if got := apply("email", "maria@anders.example"); !strings.HasSuffix(got, "@example.com") {
		t.Errorf("email: %q", got)
	}
	other := makers()["hash"]([]byte("another key of the tests"), ColumnRule{}, 0)
	if got, _ := other("x"); got == apply("hash", "x") {
		t.Error("another key gives the same hash")
	}
	seen := map[string]bool{}
	for i := range 20_000 {
		seen[apply("email", strings.Repeat("x", i%40)+string(rune('a'+i%26))+string(rune(0x4e00+i)))] = true
	}
	if len(seen) != 20_000 {
		t.Errorf("%d different e-mail addresses of 20000", len(seen))
	}
}

// The scanner finds a value at every position of a stream, however the stream is divided.
func TestScannerFindsEveryLeak(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z]{8,40}`).Draw(t, "secret")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		stream := make([]byte, r.IntN(300))
		for i := range stream {
			stream[i] = byte('A' + r.IntN(26))
		}
		leak := rapid.Bool().Draw(t, "leak")
		if leak {
			at := r.IntN(len(stream) + 1)
			stream = append(stream[:at:at], append([]byte(secret), stream[at:]...)...)
		}
		var out bytes.Buffer
		s := NewScanner(&out, []Watched{{"t.a", "something else"}, {"t.b", secret}})
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(50))
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Result(); (err != nil) != leak || !bytes.Equal(out.Bytes(), stream) {
			t.Fatalf("leak %v, result %v", leak, err)
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"*.id", "public.customer.id", true}, {"*.id", "public.customer.paid", false}, {"a*c*", "abcd", true},
		{"", "", true}, {"a", "ab", false}, {"*", "", true}, {"public.*_2024", "public.p_2023", false}} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestSuggestWritesRulesThatAreRead(t *testing.T) {
	t.Parallel()
	c := contents()
	c.LargeObjects = 1
	c.Tables = append(c.Tables, engine.Shape{Name: "odd: 'name' #1",
		Columns: []engine.Column{{Name: "yes"}, {Name: "a b: c", Type: "bytea"}, {Name: "contact", Type: "text"}},
		Samples: [][]string{nil, nil, {"a@b.example"}}},
		engine.Shape{Name: "nothing"})
	text, err := Suggest(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRules(path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := r.Tables["public.customer"].Columns; got["email"].Mask != "email" || got["born"].Mask != "shift" ||
		got["id"].Mask != "keep" {
		t.Errorf("customer: %+v", got)
	}
	if got := r.Tables["odd: 'name' #1"].Columns; got["contact"].Mask != "email" || got["a b: c"].Mask != "null" ||
		got["yes"].Mask != Undecided {
		t.Errorf("odd: %+v", got)
	}
	if _, err := r.Prepare(c, testKey); err == nil || !strings.Contains(err.Error(), "no decision has been made") {
		t.Errorf("undecided columns were accepted: %v", err)
	}
	if strings.Contains(string(text), "anders") {
		t.Error("a sampled value is in the rules file")
	}
}

// Engines use a mask for several values concurrently.
func TestMasksAtATime(t *testing.T) {
	t.Parallel()
	mask := makers()["email"](testKey, ColumnRule{}, 0)
	want := map[string]string{}
	for i := range 200 {
		v := strconv.Itoa(i)
		want[v], _ = mask(v)
	}
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for v, masked := range want {
				if got, _ := mask(v); got != masked {
					return fmt.Errorf("%s became %s, and %s alone", v, got, masked)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// With any names of tables and columns, the suggested rules file can be read and
// covers them.
func TestSuggestWritesAnyName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"a\nb", "a\n  b: keep", "\x1b[31mred", "a: b", "- a", "#", "'",
			`"`, `\`, "{}", "null", "true", "1", "~", "\x85", "\u2028", "\ufeff", "\t", " a ", "a #b", "|-", "<<", "&a",
			"*", "\x7f", "a\rb",
		}))
		shape := engine.Shape{Name: name.Draw(t, "table"),
			Columns: []engine.Column{{Name: name.Draw(t, "column"), Type: "integer"}}, Samples: [][]string{nil}}
		text, err := Suggest(engine.Contents{Tables: []engine.Shape{shape}})
		if snap.CodeOf(err) == snap.CodeInvalid && err != nil {
			t.Skip("it says that it cannot")
		}
		if err != nil {
			t.Fatal(err)
		}
		rules, err := parseRules("rules.yaml", text)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if _, _, ok := rules.find(shape, shape.Columns[0].Name); !ok {
			t.Fatalf("%q is not covered:\n%s", shape.Name, text)
		}
	})
}

// The suggested rules file can contain names with escapes and line breaks.
func TestSuggestWritesEscapesAndNewlines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a\nb", "\x1b[31mred", "a\rb", "tab\there", "quote\"d", `back\slash`, "größe 東京"} {
		if key, err := yamlKey(name); err != nil {
			t.Errorf("%q: %v, %s", name, err, key)
		}
	}
}

// The first and the last day of four-digit years, which often mean "unknown" or "never", stay dates.
func TestShiftStaysInFourDigitYears(t *testing.T) {
	t.Parallel()
	for i := range 40 {
		mask := shift(fmt.Appendf(nil, "key number %d", i), ColumnRule{}, 0)
		for _, v := range []string{"9999-12-31", "0001-01-01", "9999-12-31 23:59:59", "9999", "0001"} {
			if got, null := mask(v); null || len(got) != len(v) || got == v || strings.HasPrefix(got, "0000") {
				t.Fatalf("%s becomes %q", v, got)
			}
		}
	}
}

// The first and the last second of MySQL's type TIMESTAMP stay inside of it.
func TestShiftStaysInTimestamps(t *testing.T) {
	t.Parallel()
	c := &column{typ: personal.ParseType("timestamp(6)")}
	for i := range 40 {
		mask := maskOf(fmt.Appendf(nil, "key number %d", i), ColumnRule{Mask: "shift"}, c)
		for _, v := range []string{"1970-01-01 00:00:01", "2038-01-19 03:14:07.999999", "2038-01-18 03:14:08"} {
			got, null := mask(v)
			if null || got[10:] != v[10:] || got == v || got < "1970-01-01 00:00:01" || got >= "2038-01-19 03:14:08" {
				t.Fatalf("%s becomes %q", v, got)
			}
		}
	}
}

// A SQL file that masks nothing is refused.
func TestReadSQL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"UPDATE a SET b = 'x'": "", "-- a\n/* b */ UPDATE a SET b = 'x'": "", "\ufeff": "no statement",
		"-- a\n/* b */;": "no statement", "/*/ UPDATE a SET b = 'x'": "no statement",
		"UPDATE a SET b = 'x'; \x00 UPDATE c SET d = 'x'": "NUL",
	} {
		path := filepath.Join(t.TempDir(), "mask.sql")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSQL(path)
		if (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
