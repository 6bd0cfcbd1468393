package sanitize

import (
	"strings"

	"snap/internal/engine"
)

// elements masks every element of a PostgreSQL array. The array's structure and its NULL elements
// remain. A value that is not an array becomes an empty array.
func elements(mask engine.Mask) engine.Mask {
	return func(v string) (string, bool) {
		var out strings.Builder
		rest := v
		if head, body, ok := strings.Cut(v, "="); ok && strings.HasPrefix(head, "[") {
			out.WriteString(head + "=") // the array has explicit lower bounds
			rest = body
		}
		if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
			return "{}", false
		}
		for rest != "" {
			if strings.IndexByte("{},", rest[0]) >= 0 {
				out.WriteByte(rest[0])
				rest = rest[1:]
				continue
			}
			element, quoted, after := nextElement(rest)
			rest = after
			if !quoted && strings.EqualFold(element, "NULL") {
				out.WriteString("NULL")
				continue
			}
			masked, null := mask(element)
			if null {
				out.WriteString("NULL")
				continue
			}
			out.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(masked) + `"`)
		}
		return out.String(), false
	}
}

// nextElement reads the element at the start of text and returns the rest.
func nextElement(text string) (element string, quoted bool, rest string) {
	if text[0] != '"' {
		end := strings.IndexAny(text, ",{}")
		if end < 0 {
			end = len(text)
		}
		return text[:end], false, text[end:]
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case '"':
			return b.String(), true, text[i+1:]
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), true, ""
}
