package sanitize

import "snap/internal/engine"

// choice replaces values with one of the rule's values. Equal originals get equal values.
func choice(key []byte, c ColumnRule, limit int) engine.Mask {
	from := newSource(key, "choice")
	return text(func(v string) string {
		if len(c.Values) == 0 {
			return ""
		}
		return cut(pick(from.draws(v), c.Values), limit)
	})
}
