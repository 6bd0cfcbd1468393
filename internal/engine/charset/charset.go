// Package charset converts text between a database's encoding and UTF-8 without a server.
//
// Every byte sequence can be converted to UTF-8 and back. The result is the same bytes or, for a
// character with several encoded forms, another of these forms. A byte that is not part of a
// character becomes a rune of the private use area, see [IsByte].
package charset

import (
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// Charset is an encoding that is a superset of ASCII. It is safe for concurrent use. A nil Charset
// is UTF-8 that is known to be valid.
type Charset struct {
	name   string
	decode func(s string) (r rune, size int) // for a string that begins with a non-ASCII byte; size is never 0
	encode func(r rune) string               // for a rune beyond ASCII; "" if the encoding lacks it
}

// noCharacter is the result of decode for bytes that are not part of a character.
const noCharacter = rune(-1)

// firstByte is the rune that represents the byte 0x00. The runes of the other bytes follow it.
const firstByte = 0xf700

// IsByte reports whether a rune represents a byte that is not part of a character.
func IsByte(r rune) bool { return r >= firstByte && r <= firstByte+0xff }

// Unknown returns an encoding of which only the ASCII part is known.
func Unknown(name string) *Charset {
	return &Charset{name: name, decode: func(string) (rune, int) { return noCharacter, 1 },
		encode: func(rune) string { return "" }}
}

// Mixed returns a Charset for strings that are mostly UTF-8 but may be in any encoding.
func Mixed(name string) *Charset {
	decode := func(s string) (rune, int) {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return noCharacter, size
		}
		return r, size
	}
	return &Charset{name: name, decode: decode, encode: func(r rune) string { return string(r) }}
}

// Single returns an encoding with one byte per character.
func Single(name string, m *charmap.Charmap) *Charset {
	decode := func(s string) (rune, int) {
		if r := m.DecodeByte(s[0]); r != utf8.RuneError {
			return r, 1
		}
		return noCharacter, 1
	}
	return &Charset{name: name, decode: decode, encode: func(r rune) string {
		if b, ok := m.EncodeRune(r); ok {
			return string([]byte{b})
		}
		return ""
	}}
}

// Multi returns an encoding with one or more bytes per character. length returns the number of
// bytes of the first character in a string that begins with a non-ASCII byte, or 0 if the encoding
// lacks that character. e may have characters that the returned encoding lacks.
func Multi(name string, e encoding.Encoding, length func(s string) int) *Charset {
	encode := func(r rune) string {
		b, err := e.NewEncoder().String(string(r))
		if err != nil || length(b) != len(b) {
			return ""
		}
		return b
	}
	character := func(s string) rune {
		text, err := e.NewDecoder().String(s)
		r, n := utf8.DecodeRuneInString(text)
		if err != nil || r == utf8.RuneError || n < len(text) || encode(r) == "" {
			return noCharacter
		}
		return r
	}
	known := make([]atomic.Int32, 1<<16) // by the bytes of a character: its rune plus 2, or 0 if not decoded yet
	decode := func(s string) (rune, int) {
		size, at := length(s), 0
		if size == 0 {
			return noCharacter, 1
		}
		if size > 2 {
			return character(s[:size]), size
		}
		for _, b := range []byte(s[:size]) {
			at = at<<8 | int(b)
		}
		if known[at].Load() == 0 {
			known[at].Store(character(s[:size]) + 2)
		}
		return known[at].Load() - 2, size
	}
	return &Charset{name: name, decode: decode, encode: encode}
}

// Text converts a string to UTF-8.
func (c *Charset) Text(s string) string {
	return c.read(s, func(out []byte, b byte) []byte { return utf8.AppendRune(out, firstByte+rune(b)) })
}

// Label converts a name for display and for manifests. A byte that is not part of a character is
// written in hexadecimal, such as \xE9.
func (c *Charset) Label(s string) string {
	return c.read(s, func(out []byte, b byte) []byte { return fmt.Appendf(out, `\x%02X`, b) })
}

// Readable converts text that may not be UTF-8 for display, as [Charset.Label] does.
func Readable(s string) string { return Mixed("").Label(s) }

// read converts a string. For each byte that is not part of a character, it calls stray, which
// appends a substitute to out.
func (c *Charset) read(s string, stray func(out []byte, b byte) []byte) string {
	if c == nil || isASCII(s) {
		return s
	}
	out := make([]byte, 0, 2*len(s))
	for len(s) > 0 {
		r, size := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, size = c.decode(s)
		}
		if r == noCharacter || IsByte(r) {
			for i := range size {
				out = stray(out, s[i])
			}
		} else {
			out = utf8.AppendRune(out, r)
		}
		s = s[size:]
	}
	return string(out)
}

// Bytes converts UTF-8 to the encoding. At the first character that the encoding lacks, it returns
// an error that names the character.
func (c *Charset) Bytes(text string) (string, error) {
	if c == nil || isASCII(text) {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case IsByte(r):
			out = append(out, byte(r-firstByte))
		default:
			b := c.encode(r)
			if b == "" {
				return "", fmt.Errorf("the encoding %s has no character %q", c.name, r)
			}
			out = append(out, b...)
		}
	}
	return string(out), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Bytes of EUC. A character beyond ASCII has two bytes or, if it begins with singleShift3, three.
// All bytes are lowestEUC or higher, except the two shift bytes. Extended variants of these
// encodings put their additional characters in other ranges.
const (
	singleShift2 = 0x8e
	singleShift3 = 0x8f
	lowestEUC    = 0xa1
)

// EUC returns the length of a string's first character in the EUC encodings (Extended Unix Code),
// as [Multi] needs it.
func EUC(s string) int {
	size, from := 2, 0
	switch {
	case s == "":
		return 0
	case s[0] == singleShift3:
		size, from = 3, 1
	case s[0] == singleShift2:
		from = 1
	}
	if len(s) < size {
		return 0
	}
	for i := from; i < size; i++ {
		if s[i] < lowestEUC {
			return 0
		}
	}
	return size
}

// ShiftJIS returns the length of a string's first character in Shift_JIS, as [Multi] needs it. A
// character that is neither ASCII nor half-width katakana has two bytes. The second may be ASCII.
func ShiftJIS(s string) int {
	switch {
	case s == "":
		return 0
	case s[0] >= lowestEUC && s[0] <= 0xdf:
		return 1
	}
	return DoubleByte(s)
}

// DoubleByte returns the length of a string's first character in encodings with two bytes for each
// character beyond ASCII, as [Multi] needs it. The second byte may be ASCII.
func DoubleByte(s string) int {
	if len(s) < 2 || s[0] <= utf8.RuneSelf || s[1] < '@' {
		return 0
	}
	return 2
}
