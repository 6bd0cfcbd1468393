package corpus

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// state is the content of a database as its own programs and queries report it.
type state struct {
	schema  string                    // by pg_dump, mysqldump, or the table sqlite_schema
	rows    map[string]map[string]int // by table: how often a row occurs, by its hash
	columns map[string]map[string]int // by table and column: how often a value occurs
	extra   string                    // sequences, large objects, settings
}

func (s state) count(table string) (n int) {
	for _, times := range s.rows[table] {
		n += times
	}
	return n
}

// changing are the parts of a dump that differ from one run to the next.
var changing = regexp.MustCompile(`(?m)^(\\(un)?restrict .*|-- Dumped .*)\n`)

// charsets are the character sets that a collation implies. MySQL does not always name them.
var charsets = regexp.MustCompile(`CHARACTER SET \w+ COLLATE`)

// members is a condition of the form x IN ('a', 'b') on a varchar. PostgreSQL writes the
// condition's casts in another order after it has read its own SQL once, as in pg_dump and psql.
var members = regexp.MustCompile(`(?m)^.*\)::text = ANY \(.*$`)

// casts removes the casts and parentheses, which then differ.
var casts = strings.NewReplacer("::character varying", "", "::text[]", "", "::text", "", "(", "", ")", "")

// counter is the next value of a MySQL table, which a subset does not keep.
var counter = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

func (d database) state(t testing.TB) state {
	t.Helper()
	s := state{rows: map[string]map[string]int{}, columns: map[string]map[string]int{}}
	s.schema = d.schema(t)
	for name, columns := range d.read(t) {
		s.rows[name] = map[string]int{}
		names := slices.Sorted(maps.Keys(columns))
		var list []string
		for _, c := range names {
			s.columns[name+"."+c] = map[string]int{}
			list = append(list, columns[c])
		}
		from := name
		if d.kind == "postgres" {
			from = "ONLY " + name
		}
		for _, row := range d.query(t, "SELECT "+strings.Join(append(list, "1"), ", ")+" FROM "+from) {
			for i, c := range names {
				s.columns[name+"."+c][row[i]]++
			}
			s.rows[name][fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(row, "\x1f"))))]++
		}
	}
	s.extra = d.extra(t)
	return s
}

// read returns the tables to compare, and for each column an expression that loses nothing.
func (d database) read(t testing.TB) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	add := func(table, column, expr string) {
		if all[table] == nil {
			all[table] = map[string]string{}
		}
		if column != "" {
			all[table][column] = expr
		}
	}
	switch d.kind {
	case "postgres":
		for _, r := range d.query(t, `SELECT format('%I.%I', n.nspname, c.relname), coalesce(a.attname, ''),
			quote_ident(a.attname) || '::text'
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			WHERE c.relkind IN ('r', 'm') AND c.relispopulated AND `+userSchemas) {
			add(r[0], r[1], r[2])
		}
	case "mysql":
		for _, r := range d.query(t, "SELECT concat('`', replace(TABLE_NAME, '`', '``'), '`'), COLUMN_NAME, "+
			"DATA_TYPE, concat('`', replace(COLUMN_NAME, '`', '``'), '`') "+
			"FROM information_schema.COLUMNS JOIN information_schema.TABLES USING (TABLE_SCHEMA, TABLE_NAME) "+
			"WHERE TABLE_SCHEMA = database() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND "+
			"coalesce(GENERATION_EXPRESSION, '') NOT IN ('ROW START', 'ROW END')") {
			expr := r[3]
			if r[2] == "float" {
				expr += " + 0e0"
			}
			add(r[0], r[1], expr)
		}
	default:
		for _, at := range d.sqliteTables(t) {
			for _, c := range at.columns {
				add(at.name, c.name, fmt.Sprintf("typeof(%[1]s) || CASE typeof(%[1]s) WHEN 'real' THEN "+
					"printf('%%!.20g', %[1]s) WHEN 'integer' THEN %[1]s WHEN 'null' THEN '' ELSE hex(%[1]s) END",
					c.quoted))
			}
		}
	}
	return all
}

