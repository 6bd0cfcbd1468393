package sanitize

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
)

// watchedOf returns the values to search for if a column has this original.
func watchedOf(column, original string) (all []Watched) {
	for _, f := range formsOf(original) {
		all = append(all, Watched{column, f})
	}
	return all
}

// Originals are found in upper and lower case, inside JSON documents and arrays,
// and in the escaped forms of dumps.
func TestLeaksInEveryForm(t *testing.T) {
	t.Parallel()
	watched := watchedOf("t.name", `Zoë "Ann" O\Neil`)
	for _, stream := range []string{
		`Zoë "Ann" O\Neil`, `ZOË "ANN" O\NEIL`, `zoë "ann" o\neil`,
		`{"name":"Zoë \"Ann\" O\\Neil"}`, `{"name":"Zo\u00eb \"Ann\" O\\Neil"}`, `{"Zoë \\"Ann\\" O\\\\Neil"}`,
	} {
		s := NewScanner(io.Discard, watched)
		for _, b := range []byte("before " + stream + " after") {
			if _, err := s.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if !s.Leaked() {
			t.Errorf("not found: %s", stream)
		}
	}
	for _, name := range []string{"Łukasz Nowak", "Юрий Сорокин", "Δέσποινα Ρίζου", "Şeyma Öztürk"} {
		for _, original := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
			streams := []string{name, strings.ToUpper(name), strings.ToLower(name)}
			for _, cased := range []string{original, strings.ToUpper(original), strings.ToLower(original)} {
				streams = append(streams, strings.Trim(strconv.QuoteToASCII(cased), `"`))
			}
			for _, stream := range streams {
				s := NewScanner(io.Discard, watchedOf("t.name", original))
				if _, err := s.Write([]byte(stream)); err != nil || !s.Leaked() {
					t.Errorf("%s is not found in %s, %v", original, stream, err)
				}
			}
		}
	}
	s := NewScanner(io.Discard, watched)
	if _, err := s.Write([]byte("Zoe Ann ONeil and others")); err != nil || s.Leaked() {
		t.Error("found where it is not")
	}
}

// A value does not begin with the second backslash of a pair, wherever writes end.
func TestPairsOfBackslashes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`\nabcdefgh`: false, `
abcdefgh`: true, `x\
abcdefgh`: true, `x\\nabcdefgh`: false, `x
abcdefgh`: true,
	} {
		for split := range len(text) {
			s := NewScanner(io.Discard, []Watched{{"t.a", `
abcdefgh`}, {"t.b", "something much longer than that"}})
			for _, part := range []string{text[:split], text[split:]} {
				if _, err := s.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if s.Leaked() != want {
				t.Errorf("%s, split at %d: %v", text, split, s.Leaked())
			}
		}
	}
}

// Different bytes that are not UTF-8 are different values.
func TestBytesAreExact(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]bool{
		"x\xff\xfe\x80abcdefGH": true, "x\xfe\xfe\x80abcdefgh": false, "x\xff\xfe\x80abcdefg(": false,
	} {
		s := NewScanner(io.Discard, []Watched{{"t.a", "\xff\xfe\x80abcdefgh"}})
		if _, err := s.Write([]byte(stream)); err != nil || s.Leaked() != want {
			t.Errorf("%q: %v, %v", stream, s.Leaked(), err)
		}
	}
}

// The report names tables, columns, rows and the rule that would mask them. It
// contains no value.
func TestLocator(t *testing.T) {
	t.Parallel()
	c := engine.Contents{Tables: []engine.Shape{{Name: "person", Columns: []engine.Column{{Name: "email"}}},
		{Name: "log", Columns: []engine.Column{{Name: "line"}}}}}
	l := NewLocator([]Watched{{"person.email", "maria@real.example"}, {"person.email", "jan@real.example"}})
	plan := l.Plan(engine.Plan{Tables: map[[2]string]engine.TablePlan{
		{"", "person"}: {Columns: map[string]engine.Mask{"email": makers()["email"](testKey, ColumnRule{}, 0)}},
	}}, c)
	for i := range 10 {
		v := fmt.Sprintf("login of MARIA@REAL.EXAMPLE, time %d", i)
		if out, null := plan.Tables[[2]string{"", "log"}].Columns["line"](v); out != v || null {
			t.Fatalf("%q became %q", v, out)
		}
		plan.Tables[[2]string{"", "person"}].Columns["email"]("maria@real.example")
	}
	err := l.Result(false)
	if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(),
		"those of person.email in log.line (rows: at least 10)") ||
		strings.Contains(strings.ToLower(err.Error()), "maria") {
		t.Errorf("%v", err)
	}
	var hint *snap.Error
	if hint = err.(*snap.Error); !strings.Contains(hint.Hint, "log: {columns: {line: redact}}") {
		t.Errorf("hint %q", hint.Hint)
	}
}

