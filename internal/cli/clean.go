package cli

import (
	"strings"
	"unicode/utf8"
)

// clean removes from text that came from elsewhere whatever could steer the
// terminal it is printed on: control characters, also those of the second
// block (C1), and marks that turn the direction of writing (AUTH A4).
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return -1
		}
		return r
	}, s)
}

func steers(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	}
	return false
}

// cleanArgs applies clean to every string among the arguments of a format.
func cleanArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			out[i] = clean(v)
		case error:
			out[i] = clean(v.Error())
		default:
			out[i] = arg
		}
	}
	return out
}
