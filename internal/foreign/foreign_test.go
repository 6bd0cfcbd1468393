package foreign

import (
	"strings"
	"testing"

	"snap"
	"snap/internal/sanitize"
)

// Reading any file ends without a panic, and every report about a setting that was not converted
// has a reason.
func FuzzForeign(f *testing.F) {
	f.Add([]byte("targets:\n  a: {snapshot: {src_url: 'sqlite:///a'}}\n"))
	f.Add([]byte("dump: {pg_dump_options: {dbname: \"host=h dbname='a b' user=\\\\'\"}, transformation: [{name: t, " +
		"transformers: [{name: Hash, params: {column: c}}]}]}"))
	f.Add([]byte("a: &a [*a]\ndump: *a\n"))
	f.Add([]byte("a: &a {b: 1}\ntargets:\n  <<: *a\n  c: d\n"))
	f.Add([]byte("dump: {transformation: x, pg_dump_options: [1]}"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func() (Found, error){
			func() (Found, error) { return DBSnapper("f", text, "/home/me") },
			func() (Found, error) { return Greenmask("f", text, "t") },
		} {
			found, err := read()
			if err != nil && snap.CodeOf(err) != snap.CodeUsage {
				t.Fatalf("%v", err)
			}
			for _, l := range found.Left {
				if l.Why == "" {
					t.Fatalf("%+v says nothing", l)
				}
			}
		}
	})
}

// Aliases that expand to ten billion values are refused and not followed to the end.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		b.WriteString("a" + string(rune('1'+i)) + ": &a" + string(rune('1'+i)) + " [" +
			strings.TrimSuffix(strings.Repeat("*a"+string(rune('0'+i))+", ", 10), ", ") + "]\n")
	}
	if _, err := DBSnapper("f", []byte(b.String()), ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("got %v", err)
	}
}

