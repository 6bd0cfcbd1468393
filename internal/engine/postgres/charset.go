package postgres

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// A dump is in the database's own encoding, so that its bytes are those of the
// database: the server's way to UTF-8 does not know every byte, and does not
// always lead back. Where texts are looked at, they are read here as UTF-8.

// charset reads the texts of one encoding as UTF-8, and writes them. Every byte
// can be read and written again: those that are no character are runes of the
// private use area, from firstByte on. Nil is UTF-8 itself.
type charset struct {
	name   string
	decode func(s string) (r rune, size int) // of what begins with a byte beyond ASCII; [noCharacter] has a size too
	encode func(r rune) string               // of a rune beyond ASCII; "" when there is none
}

const noCharacter = rune(-1)

// firstByte stands for the byte 0x00.
const firstByte = 0xf700

func isByte(r rune) bool { return r >= firstByte+utf8.RuneSelf && r <= firstByte+0xff }

// charsetOf returns the charset of a server's encoding. Of one that is not known
// every byte beyond ASCII is no character.
func charsetOf(name string) *charset {
	if name == "UTF8" || name == "" {
		return nil
	}
	c := &charset{name: name, decode: func(string) (rune, int) { return noCharacter, 1 }, encode: func(rune) string { return "" }}
	if name == asciiOnly {
		c.decode, c.encode = decodeUTF8, func(r rune) string { return string(r) }
	}
	if one := singleByte(name); one != nil {
		c.decode, c.encode = oneByte(one)
	}
	if more := multiByte(name); more != nil {
		c.decode, c.encode = moreBytes(more)
	}
	return c
}

// asciiOnly is the encoding of a database that does not know how its texts are
// encoded. Most are UTF-8.
const asciiOnly = "SQL_ASCII"

// converts reports whether a server can convert an encoding to UTF-8 and back,
// and [charsetOf] as well.
func converts(name string) bool {
	return name == "UTF8" || name == "" || singleByte(name) != nil || multiByte(name) != nil
}

// singleByte returns an encoding by its name in PostgreSQL (the manual's table
// of character sets), nil when it is none with a byte for each character.
func singleByte(name string) *charmap.Charmap {
	return map[string]*charmap.Charmap{
		"LATIN1": charmap.ISO8859_1, "LATIN2": charmap.ISO8859_2, "LATIN3": charmap.ISO8859_3, "LATIN4": charmap.ISO8859_4, "LATIN5": charmap.ISO8859_9,
		"LATIN6": charmap.ISO8859_10, "LATIN7": charmap.ISO8859_13, "LATIN8": charmap.ISO8859_14, "LATIN9": charmap.ISO8859_15, "LATIN10": charmap.ISO8859_16,
		"ISO_8859_5": charmap.ISO8859_5, "ISO_8859_6": charmap.ISO8859_6, "ISO_8859_7": charmap.ISO8859_7, "ISO_8859_8": charmap.ISO8859_8,
		"WIN1250": charmap.Windows1250, "WIN1251": charmap.Windows1251, "WIN1252": charmap.Windows1252, "WIN1253": charmap.Windows1253, "WIN1254": charmap.Windows1254,
		"WIN1255": charmap.Windows1255, "WIN1256": charmap.Windows1256, "WIN1257": charmap.Windows1257, "WIN1258": charmap.Windows1258,
		"WIN866": charmap.CodePage866, "WIN874": charmap.Windows874, "KOI8R": charmap.KOI8R, "KOI8U": charmap.KOI8U,
	}[name]
}

// multiByte returns an encoding with two or three bytes for what is not ASCII.
func multiByte(name string) encoding.Encoding {
	return map[string]encoding.Encoding{"EUC_JP": japanese.EUCJP, "EUC_KR": korean.EUCKR, "EUC_CN": simplifiedchinese.GBK}[name]
}

func decodeUTF8(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return noCharacter, size
	}
	return r, size
}

func oneByte(m *charmap.Charmap) (func(string) (rune, int), func(rune) string) {
	decode := func(s string) (rune, int) {
		if r := m.DecodeByte(s[0]); r != utf8.RuneError {
			return r, 1
		}
		return noCharacter, 1
	}
	return decode, func(r rune) string {
		if b, ok := m.EncodeRune(r); ok {
			return string([]byte{b})
		}
		return ""
	}
}

// The bytes that begin a character of three bytes, and one of two whose first
// says only how to read the second; all others are from lowestEUC on. Encodings
// that are the same but for more characters have those elsewhere.
const (
	singleShift2 = 0x8e
	singleShift3 = 0x8f
	lowestEUC    = 0xa1
)

func moreBytes(e encoding.Encoding) (func(string) (rune, int), func(rune) string) {
	encode := func(r rune) string {
		b, err := e.NewEncoder().String(string(r))
		if err != nil || lengthEUC(b) != len(b) {
			return ""
		}
		return b
	}
	decode := func(s string) (rune, int) {
		size := lengthEUC(s)
		if size == 0 {
			return noCharacter, 1
		}
		text, err := e.NewDecoder().String(s[:size])
		r, n := utf8.DecodeRuneInString(text)
		if err != nil || r == utf8.RuneError || n < len(text) || encode(r) == "" {
			return noCharacter, size
		}
		return r, size
	}
	return decode, encode
}

// lengthEUC returns how many bytes the first character has, 0 when it is none.
func lengthEUC(s string) int {
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

// text reads a text.
func (c *charset) text(s string) string {
	return c.read(s, func(out []byte, b byte) []byte { return utf8.AppendRune(out, firstByte+rune(b)) })
}

// label reads a name for people and manifests: a byte that is no character is
// written as \xE9.
func (c *charset) label(s string) string {
	return c.read(s, func(out []byte, b byte) []byte { return fmt.Appendf(out, `\x%02X`, b) })
}

// read reads a text, with the bytes that are no character as stray appends them.
func (c *charset) read(s string, stray func(out []byte, b byte) []byte) string {
	if c == nil || isASCII(s) {
		return s
	}
	out := make([]byte, 0, 2*len(s))
	for len(s) > 0 {
		r, size := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, size = c.decode(s)
		}
		if r == noCharacter || isByte(r) {
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

// bytes writes a text, if the encoding has all of its characters.
func (c *charset) bytes(text string) (string, error) {
	if c == nil || isASCII(text) {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case isByte(r):
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

// speak has a session speak UTF-8, whatever the database's encoding is; where
// nobody can convert that, texts come and go as they are.
func speak(ctx context.Context, conn *pgconn.PgConn) error {
	want := "UTF8"
	if !converts(conn.ParameterStatus("server_encoding")) {
		want = asciiOnly
	}
	if conn.ParameterStatus("client_encoding") == want {
		return nil
	}
	_, err := conn.Exec(ctx, "SET client_encoding = "+want).ReadAll()
	return err
}

// charsetOn returns the charset of the database that is connected to.
func charsetOn(conn *pgconn.PgConn) *charset {
	return charsetOf(conn.ParameterStatus("server_encoding"))
}
