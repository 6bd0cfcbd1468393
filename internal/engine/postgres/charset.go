package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"

	"snap/internal/engine/charset"
)

// A dump is in the database's own encoding, because the server cannot convert every byte to UTF-8,
// and its conversion is not always reversible. Code that looks at strings converts them to UTF-8
// with the charsets in this file.

// asciiOnly is the encoding SQL_ASCII: the database does not know how its strings are encoded.
const asciiOnly = "SQL_ASCII"

// charsetOf returns the charset of a server's encoding, or nil for UTF-8.
func charsetOf(name string) *charset.Charset {
	if one := singleByte(name); one != nil {
		return charset.Single(name, one)
	}
	if more := multiByte(name); more != nil {
		return charset.Multi(name, more, charset.EUC)
	}
	switch name {
	case "UTF8", "":
		return nil
	case asciiOnly:
		return charset.Mixed(name)
	}
	return charset.Unknown(name)
}

// convertible reports whether both the server and [charsetOf] can convert an encoding to UTF-8 and
// back.
func convertible(name string) bool {
	return name == "UTF8" || name == "" || singleByte(name) != nil || multiByte(name) != nil
}

// singleByte returns an encoding by its name in PostgreSQL (see the manual's table of character
// sets), or nil if it is not a single-byte encoding.
func singleByte(name string) *charmap.Charmap {
	return map[string]*charmap.Charmap{
		"LATIN1": charmap.ISO8859_1, "LATIN2": charmap.ISO8859_2, "LATIN3": charmap.ISO8859_3,
		"LATIN4": charmap.ISO8859_4, "LATIN5": charmap.ISO8859_9, "LATIN6": charmap.ISO8859_10,
		"LATIN7": charmap.ISO8859_13, "LATIN8": charmap.ISO8859_14, "LATIN9": charmap.ISO8859_15,
		"LATIN10": charmap.ISO8859_16, "ISO_8859_5": charmap.ISO8859_5, "ISO_8859_6": charmap.ISO8859_6,
		"ISO_8859_7": charmap.ISO8859_7, "ISO_8859_8": charmap.ISO8859_8,
		"WIN1250": charmap.Windows1250, "WIN1251": charmap.Windows1251, "WIN1252": charmap.Windows1252,
		"WIN1253": charmap.Windows1253, "WIN1254": charmap.Windows1254, "WIN1255": charmap.Windows1255,
		"WIN1256": charmap.Windows1256, "WIN1257": charmap.Windows1257, "WIN1258": charmap.Windows1258,
		"WIN866": charmap.CodePage866, "WIN874": charmap.Windows874, "KOI8R": charmap.KOI8R, "KOI8U": charmap.KOI8U,
	}[name]
}

// multiByte returns an encoding that uses two or three bytes for characters outside ASCII.
func multiByte(name string) encoding.Encoding {
	return map[string]encoding.Encoding{"EUC_JP": japanese.EUCJP, "EUC_KR": korean.EUCKR,
		"EUC_CN": simplifiedchinese.GBK}[name]
}

// sessionEncoding returns the client encoding of snapcli's sessions. It is UTF-8, or SQL_ASCII if
// the database's encoding cannot be converted, so that strings are transferred unchanged.
func sessionEncoding(database string) string {
	if convertible(database) {
		return "UTF8"
	}
	return asciiOnly
}

// charsetOn returns the charset of the connected database.
func charsetOn(conn *pgconn.PgConn) *charset.Charset {
	return charsetOf(conn.ParameterStatus("server_encoding"))
}