// A mapping's own fields take precedence over those that it merges, in any order.
func TestMergedMappings(t *testing.T) {
	t.Parallel()
	root, err := parse("f", []byte("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\none:\n  <<: *a\n  x: 3\n"+
		"both:\n  y: 4\n  <<: [*a, *b]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[[2]string]string{
		{"one", "x"}: "3", {"one", "y"}: "1", {"both", "x"}: "1", {"both", "y"}: "4", {"both", "z"}: "2",
	} {
		if got := root.get(path[0]).value(path[1]); got != want {
			t.Errorf("%v is %q, want %q", path, got, want)
		}
	}
}

func TestConninfo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"host=db port=5433 user=me dbname=shop":                `postgres://me@db:5433/shop`,
		`dbname='a b' password='it\'s' user=me host=/run/pg`:   `postgres://me:it%27s@/a%20b?host=%2Frun%2Fpg`,
		"dbname = shop sslmode = require":                      `postgres://localhost/shop?sslmode=require`,
		"host=::1 dbname=shop port=1":                          `postgres://[::1]:1/shop`,
		"dbname=shop user=${USER_NAME} password=${A_PASSWORD}": `postgres://${USER_NAME}:${A_PASSWORD}@localhost/shop`,
		"dbname=shop sslmode=${MODE}":                          `postgres://localhost/shop?sslmode=${MODE}`,
	} {
		if got := postgresURL(conninfo(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestDaysOf(t *testing.T) {
	t.Parallel()
	for interval, want := range map[string]int{"1 year 2 mons 3 days": 428, "10 day": 10, "2 weeks": 14, "01:30:00": 1,
		"": 0, "00:00:00": 0, "9999999 years": 0} {
		if got := daysOf(interval); got != want {
			t.Errorf("%q: %d, want %d", interval, got, want)
		}
	}
}

// Every transformer without an equivalent leaves its column without a rule,
// and says so.
func TestTransformersWithoutAnEqual(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Json", "Cmd", "RegexpReplace", "Dict", "Template", "TemplateRecord",
		"NotThereYet", ""} { // some without the parameters that they need
		found, err := Greenmask("f",
			[]byte("dump: {transformation: [{schema: s, name: t, transformers: [{name: '"+name+"', params: {column: "+
				"c}}]}]}"),
			"x")
		if err != nil || found.Targets[0].Rules != "" || len(found.Left) != 1 || found.Left[0].What != "s.t.c" ||
			found.Left[0].Line != 1 {
			t.Errorf("%s: %v, %+v", name, err, found)
		}
	}
}

// The report about a transformer without an equivalent is also true if another transformer gives
// its column a rule.
func TestTransformersNextToOneWithAnEqual(t *testing.T) {
	t.Parallel()
	known, unknown := "{name: RandomEmail, params: {column: c}}", "{name: Cmd, params: {column: c}}"
	for _, list := range []string{known + ", " + unknown, unknown + ", " + known} {
		found, err := Greenmask("f",
			[]byte("dump: {transformation: [{schema: s, name: t, transformers: ["+list+"]}]}"), "x")
		if err != nil || !strings.Contains(found.Targets[0].Rules, "c: email") || len(found.Left) != 1 ||
			!strings.Contains(found.Left[0].Why, "unless another transformer gave it a rule") {
			t.Errorf("%s: %v, %+v", list, err, found)
		}
	}
}

// Of several transformers of a column, each is said to replace the one before it.
func TestSeveralTransformersOfAColumn(t *testing.T) {
	t.Parallel()
	found, err := Greenmask("f", []byte("dump: {transformation: [{schema: s, name: t, transformers: ["+
		"{name: RandomEmail, params: {column: c}}, {name: SetNull, params: {column: c}}, "+
		"{name: RandomCompany, params: {column: c}}]}]}"), "x")
	if err != nil || len(found.Left) != 2 {
		t.Fatalf("%v, %+v", err, found)
	}
	for i, name := range []string{"SetNull", "RandomCompany"} {
		if !strings.Contains(found.Left[i].Why, name+" is used instead of the one before it") {
			t.Errorf("%s: %+v", name, found.Left[i])
		}
	}
}

// The error for a target's name says what is wrong with the name.
func TestTargetNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "no name for the target", ".x": `starts with "."`} {
		if _, err := Greenmask("f", []byte("dump: {}"), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Only a reference with a default is reported. A reference with a message requires the variable, as
// snapcli's own references do.
func TestReferencesThatRequireAVariable(t *testing.T) {
	t.Parallel()
	for reference, left := range map[string]int{"${H}": 0, "${H?set it}": 0, "${H:?set it}": 0, "${H-db}": 1,
		"${H:-db}": 1} {
		found, err := Greenmask("f", []byte("dump: {pg_dump_options: {host: '"+reference+"', dbname: d}}"), "x")
		if err != nil || found.Targets[0].Source != "postgres://${H}/d" || len(found.Left) != left {
			t.Errorf("%s: %v, %+v", reference, err, found)
		}
	}
}

// Every transformer of Greenmask's reference becomes a rule that can be read, except those that run
// a program.
func TestEveryTransformer(t *testing.T) {
	t.Parallel()
	params := map[string]string{
		"Dict": `values: {S: M, "it's": "a\"b"}`, "RandomChoice": `values: [a, "b: c", 3]`, "Replace": "value: x",
		"RegexpReplace": `regexp: 'adventure\\(.*)', replace: "$1"`, "NoiseDate": "ratio: 2 weeks",
		"NoiseInt": "ratio: 0.1", "NoiseFloat": "max_ratio: 0.1", "NoiseNumeric": "ratio: 0.2",
		"RandomInt": "min: 1, max: 9", "RandomFloat": "min: 0.5, max: 1, decimal: 3", "RandomNumeric": "min: 1, max: 5",
		"RandomDate":          `min: "2011-05-31 00:00:00", max: "2013-05-31 00:00:00"`,
		"RandomUnixTimestamp": `min: "2011-05-31 00:00:00", max: "2013-05-31 00:00:00"`,
		"Json":                `operations: [{operation: set, path: a.b, value: x}, {operation: delete, path: c}]`,
		"Template":            `template: '{{ .GetColumnValue "first" | lower -}}.{{- .GetColumnValue "last"}}@{x}'`,
		"RandomPerson":        "columns: [{name: c, template: '{{ .FirstName }}'}]",
		"RealAddress":         "columns: [{name: c, template: '{{ .City }}'}]",
	}
	reference := strings.Fields(`Cmd Dict Hash HashedPassword Masking NoiseDate NoiseFloat NoiseInt NoiseNumeric
		RandomAmountWithCurrency RandomBool RandomCCNumber RandomCCType RandomCentury RandomChoice RandomCompany
		RandomCurrency RandomDate RandomDayOfMonth RandomDayOfWeek RandomDomainName RandomE164PhoneNumber RandomEmail
		RandomFloat RandomInt RandomIP RandomLatitude RandomLongitude RandomMac RandomMonthName RandomNumeric
		RandomParagraph RandomPassword RandomPerson RandomPhoneNumber RandomSentence RandomString RandomTimezone
		RandomTollFreePhoneNumber RandomUnixTimestamp RandomURL RandomUsername RandomUuid RandomWord RandomYearString
		RealAddress RegexpReplace Replace SetNull Json Template TemplateRecord`)
	var left []string
	for _, name := range reference {
		more := params[name]
		if more != "" {
			more = ", " + more
		}
		column := "column: c"
		if strings.HasPrefix(more, ", columns") {
			column = "engine: hash"
		}
		found, err := Greenmask("f", []byte("dump: {transformation: [{schema: s, name: t, transformers: [{name: "+name+
			", params: {"+column+more+"}}]}]}"), "x")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if found.Targets[0].Rules == "" {
			left = append(left, name)
			continue
		}
		if err := sanitize.CheckRules("r.yaml", []byte(found.Targets[0].Rules)); err != nil {
			t.Errorf("%s becomes %s: %v", name, found.Targets[0].Rules, err)
		}
	}
	if got := strings.Join(left, " "); got != "Cmd TemplateRecord" {
		t.Errorf("without an equivalent: %s", got)
	}
}
