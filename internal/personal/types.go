package personal

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Class is a group of types that judgments and masks treat alike.
type Class string

// The classes.
const (
	Text      Class = "text"
	Integer   Class = "integer"
	Decimal   Class = "decimal"
	Float     Class = "float"
	Money     Class = "money"
	Bool      Class = "boolean"
	Date      Class = "date"
	Time      Class = "time"
	Timestamp Class = "timestamp"
	Year      Class = "year"
	Interval  Class = "interval"
	UUID      Class = "uuid"
	JSON      Class = "json"
	XML       Class = "xml"
	Hstore    Class = "hstore"
	Binary    Class = "binary"
	IP        Class = "ip address"
	MAC       Class = "hardware address"
	Point     Class = "point"
	Geometry  Class = "geometry"
	Bits      Class = "bits"
	Enum      Class = "enum"
	Range     Class = "range"
	Search    Class = "search index"
	Composite Class = "composite type"
	Other     Class = "type of its own"
)

// Type is a column's type.
type Type struct {
	Class    Class
	Name     string // without arguments, in lower case
	Length   int    // maximum characters of a string, or display digits of a MySQL integer; 0 is unlimited
	Digits   int    // total digits of a decimal; 0 is unlimited
	Scale    int    // digits after the decimal point
	Bytes    int    // size of an integer
	Unsigned bool
	Dims     int      // dimensions of an array
	Labels   []string // labels of an enum
}

// typeForm matches a type as databases write it: words, arguments, words, brackets.
var typeForm = regexp.MustCompile(`^([^()\[\]]*?)\s*(?:\(([^()]*)\))?\s*([^()\[\]]*?)\s*((?:\[\d*\])*)$`)

// classOf maps whole type names to classes. Parts of a name do not match: the domain "contact_hint"
// is not an integer.
var classOf = classes(map[Class]string{
	Text: `text, character varying, varchar, character, char, bpchar, citext, name, tinytext, mediumtext, longtext,
		clob, nvarchar, nchar, varying character, native character, string, ltree, national varchar,
		ean13, isbn, isbn13, issn, upc`,
	Integer: `integer, int, bigint, smallint, tinyint, mediumint, int2, int4, int8, serial, bigserial, smallserial,
		oid, unsigned big int, xid, xid8, cid`,
	Decimal:   "numeric, decimal, dec, fixed, number",
	Float:     "real, double precision, double, float, float4, float8",
	Money:     "money",
	Bool:      "boolean, bool",
	Date:      "date",
	Time:      "time, time without time zone, time with time zone, timetz",
	Timestamp: "timestamp, timestamp without time zone, timestamp with time zone, timestamptz, datetime",
	Year:      "year",
	Interval:  "interval",
	UUID:      "uuid, uniqueidentifier",
	JSON:      "json, jsonb",
	XML:       "xml, xmltype",
	Hstore:    "hstore",
	Binary:    "bytea, blob, tinyblob, mediumblob, longblob, binary, varbinary, image",
	IP:        "inet, cidr, inet4, inet6",
	MAC:       "macaddr, macaddr8",
	Point:     "point",
	Geometry: `geometry, geography, line, lseg, box, path, polygon, circle, linestring, multipoint, multilinestring,
		multipolygon, geometrycollection, geomcollection`,
	Bits: "bit, bit varying, varbit",
	Enum: "enum, set",
	Range: `int4range, int8range, numrange, tsrange, tstzrange, daterange, int4multirange, int8multirange,
		nummultirange, tsmultirange, tstzmultirange, datemultirange`,
	Search: "tsvector, tsquery, vector, halfvec, sparsevec",
})

// integerBytes are the sizes of the integer types that do not have four bytes.
var integerBytes = map[string]int{
	"tinyint": 1, "smallint": 2, "int2": 2, "smallserial": 2, "mediumint": 3, "bigint": 8, "int8": 8, "bigserial": 8,
	"unsigned big int": 8, "xid8": 8,
}

func classes(names map[Class]string) map[string]Class {
	all := map[string]Class{}
	for class, list := range names {
		for name := range strings.SplitSeq(list, ",") {
			all[strings.TrimSpace(name)] = class
		}
	}
	return all
}

// ParseType parses a type as a database writes it. A type without a name, which SQLite allows,
// holds text. A type that is not built in is [Other]: the caller must look it up.
func ParseType(text string) Type {
	text = strings.TrimSpace(text)
	if text == "" {
		return Type{Class: Text}
	}
	m := typeForm.FindStringSubmatch(text)
	if m == nil {
		return Type{Class: Other, Name: strings.ToLower(text)}
	}
	words := strings.Fields(strings.ToLower(m[1] + " " + m[3]))
	t := Type{Dims: strings.Count(m[4], "[")}
	words = slices.DeleteFunc(words, func(w string) bool {
		t.Unsigned = t.Unsigned || w == "unsigned"
		return w == "unsigned" || w == "signed" || w == "zerofill"
	})
	t.Name = strings.Join(words, " ")
	t.Class = cmp.Or(classOf[strings.Trim(t.Name, `"`)], Other)
	t.arguments(m[2])
	return t
}

// arguments parses the text between the parentheses of a type.
func (t *Type) arguments(list string) {
	args := strings.Split(list, ",")
	n := func(i int) int {
		if i >= len(args) {
			return 0
		}
		v, _ := strconv.Atoi(strings.TrimSpace(args[i]))
		return v
	}
	switch t.Class {
	case Text:
		t.Length = n(0)
		if t.Length == 0 && slices.Contains([]string{"character", "char", "nchar"}, t.Name) {
			t.Length = 1
		}
	case Decimal:
		t.Digits, t.Scale = n(0), n(1)
	case Integer:
		t.Length, t.Bytes = n(0), cmp.Or(integerBytes[t.Name], 4)
		if t.Name == "tinyint" && t.Length == 1 {
			t.Class = Bool
		}
	case Enum:
		for _, a := range args {
			t.Labels = append(t.Labels, strings.Trim(strings.TrimSpace(a), "'"))
		}
	}
}

// Common reports whether values of this class, such as times and enum labels, can occur in other
// columns by chance, because there are few possible values.
func (c Class) Common() bool {
	return c.isTime() || c.isNumber() || c == Bool || c == Enum || c == Interval
}

func (c Class) isNumber() bool {
	return c == Integer || c == Decimal || c == Float || c == Money || c == Bits || c == Range
}

func (c Class) isTime() bool { return c == Date || c == Time || c == Timestamp || c == Year }