// A permutation of all values of a form makes each original from another value. That is not a leak.
// It is a leak if the original was part of the value that was masked, or if a pattern assembled it.
func TestCoincidencesAreNoLeaks(t *testing.T) {
	t.Parallel()
	var plates []string
	for c := 'a'; c <= 'z'; c++ {
		plates = append(plates, string(c)+"-/-/-/-")
	}
	shapes := []engine.Shape{
		{Name: "car", Columns: []engine.Column{{Name: "plate", Type: "text"}}, Samples: [][]string{plates}},
		{Name: "person", Columns: []engine.Column{{Name: "name", Type: "text"}, {Name: "sorted", Type: "text"}},
			Samples: [][]string{{"Maria Original"}, {"Original, Maria"}}},
	}
	for _, c := range []struct {
		name string
		mask string
		want string
	}{
		{"found in no other column", "redact", ""},
		{"put together by a pattern", "{mask: replace, pattern: '(.*), (.*)', with: '$2 $1'}",
			"those of person.name in person.sorted"},
	} {
		p, err := mustRules(t, "tables:\n  car: {columns: {plate: key}}\n  person: {columns: {name: name, sorted: "+
			c.mask+"}}\n").Prepare(engine.Contents{Tables: shapes}, testKey)
		if err != nil {
			t.Fatal(err)
		}
		s, l := NewScanner(io.Discard, p.Watch), p.Locator()
		plan := l.Plan(p.Plan, engine.Contents{Tables: shapes})
		for _, shape := range shapes {
			for i, column := range shape.Columns {
				for _, v := range shape.Samples[i] {
					masked, _ := plan.Tables[[2]string{"", shape.Name}].Columns[column.Name](v)
					if _, err := s.Write([]byte(masked + "\n")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !s.Leaked() {
			t.Fatalf("%s: no coincidence, so the test is void", c.name)
		}
		s.Ignore(p.Forms(l.Coincidences()...))
		err = l.Result(false)
		if s.Leaked() != (c.want != "") || (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) || err != nil && strings.Contains(err.Error(), "car.plate") {
			t.Errorf("%s: %v, %v", c.name, s.Result(), err)
		}
	}
}

// Values that SQL left in their own column are not leaks in other columns. Values that SQL removed
// from their own column are.
func TestLocatorAfterSQL(t *testing.T) {
	t.Parallel()
	c := engine.Contents{Tables: []engine.Shape{{Name: "person",
		Columns: []engine.Column{{Name: "name"}, {Name: "city"}}},
		{Name: "log", Columns: []engine.Column{{Name: "line"}}}}}
	l := NewLocator([]Watched{{"person.name", "Maria Original"}, {"person.city", "Springfield"}})
	plan := l.Plan(engine.Plan{}, c)
	plan.Tables[[2]string{"", "person"}].Columns["city"]("Springfield")
	plan.Tables[[2]string{"", "log"}].Columns["line"]("moved to Springfield")
	if err := l.Result(true); err != nil {
		t.Errorf("an unchanged column is called a leak: %v", err)
	}
	plan.Tables[[2]string{"", "log"}].Columns["line"]("greetings to maria original")
	err := l.Result(true)
	if err == nil || strings.Contains(err.Error(), "person.city") {
		t.Errorf("%v", err)
	}
	var e *snap.Error
	if !errors.As(err, &e) || !strings.HasSuffix(e.Hint, shareBySQL) {
		t.Errorf("the hint names no way to share a column by SQL: %+v", e)
	}
}

// Masks that draw from lists never return an original of their columns, and they
// return equal values for equal originals.
func TestDrawnMasksAvoidOriginals(t *testing.T) {
	t.Parallel()
	var originals []string
	for i := range 200 {
		originals = append(originals, firstNames[i])
	}
	c := engine.Contents{Tables: []engine.Shape{
		{Name: "a", Columns: []engine.Column{{Name: "x"}}, Samples: [][]string{originals}},
		{Name: "b", Columns: []engine.Column{{Name: "y"}}, Samples: [][]string{{"somebody"}}},
	}}
	p, err := mustRules(t, "tables:\n  a: {columns: {x: first_name}}\n  b: {columns: {y: first_name}}\n").Prepare(c,
		testKey)
	if err != nil {
		t.Fatal(err)
	}
	x, y := p.Plan.Tables[[2]string{"", "a"}].Columns["x"], p.Plan.Tables[[2]string{"", "b"}].Columns["y"]
	of := map[string]bool{}
	for _, v := range originals {
		of[v] = true
	}
	for i := range 5000 {
		v := fmt.Sprintf("person %d", i)
		one, _ := x(v)
		two, _ := y(v)
		if of[one] || one != two {
			t.Fatalf("%s becomes %s and %s", v, one, two)
		}
	}
}

// A word that is invented because every listed word is an original is no original either, even if
// it must be short.
func TestInventedWordsAvoidOriginals(t *testing.T) {
	t.Parallel()
	all := map[string]bool{}
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			all[string(a)+string(b)] = true
		}
	}
	delete(all, "xx")
	jo := func(string) (string, bool) { return "Jo", false }
	mask := avoided{"first_name": all}.wrap(jo, "first_name", testKey, 2)
	for _, v := range []string{"Al", "Ed", "Li"} {
		if got, _ := mask(v); all[strings.ToLower(got)] {
			t.Errorf("%s becomes %s", v, got)
		}
	}
}

// Masks that draw from lists also avoid originals inside values, even originals that were not
// sampled: in documents, XML, arrays and composite values, and where they are the mask for other
// parts.
func TestDrawnMasksAvoidNestedOriginals(t *testing.T) {
	t.Parallel()
	const person = "public.person"
	of := map[string]bool{}
	for i := range 200 {
		of[firstNames[i]] = true
	}
	for name, c := range map[string]struct{ typ, rule, form, before string }{
		"document": {"jsonb", "{mask: json, paths: {$.who.name: first_name}}", `{"who":{"name":%q}}`, `:{"name":"`},
		"the rest": {"jsonb", "{mask: json, paths: {$.id: key}, otherwise: first_name}", `{"a":[%q]}`, `["`},
		"XML":      {"xml", "{mask: xml, paths: {p/@n: first_name}}", "<p n=%q/>", `n="`},
		"array":    {"text[]", "first_name", "{%q,NULL}", `{"`},
		"field":    {"contact", "{mask: composite, paths: {name: first_name}}", "(%q,1)", `("`},
		"fields":   {"contact[]", "{mask: composite, paths: {name: first_name}}", `{"(%s,1)"}`, `{"(\"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contents := engine.Contents{
				Composites: map[[2]string][]engine.Column{
					{"public", "contact"}: {{Name: "name", Type: "text"}, {Name: "n", Type: "integer"}}},
				Tables: []engine.Shape{{Schema: "public", Name: "person",
					Columns: []engine.Column{{Name: "x", Type: c.typ}}, Samples: [][]string{{}}}},
			}
			rules := mustRules(t, "tables:\n  "+person+": {columns: {x: "+c.rule+"}}\n")
			see := rules.Every("public", "person", "x")
			for original := range of {
				see(fmt.Sprintf(c.form, original))
			}
			p, err := rules.Prepare(contents, testKey)
			if err != nil {
				t.Fatal(err)
			}
			mask := p.Plan.Tables[[2]string{"public", "person"}].Columns["x"]
			for i := range 3000 {
				v := fmt.Sprintf(c.form, fmt.Sprintf("person %d", i))
				masked, _ := mask(v)
				_, after, found := strings.Cut(masked, c.before)
				drawn := strings.FieldsFunc(after, func(r rune) bool { return strings.ContainsRune(`"\<`, r) })
				if !found || len(drawn) == 0 || of[drawn[0]] {
					t.Fatalf("%s becomes %s", v, masked)
				}
			}
		})
	}
}

