package sanitize

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/personal"
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
		mask := documentMask{rest: neverNull(redact)}
		once, err := mask.maskedXML(v, false)
		if err != nil {
			return
		}
		if twice, err := mask.maskedXML(once, false); err != nil || twice != once {
			t.Fatalf("%q becomes %q, and that %q, %v", v, once, twice, err)
		}
	})
}

// FuzzDocument: a redacted JSON document has the same structure, and contains no string from the
// original. Redacting it once more changes nothing.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a": "b", "a": 1}`, `[]`,
		"{}", `[ 1 , -2.5e7,true, null , "x\"\u00e4\ud83d\ude00" ]`,
		`{"ä b": null, "ö c": {"z": [], "a": {}}, "1": "\\\""}`, " {\t\"b\":\r[\n{}],\"\":\"\xff\u2028\"} ",
		`{"a-1": null, "b-2": 5}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v string) {
		if !isDocument(v) {
			return
		}
		once := redactDocument(v)
		if !isDocument(once) || redactDocument(once) != once {
			t.Fatalf("%q becomes %q, and that %q", v, once, redactDocument(once))
		}
		var before, after any
		if err := errors.Join(json.Unmarshal([]byte(v), &before), json.Unmarshal([]byte(once), &after)); err != nil {
			return // a number that no float holds
		}
		if !alike(before, after) {
			t.Fatalf("%q becomes %q", v, once)
		}
	})
}

// alike reports whether a document is the redacted form of another: it has the same structure, and
// its strings and numbers have no content.
func alike(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, v := range b {
			if personal.IsSchemaKey(key) && !slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(k string) bool {
				return strings.TrimRight(k, "x") == strings.TrimRight(key, "x") && alike(v, a[k])
			}) {
				return false
			}
		}
		return true
	case []any:
		a, ok := after.([]any)
		return ok && slices.EqualFunc(b, a, alike)
	case string:
		return after == redact(b)
	case float64:
		return after == 0.0
	}
	return before == after
}