// schema returns the definitions as the database's own program writes them.
func (d database) schema(t testing.TB) string {
	t.Helper()
	switch d.kind {
	case "postgres":
		text := run(t, exec.Command(filepath.Join(servertest.PostgresTools(t, 15), "pg_dump"), "-s", "-O", "-x",
			"-d", d.url))
		return members.ReplaceAllStringFunc(changing.ReplaceAllString(text, ""), casts.Replace)
	case "mysql":
		text := run(t, d.client("dump", "--no-data", "--routines", "--events", "--triggers", "--skip-comments",
			"--force"))
		text = charsets.ReplaceAllString(text, "COLLATE")
		return strings.ReplaceAll(text, "`"+d.url[strings.LastIndex(d.url, "/")+1:]+"`.", "")
	}
	var b strings.Builder
	for _, r := range d.query(t, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1, 2") {
		b.WriteString(strings.Join(r, " | ") + "\n")
	}
	return b.String()
}

// extra returns what a database has besides tables.
func (d database) extra(t testing.TB) string {
	t.Helper()
	var all []string
	switch d.kind {
	case "postgres":
		for _, r := range d.query(t, `SELECT format('SELECT %L, last_value, is_called FROM %I.%I',
			c.relname, n.nspname, c.relname)
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE c.relkind = 'S' AND `+userSchemas+` ORDER BY 1`) {
			all = append(all, fmt.Sprint(d.query(t, r[0])))
		}
		all = append(all, fmt.Sprint(d.query(t, "SELECT oid, md5(lo_get(oid)) FROM pg_largeobject_metadata ORDER "+
			"BY oid")))
	case "mysql": // the history of rows, which a subset does not have
		for _, r := range d.query(t, "SELECT concat('`', TABLE_NAME, '`') FROM information_schema.TABLES WHERE "+
			"TABLE_SCHEMA = database() AND TABLE_TYPE = 'SYSTEM VERSIONED' ORDER BY 1") {
			all = append(all, r[0]+fmt.Sprint(d.query(t, "SELECT *, row_start, row_end FROM "+r[0]+" FOR "+
				"SYSTEM_TIME ALL ORDER BY 1, 2")))
		}
	case "sqlite":
		for _, p := range []string{"user_version", "application_id", "encoding", "page_size", "auto_vacuum"} {
			all = append(all, p+fmt.Sprint(d.query(t, "PRAGMA "+p)))
		}
	}
	return strings.Join(all, "\n")
}

func run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd.Path, err, failed.String())
	}
	return string(out)
}

// same fails if two databases differ in anything.
func same(t testing.TB, what string, want, got state) {
	t.Helper()
	sameSchema(t, what, want, got)
	if want.extra != got.extra {
		t.Errorf("%s: sequences and the like differ\n%s", what, difference(want.extra, got.extra))
	}
	for name, rows := range want.rows {
		if !maps.Equal(rows, got.rows[name]) {
			t.Errorf("%s: the rows of %s differ (%d, want %d)%s", what, name, got.count(name), want.count(name),
				columnsOf(want, got, name))
		}
	}
}

// columnsOf names the columns of a table whose values differ.
func columnsOf(want, got state, table string) (text string) {
	for key, values := range want.columns {
		if !strings.HasPrefix(key, table+".") || maps.Equal(values, got.columns[key]) {
			continue
		}
		text += "\n    " + key
		n := 0
		for v, times := range values {
			if got.columns[key][v] != times && n < 3 {
				text += fmt.Sprintf(" %.80q", v)
				n++
			}
		}
		text += " became"
		for v, times := range got.columns[key] {
			if values[v] != times && n < 6 {
				text += fmt.Sprintf(" %.80q", v)
				n++
			}
		}
	}
	return text
}

func sameSchema(t testing.TB, what string, want, got state) {
	t.Helper()
	if want.schema != got.schema {
		t.Errorf("%s: the definitions differ\n%s", what, difference(want.schema, got.schema))
	}
}

