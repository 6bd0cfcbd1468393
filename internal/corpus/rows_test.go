package corpus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// perTable is the number of rows that are tried for each table. It is more than fewRows, below
// which a table's share is not checked.
const perTable = 48

// rowMaker inserts generated rows.
type rowMaker struct {
	d      database
	r      *rand.Rand
	tables []table
	keys   map[string][]reference // by child
	has    map[string]int         // rows, by table
	row    int
	cell   int // counts values, so that strings in two columns differ
	try    int // of the row
}

// fill inserts rows into all tables, referencing tables last. It returns the tables that stayed empty.
func fill(t testing.TB, d database, seed uint64) (empty []string) {
	t.Helper()
	m := rowMaker{d: d, r: rand.New(rand.NewPCG(seed, 20)), tables: d.tables(t), keys: map[string][]reference{},
		has: map[string]int{}}
	for _, k := range d.references(t) {
		m.keys[k.child] = append(m.keys[k.child], k)
	}
	todo := slices.Clone(m.tables)
	for round := 0; len(todo) > 0 && round < 12; round++ {
		var later []table
		for _, at := range todo {
			if m.waits(at) && round < 8 || !m.fillOne(at) {
				later = append(later, at)
			}
		}
		if len(later) == len(todo) && round >= 8 {
			break
		}
		todo = later
	}
	for _, at := range todo {
		empty = append(empty, at.name)
	}
	return empty
}

// waits reports whether a table needs rows of a table that has none yet.
func (m *rowMaker) waits(at table) bool {
	return slices.ContainsFunc(m.keys[at.name], func(k reference) bool {
		return k.parent != at.name && m.has[k.parent] == 0 && !m.optional(at, k)
	})
}

func (m *rowMaker) optional(at table, k reference) bool {
	return slices.ContainsFunc(at.columns, func(c column) bool {
		return c.nullable && slices.ContainsFunc(k.columns, func(q string) bool { return q == c.quoted || q == c.name })
	})
}

// fillOne inserts the rows of a table, and reports whether there are any.
func (m *rowMaker) fillOne(at table) bool {
	for n := range perTable {
		for try := range 5 {
			if m.insert(at, try) == nil {
				m.has[at.name]++
				break
			}
		}
		if n == 8 && m.has[at.name] == 0 {
			break
		}
	}
	return m.has[at.name] > 0
}

// insert tries one row: first with unusual values, then with plain ones, with those of the table's
// checks, with few values, and with no optional ones.
func (m *rowMaker) insert(at table, try int) error {
	m.row++
	m.try = try
	values := map[string]string{}
	for _, k := range m.keys[at.name] {
		m.refer(at, k, try, values)
	}
	var names, list []string
	for _, c := range at.columns {
		if c.filled {
			continue
		}
		v, ok := values[c.quoted]
		if !ok {
			v, ok = values[c.name]
		}
		switch {
		case ok:
		case try == 4 && c.def, try == 3 && c.def && m.r.IntN(2) == 0:
			continue
		case c.nullable && (try == 4 || m.r.IntN(6) == 0):
			v = "NULL"
		default:
			v = m.value(c, at.hints, try)
		}
		names, list = append(names, c.quoted), append(list, v)
	}
	text := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", at.name, strings.Join(names, ", "), strings.Join(list, ", "))
	if len(names) == 0 {
		text = "INSERT INTO " + at.name + " DEFAULT VALUES"
		if m.d.kind == "mysql" {
			text = "INSERT INTO " + at.name + " () VALUES ()"
		}
	}
	_, err := m.d.Exec(text)
	return err
}

// refer sets the columns of a foreign key to those of a row, or to NULL.
func (m *rowMaker) refer(at table, k reference, try int, values map[string]string) {
	if m.optional(at, k) && (m.r.IntN(4) == 0 || m.has[k.parent] == 0 || try == 4) {
		for _, c := range at.columns {
			if c.nullable && slices.Contains(k.columns, c.quoted) {
				values[c.quoted] = "NULL"
			}
		}
		return
	}
	random := map[string]string{"postgres": "random()", "mysql": "rand()", "sqlite": "random()"}[m.d.kind]
	for i, c := range k.columns {
		values[c] = fmt.Sprintf("(SELECT %s FROM %s ORDER BY %s LIMIT 1)", k.refers[i], k.parent, random)
	}
	if len(k.columns) == 1 && k.parent != at.name {
		return
	}
	rows, err := m.d.Query(fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT 1", strings.Join(k.refers, ", "),
		k.parent, random))
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		row, to := make([]*string, len(k.columns)), make([]any, len(k.columns))
		for i := range row {
			to[i] = &row[i]
		}
		if rows.Scan(to...) != nil {
			return
		}
		for i, c := range k.columns {
			values[c] = "NULL"
			if row[i] != nil {
				values[c] = m.text(*row[i])
			}
		}
	}
}

