package corpus

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// table is a table as its server describes it.
type table struct {
	name    string // as written after FROM
	columns []column
	hints   []string // strings in its checks
}

type column struct {
	name     string
	quoted   string
	typ      string // the name of its type, without its length
	full     string // with everything
	nullable bool
	filled   bool // by the server: generated, or an identity
	def      bool // has a default
	length   int  // in characters or bytes; 0: none
	digits   int  // precision and scale of a numeric
	scale    int
	labels   []string // of an enum
	array    bool
	parts    int // of a composite type
}

// reference is a foreign key.
type reference struct {
	child, parent   string
	columns, refers []string // quoted
}

// database is an open database of a corpus.
type database struct {
	*sql.DB
	kind string // postgres, mysql or sqlite
	url  string
	my   string // the server's name among those of MySQL
}

func (d database) query(t testing.TB, text string, args ...any) (all [][]string) {
	t.Helper()
	rows, err := d.Query(text, args...)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	for rows.Next() {
		row, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(row))
		for i, v := range row {
			texts[i] = v.String
			if !v.Valid {
				texts[i] = "NULL"
			}
		}
		all = append(all, texts)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all
}

func (d database) quote(name string) string {
	if d.kind == "mysql" {
		return "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// tables returns the tables that rows are inserted into.
func (d database) tables(t testing.TB) []table {
	t.Helper()
	switch d.kind {
	case "postgres":
		return d.fold(t, postgresColumns)
	case "mysql":
		return d.fold(t, mysqlColumns)
	}
	return d.sqliteTables(t)
}

const userSchemas = `n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' AND NOT EXISTS
	(SELECT FROM pg_depend e WHERE e.objid = c.oid AND e.classid = 'pg_class'::regclass AND e.deptype = 'e')`

// One row for each column: table, column, type, whole type, nullable, filled, default, length, digits, scale, labels,
// array, parts, and the texts of the table's checks.
const postgresColumns = `
	WITH RECURSIVE base (typ, at, modifier) AS (
		SELECT t.oid, t.oid, -1 FROM pg_type t
		UNION ALL SELECT b.typ, t.typbasetype, greatest(t.typtypmod, b.modifier) FROM base b
			JOIN pg_type t ON t.oid = b.at WHERE t.typtype = 'd')
	SELECT format('%I.%I', n.nspname, c.relname), a.attname, coalesce(e.typname, t.typname),
		format_type(a.atttypid, a.atttypmod),
		NOT (a.attnotnull OR EXISTS (SELECT FROM pg_type d WHERE d.oid = a.atttypid AND d.typnotnull)),
		a.attgenerated <> '' OR a.attidentity <> '', a.atthasdef,
		CASE WHEN t.typname IN ('varchar', 'bpchar') AND greatest(a.atttypmod, b.modifier) > 4
			THEN greatest(a.atttypmod, b.modifier) - 4
			WHEN t.typname IN ('bit', 'varbit') THEN greatest(a.atttypmod, b.modifier)
			WHEN t.typname = 'bytea'
				THEN
				coalesce((SELECT max(substring(pg_get_constraintdef(k.oid) FROM 'octet_length\(VALUE\) = (\d+)')::int)
				FROM pg_constraint k WHERE k.contypid = a.atttypid), 0) ELSE 0 END,
		CASE WHEN t.typname = 'numeric' AND a.atttypmod > 0 THEN ((a.atttypmod - 4) >> 16) & 65535 ELSE 0 END,
		CASE WHEN t.typname = 'numeric' AND a.atttypmod > 0 THEN (a.atttypmod - 4) & 2047 ELSE 0 END,
		coalesce((SELECT string_agg(enumlabel, E'\x01' ORDER BY enumsortorder) FROM pg_enum
			WHERE enumtypid = coalesce(e.oid, t.oid)), ''),
		e.oid IS NOT NULL, (SELECT count(*) FROM pg_attribute p WHERE p.attrelid = coalesce(e.typrelid, t.typrelid)
			AND p.attnum > 0 AND NOT attisdropped AND t.typrelid > 0),
		coalesce((SELECT string_agg(pg_get_constraintdef(k.oid), ' ') FROM pg_constraint k
			WHERE (k.conrelid = c.oid OR k.contypid = a.atttypid) AND k.contype = 'c'), '')
	FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN base b ON b.typ = a.atttypid JOIN pg_type t ON t.oid = b.at AND t.typtype <> 'd'
		LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0
		AND NOT a.attisdropped AND ` + userSchemas + `
	ORDER BY 1, a.attnum`

const mysqlColumns = "SELECT concat('`', replace(c.TABLE_NAME, '`', '``'), '`'), c.COLUMN_NAME, " + `
	c.DATA_TYPE, c.COLUMN_TYPE,
		c.IS_NULLABLE = 'YES', c.EXTRA LIKE '%GENERATED%' AND c.EXTRA NOT LIKE '%DEFAULT_GENERATED%'
			OR c.EXTRA LIKE '%auto_increment%' OR c.EXTRA LIKE '%INVISIBLE%',
		c.COLUMN_DEFAULT IS NOT NULL, coalesce(c.CHARACTER_MAXIMUM_LENGTH, 0), coalesce(c.NUMERIC_PRECISION, 0),
			coalesce(c.NUMERIC_SCALE, 0),
		'', 0, 0, coalesce((SELECT group_concat(k.CHECK_CLAUSE SEPARATOR ' ')
			FROM information_schema.CHECK_CONSTRAINTS k
			JOIN information_schema.TABLE_CONSTRAINTS x USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)
				WHERE k.CONSTRAINT_SCHEMA = database() AND x.TABLE_NAME = c.TABLE_NAME), '')
	FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
	WHERE c.TABLE_SCHEMA = database() AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
		ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION`

var labelsOf = regexp.MustCompile(`'((?:[^']|'')*)'`)

// fold reads the columns of a server.
func (d database) fold(t testing.TB, text string) (all []table) {
	t.Helper()
	yes := func(s string) bool { return s == "true" || s == "t" || s == "1" }
	number := func(s string) (n int) { _, _ = fmt.Sscan(s, &n); return n }
	for _, r := range d.query(t, text) {
		if len(all) == 0 || all[len(all)-1].name != r[0] {
			all = append(all, table{name: r[0]})
		}
		at := &all[len(all)-1]
		at.hints = append(at.hints, hintsIn(r[13])...)
		c := column{name: r[1], quoted: d.quote(r[1]), typ: strings.ToLower(r[2]), full: r[3], nullable: yes(r[4]),
			filled: yes(r[5]), def: yes(r[6]), length: number(r[7]), digits: number(r[8]), scale: number(r[9]),
			array: yes(r[11]), parts: number(r[12])}
		if r[10] != "" {
			c.labels = strings.Split(r[10], "\x01")
		}
		if c.typ == "set" || d.kind == "mysql" && c.typ == "enum" {
			c.labels = hintsIn(c.full)
		}
		at.columns = append(at.columns, c)
	}
	return all
}

// hintsIn returns the strings in a check.
func hintsIn(check string) (all []string) {
	for _, m := range labelsOf.FindAllStringSubmatch(check, -1) {
		if v := strings.ReplaceAll(m[1], "''", "'"); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func (d database) sqliteTables(t testing.TB) (all []table) {
	t.Helper()
	for _, r := range d.query(t, `SELECT l.name, l.type, coalesce(s.sql, '') FROM pragma_table_list l LEFT
		JOIN sqlite_schema s ON s.name = l.name AND s.type = 'table'
		WHERE l.schema = 'main' AND l.type IN ('table', 'virtual') AND l.name NOT LIKE 'sqlite\_%' ESCAPE '\'
			ORDER BY 1`) {
		at := table{name: d.quote(r[0]), hints: hintsIn(r[2])}
		for _, c := range d.query(t, `SELECT name, upper(type), "notnull", hidden, dflt_value IS NOT NULL, pk `+
			`FROM pragma_table_xinfo(?) WHERE hidden <> 1`, r[0]) {
			at.columns = append(at.columns, column{name: c[0], quoted: d.quote(c[0]), typ: strings.ToLower(c[1]),
				full:     c[1],
				nullable: c[2] == "0" && c[5] == "0", filled: c[3] != "0",
				def: c[4] == "1" || c[5] == "1" && c[1] == "INTEGER"})
		}
		all = append(all, at)
	}
	return all
}

// references returns the foreign keys.
func (d database) references(t testing.TB) (all []reference) {
	t.Helper()
	var rows [][]string
	switch d.kind {
	case "postgres":
		rows = d.query(t, `SELECT k.oid, format('%I.%I', n.nspname, c.relname), format('%I.%I', pn.nspname, p.relname),
			quote_ident(ca.attname), quote_ident(pa.attname)
			FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace,
				unnest(k.conkey, k.confkey) WITH ORDINALITY u (a, b, i)
				JOIN pg_attribute ca ON ca.attnum = u.a JOIN pg_attribute pa ON pa.attnum = u.b
			WHERE k.contype = 'f' AND k.conparentid = 0 AND ca.attrelid = k.conrelid
				AND pa.attrelid = k.confrelid AND `+userSchemas+` ORDER BY k.oid, i`)
	case "mysql":
		rows = d.query(t, "SELECT concat(TABLE_NAME, '.', CONSTRAINT_NAME), concat('`', TABLE_NAME, '`'), "+
			"concat('`', REFERENCED_TABLE_NAME, '`'), concat('`', COLUMN_NAME, '`'), concat('`', "+
			"REFERENCED_COLUMN_NAME, '`') "+
			"FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = database() AND REFERENCED_TABLE_NAME "+
			"IS NOT NULL ORDER BY 1, ORDINAL_POSITION")
	default:
		rows = d.query(t, `SELECT l.name || f.id, '"' || l.name || '"', '"' || f."table" || '"', '"' || f."from" || '"',
				'"' || coalesce(f."to", (SELECT name FROM pragma_table_info(f."table") WHERE pk = f.seq + 1)) || '"'
			FROM pragma_table_list l, pragma_foreign_key_list(l.name) f WHERE l.schema = 'main' ORDER BY 1, f.seq`)
	}
	last := ""
	for _, r := range rows {
		if r[4] == "NULL" || r[4] == "" { // SQLite keeps keys to tables that do not exist
			continue
		}
		if r[0] != last {
			all = append(all, reference{child: r[1], parent: r[2]})
			last = r[0]
		}
		at := &all[len(all)-1]
		at.columns, at.refers = append(at.columns, r[3]), append(at.refers, r[4])
	}
	return all
}
