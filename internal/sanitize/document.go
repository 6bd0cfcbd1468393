package sanitize

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// isDocument reports whether a value is a JSON object or array.
func isDocument(v string) bool {
	trimmed := strings.TrimSpace(v)
	return len(trimmed) > 1 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(v))
}

// schemaKey matches keys that look like names of a schema. Other keys may be data.
var schemaKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// redactDocument redacts the texts and numbers of a JSON document. Its structure, booleans and keys
// remain, except keys that do not look like names, which are redacted too.
func redactDocument(v string) (string, bool) {
	var value any
	d := json.NewDecoder(strings.NewReader(v))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return "", false
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(redactValue(value)) != nil {
		return "", false
	}
	return strings.TrimSuffix(out.String(), "\n"), true
}

func redactValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		redacted := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			name := key
			if !schemaKey.MatchString(key) {
				name = redact(key)
			}
			for redacted[name] != nil {
				name += "x" // two keys have become equal
			}
			redacted[name] = redactValue(v[key])
		}
		return redacted
	case []any:
		for i := range v {
			v[i] = redactValue(v[i])
		}
		return v
	case string:
		return redact(v)
	case json.Number:
		return json.Number("0")
	}
	return value
}