// text writes a string constant.
func (m *rowMaker) text(s string) string {
	if m.d.kind == "mysql" {
		s = strings.ReplaceAll(s, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// words are parts of strings that are easy to get wrong. None ends with a line break, because the
// leak scan of a PostgreSQL dump cannot tell its literal from \N.
func words() []string {
	return []string{"plain", "it''s", `back\slash`, "tab\there", "line\nbreak", "\r\nend", "ünïcödé", "日本語", `\N`, `\.`,
		"NULL",
		`"quoted"`, "%s", "${X}", "trailing ", " leading", "a,b;c", "-- no comment", "/* nor this */", "`tick`", "0",
		"1e10",
		"maria@real", "+49 30 1234567", "😀"}
}

func (m *rowMaker) value(c column, hints []string, try int) string {
	if c.array {
		if len(c.labels) > 0 {
			return "'{" + c.labels[0] + ",NULL}'"
		}
		return "'{}'"
	}
	if len(c.labels) > 0 {
		return m.text(c.labels[m.r.IntN(len(c.labels))])
	}
	if try == 2 && len(hints) > 0 && isText(c) {
		return m.text(hints[m.r.IntN(len(hints))])
	}
	if v, ok := m.number(c, try); ok {
		return v
	}
	if v, ok := m.special(c); ok {
		return v
	}
	return m.string(c, try)
}

func isText(c column) bool {
	return strings.Contains(c.typ, "char") || strings.Contains(c.typ, "text") || c.typ == "" || c.typ == "citext"
}

// number returns a value of a numeric type.
func (m *rowMaker) number(c column, try int) (string, bool) {
	n := m.row%120 + 1
	if try == 0 {
		n = m.r.IntN(30_000) + 1
	}
	unsigned := strings.Contains(c.full, "unsigned") || try > 0
	switch {
	case c.typ == "tinyint" || c.typ == "boolean" && m.d.kind != "postgres" || c.typ == "year":
		if c.typ == "year" {
			return fmt.Sprint(1901 + n%200), true
		}
		return fmt.Sprint(n % 2), true
	case c.typ == "bool":
		return []string{"true", "false"}[n%2], true
	case slices.Contains([]string{"int2", "int4", "int8", "smallint", "mediumint", "int", "bigint", "oid",
		"integer"}, c.typ),
		m.d.kind == "sqlite" && strings.Contains(c.typ, "int"):
		if try == 0 && m.r.IntN(12) == 0 && !unsigned && c.typ != "oid" {
			return fmt.Sprint(-n), true
		}
		if try == 0 && (c.typ == "int8" || c.typ == "bigint") && m.r.IntN(10) == 0 {
			return "9223372036854775807", true
		}
		return fmt.Sprint(n), true
	case slices.Contains([]string{"numeric", "decimal", "float4", "float8", "float", "double", "real", "money"}, c.typ):
		whole := 1
		for range max(0, min(c.digits-c.scale, 4)) {
			whole *= 10
		}
		if c.digits == 0 {
			whole = 10_000
		}
		v := fmt.Sprintf("%d.%d", n%max(whole, 1), m.r.IntN(10)*10)
		if c.digits > 0 && c.scale == 0 {
			v = fmt.Sprint(n % max(whole, 1))
		}
		if try == 0 && m.d.kind == "postgres" && m.r.IntN(15) == 0 && c.typ != "money" {
			return "'NaN'", true
		}
		if try == 0 && strings.Contains(c.typ, "float") && m.r.IntN(5) == 0 {
			return "1.2345678901234567", true
		}
		return v, true
	}
	return "", false
}

// special returns a value of a type with a syntax of its own.
func (m *rowMaker) special(c column) (string, bool) {
	n := m.row % 200
	hex := fmt.Sprintf("00ff%06x%04x", m.row, m.r.IntN(65536))
	if c.length > 0 && c.length < len(hex)/2 {
		hex = fmt.Sprintf("%06x", m.row)[6-2*min(c.length, 3):]
	}
	if c.typ == "bytea" && c.length > len(hex)/2 { // a domain's check wants exactly this length
		hex += strings.Repeat("0", 2*c.length-len(hex))
	}
	day := fmt.Sprintf("20%02d-%02d-%02d", n%38, 1+n%12, 1+n%28)
	first, _, _ := strings.Cut(c.typ, " ")
	switch first {
	case "date":
		return m.text(day), true
	case "timestamp", "timestamptz", "datetime":
		return m.text(day + " 03:04:05"), true
	case "time", "timetz":
		return m.text(fmt.Sprintf("%02d:04:05", n%24)), true
	case "interval":
		return fmt.Sprintf("'%d days 01:02:03.5'", n), true
	case "uuid":
		m.cell++
		return fmt.Sprintf("'00000000-0000-4000-8000-%012d'", m.cell), true
	case "bytea":
		return `'\x` + hex + "'", true
	case "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary":
		return "X'" + hex + "'", true
	case "json", "jsonb":
		return m.text(fmt.Sprintf(`{"n": %d, "t": "ä\n", "list": [1, null, 2.5], "o": {}}`, m.row)), true
	case "xml":
		return fmt.Sprintf("'<a b=\"%d\">x &amp; y</a>'", n), true
	case "inet":
		return fmt.Sprintf("'198.51.100.%d'", n), true
	case "inet4":
		return fmt.Sprintf("'198.51.100.%d'", n), true
	case "inet6":
		return fmt.Sprintf("'2001:db8::%x'", n), true
	case "cidr":
		return fmt.Sprintf("'198.51.%d.0/24'", n), true
	case "macaddr":
		return fmt.Sprintf("'00:1b:44:11:3a:%02x'", n), true
	case "macaddr8":
		return fmt.Sprintf("'00:1b:44:11:3a:00:00:%02x'", n), true
	case "tsvector":
		return fmt.Sprintf("'word%d:1A other:2,3'", n), true
	case "tsquery":
		return fmt.Sprintf("'word%d & !other'", n), true
	case "bit", "varbit":
		if m.d.kind == "mysql" {
			return fmt.Sprintf("b'%b'", n%2), true
		}
		return "B'" + strings.Repeat("10", max(c.length, 1))[:max(c.length, 1)] + "'", true
	case "hstore":
		return fmt.Sprintf(`'"a"=>"%d", "b\"c"=>NULL'`, n), true
	case "ltree":
		return fmt.Sprintf("'top.n%d'", n), true
	case "pg_lsn":
		return fmt.Sprintf("'16/%X'", m.row), true
	case "jsonpath":
		return "'$.a[*]'", true
	case "_composite":
		return "NULL", true
	}
	if v, ok := m.shape(c, n); ok {
		return v, ok
	}
	if c.parts > 0 {
		return "'(" + strings.Repeat(",", c.parts-1) + ")'", true
	}
	return "", false
}

// shape returns a value of a geometric type or of a range.
func (m *rowMaker) shape(c column, n int) (string, bool) {
	if m.d.kind == "mysql" {
		return m.mysqlShape(c, n%80)
	}
	switch c.typ {
	case "point":
		return fmt.Sprintf("'(%d,1.5)'", n), true
	case "line":
		return "'{1,-1,0}'", true
	case "lseg", "box":
		return fmt.Sprintf("'(%d,1),(0,0)'", n), true
	case "path", "polygon":
		return fmt.Sprintf("'((0,0),(%d,1),(1,0))'", n), true
	case "circle":
		return fmt.Sprintf("'<(%d,1),2>'", n), true
	case "int4range", "int8range", "numrange":
		return fmt.Sprintf("'[%d,%d)'", 10*m.row, 10*m.row+5), true
	case "daterange":
		return "'[2026-01-01,2026-02-01)'", true
	case "tsrange", "tstzrange":
		return fmt.Sprintf("'[2026-01-01 00:00:00,2026-02-01 00:00:%02d)'", n%60), true
	case "int4multirange", "nummultirange", "int8multirange":
		return fmt.Sprintf("'{[%d,%d),[%d,%d)}'", n, n+1, n+5, n+9), true
	}
	return "", false
}

// mysqlShape returns a value of a geometric type. Every second try is in the reference system of GPS.
func (m *rowMaker) mysqlShape(c column, n int) (string, bool) {
	var text string
	switch c.typ {
	case "point", "geometry":
		text = fmt.Sprintf("POINT(%d 1.5)", n)
	case "linestring":
		text = fmt.Sprintf("LINESTRING(0 0,%d 1)", n)
	case "polygon":
		text = fmt.Sprintf("POLYGON((0 0,%d 0,1 1,0 0))", n+2)
	case "multipoint":
		text = fmt.Sprintf("MULTIPOINT(0 0,%d 1)", n)
	case "multilinestring":
		text = fmt.Sprintf("MULTILINESTRING((0 0,%d 1))", n)
	case "multipolygon":
		text = fmt.Sprintf("MULTIPOLYGON(((0 0,%d 0,1 1,0 0)))", n+2)
	case "geometrycollection", "geomcollection":
		text = fmt.Sprintf("GEOMETRYCOLLECTION(POINT(%d 1))", n)
	case "vector":
		return "NULL", true
	default:
		return "", false
	}
	return fmt.Sprintf("ST_GeomFromText('%s', %d)", text, []int{0, 4326}[m.try%2]), true
}

// string returns a string that fits the column.
func (m *rowMaker) string(c column, try int) string {
	m.cell++
	list := words()
	s := fmt.Sprintf("%s~%05d~", list[m.r.IntN(len(list))], m.cell)
	if try > 0 {
		s = fmt.Sprintf("v%05d", m.cell)
	}
	if m.d.kind == "mysql" && try > 0 && c.length == 1 {
		s = string(rune('a' + m.row%26))
	}
	if runes := []rune(s); c.length > 0 && len(runes) > c.length {
		s = string(runes[len(runes)-c.length:])
	}
	return m.text(s)
}
