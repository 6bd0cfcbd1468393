package mysql

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
	"snap/internal/subset/subsettest"
)

func sorted(t *testing.T, url, query string) []string {
	t.Helper()
	db, _ := openURL(t, url)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}

func subsetOf(t *testing.T, url string, want engine.Subset) (engine.Dump, error) {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &b, engine.Options{Jobs: 2, TempDir: t.TempDir(), Subset: &want})
	return dumpOf(b.Bytes(), info), err
}

// TestSubsetOfADeepTree checks that a subset with a row has all of the row's ancestors, however
// many there are. One statement finds them, so the time is proportional to their number.
func TestSubsetOfADeepTree(t *testing.T) {
	t.Parallel()
	const levels = 15000
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		script(t, from, subsettest.Deep(levels))
		dump, err := subsetOf(t, from, engine.Subset{Where: map[string]string{"deep": fmt.Sprintf("id = %d", levels)}})
		if err != nil {
			t.Fatal(err)
		}
		if rows := dump.Info.Tables[0].Rows; rows != levels {
			t.Errorf("the subset has %d rows, want %d", rows, levels)
		}
	})
}

type drawn struct {
	m   subsettest.Model
	ask subsettest.Ask
}

// For any foreign keys, a loaded subset has exactly the rows that the rules require, and all of its
// foreign keys hold.
func TestSubsetHoldsTheRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		generator := rapid.Custom(func(r *rapid.T) drawn {
			m, ask := subsettest.Generate(r)
			return drawn{m, ask}
		})
		first := rand.IntN(1 << 20)
		for seed := first; seed < first+5; seed++ {
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			d := generator.Example(seed)
			text := d.m.SQL(false)
			script(t, from, text)
			dump, err := subsetOf(t, from, engine.Subset{Where: d.ask.Where(d.m), Percent: d.ask.Percent})
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			if dump.Info.Properties[engine.ForeignKeys] != "hold" {
				t.Fatalf("seed %d: foreign keys: %s\n%s", seed, dump.Info.Properties[engine.ForeignKeys], text)
			}
			if err := load(t, to, dump, true); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			want := subsettest.Expect(d.m, d.ask)
			for i, table := range d.m.Tables {
				if got := sorted(t, to, table.KeyQuery()); !slices.Equal(got, want[i]) {
					t.Fatalf("seed %d: %s has %v, want %v\n%+v\n%s", seed, table.Name, got, want[i], d.ask, text)
				}
				if told := dump.Info.Tables[i]; told.Name != table.Name || told.Rows != int64(len(want[i])) ||
					told.Of != int64(len(table.Rows)) {
					t.Fatalf("seed %d: told of %s: %+v", seed, table.Name, told)
				}
			}
		}
	})
}

const subsetSchema = `
CREATE TABLE ` + "`cus ``tomer`" + ` (k1 varchar(20) CHARACTER ` +
	`SET latin1 COLLATE latin1_swedish_ci, k2 varbinary(8), note text, g int ` +
	`AS (length(note)) STORED, PRIMARY KEY (k1, k2));
INSERT INTO ` + "`cus ``tomer`" + ` (k1, k2, note) VALUES ('Größe', x'00ff27', 'kept'), ` +
	`('o''brien\\', x'5c0a', 'not kept');
CREATE TABLE orders (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, c1 varchar(20) CHARACTER ` +
	`SET latin1 COLLATE latin1_swedish_ci, c2 varbinary(8), ` +
	`CONSTRAINT o FOREIGN KEY (c1, c2) REFERENCES ` + "`cus ``tomer`" + ` (k1, k2));
INSERT INTO orders VALUES (18446744073709551615, 'größe', x'00ff27'), (2, 'o''brien\\', x'5c0a'), (3, NULL, x'00ff27');
CREATE TABLE log (what varchar(20), at datetime(6), n double, b blob);
INSERT INTO log VALUES ('kept', '2026-01-02 03:04:05.678901', 1.5, x'00'), ` +
	`('kept', '2026-01-02 03:04:05.678901', 1.5, x'00'), ('gone', NULL, NULL, NULL);
CREATE TABLE setting (name varchar(20)); INSERT INTO setting VALUES ('whole');
CREATE VIEW seen AS SELECT id FROM orders;
`

// Subsets support odd names and keys, tables without keys, collations and rows with
// all values equal.
func TestSubsetOfAnOddDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, subsetSchema)
		dump, err := subsetOf(t, from,
			engine.Subset{Where: map[string]string{"cus `tomer": "note = 'kept' -- a comment", "log": "what = 'kept'"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := load(t, to, dump, false); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			"SELECT CONVERT(k1 USING utf8mb4) FROM `cus ``tomer`": "Größe",
			"SELECT hex(k2) FROM `cus ``tomer`":                   "00FF27",
			"SELECT id FROM orders":                               "18446744073709551615",
			"SELECT id FROM seen":                                 "18446744073709551615",
			"SELECT what FROM log":                                "kept,kept", "SELECT name FROM setting": "whole",
		} {
			if got := strings.Join(sorted(t, to, query), ","); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	})
}

// A limit on the rows or on the size is respected.
func TestSubsetWithinALimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		script(t, from, "CREATE TABLE `lo'ng` (id int PRIMARY KEY, v text); CREATE TABLE short (id int PRIMARY KEY);"+
			"INSERT INTO short VALUES "+strings.TrimPrefix(numbers(1000), ",")+";"+
			"INSERT INTO `lo'ng` SELECT id, repeat('x', 4000) FROM short; ANALYZE TABLE `lo'ng`, short;")
		for _, want := range []engine.Subset{{Rows: 200}, {Bytes: 600_000}} {
			dump, err := subsetOf(t, from, want)
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range dump.Info.Tables {
				if table.Rows < 50 || table.Rows > 150 {
					t.Errorf("%+v: %d of 1000 rows of %s", want, table.Rows, table.Name)
				}
			}
		}
	})
}

func numbers(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, ",(%d)", i)
	}
	return all.String()
}

func TestSubsetConditionsThatAreWrong(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		script(t, from, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1);")
		for name, want := range map[string]engine.Subset{
			"no such table":    {Where: map[string]string{"tt": "true"}},
			"no such column":   {Where: map[string]string{"t": "b = 1"}},
			"no SQL":           {Where: map[string]string{"t": "((("}},
			"a statement more": {Where: map[string]string{"t": "true); DROP TABLE t; -- "}},
			"over the whole":   {Percent: 101},
		} {
			if _, err := subsetOf(t, from, want); snap.CodeOf(err) != snap.CodeUsage {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := sorted(t, from, "SELECT count(*) FROM t"); fmt.Sprint(got) != "[1]" {
			t.Errorf("the source has %v", got)
		}
	})
}

// A load refuses a subset that has a row with a dangling reference.
func TestSubsetWithABrokenForeignKeyIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from,
			"CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c (a int PRIMARY KEY, p int, FOREIGN KEY (p) "+
				"REFERENCES p "+
				"(a)); SET foreign_key_checks = 0; INSERT INTO c VALUES (1, 7);")
		dump, err := subsetOf(t, from, engine.Subset{Where: map[string]string{"c": "true"}})
		if err != nil || dump.Info.Properties[engine.ForeignKeys] != "1 rows of the source reference nothing" {
			t.Fatalf("%v: %v", err, dump.Info.Properties)
		}
		if err := load(t, to, dump, false); err != nil {
			t.Errorf("as the source has it: %v", err)
		}
		dump.Info.Properties[engine.ForeignKeys] = "hold"
		if err := load(t, to, dump, false); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("a row that references nothing was loaded: %v", err)
		}
	})
}
