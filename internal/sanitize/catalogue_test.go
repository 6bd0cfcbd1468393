package sanitize

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
)

// Every mask of the catalogue produces a value of its kind that its column can hold, and the same
// one each time.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, typ, value, form string }{
		{"{mask: integer, min: 18, max: 20}", "smallint", "75", `^(18|19|20)$`},
		{"{mask: integer, min: -5, max: -5}", "bigint", "75", `^-5$`},
		{"integer", "integer", "75", `^[0-9]{1,7}$`},
		{"{mask: number, min: 0.5, max: 0.75, decimals: 3}", "numeric(8,3)", "75", `^0\.[567][0-9]{2}$`},
		{"{mask: number, min: -90, max: 90, decimals: 6}", "double precision", "52.5", `^-?[0-9]{1,2}\.[0-9]{6}$`},
		{"{mask: integer, min: 2000000}", "bigint", "75", `^2[0-9]*[1-9][0-9]*$`},
		{"{mask: number, min: 5000}", "numeric(8,2)", "75", `^5[0-9.]*[1-9]`},
		{"{mask: date, min: 2021-01-01}", "date", "1980-05-06", `^20[2-7][0-9]-`},
		{"{mask: date, min: 2001-02-03, max: 2001-02-04}", "date", "1980-05-06", `^2001-02-0[34]$`},
		{"{mask: date, min: '2001-02-03', max: 2001-02-04 10:00:00}", "timestamp", "1980-05-06 07:08:09.5+02",
			`^2001-02-0[34] [0-9:]{8}$`},
		{"{mask: date, min: 1000-01-01, max: 9000-01-01}", "date", "1980-05-06", `^(1[3-9]|[2-8][0-9])[0-9]{2}-`},
		{"date", "timestamp", "1980-05-06 07:08:09", `^(19|20)[0-9]{2}-[0-9-]{5} [0-9:]{8}$`},
		{"boolean", "boolean", "t", `^[tf]$`},
		{"boolean", "tinyint(1)", "1", `^[01]$`},
		{"boolean", "tinyint(1)", "2", `^[01]$`},
		{"boolean", "tinyint(1)", "-1", `^[01]$`},
		{"redact", "text", `<?xml maria="1"?><p>T</p>`, `^[^mari1T]*$`},
		{"{mask: xml, paths: {p: redact}}", "text", `<?xml version="1.0" x="Maria"?><p/>`, `^[^Mari]*$`},
		{"{mask: json, paths: {$.user: keep, $.user.email: 'null'}}", "jsonb", `{"user":{"email":"m","n":"x"}}`,
			`^{"user":{"email":null,"n":"x"}}$`},
		{"{mask: json, paths: {'*': keep, email: 'null'}}", "jsonb", `{"a":"x","email":"m"}`,
			`^{"a":"x","email":null}$`},
		{"{mask: json, paths: {a: {mask: constant, value: 'true'}, b: {mask: constant, value: ' 5'}}}", "jsonb",
			`{"a":1,"b":2,"c":true}`, `^{"a":0,"b":5,"c":true}$`},
		{"uuid", "uuid", "00000000-0000-4000-8000-000000000001", `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]`},
		{"word", "text", "Maria", `^[a-z]+$`},
		{"sentence", "text", "Maria said so", `^[A-Z][a-z ]+\.$`},
		{"paragraph", "text", "Maria said so", `^([A-Z][a-z ]+\. ?){2,}$`},
		{"url", "text", "https://maria.example/x", `^https://[a-z]+-[0-9a-f]{8}\.example\.com/[a-z]+$`},
		{"domain", "text", "maria.example", `\.example\.com$`},
		{"password", "text", "secret", `^[A-Za-z2-9]{20}$`},
		{"password_hash", "text", "$2a$10$x", `^\$2a\$10\$[./A-Za-z0-9]{53}$`},
		{"time_zone", "text", "Europe/Vaduz", `^([A-Z][a-z]+/[A-Za-z_]+|UTC)$`},
		{"currency", "char(3)", "XAU", `^[A-Z]{3}$`},
		{"{mask: dictionary, map: {S: M, M: S}}", "char(1)", "S", `^M$`},
		{"{mask: dictionary, map: {S: M, M: S}}", "char(1)", "D", `^x$`},
		{"{mask: dictionary, map: {S: M}, otherwise: 'null'}", "char(1)", "D", `^NULL$`},
		{"{mask: replace, pattern: '^(.*)@.*$', with: '$1@example.com'}", "text", "a.b@real.example",
			`^a\.b@example\.com$`},
		{"{mask: json, paths: {$.email: email, 'items[*].n': {mask: integer, min: 7, max: 7}}}", "jsonb",
			`{"email":"maria@real.example","items":[{"n":1,"who":"Maria"}],"ok":true}`,
			`^{"email":"[a-z]+\.[0-9a-f]{10}@example\.com","items":\[{"n":7,"who":"xxxxx"}\],"ok":true}$`},
		{"{mask: json, paths: {a: 'null'}, otherwise: keep}", "jsonb", `{"a":{"b":1},"c":"d"}`,
			`^{"a":{"b":null},"c":"d"}$`},
		{"{mask: json, paths: {$.id: key}}", "jsonb", `{"maria@real.example":{"visits":3},"x 1":1,"x 2":2}`,
			`^{"x 0":0,"x 0x":0,"xxxxx@xxxx.xxxxxxx":{"visits":0}}$`},
		{"{mask: json, paths: {$.id: key}, otherwise: keep}", "jsonb", `{"maria@real.example":{"visits":3}}`,
			`^{"maria@real.example":{"visits":3}}$`},
		{"{mask: json, paths: {$.first-name: 'null', 'by-*.n': keep, $.days: keep}}", "jsonb",
			`{"by-*":{"a-b":1},"days":{"2001-02-03":4},"first-name":"Maria","last-name":true}`,
			`^{"by-\*":{"x-x":0},"days":{"2001-02-03":4},"first-name":null,"xxxx-xxxx":true}$`},
		{"{mask: json, paths: {$.a: 'null', b: {mask: constant, value: 'true'}, c.d: redact, e: boolean, f: keep}}",
			"jsonb", `{"a":true,"b":false,"c":{"d":[true]},"e":true,"f":true,"g":true}`,
			`^{"a":null,"b":true,"c":{"d":\[false\]},"e":(true|false),"f":true,"g":true}$`},
		{"{mask: json, paths: {a: email}}", "text", `no document: Maria`, `^xx xxxxxxxx: xxxxx$`},
		{"{mask: xml, paths: {/p/mail: email, p/@n: {mask: integer, min: 7, max: 7}}}", "xml",
			"<?xml version=\"1.0\"?><p n='1'>\n <mail>maria@real.example</mail><x:who xmlns:x=\"urn:x\">" +
				"Tom &amp; <![CDATA[<J>]]></x:who><!-- Maria --><e/></p>",
			`^<\?xml version="1.0"\?><p n="7">\n <mail>[a-z]+\.[0-9a-f]{10}@example\.com</mail>` +
				`<x:who xmlns:x="urn:x">xxx &amp; &lt;x&gt;</x:who><e/></p>$`},
		{"{mask: xml, paths: {a/*/c: 'null'}, otherwise: keep}", "xml", `<a z="1"><b><c>d</c></b><!--e--></a>`,
			`^<a z="1"><b><c></c></b><!--e--></a>$`},
		{"{mask: xml, paths: {p/@id: key}}", "xml", `<p><maria.meyer n="1">2</maria.meyer></p>`,
			`^<x><xxxxx.xxxxx x="0">0</xxxxx.xxxxx></x>$`},
		{"{mask: xml, paths: {p/@id: key}}", "xml", `<p maria.meyer="1"/>`, `^<x xxxxx.xxxxx="0"/>$`},
		{"{mask: xml, paths: {p/@id: key}, otherwise: keep}", "xml", `<p><maria.meyer/></p>`,
			`^<p><maria.meyer/></p>$`},
		{"{mask: xml, paths: {p/first-name: 'null', p/q/@x-y: keep, p/z: keep}}", "xml",
			`<p><first-name>M</first-name><q x-y="1"/><z><a-b c-d="e"/></z></p>`,
			`^<p><first-name></first-name><q x-y="1"/><z><a-b c-d="e"/></z></p>$`},
		{"{mask: xml, paths: {a: email}}", "text", `no XML: <Maria`, `^xx xxx: <xxxxx$`},
		{"{mask: xml, paths: {a: email}}", "text", `<!DOCTYPE a [<!ENTITY e "Maria">]><a>&e;</a>`, `^[^Mari]*$`},
		{"{mask: xml, paths: {a: email}}", "xml", `Tom &amp; Co`, `^xxx &amp; xx$`},
		{"redact", "xml", `<p id="Z1">Tom &amp; Co<br/></p>`, `^<p id="x0">xxx &amp; xx<br/></p>$`},
		{"redact", "text", `<p>Tom<br></p>`, `^<x>xxx<xx></x>$`},
		{"redact", "text", `<Tom.Jones/>`, `^<xxx.xxxxx/>$`},
	} {
		rules, err := parseRules("r.yaml", []byte("tables: {t: {columns: {c: "+c.rule+"}}}"))
		if err != nil {
			t.Fatal(err)
		}
		rule := rules.Tables["t"].Columns["c"]
		col := &column{Column: engine.Column{Type: c.typ}, typ: personal.ParseType(c.typ), samples: []string{c.value}}
		if why := misfit(testKey, rule, col); why != "" {
			t.Errorf("%s of %s: %s", c.rule, c.typ, why)
		}
		mask := maskOf(testKey, rule, col)
		got, null := mask(c.value)
		if null {
			got = "NULL"
		}
		if again, _ := mask(c.value); !regexp.MustCompile(c.form).MatchString(got) || !null && again != got {
			t.Errorf("%s of %q: %q", c.rule, c.value, got)
		}
	}
}

