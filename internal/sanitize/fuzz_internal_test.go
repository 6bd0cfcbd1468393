package sanitize

import (
	"testing"

	"snap"
)

// FuzzRules checks that any rules file is read or refused as invalid.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"", "tables: {}", "tables: {a: {columns: {b: keep}}}",
		"tables:\n  a:\n    rows: drop",
		"tables: [", "a: &a [*a]", "large_objects: keep", "tables: {a: {columns: {b: {mask: email}}}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRules("rules.yaml", text)
		if err != nil && snap.CodeOf(err) == snap.CodeInternal {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && r.Digest() == "" {
			t.Fatal("rules without a digest")
		}
	})
}

// FuzzXML checks that redacted XML is still XML, and that redacting it again changes nothing.
func FuzzXML(f *testing.F) {
	for _, seed := range []string{`<a b="1">c</a>`, `<?xml version="1.0" encoding="latin1"?><a/>`, "x &amp; y",
		"<a><![CDATA[<b>]]></a>", "<!-- c --><a:b xmlns:a='u'/>", "<!DOCTYPE a><a/>", "<a></b>",
		"<a>&#x1F600;\r\n</a>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v string) {
		mask := documentMask{rest: text(redact)}
		once, err := mask.maskedXML(v, false)
		if err != nil {
			return
		}
		if twice, err := mask.maskedXML(once, false); err != nil || twice != once {
			t.Fatalf("%q becomes %q, and that %q, %v", v, once, twice, err)
		}
	})
}
