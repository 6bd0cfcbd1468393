package sanitize

import "snap/internal/engine"

// choice gives one of the values of a rule. Equal originals get equal values.
func choice(key []byte, c ColumnRule, limit int) engine.Mask {
	from := newSource(key, "choice")
	return text(func(v string) string {
		if len(c.Values) == 0 {
			return ""
		}
		return cut(one(from.draws(v), c.Values), limit)
	})
}