// difference returns the lines that only one of two strings has.
func difference(want, got string) string {
	var b strings.Builder
	count := func(s string) map[string]int {
		m := map[string]int{}
		for line := range strings.SplitSeq(s, "\n") {
			m[line]++
		}
		return m
	}
	w, g := count(want), count(got)
	n := 0
	for line := range strings.SplitSeq(want, "\n") {
		if w[line] != g[line] && n < 12 {
			fmt.Fprintf(&b, "  - %.300s\n", line)
			n++
		}
	}
	n = 0
	for line := range strings.SplitSeq(got, "\n") {
		if w[line] != g[line] && n < 12 {
			fmt.Fprintf(&b, "  + %.300s\n", line)
			n++
		}
	}
	return b.String()
}

// fewRows is the size below which chance decides a share.
const fewRows = 30

// partOf fails unless got is a subset of the source: it has only rows of the source, every foreign
// key finds its row, and each table has about its share of rows, apart from rows that a foreign key
// forces.
func partOf(t testing.TB, what string, d database, from, got state, percent float64) {
	t.Helper()
	from.schema, got.schema = counter.ReplaceAllString(from.schema, ""), counter.ReplaceAllString(got.schema, "")
	sameSchema(t, what, from, got)
	keys := d.references(t)
	for name, rows := range got.rows {
		if d.computed(t, name) {
			continue
		}
		for row, times := range rows {
			if from.rows[name][row] < times {
				t.Errorf("%s: %s has a row that its source does not have%s", what, name, columnsOf(from, got, name))
				break
			}
		}
		kept, of := float64(got.count(name)), float64(from.count(name))
		if of < fewRows {
			continue
		}
		if low := percent / 100 * of * 2 / 3; kept < low-3 {
			t.Errorf("%s: %s has %v of %v rows, fewer than its share", what, name, kept, of)
		}
		if high := percent / 100 * of * 4 / 3; kept > high+3 {
			if free := d.unforced(t, name, keys); free > high+3 {
				t.Errorf("%s: %s has %v of %v rows, of which %v are referenced by none", what, name, kept, of, free)
			}
		}
	}
	for _, k := range keys {
		if n := d.query(t, "SELECT count(*) FROM "+k.child+" c WHERE "+k.dangling("c"))[0][0]; n != "0" {
			t.Errorf("%s: %s rows of %s reference none of %s", what, n, k.child, k.parent)
		}
	}
}

// computed reports whether a table is a materialized view, or a virtual table, which subsets keep
// whole.
func (d database) computed(t testing.TB, name string) bool {
	t.Helper()
	switch d.kind {
	case "postgres":
		return d.query(t, "SELECT count(*) FROM pg_matviews WHERE format('%I.%I', schemaname, matviewname) = $1",
			name)[0][0] == "1"
	case "sqlite":
		return d.query(t, `SELECT count(*) FROM pragma_table_list WHERE type = 'virtual' AND '"' || name || '"' = ?`,
			name)[0][0] == "1"
	}
	return false
}

// dangling is the condition that a row of a child references a row that is not there.
func (k reference) dangling(child string) string {
	var given, equal []string
	for i, c := range k.columns {
		given = append(given, child+"."+c+" IS NOT NULL")
		equal = append(equal, "p."+k.refers[i]+" = "+child+"."+c)
	}
	return fmt.Sprintf("%s AND NOT EXISTS (SELECT 1 FROM %s p WHERE %s)", strings.Join(given, " AND "), k.parent,
		strings.Join(equal, " AND "))
}

// unforced counts the rows of a table that no row references.
func (d database) unforced(t testing.TB, name string, keys []reference) (n float64) {
	t.Helper()
	var free []string
	for _, k := range keys {
		if k.parent != name {
			continue
		}
		var equal []string
		for i, c := range k.columns {
			equal = append(equal, fmt.Sprintf("c.%s = p.%s", c, k.refers[i]))
		}
		free = append(free, fmt.Sprintf("NOT EXISTS (SELECT 1 FROM %s c WHERE %s)", k.child, strings.Join(equal,
			" AND ")))
	}
	if len(free) == 0 {
		free = []string{"1 = 1"}
	}
	_, _ = fmt.Sscan(d.query(t, "SELECT count(*) FROM "+name+" p WHERE "+strings.Join(free, " AND "))[0][0], &n)
	return n
}