// Originals are found in the escapes of other writers of JSON, in the stream and after SQL.
func TestEscapesOfOtherWriters(t *testing.T) {
	t.Parallel()
	for original, stream := range map[string]string{
		"https://x.example/maria": `{"u":"https:\/\/x.example\/maria"}`,
		"Miller & Sons <Ltd>":     `{"n":"Miller \u0026 Sons \u003CLtd\u003E"}`,
	} {
		for _, s := range []string{stream, strings.ReplaceAll(stream, `\`, `\\`)} {
			scan := NewScanner(io.Discard, watchedOf("t.c", original))
			if _, err := scan.Write([]byte(s)); err != nil || !scan.Leaked() {
				t.Errorf("%s is not found in %s, %v", original, s, err)
			}
		}
	}
	c := engine.Contents{Tables: []engine.Shape{{Name: "log", Columns: []engine.Column{{Name: "line"}}}}}
	l := NewLocator([]Watched{{"person.name", `Zoë "Ann" Oneil`}})
	l.Plan(engine.Plan{}, c).Tables[[2]string{"", "log"}].Columns["line"](`{"n":"Zo\u00eb \"Ann\" Oneil"}`)
	if l.Result(true) == nil {
		t.Error("an escaped original is not found after SQL")
	}
}

// An original that a rule keeps at a path is a leak and not a coincidence.
func TestKeptPathsAreNoCoincidence(t *testing.T) {
	t.Parallel()
	shapes := []engine.Shape{
		{Name: "event", Columns: []engine.Column{{Name: "body", Type: "json"}},
			Samples: [][]string{{`{"n":"Miller \u0026 Sons Ltd"}`}}},
		{Name: "person", Columns: []engine.Column{{Name: "name", Type: "text"}},
			Samples: [][]string{{"Miller & Sons Ltd"}}},
	}
	for _, rule := range []string{"{mask: json, paths: {n: keep}}",
		"{mask: json, paths: {x: redact}, otherwise: keep}"} {
		p, err := mustRules(t, "tables:\n  event: {columns: {body: "+rule+
			"}}\n  person: {columns: {name: company}}\n").Prepare(engine.Contents{Tables: shapes}, testKey)
		if err != nil {
			t.Fatal(err)
		}
		l := p.Locator()
		body := l.Plan(p.Plan, engine.Contents{Tables: shapes}).Tables[[2]string{"", "event"}].Columns["body"]
		body(shapes[0].Samples[0][0])
		if len(l.Coincidences()) > 0 || l.Result(false) == nil {
			t.Errorf("%s: a kept original is called a coincidence", rule)
		}
	}
}

// Only the beginning of a long original is searched for. It finds the whole original.
func TestLongOriginals(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("0123456789abcdefgé", 8<<20/19)
	c := engine.Contents{Tables: []engine.Shape{{Name: "paper", Columns: []engine.Column{{Name: "text", Type: "text"}},
		Samples: [][]string{{long}}}}}
	p, err := mustRules(t, "tables: {paper: {columns: {text: redact}}}").Prepare(c, testKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(Originals(c, ""), p.Watch...) {
		if len(w.Value) > 2*maxWatched {
			t.Errorf("a value of %d bytes is searched for", len(w.Value))
		}
	}
	for stream, want := range map[string]bool{"before " + long + " after": true, long[:maxWatched/2]: false} {
		s := NewScanner(io.Discard, p.Watch)
		if _, err := s.Write([]byte(stream)); err != nil || s.Leaked() != want {
			t.Errorf("%d bytes: %v, %v", len(stream), s.Leaked(), err)
		}
	}
	l := NewLocator(Originals(c, ""))
	l.Plan(engine.Plan{}, c).Tables[[2]string{"", "paper"}].Columns["text"](long)
	if err := l.Result(true); err != nil {
		t.Errorf("an unchanged column is called a leak: %v", err)
	}
	p, err = mustRules(t, `tables: {paper: {columns: {text: {mask: replace, pattern: "é$", otherwise: keep}}}}`).
		Prepare(c, testKey)
	if err != nil || len(p.Watch) > 0 {
		t.Errorf("%d beginnings that the rule keeps are searched for, %v", len(p.Watch), err)
	}
}

// misfit does not try the mask named key on long values, because that takes very long.
func TestKeyOfLongValues(t *testing.T) {
	t.Parallel()
	c := &column{typ: personal.ParseType("text"), samples: []string{strings.Repeat("abc123", 1<<20)}}
	if why := misfit(testKey, ColumnRule{Mask: "key"}, c); why != "its values are too long" {
		t.Error(why)
	}
}
