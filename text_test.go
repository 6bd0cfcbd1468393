package snap_test

import (
	"testing"

	"snap"
)

// AUTH A4: text from elsewhere cannot control a terminal.
func TestCleanText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"shop 日本 é":                     "shop 日本 é",
		"a\x1b[31mb\x07\x00c\x7f":       "a[31mbc",
		"a\u009b31mb":                   "a31mb",
		"a\u202eb\u2066c\u200fd\u061ce": "abcde",
		"a\u2028b\u2029c\nd\te":         "abcde",
		"a\xffb":                        "a\uFFFDb",
	} {
		if got := snap.CleanText(text); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", text, got, want)
		}
	}
}

// An escaped NUL in JSON is found. An escaped backslash before u0000 is not a NUL.
func TestNULInJSON(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]bool{
		`{"a":"\u0000"}`: true, `"x\u0000y"`: true, `"\\\u0000"`: true, `\u0000`: true,
		`"\\u0000"`: false, `"u0000"`: false, `"\u00001"`: true, `"\u0001"`: false, `"\\\\u0000"`: false,
	} {
		if got := snap.NULInJSON([]byte(document)); got != want {
			t.Errorf("NULInJSON(%s) = %v, want %v", document, got, want)
		}
	}
}

// Only localhost and loopback addresses are this machine.
func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example": false, "10.0.0.1": false, "0.0.0.0": false, "::": false,
		"::ffff:10.0.0.1": false,
	} {
		if got := snap.IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}
