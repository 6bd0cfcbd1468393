package sanitize

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

// Originals are found in upper and lower case, inside JSON documents and arrays,
// and as dumps escape them.
func TestLeaksInEveryForm(t *testing.T) {
	t.Parallel()
	const original = `Zoë "Ann" O\Neil`
	var watched []Watched
	for _, f := range formsOf(original) {
		watched = append(watched, Watched{"t.name", f})
	}
	for _, stream := range []string{
		original, strings.ToUpper(original), strings.ToLower(original),
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
	s := NewScanner(io.Discard, watched)
	if _, err := s.Write([]byte("Zoe Ann ONeil and others")); err != nil || s.Leaked() {
		t.Error("found where it is not")
	}
}

// The report names tables, columns, rows and the rule that would mask them, and
// no value.
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
	err := l.Result(false, FixByRule)
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

// Values that SQL did not take out of their column are no leak; the others are.
func TestLocatorAfterSQL(t *testing.T) {
	t.Parallel()
	c := engine.Contents{Tables: []engine.Shape{{Name: "person",
		Columns: []engine.Column{{Name: "name"}, {Name: "city"}}},
		{Name: "log", Columns: []engine.Column{{Name: "line"}}}}}
	l := NewLocator([]Watched{{"person.name", "Maria Original"}, {"person.city", "Springfield"}})
	plan := l.Plan(engine.Plan{}, c)
	plan.Tables[[2]string{"", "person"}].Columns["city"]("Springfield")
	plan.Tables[[2]string{"", "log"}].Columns["line"]("moved to Springfield")
	if err := l.Result(true, FixBySQL); err != nil {
		t.Errorf("an unchanged column is called a leak: %v", err)
	}
	plan.Tables[[2]string{"", "log"}].Columns["line"]("greetings to maria original")
	if err := l.Result(true, FixBySQL); err == nil || strings.Contains(err.Error(), "person.city") {
		t.Errorf("%v", err)
	}
}

// Masks that draw from lists never give an original of their columns, and give
// equal values for equal ones.
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