// Settings that cannot work are refused before anything is read, with the line and the column.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"{mask: integer, min: 3, max: 2}":                    "min must not be more than max",
		"{mask: integer, min: x}":                            "needs whole numbers",
		"{mask: number, decimals: 99}":                       "needs decimals from 0 to 15",
		"{mask: integer, decimals: 2}":                       "cannot have decimals",
		"{mask: date, decimals: 2}":                          "cannot have decimals",
		"{mask: date, min: yesterday}":                       "needs dates",
		"{mask: email, min: 1}":                              "cannot have min",
		"dictionary":                                         "needs a map",
		"{mask: email, map: {a: b}}":                         "no map for other masks",
		"{mask: replace, pattern: '('}":                      "is not a regular expression",
		"{mask: json, paths: {'': email}}":                   "has the path",
		"{mask: json, paths: {a: emial}}":                    `unknown mask "emial"`,
		"{mask: xml, paths: {a//b: email}}":                  "has the path",
		"xml":                                                "needs paths",
		"{mask: json, paths: {a: email}, otherwise: choice}": "must name a mask without settings",
		"emial":                                           `unknown mask "emial"`,
		"{mask: email, when: 'a = 1'}":                    `needs "when" and "else" together`,
		"{mask: email, when: 'a =', else: keep}":          "has the condition",
		"{mask: email, when: 'sleep(9) = 1', else: keep}": "has the condition",
		"{mask: email, when: 'a = 1', else: choice}":      `a mask without settings as "else"`,
		"{mask: keep, when: 'a = 1', else: redact}":       "write the opposite condition",
		"template":                                                           "needs a template",
		"{mask: email, template: x}":                                         "no template for other masks",
		"{mask: template, template: '{a'}":                                   "a single {",
		"{mask: template, template: '{}'}":                                   "names no column",
		"{mask: template, template: '{a|run}'}":                              `the unknown function "run"`,
		"{mask: template, template: '{a|left}'}":                             "an invalid argument",
		"{mask: template, template: '{a|left:-1}'}":                          "an invalid argument",
		"{mask: json, paths: {a: {mask: email, when: 'b = 1', else: keep}}}": "cannot have a condition",
	} {
		_, err := parseRules("r.yaml", []byte("tables:\n  t:\n    columns:\n      c: "+rule+"\n"))
		if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "r.yaml:4:7: t.c ") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// A pattern that matches no sampled value is refused, and so is a dictionary for a unique column.
