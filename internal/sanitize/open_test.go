package sanitize

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// written writes a rules file, unless its content is "-".
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if text != "-" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// twoTables returns a dump with two tables.
func twoTables() engine.Contents {
	emails := []string{"ann@private.test", "bob@private.test"}
	return engine.Contents{Tables: []engine.Shape{
		{Name: "people", Columns: []engine.Column{{Name: "id", Type: "integer"}, {Name: "email", Type: "text"},
			{Name: "x: y # z", Type: "text"}, {Name: "phone", Type: "text"}},
			Samples: [][]string{{"1", "2"}, emails, {"q1", "w2"}, nil}},
		{Name: "log", Columns: []engine.Column{{Name: "email", Type: "text"}, {Name: "size", Type: "integer"}},
			Samples: [][]string{emails, {"3", "4"}}},
	}}
}

// The open columns of a file are those without a rule and those that are undecided. The content of the
// file stays, and each decision is added with its reason.
func TestOpenColumns(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		file string // "-" is no file
		open string
		want []string // lines that the decided file has
	}{
		"no file": {"-", "people.id people.email people.x: y # z people.phone log.email log.size",
			[]string{"tables:", "  people:", "      email: email", "  log:"}},
		"empty": {"", "people.id people.email people.x: y # z people.phone log.email log.size",
			[]string{"tables:", "      email: email"}},
		"without tables": {"keep: [\"*.id\"] # mine", "people.email people.x: y # z people.phone log.email log.size",
			[]string{`keep: ["*.id"] # mine`, "tables:", "  people:"}},
		"a new column": {"# top\ntables:\n    people:\n        columns:\n" +
			"            # the number\n            id: keep\n" +
			"            email: {mask: template, template: '{id}'} # mine\n            'x: y # z': \"null\" # n\n" +
			"    log: {rows: drop}\n", "people.phone",
			[]string{"# top", "            # the number", "            id: keep", "            phone: phone",
				"            email: {mask: template, template: '{id}'} # mine", "            'x: y # z': \"null\" # n",
				"    log: {rows: drop}"}},
		"no columns yet": {"tables:\n  people:\n  \"l*\": {rows: drop}\n",
			"people.id people.email people.x: y # z people.phone", []string{"  people:", "    columns:",
				`  "l*": {rows: drop}`}},
		"a pattern": {"tables:\n  \"*\":\n    columns:\n      \"*\": decide # all; hash would work\n", "*.*",
			[]string{`      "*": hash   # all`}},
		"windows": {"tables:\r\n  people:\r\n    columns:\r\n      id: keep\r\n",
			"people.email people.x: y # z people.phone log.email log.size", []string{"      id: keep\r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := ReadOpenColumns(written(t, try.file), twoTables())
			if err != nil {
				t.Fatal(err)
			}
			var open []string
			rules := map[int]string{}
			for i, c := range o.Columns {
				open, rules[i] = append(open, c.Label()), c.Rule
				if c.Reason == "" || c.Subject == "" || strings.Contains(fmt.Sprint(c), "private.test") {
					t.Errorf("%+v", c)
				}
			}
			slices.Sort(open)
			want := strings.Split(strings.NewReplacer(" people", "|people", " log", "|log").Replace(try.open), "|")
			slices.Sort(want)
			if !slices.Equal(open, want) {
				t.Errorf("open are %q, want %q", open, want)
			}
			text, err := o.Text(rules, nil)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(text), "\n")
			for _, w := range try.want {
				if !slices.ContainsFunc(lines, func(l string) bool { return l == w || strings.HasPrefix(l, w+" ") }) {
					t.Errorf("no line %q in\n%s", w, text)
				}
			}
			if strings.Contains(string(text), "would work") || strings.Contains(string(text), "private.test") {
				t.Errorf("a hint is left, or a value is in the file:\n%s", text)
			}
			again, err := ReadOpenColumns(written(t, string(text)), twoTables())
			if err != nil || len(again.Columns) != 0 {
				t.Errorf("still open: %+v, %v", again, err)
			}
		})
	}
}

// Columns that nobody decided on remain undecided with their proposal. Nothing is kept by accident.
func TestOpenColumnsStayUndecided(t *testing.T) {
	t.Parallel()
	path := written(t, "-")
	o, err := ReadOpenColumns(path, twoTables())
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.Text(map[int]string{1: `"null"`}, map[string]bool{"log": true})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := parseRules(path, text)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for table, columns := range rules.Tables {
		for name, c := range columns.Columns {
			at[table+"."+name] = c.Mask
		}
	}
	want := map[string]string{"log.email": "email", "log.size": "keep"}
	for i, c := range o.Columns {
		if w, ok := want[c.Label()]; ok && at[c.Label()] != w {
			t.Errorf("%s of a dropped table is %s, want %s", c.Label(), at[c.Label()], w)
		}
		if c.Table == "people" && i != 1 && at[c.Label()] != Undecided || i == 1 && at[c.Label()] != "null" {
			t.Errorf("%s is %s", c.Label(), at[c.Label()])
		}
	}
	if rules.Tables["log"].Rows != "drop" || rules.Tables["people"].Rows != "" {
		t.Errorf("%+v", rules.Tables)
	}
	again, err := ReadOpenColumns(written(t, string(text)), twoTables())
	if err != nil || len(again.Columns) != 3 {
		t.Fatalf("%+v, %v", again, err)
	}
	for _, c := range again.Columns {
		for _, before := range o.Columns {
			if before.Label() == c.Label() && (before.Rule != c.Rule || before.Subject != c.Subject) {
				t.Errorf("%+v was %+v", c, before)
			}
		}
	}
}

