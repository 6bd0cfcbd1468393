package postgres

import (
	"regexp"
	"strconv"
	"strings"

	"snap/internal/schema"
)

var hashBound = regexp.MustCompile(`^FOR VALUES WITH \(modulus ([0-9]{1,9}), remainder ([0-9]{1,9})\)$`)

// parseBound parses the bound of a partition as pg_get_expr writes it:
// FOR VALUES FROM ('2020-01-01') TO (MAXVALUE).
func parseBound(text string) (b schema.Bound, ok bool) {
	if text == "DEFAULT" {
		return schema.Bound{Default: true}, true
	}
	if m := hashBound.FindStringSubmatch(text); m != nil {
		b.Modulus, _ = strconv.Atoi(m[1])
		b.Remainder, _ = strconv.Atoi(m[2])
		return b, true
	}
	if values, found := strings.CutPrefix(text, "FOR VALUES IN ("); found {
		all, ok := boundValues(strings.TrimSuffix(values, ")"))
		for _, value := range all {
			b.In = append(b.In, []schema.Expr{value})
		}
		return b, ok
	}
	values, found := strings.CutPrefix(text, "FOR VALUES FROM (")
	if !found {
		return b, false
	}
	// A value can contain the separator too. If the text is cut there, one of the halves does not
	// parse.
	for at := range values {
		from, to, ok := cutAt(values, at, ") TO (")
		if !ok {
			continue
		}
		b.From, ok = boundValues(from)
		if !ok {
			continue
		}
		b.To, ok = boundValues(strings.TrimSuffix(to, ")"))
		return b, ok
	}
	return b, false
}

func cutAt(s string, at int, sep string) (before, after string, ok bool) {
	after, ok = strings.CutPrefix(s[at:], sep)
	return s[:at], after, ok
}

// boundValues parses values separated by commas.
func boundValues(list string) ([]schema.Expr, bool) {
	e, err := schema.ParseExpr(dialect, "ARRAY["+list+"]")
	return e.Args, err == nil && e.Op == "ARRAY"
}
