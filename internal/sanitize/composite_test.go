package sanitize

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
)

// withAddress returns a table with a composite type, a nested one, and an array of them.
func withAddress() engine.Contents {
	address := []engine.Column{{Name: "street", Type: "text"}, {Name: "zip", Type: "integer"},
		{Name: "kind", Type: "boolean"}}
	return engine.Contents{
		Composites: map[[2]string][]engine.Column{{"public", "place"}: address,
			{"public", "contact"}: {{Name: "email", Type: "text"}, {Name: "home", Type: "public.place"}},
			{"public", "size"}:    {{Name: "width", Type: "integer"}, {Name: "height", Type: "integer"}}},
		Tables: []engine.Shape{{Schema: "public", Name: "shop",
			Columns: []engine.Column{{Name: "at", Type: "public.place"}, {Name: "who", Type: "public.contact"},
				{Name: "branches", Type: "public.place[]"}, {Name: "box", Type: "public.size"}},
			Samples: [][]string{{`("12 Linden ""B"" Street, rear",10115,t)`, `(,,)`},
				{`(maria.meyer@real.example,"(\"4 Oak Avenue East\",20095,f)")`},
				{`{"(\"7 Elm Square North\",1010,t)",NULL}`}, {"(3,4)", "(5,6)"}}}}}
}

// Every field is masked by its own rule. The structure, NULL fields and the array stay. Fields that
// the rule does not name are redacted, or become NULL if their type cannot hold redacted text.
func TestCompositesFieldByField(t *testing.T) {
	t.Parallel()
	rules := mustRules(t, `
tables:
  public.shop:
    columns:
      at: {mask: composite, paths: {zip: key, kind: keep}}
      who: {mask: composite, paths: {email: email, home: {mask: composite, paths: {kind: keep}}}}
      branches: redact
      box: keep
`)
	p, err := rules.Prepare(withAddress(), proposalKey)
	if err != nil {
		t.Fatal(err)
	}
	masks := p.Plan.Tables[[2]string{"public", "shop"}].Columns
	at, _ := masks["at"](`("12 Linden ""B"" Street, rear",10115,t)`)
	fields, ok := parseRow(at)
	if !ok || *fields[0] != `00 xxxxxx "x" xxxxxx, xxxx` || *fields[1] == "10115" || len(*fields[1]) != 5 ||
		*fields[2] != "t" {
		t.Errorf("at: %s", at)
	}
	if empty, _ := masks["at"]("(,,)"); empty != "(,,)" {
		t.Errorf("NULL fields: %s", empty)
	}
	who, _ := masks["who"](`(maria.meyer@real.example,"(\"4 Oak Avenue East\",20095,f)")`)
	fields, _ = parseRow(who)
	if !strings.HasSuffix(*fields[0], "@example.com") || *fields[1] != `("0 xxx xxxxxx xxxx","00000","f")` {
		t.Errorf("who: %s", who)
	}
	all, _ := masks["branches"](`{"(\"7 Elm Square North\",1010,t)",NULL}`)
	if all != `{"(\"0 xxx xxxxxx xxxxx\",\"0000\",)",NULL}` {
		t.Errorf("branches: %s", all)
	}
	watched := map[string]bool{}
	for _, w := range p.Originals {
		watched[w.Column+" "+w.Value] = true
	}
	for _, want := range []string{`public.shop.at 12 Linden "B" Street, rear`,
		"public.shop.who maria.meyer@real.example", "public.shop.who 4 Oak Avenue East",
		"public.shop.branches 7 Elm Square North"} {
		if !watched[want] {
			t.Errorf("%s is not searched for", want)
		}
	}
}

// A rule is refused if it names a field that does not exist, or if a field cannot hold its mask.
func TestCompositesAreChecked(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"{mask: composite, paths: {town: city}}": "it has no field town; it has street, zip, kind",
		"{mask: composite, paths: {zip: email}}": "its field zip cannot be masked by email",
		"email":                                  "cannot hold the values of email",
		"{mask: composite, paths: {street: {mask: composite, paths: {a: name}}}}": "its type has no fields",
	} {
		rules := mustRules(t, "keep: ['*']\ntables:\n  public.shop:\n    columns:\n      at: "+rule+"\n")
		_, err := rules.Prepare(withAddress(), proposalKey)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), " (line 5, column 7)") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// Suggested rules judge each field and can be used.
func TestFirstRulesOfComposites(t *testing.T) {
	t.Parallel()
	c := withAddress()
	text, err := Suggest(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`who: {mask: composite, paths: {"email": email, "home": {mask: composite, paths: {`,
		`"street": address`, "box: keep"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if _, err := mustRules(t, string(text)).Prepare(c, proposalKey); err != nil {
		t.Error(err)
	}
}

// Suggested rules for a composite column that must stay unique can be used too, although no mask of
// its fields keeps it unique.
func TestFirstRulesOfUniqueComposites(t *testing.T) {
	t.Parallel()
	c := withAddress()
	c.Tables[0].Definitions = []string{"CREATE UNIQUE INDEX i ON public.shop USING btree (at, who)"}
	text, err := Suggest(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`at: "null"`, `who: "null"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if _, err := mustRules(t, string(text)).Prepare(c, proposalKey); err != nil {
		t.Error(err)
	}
}

// Only the indexed columns of a unique index must stay unique. Its name, its condition and the
// columns that it includes have no effect.
func TestColumnsOfUniqueIndexes(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"CREATE UNIQUE INDEX box ON public.shop USING btree (at) INCLUDE (who) WHERE (branches IS NOT NULL)": "at",
		"create unique index i on shop (WHO, lower(box)) where at = 1":                                       "who box",
	} {
		c := withAddress()
		c.Tables[0].Definitions = []string{sql}
		f := factsOf(c)
		var got []string
		for _, col := range c.Tables[0].Columns {
			if f.columns[columnID{"public", "shop", col.Name}].unique {
				got = append(got, col.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", sql, got, want)
		}
	}
}

// Values of composite types are read exactly as they were written, regardless of their content.
func TestRowsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfN(rapid.Ptr(rapid.String(), true), 2, 5).Draw(t, "fields")
		got, ok := parseRow(writeRow(fields))
		if !ok || len(got) != len(fields) {
			t.Fatalf("%q", writeRow(fields))
		}
		for i := range fields {
			if (got[i] == nil) != (fields[i] == nil) || got[i] != nil && *got[i] != *fields[i] {
				t.Fatalf("field %d of %q", i, writeRow(fields))
			}
		}
	})
}
