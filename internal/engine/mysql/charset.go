package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"snap/internal/engine/charset"
)

// The server sends strings as UTF-8. For many character sets, it cannot convert every character and
// silently substitutes a question mark or another character. Shift_JIS even loses its backslash.
// Strings in these character sets are read and written as bytes, prefixed with the name of the
// character set.

// keptByUTF8 reports whether every string in a character set survives the conversion to UTF-8 and
// back. It must be true for character sets whose characters always take more than one byte, because
// [plain] expects ASCII characters to be single bytes.
func keptByUTF8(name string) bool {
	switch name {
	case "", "utf8", "utf8mb3", "utf8mb4", "utf16", "utf16le", "utf32", "ucs2", "latin1", "latin2", "latin5", "latin7",
		"cp850", "cp852", "cp866", "keybcs2", "koi8r", "koi8u", "macce", "macroman":
		return true
	}
	return false
}

// charsetsOf returns, by table and column, the character sets of the string columns of a database
// for which [keptByUTF8] is false.
func charsetsOf(ctx context.Context, c querier, database string) (map[[2]string]string, error) {
	rows, err := c.QueryContext(ctx,
		"SELECT table_name, column_name, character_set_name FROM information_schema.columns WHERE table_schema = ? "+
			"AND (data_type LIKE '%char' OR data_type LIKE '%text')", database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[[2]string]string{}
	for rows.Next() {
		var table, column string
		var name sql.NullString
		if err := rows.Scan(&table, &column, &name); err != nil {
			return nil, err
		}
		if !keptByUTF8(name.String) {
			all[[2]string{table, column}] = name.String
		}
	}
	return all, rows.Err()
}

// appendBytesIn appends a string in a character set as a literal. A string whose bytes are the same
// in all character sets is written as an ordinary literal.
func appendBytesIn(b, v []byte, charset string) []byte {
	if plain(v, charset) {
		return appendQuoted(b, v)
	}
	return appendHexIn(b, v, charset)
}

func appendHexIn(b, v []byte, charset string) []byte {
	b = append(append(append(b, '_'), charset...), " X'"...)
	return append(hex.AppendEncode(b, v), '\'')
}

// allCharsets returns the names of the character sets of all supported servers.
var allCharsets = sync.OnceValue(func() []string {
	return strings.Fields(`armscii8 ascii big5 binary cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 cp932
		dec8 eucjpms euckr gb18030 gb2312 gbk geostd8 greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2
		latin5 latin7 macce macroman sjis swe7 tis620 ucs2 ujis utf16 utf16le utf32 utf8 utf8mb3 utf8mb4`)
})

// plain reports whether a string is ASCII without control characters and has no characters that a
// character set may replace with others, such as Swedish letters in swe7 or the yen sign in
// Shift_JIS.
func plain(v []byte, charset string) bool {
	return charset != "swe7" && bytes.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '}' || r == '\\' }) < 0
}

var errNoText = errors.New("a string is not valid in its character set")

// textIn reads the hexadecimal form that appendBytesIn writes.
func textIn(literal []byte) (string, error) {
	name, digits, ok := strings.Cut(string(literal[1:]), " X'")
	digits, ended := strings.CutSuffix(digits, "'")
	b, err := hex.DecodeString(digits)
	if !ok || !ended || err != nil {
		return "", errNoText
	}
	return charsetNamed(name).Text(string(b)), nil
}

// charsetNamed returns a character set for which [keptByUTF8] is false, by its name.
func charsetNamed(name string) *charset.Charset {
	if c := charsets()[name]; c != nil {
		return c
	}
	return charset.Unknown(name)
}

// charsets caches the character sets that can be converted on this machine.
var charsets = sync.OnceValue(func() map[string]*charset.Charset {
	all := map[string]*charset.Charset{}
	for name, m := range map[string]*charmap.Charmap{
		"greek": charmap.ISO8859_7, "hebrew": charmap.ISO8859_8, "cp1250": charmap.Windows1250,
		"cp1251": charmap.Windows1251, "cp1256": charmap.Windows1256, "cp1257": charmap.Windows1257,
		"tis620": charmap.Windows874,
	} {
		all[name] = charset.Single(name, m)
	}
	for _, c := range []struct {
		name   string
		e      encoding.Encoding
		length func(string) int
	}{
		{"sjis", japanese.ShiftJIS, charset.ShiftJIS}, {"cp932", japanese.ShiftJIS, charset.ShiftJIS},
		{"ujis", japanese.EUCJP, charset.EUC}, {"eucjpms", japanese.EUCJP, charset.EUC},
		{"euckr", korean.EUCKR, charset.DoubleByte}, {"gb2312", simplifiedchinese.GBK, charset.EUC},
		{"gbk", simplifiedchinese.GBK, charset.DoubleByte}, {"big5", traditionalchinese.Big5, charset.DoubleByte},
	} {
		all[c.name] = charset.Multi(c.name, c.e, c.length)
	}
	return all
})

// storedIn returns a function that returns the possible forms of a sampled value in a dump with
// these character sets: inside a quoted string, and in hexadecimal digits.
func storedIn(names map[string]bool) func(string) []string {
	return func(value string) []string {
		literal := appendQuoted(nil, []byte(value))
		all := []string{string(literal[1 : len(literal)-1])}
		for name := range names {
			if b, err := charsetNamed(name).Bytes(value); err == nil && !plain([]byte(b), name) {
				all = append(all, hex.EncodeToString([]byte(b)))
			}
		}
		return all
	}
}
