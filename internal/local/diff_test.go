package local

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap/internal/diff"
	"snap/internal/servertest"
)

// diffServer is a kind of database in which SQL computes the expected differences.
type diffServer struct {
	name, driver string
	text         string // the type of a text column whose collation distinguishes all values
	url          func(t *testing.T, dir string) (url, dsn string)
	tables       int
}

func diffServers() []diffServer {
	return []diffServer{
		{"sqlite", "sqlite", "TEXT", func(_ *testing.T, dir string) (string, string) {
			return "sqlite://" + filepath.Join(dir, "diff.db"), filepath.Join(dir, "diff.db")
		}, 500},
		{"postgres", "pgx", "TEXT", func(t *testing.T, _ string) (string, string) {
			url := servertest.Postgres(t)
			return url, url
		}, 300},
		{"mariadb", "mysql", "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
			func(t *testing.T, _ string) (string, string) {
				url := servertest.MySQL(t, "mariadb")
				return url, dsnOf("mysql", url)
			}, 200},
	}
}

// TestDiffIsWhatSQLSays compares the counts for 1,000 randomly changed random tables with those
// that the databases compute. The SQL is like EXCEPT, but written as sums over groups, which also
// count duplicate rows.
func TestDiffIsWhatSQLSays(t *testing.T) {
	t.Parallel()
	for _, server := range diffServers() {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			url, dsn := server.url(t, s.dir)
			db, err := sql.Open(server.driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			r := rand.New(rand.NewPCG(23, uint64(len(server.name))))
			var script []string
			for i := range server.tables {
				script = append(script, randomTable(r, i, server.text)...)
			}
			runAll(t, db, script)
			if err := s.AddTarget(Target{Name: "random", Source: url}); err != nil {
				t.Fatal(err)
			}
			first, err := s.Build(t.Context(), "random", BuildOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			script = nil
			for i := range server.tables {
				script = append(script, randomChanges(r, i)...)
			}
			runAll(t, db, script)
			want := map[string]diff.Table{}
			for i := range server.tables {
				if one := sqlDifference(t, db, i); one.Added+one.Removed+one.Changed > 0 {
					want[one.Name] = one
				}
			}
			if len(want) < server.tables/2 {
				t.Fatalf("only %d of %d tables differ", len(want), server.tables)
			}
			got, err := s.Diff(t.Context(), first.Name, "", DiffOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range got.Tables {
				one.Schema = ""
				if one != want[one.Name] {
					t.Errorf("got %+v, want %+v", one, want[one.Name])
				}
				delete(want, one.Name)
			}
			for _, one := range want {
				t.Errorf("missing: %+v", one)
			}
			if len(got.Schema) > 0 {
				t.Errorf("the schema did not change: %+v", got.Schema)
			}
		})
	}
}

// randomTable returns the SQL of a table and of a copy of it. Tables with an even number have a key.
func randomTable(r *rand.Rand, i int, text string) (script []string) {
	key := map[bool]string{true: " PRIMARY KEY", false: ""}[i%2 == 0]
	script = []string{fmt.Sprintf("CREATE TABLE t%d (id INTEGER%s, a %s, b %s)", i, key, text, text)}
	for id := range r.IntN(12) {
		script = append(script, fmt.Sprintf("INSERT INTO t%d VALUES (%d, %s, %s)", i, id*(1-i%2), randomText(r),
			randomText(r)))
	}
	return append(script, fmt.Sprintf("CREATE TABLE c%d AS SELECT * FROM t%d", i, i))
}

func randomChanges(r *rand.Rand, i int) (script []string) {
	for range r.IntN(4) {
		condition := fmt.Sprintf(" WHERE id = %d", r.IntN(12))
		if i%2 == 1 {
			condition = " WHERE a = " + randomText(r)
		}
		switch r.IntN(3) {
		case 0:
			script = append(script, fmt.Sprintf("DELETE FROM t%d%s", i, condition))
		case 1:
			script = append(script, fmt.Sprintf("UPDATE t%d SET b = %s%s", i, randomText(r), condition))
		default:
			script = append(script, fmt.Sprintf("INSERT INTO t%d VALUES (%d, %s, %s)", i, 100+len(script),
				randomText(r), randomText(r)))
		}
	}
	return script
}

func randomText(r *rand.Rand) string {
	all := []string{"NULL", "''", "'a'", "'A'", "'a '", "'NULL'", "'two\nlines'", "'a\tb'", "'é'", "'it''s'"}
	return all[r.IntN(len(all))]
}

func runAll(t *testing.T, db *sql.DB, script []string) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // it does nothing after the commit
	for _, statement := range script {
		if _, err := tx.Exec(statement); err != nil {
			t.Fatalf("%v in %s", err, statement)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// sqlDifference computes the difference between table t and its earlier copy c.
func sqlDifference(t *testing.T, db *sql.DB, i int) diff.Table {
	t.Helper()
	one := diff.Table{Name: fmt.Sprintf("t%d", i), Keyed: i%2 == 0}
	query := strings.NewReplacer("T", one.Name, "C", fmt.Sprintf("c%d", i)).Replace(`select
		(select count(*) from C), (select count(*) from T),
		coalesce(sum(case when n > 0 then n else 0 end), 0), coalesce(sum(case when n < 0 then -n else 0 end), 0),
		(select count(*) from T where id not in (select id from C)),
		(select count(*) from C where id not in (select id from T))
		from (select sum(w) as n from (select id, a, b, 1 as w from T union all select id, a, b, -1 from C) as u
			group by id, a, b) as g`)
	var newIDs, oldIDs int64
	if err := db.QueryRow(query).Scan(&one.Before, &one.After, &one.Added, &one.Removed, &newIDs, &oldIDs); err != nil {
		t.Fatalf("%v in %s", err, query)
	}
	if one.Keyed {
		one.Changed = one.Added - newIDs
		one.Added, one.Removed = newIDs, oldIDs
	}
	return one
}

// TestDiffOfSchemas checks that a change of each kind of object is reported exactly once.
func TestDiffOfSchemas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server         func(t *testing.T) (url, driver, dsn string)
		before, change []string
		want           []diff.Change
	}{
		"postgres": {
			func(t *testing.T) (string, string, string) {
				url := servertest.Postgres(t)
				return url, "pgx", url
			},
			[]string{"CREATE TYPE mood AS ENUM ('good')", "CREATE TABLE kept (id int PRIMARY KEY, a int, m mood)",
				"CREATE INDEX kept_a ON kept (a)", "CREATE TABLE gone (id int)",
				"CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
				"CREATE VIEW seen AS SELECT a FROM kept",
				"CREATE INDEX kept_odd ON kept ((a + 1))", "SELECT lo_from_bytea(4711, 'old')"},
			[]string{"ALTER TYPE mood ADD VALUE 'bad'", "ALTER TABLE kept ADD b text NOT NULL DEFAULT ''",
				"DROP INDEX kept_a", "DROP TABLE gone", "ALTER TABLE kept ADD UNIQUE (b)",
				"CREATE OR REPLACE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 2'",
				"CREATE TABLE made (id int PRIMARY KEY, kept int REFERENCES kept)",
				"DROP INDEX kept_odd", "CREATE INDEX kept_odd ON kept ((a + 2))",
				"SELECT lo_put(4711, 0, 'new')"},
			[]diff.Change{
				{Change: diff.Removed, Kind: "table", Name: "public.gone"},
				{Change: diff.Added, Kind: "column", Name: "b", On: "public.kept", Detail: "text not null"},
				{Change: diff.Added, Kind: "unique constraint", Name: "kept_b_key", On: "public.kept", Detail: "(b)"},
				{Change: diff.Removed, Kind: "index", Name: "kept_a", On: "public.kept", Detail: "(a)"},
				{Change: diff.Changed, Kind: "index", Name: "public.kept_odd"},
				{Change: diff.Added, Kind: "table", Name: "public.made"},
				{Change: diff.Changed, Kind: "type", Name: "public.mood", Detail: "good -> good, bad"},
				{Change: diff.Changed, Kind: "function", Name: "public.one()"},
			},
		},
		"mariadb": {
			func(t *testing.T) (string, string, string) {
				url := servertest.MySQL(t, "mariadb")
				return url, "mysql", dsnOf("mysql", url)
			},
			[]string{"CREATE TABLE kept (id int PRIMARY KEY AUTO_INCREMENT, a int, m ENUM('good'))",
				"CREATE INDEX kept_a ON kept (a)", "CREATE TABLE gone (id int)",
				"CREATE FUNCTION one() RETURNS int DETERMINISTIC RETURN 1", "CREATE VIEW seen AS SELECT a FROM kept"},
			[]string{"ALTER TABLE kept MODIFY m ENUM('good', 'bad')", "ALTER TABLE kept ADD b varchar(9) NOT NULL",
				"DROP INDEX kept_a ON kept", "DROP TABLE gone", "INSERT INTO kept (a, b) VALUES (1, '')",
				"DELETE FROM kept", // AUTO_INCREMENT is now 2
				"CREATE OR REPLACE FUNCTION one() RETURNS int DETERMINISTIC RETURN 2",
				"CREATE TABLE made (id int PRIMARY KEY, kept int REFERENCES kept (id))"},
			[]diff.Change{
				{Change: diff.Removed, Kind: "table", Name: "gone"},
				{Change: diff.Changed, Kind: "column", Name: "m", On: "kept",
					Detail: "enum('good') -> enum('good', 'bad')"},
				{Change: diff.Added, Kind: "column", Name: "b", On: "kept", Detail: "varchar(9) not null"},
				{Change: diff.Removed, Kind: "index", Name: "kept_a", On: "kept", Detail: "(a)"},
				{Change: diff.Added, Kind: "table", Name: "made"},
				{Change: diff.Changed, Kind: "function", Name: "one"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			url, driver, dsn := c.server(t)
			db, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			runAll(t, db, c.before)
			if err := s.AddTarget(Target{Name: "schema", Source: url}); err != nil {
				t.Fatal(err)
			}
			first, err := s.Build(t.Context(), "schema", BuildOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			same, err := s.Diff(t.Context(), first.Name, "", DiffOptions{}, nil)
			if err != nil || !same.Equal() {
				t.Fatalf("nothing changed: %+v, %v", same.Result, err)
			}
			runAll(t, db, c.change)
			got, err := s.Diff(t.Context(), first.Name, "", DiffOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range c.want {
				if !slices.Contains(got.Schema, one) {
					t.Errorf("missing: %+v", one)
				}
			}
			for i, one := range got.Schema {
				if !slices.Contains(c.want, one) || slices.Contains(got.Schema[:i], one) {
					t.Errorf("unexpected: %+v", one)
				}
			}
			if name == "postgres" && (len(got.Tables) != 1 || got.Tables[0].Name != "pg_largeobject") {
				t.Errorf("the large object that changed is missing: %+v", got.Tables)
			}
		})
	}
}
