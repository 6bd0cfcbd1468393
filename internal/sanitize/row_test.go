package sanitize

import (
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// people returns the columns for the tests of rules that depend on the row.
func people(linked ...schema.ForeignKey) engine.Contents {
	columns := func(names ...string) (all []engine.Column) {
		for _, n := range names {
			all = append(all, engine.Column{Name: n, Type: "text"})
		}
		return all
	}
	return engine.Contents{
		Tables: []engine.Shape{
			{Name: "person", Columns: columns("id", "first", "last", "role", "full", "email"),
				Samples: [][]string{{"P-1001"}, {"Maria"}, {"Meyer"}, {"staff"}, {"Maria Meyer"},
					{"maria@real.example"}}},
			{Name: "visit", Columns: columns("person"), Samples: [][]string{{"P-1001"}}},
		},
		Schema: &schema.Schema{Tables: []schema.Table{
			{Name: schema.Name{Name: "person"}, Keys: []schema.Key{{Primary: true,
				Columns: []schema.KeyColumn{{Name: "id"}}}}},
			{Name: schema.Name{Name: "visit"}, ForeignKeys: linked},
		}},
	}
}

var visits = schema.ForeignKey{Columns: []string{"person"}, To: schema.Name{Name: "person"}, ToColumns: []string{"id"}}

// A row mask gets the originals of the columns that it needs. Templates contain masked values only.
func TestRowMasks(t *testing.T) {
	t.Parallel()
	p, err := mustRules(t, `tables:
  person:
    columns:
      id: {mask: key, apply_to_references: true}
      first: first_name
      last: {mask: last_name, when: "role <> 'boss'", else: redact}
      role: keep
      full: {mask: template, template: "{{{first|left:1}. {last|upper} {role|or:none}{first|title}"}
      email: {mask: email, when: "role <> 'staff' AND NOT last IS NULL", else: keep}
keep: ["visit.person"]
`).Prepare(people(visits), testKey)
	if err != nil {
		t.Fatal(err)
	}
	plan := p.Plan.Tables[[2]string{"", "person"}]
	masked := func(column, v string, row map[string]string) string {
		t.Helper()
		m := plan.Rows[column]
		others := make([]*string, len(m.Needs))
		for i, need := range m.Needs {
			if text, ok := row[need]; ok {
				others[i] = &text
			}
		}
		out, null := m.Mask(v, others)
		if null {
			return "NULL"
		}
		return out
	}
	first, _ := plan.Columns["first"]("Maria")
	last, _ := plan.Columns["last"]("Meyer")
	staff := map[string]string{"first": "Maria", "last": "Meyer", "role": "staff"}
	boss := map[string]string{"first": "Maria", "last": "Meyer", "role": "boss"}
	unknown := map[string]string{"last": "Meyer"}
	for _, c := range []struct{ what, got, want string }{
		{"a template", masked("full", "x", staff), "{" + first[:1] + ". " + strings.ToUpper(last) + " staff" + first},
		{"with the other mask of a column", masked("full", "x", boss), "{" + first[:1] + ". XXXXX boss" + first},
		{"with NULL", masked("full", "x", unknown), "{. " + strings.ToUpper(last) + " none"},
		{"a false condition", masked("email", "maria@real.example", staff), "maria@real.example"},
		{"else with a mask", masked("last", "Meyer", boss), "xxxxx"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	for what, row := range map[string]map[string]string{"true": boss, "not decided": unknown} {
		if got := masked("email", "maria@real.example", row); !strings.HasSuffix(got, "@example.com") {
			t.Errorf("a condition that is %s: %q", what, got)
		}
	}
	one, _ := plan.Columns["id"]("P-1001")
	two, _ := p.Plan.Tables[[2]string{"", "visit"}].Columns["person"]("P-1001")
	if one != two || one == "P-1001" {
		t.Errorf("the key became %q, and in its reference %q", one, two)
	}
	for _, w := range p.Originals {
		if w.Column == "person.email" {
			t.Error("values that a condition keeps are searched for")
		}
	}
}

// A rule that depends on the row and cannot be used is refused.
func TestRowMasksFit(t *testing.T) {
	t.Parallel()
	const unique = "its values must stay unique"
	const rest = "first: name, last: name, role: keep, email: email"
	for columns, want := range map[string]string{
		"id: key, full: {mask: template, template: '{nobody}'}, " + rest:                    `no column "nobody"`,
		"id: key, full: {mask: redact, when: 'nothing = 1', else: keep}, " + rest:           `no column "nothing"`,
		"id: key, full: {mask: template, template: '{full}'}, " + rest:                      "which is a template too",
		"id: {mask: key, when: \"role = 'x'\", else: keep}, full: name, " + rest:            unique,
		"id: {mask: template, template: '{role}'}, full: name, " + rest:                     unique,
		"id: key, full: {mask: redact, when: \"role = 'x'\", else: integer}, n: x, " + rest: `unknown mask "x"`,
	} {
		text := "tables:\n  person: {columns: {" + columns + "}}\n  visit: {columns: {person: key}}\n"
		code := snap.CodeUsage
		rules, err := parseRules("r.yaml", []byte(text))
		if err == nil {
			code = snap.CodeInvalid
			_, err = rules.Prepare(people(), testKey)
		}
		if err == nil || !strings.Contains(err.Error(), want) || snap.CodeOf(err) != code {
			t.Errorf("%s: %s, %v", columns, snap.CodeOf(err), err)
		}
	}
	linked := people(visits)
	_, err := mustRules(t, "tables:\n  person: {columns: {id: key, full: name, "+rest+"}}\n"+
		"  visit: {columns: {person: {mask: key, when: 'person IS NULL', else: keep}}}\n").Prepare(linked, testKey)
	if err == nil || !strings.Contains(err.Error(), "it is part of a foreign key") {
		t.Errorf("a condition in a foreign key: %v", err)
	}
}

// SQLite ignores the case of names, so a reference can write them in another case.
func TestReferencesInOtherCase(t *testing.T) {
	t.Parallel()
	for _, link := range []schema.ForeignKey{
		{Columns: []string{"Person"}, To: schema.Name{Name: "PERSON"}, ToColumns: []string{"ID"}},
		{Columns: []string{"person"}, To: schema.Name{Name: "Person"}},
	} {
		c := people(link)
		c.Tables[0].Columns[0].Name = "id"
		rules := mustRules(t, "keep: ['visit.*']\ntables:\n  person: {columns: {'*': redact, "+
			"id: {mask: key, apply_to_references: true}}}\n")
		p, err := rules.Prepare(c, testKey)
		if err != nil {
			t.Fatal(err)
		}
		if mask := p.Chosen[[2]string{"", "visit"}]["person"]; mask != "key" {
			t.Errorf("%v: the reference is masked by %s", link, mask)
		}
		if text, err := Suggest(c); err != nil || strings.Count(string(text), "equal in tables that refer") != 2 {
			t.Errorf("%v: %v in\n%s", link, err, text)
		}
	}
}