// A file is refused if it was changed in the meantime or if no line can be added to it.
func TestOpenColumnsAreRefused(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"-", "", "tables:\n"} {
		path := written(t, file)
		o, err := ReadOpenColumns(path, twoTables())
		if err != nil || o.CheckUnchanged() != nil {
			t.Fatalf("%q: %v, %v", file, err, o.CheckUnchanged())
		}
		if err := os.WriteFile(path, []byte("keep: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.CheckUnchanged(); snap.CodeOf(err) != snap.CodeConflict {
			t.Errorf("%q was changed: %v", file, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := o.CheckUnchanged(); (snap.CodeOf(err) == snap.CodeConflict) != (file != "-") {
			t.Errorf("%q was removed: %v", file, err)
		}
	}
	for _, file := range []string{"tables: {}\n", "tables: {people: {columns: {id: keep}}}\n",
		"tables:\n  people: {columns: {id: keep}}\n", "tables:\n  people:\n    columns: {id: keep}\n",
		"tables: &a\n  people:\n    columns: &b\n      id: keep\n", "tables: [", "a: b\n"} {
		if o, err := ReadOpenColumns(written(t, file), twoTables()); err == nil {
			t.Errorf("%q was accepted: %+v", file, o.Columns)
		}
	}
	o, err := ReadOpenColumns(written(t, "tables:\n  \"*\": {columns: {\"*\": decide}}\n"), twoTables())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Text(nil, map[string]bool{"*": true}); err == nil {
		t.Error("a line was added within braces")
	}
	if _, err := o.Text(map[int]string{0: "nonsense"}, nil); err == nil {
		t.Error("an unknown mask was written")
	}
	if _, err := o.Text(map[int]string{0: "keep}}, \"q\": {columns: {\"*\": keep"}, nil); err == nil {
		t.Error("a rule that is another rule was written")
	}
}

// A mask is refused if the column cannot hold its values. The refusal contains no value.
func TestOpenColumnsHoldTheirMasks(t *testing.T) {
	t.Parallel()
	o, err := ReadOpenColumns(written(t, "-"), twoTables())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(o.Columns, func(c OpenColumn) bool { return c.Label() == "log.size" })
	for mask, ok := range map[string]bool{"keep": true, "noise": true, "null": true, "email": false, "choice": false,
		"nonsense": false, "": false, Undecided: false} {
		if err := o.CheckSuits(at, mask); (err == nil) != ok {
			t.Errorf("%q: %v", mask, err)
		}
	}
	for _, mask := range PlainMasks() {
		if CheckRules("r", []byte("tables: {t: {columns: {c: "+RuleText(mask)+"}}}")) != nil {
			t.Errorf("%s cannot be written", mask)
		}
	}
}

// This test logs how long it takes to propose and to write rules for a dump with 50,000 columns.
func TestManyOpenColumns(t *testing.T) {
	t.Parallel()
	if os.Getenv("SNAP_SCALE") == "" {
		t.Skip("needs SNAP_SCALE")
	}
	c := engine.Contents{}
	for i := range 500 {
		s := engine.Shape{Name: fmt.Sprintf("t%d", i)}
		for j := range 100 {
			s.Columns = append(s.Columns, engine.Column{Name: fmt.Sprintf("email_%d", j), Type: "text"})
			s.Samples = append(s.Samples, []string{"ann@private.test"})
		}
		c.Tables = append(c.Tables, s)
	}
	began := time.Now()
	o, err := ReadOpenColumns(written(t, "-"), c)
	if err != nil || len(o.Columns) != 50_000 {
		t.Fatal(err)
	}
	proposed := time.Since(began)
	rules := map[int]string{}
	for i := range o.Columns {
		rules[i] = o.Columns[i].Rule
	}
	began = time.Now()
	if _, err := o.Text(rules, map[string]bool{"t7": true}); err != nil {
		t.Fatal(err)
	}
	t.Logf("proposed in %s, written in %s", proposed, time.Since(began))
}

// This test logs how long it takes to prepare the rules of 500 tables with 50,000 columns that
// refer to others.
func TestManyReferences(t *testing.T) {
	t.Parallel()
	if os.Getenv("SNAP_SCALE") == "" {
		t.Skip("needs SNAP_SCALE")
	}
	c, rules := engine.Contents{Schema: &schema.Schema{}}, "tables:\n"
	for i := range 500 {
		s := engine.Shape{Name: fmt.Sprintf("t%d", i)}
		described := schema.Table{Name: schema.Name{Name: s.Name}}
		rules += "  " + s.Name + ":\n    columns:\n      '*': {mask: redact, apply_to_references: true}\n"
		for j := range 100 {
			name := fmt.Sprintf("c%d", j)
			s.Columns = append(s.Columns, engine.Column{Name: name, Type: "text"})
			s.Samples = append(s.Samples, []string{"A-1"})
			described.ForeignKeys = append(described.ForeignKeys, schema.ForeignKey{Columns: []string{name},
				To: schema.Name{Name: "t0"}, ToColumns: []string{"c0"}})
		}
		c.Tables, c.Schema.Tables = append(c.Tables, s), append(c.Schema.Tables, described)
	}
	r := mustRules(t, rules)
	began := time.Now()
	if _, err := r.Prepare(c, testKey); err != nil {
		t.Fatal(err)
	}
	t.Logf("prepared in %s", time.Since(began))
}
