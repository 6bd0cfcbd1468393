package charset

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"pgregory.net/rapid"
)

func all() []*Charset {
	return []*Charset{
		Unknown("EUC_TW"), Mixed("SQL_ASCII"), Single("LATIN1", charmap.ISO8859_1),
		Single("WIN1252", charmap.Windows1252),
		Single("ISO_8859_6", charmap.ISO8859_6),
		Multi("EUC_JP", japanese.EUCJP, EUC), Multi("sjis", japanese.ShiftJIS, ShiftJIS),
		Multi("EUC_KR", korean.EUCKR, EUC),
		Multi("EUC_CN", simplifiedchinese.GBK, EUC),
		Multi("gbk", simplifiedchinese.GBK, DoubleByte), Multi("big5", traditionalchinese.Big5, DoubleByte),
	}
}

// Any bytes are read as valid UTF-8, and the text can be written back. The result is the same bytes
// or, for a character with several encodings, bytes that are read as the same text.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	charsets := all()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(charsets).Draw(t, "charset")
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		text := c.Text(s)
		back, err := c.Bytes(text)
		if !utf8.ValidString(text) || !utf8.ValidString(c.Label(s)) || err != nil || c.Text(back) != text ||
			len(back) != len(s) {
			t.Fatalf("%s: %q is read as %q and written as %q, %v", c.name, s, text, back, err)
		}
		if one := c.name == "LATIN1" || c.name == "WIN1252" || c.name == "ISO_8859_6" || c.name == "EUC_TW" ||
			c.name == "SQL_ASCII"; one && back != s {
			t.Fatalf("%s: %q came back as %q", c.name, s, back)
		}
	})
}

func TestCharset(t *testing.T) {
	t.Parallel()
	win, sjis, mixed := Single("WIN1252", charmap.Windows1252), Multi("sjis", japanese.ShiftJIS, ShiftJIS),
		Mixed("SQL_ASCII")
	for _, c := range []struct {
		charset           *Charset
		raw, text, called string
	}{
		{nil, "caf\xe9", "caf\xe9", "caf\xe9"},
		{win, "\x80 caf\xe9 \x81", "€ café \uf781", `€ café \x81`},
		{sjis, "\x95\x5c\x8e\xa6\xb1", "表示ｱ", "表示ｱ"},
		{sjis, "\xf0\x40\x95", "\uf7f0\uf740\uf795", `\xF0\x40\x95`},
		{mixed, "caf\xe9 é", "caf\uf7e9 é", `caf\xE9 é`},
		{mixed, "\uf7e9", "\uf7ef\uf79f\uf7a9", `\xEF\x9F\xA9`},
		{Unknown("x"), "a\xe9", "a\uf7e9", `a\xE9`},
	} {
		if got, called := c.charset.Text(c.raw), c.charset.Label(c.raw); got != c.text || called != c.called {
			t.Errorf("%q is read as %q and called %q", c.raw, got, called)
		}
		if back, err := c.charset.Bytes(c.text); back != c.raw || err != nil {
			t.Errorf("%q is written as %q, %v", c.text, back, err)
		}
	}
	for _, c := range []*Charset{win, sjis, Unknown("x"), Multi("EUC_CN", simplifiedchinese.GBK, EUC)} {
		if b, err := c.Bytes("a €😀"); err == nil {
			t.Errorf("%s has a smiley: %q", c.name, b)
		}
	}
}