func TestPartialMasksFit(t *testing.T) {
	t.Parallel()
	c := &column{Column: engine.Column{Type: "text"}, typ: personal.ParseType("text"), samples: []string{"Maria"}}
	if why := misfit(testKey, ColumnRule{Mask: "replace", Pattern: "[0-9]+", With: "0"}, c); !strings.Contains(why,
		"matches none of the sampled values") {
		t.Errorf("%q", why)
	}
	c.unique = true
	if why := misfit(testKey, ColumnRule{Mask: "dictionary", Map: map[string]string{"Maria": "Anna"}},
		c); !strings.Contains(why, "must stay unique, and the rule has only 1 value") {
		t.Errorf("%q", why)
	}
}

// Documents without the paths of a rule are masked as redact masks them, also their keys.
func TestOtherPathsAreRedacted(t *testing.T) {
	t.Parallel()
	mask := byPath(testKey, ColumnRule{Mask: "json", Paths: map[string]ColumnRule{"$.not.there": {Mask: "keep"}}}, 0)
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9@. -]{1,8}`), 0, 5)
		var document func(depth int) any
		document = func(depth int) any {
			switch rapid.IntRange(0, 4-depth).Draw(t, "kind") {
			case 0:
				return rapid.Bool().Draw(t, "boolean")
			case 1:
				return rapid.IntRange(0, 999).Draw(t, "number")
			case 2:
				return rapid.StringMatching(`[a-zA-Zäß0-9@ ]{0,8}`).Draw(t, "text")
			case 3:
				return []any{document(depth + 1), document(depth + 1)}
			}
			members := map[string]any{}
			for _, k := range keys.Draw(t, "keys") {
				members[k] = document(depth + 1)
			}
			return members
		}
		text, err := json.Marshal(map[string]any{"a": document(0)})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := mask(string(text)); got != redactDocument(string(text)) {
			t.Fatalf("%s becomes %s, and redacted %s", text, got, redactDocument(string(text)))
		}
	})
}
