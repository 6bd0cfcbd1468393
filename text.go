package snap

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode/utf8"
)

// CleanText removes from untrusted text every character that could control the terminal or page
// that shows it: control characters (C0 and C1), line and paragraph separators, and marks that
// change the direction of writing (AUTH A4). Bytes that are not UTF-8 become U+FFFD.
func CleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Storable reports whether text can be stored in every database: PostgreSQL's text is UTF-8 without
// NUL characters.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// NULInJSON reports whether a string in a JSON document has a NUL character.
func NULInJSON(document []byte) bool {
	return bytes.Contains(document, []byte(`\u0000`)) && escapedNUL.Match(document)
}

// escapedNUL is \u0000 after an even number of backslashes.
var escapedNUL = regexp.MustCompile(`(^|[^\\])(\\\\)*\\u0000`)

// isControl reports whether [CleanText] removes a character.
func isControl(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	}
	return false
}

// IsLoopback reports whether a host without a port is this machine: localhost, or a loopback
// address.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// TableName returns the name of a table with its schema, if it has one.
func TableName(schema, table string) string {
	if schema == "" {
		return table
	}
	return schema + "." + table
}

// Plural formats a count with its noun, such as "1 person" or "2 people".
func Plural[N ~int | ~int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

var plainWord = regexp.MustCompile(`^[0-9A-Za-z._/@%+=:-]+$`)

// ShellWord formats an argument for a command that people copy into a shell, quoted if necessary.
func ShellWord(arg string) string {
	if plainWord.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
