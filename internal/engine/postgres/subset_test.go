package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
	"snap/internal/subset/subsettest"
)

func texts(t *testing.T, url, query string) []string {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	slices.Sort(all)
	return all
}

func execute(t *testing.T, url, text string) {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func subsetOf(t *testing.T, url string, want engine.Subset) (engine.Dump, error) {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &b, engine.Options{Jobs: 2, Subset: &want})
	return dumpOf(b.Bytes(), info), err
}

// TestSubsetOfAnUnknownDump checks that a build names the version of a dump that it cannot read.
func TestSubsetOfAnUnknownDump(t *testing.T) {
	t.Parallel()
	err := new(subsetDump).copy(t.Context(), strings.NewReader("PGDMP\x01\x63\x00\x04\x08\x01"), io.Discard)
	if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "unknown version 199") {
		t.Error(err)
	}
}

// TestSubsetOfADeepTree checks that a subset with a row has all of the row's ancestors, however
// many there are. One statement finds them, so the time is proportional to their number.
func TestSubsetOfADeepTree(t *testing.T) {
	t.Parallel()
	const levels = 15000
	from := servertest.Postgres(t)
	execute(t, from, subsettest.Deep(levels))
	dump, err := subsetOf(t, from, engine.Subset{Where: map[string]string{"deep": fmt.Sprintf("id = %d", levels)}})
	if err != nil {
		t.Fatal(err)
	}
	if rows := dump.Info.Tables[0].Rows; rows != levels {
		t.Errorf("the subset has %d rows, want %d", rows, levels)
	}
}

type drawn struct {
	m   subsettest.Model
	ask subsettest.Ask
}

// For any foreign keys, a loaded subset has exactly the rows that the rules require. Loading makes
// the server check every foreign key.
func TestSubsetHoldsTheRows(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	generator := rapid.Custom(func(r *rapid.T) drawn {
		m, ask := subsettest.Generate(r)
		return drawn{m, ask}
	})
	first := rand.IntN(1 << 20)
	for seed := first; seed < first+8; seed++ {
		d := generator.Example(seed)
		text := d.m.SQL(false)
		execute(t, from, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; "+text)
		dump, err := subsetOf(t, from, engine.Subset{Where: d.ask.Where(d.m), Percent: d.ask.Percent})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if err := load(t, to, dump, true); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		want := subsettest.Expect(d.m, d.ask)
		for i, table := range d.m.Tables {
			if got := texts(t, to, strings.ReplaceAll(table.KeyQuery(), "CHAR(20)", "text")); !slices.Equal(got,
				want[i]) {
				t.Fatalf("seed %d: %s has %v, want %v\n%+v\n%s", seed, table.Name, got, want[i], d.ask, text)
			}
			if told := dump.Info.Tables[i]; told.Name != table.Name || told.Rows != int64(len(want[i])) ||
				told.Of != int64(len(table.Rows)) {
				t.Fatalf("seed %d: told of %s: %+v", seed, table.Name, told)
			}
		}
	}
}

const subsetSchema = `
	CREATE SCHEMA "Grö ße";
	CREATE TABLE "Grö ße"."cus tomer" (k1 int, "k ""2" text, v numeric, b bytea, d timestamptz,
		generated int GENERATED ALWAYS AS (k1 * 2) STORED, PRIMARY KEY (k1, "k ""2"));
	INSERT INTO "Grö ße"."cus tomer" VALUES (1, E'a\tb\\c', 1.50, '\x00ff', '2026-01-02 03:04:05.678+00'),
		(2, 'bob', 'NaN', NULL, NULL);
	CREATE TABLE event (id bigserial, at date NOT NULL, c int, n text, PRIMARY KEY (id, at),
		FOREIGN KEY (c, n) REFERENCES "Grö ße"."cus tomer") PARTITION BY RANGE (at);
	CREATE TABLE event_1 PARTITION OF event FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
	CREATE TABLE event_2 PARTITION OF event FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY LIST (at);
	CREATE TABLE event_2a PARTITION OF event_2 DEFAULT;
	INSERT INTO event (at, c, n) VALUES ('2026-01-05', 1, E'a\tb\\c'), ('2026-02-05', 1, E'a\tb\\c'),
		('2026-02-06', 2, 'bob'), ('2026-02-07', NULL, NULL);
	CREATE TABLE detail (event bigint, at date, note text, FOREIGN KEY (event, at) REFERENCES event);
	INSERT INTO detail SELECT id, at, 'detail of ' || id FROM event;
	CREATE TABLE base (x int); CREATE TABLE heir () INHERITS (base); INSERT INTO base
		VALUES (1), (2); INSERT INTO heir VALUES (1), (2);
	CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES;
	CREATE TABLE setting (name text); INSERT INTO setting VALUES ('whole');
	CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'triggers fire'; END $$;
	CREATE TRIGGER stop BEFORE DELETE ON detail EXECUTE FUNCTION stop();
	CREATE MATERIALIZED VIEW seen AS SELECT note FROM detail;
	SELECT lo_from_bytea(4711, '\xdeadbeef');`

// A subset keeps schemas, partitions, inheritance, tables without columns or keys, and unusual
// values.
func TestSubsetOfAnOddDatabase(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	execute(t, from, subsetSchema)
	dump, err := subsetOf(t, from,
		engine.Subset{Where: map[string]string{"cus tomer": "k1 = 1 -- a comment", "base": "x = 2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dump, false); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`SELECT concat_ws('|', k1, "k ""2", v, b, d AT TIME ZONE 'UTC', generated) ` +
			`FROM "Grö ße"."cus tomer"`: "1|a\tb\\c|1.50|\\x00ff|2026-01-02 03:04:05.678|2",
		"SELECT at::text FROM event":                                   "2026-01-05,2026-02-05",
		"SELECT tableoid::regclass::text FROM event":                   "event_1,event_2a",
		"SELECT note FROM detail":                                      "detail of 1,detail of 2",
		"SELECT note FROM seen":                                        "detail of 1,detail of 2",
		"SELECT x::text FROM ONLY base":                                "2",
		"SELECT x::text FROM heir":                                     "1,2",
		"SELECT name FROM setting":                                     "whole",
		"SELECT count(*)::text FROM nothing":                           "1",
		"SELECT encode(lo_get(4711), 'hex')":                           "deadbeef",
		"SELECT last_value::text FROM event_id_seq":                    "4",
		"SELECT count(*)::text FROM pg_trigger WHERE NOT tgisinternal": "1",
	} {
		if got := strings.Join(texts(t, to, query), ","); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if !slices.Equal(dump.Info.Subset.Start, []string{"Grö ße.cus tomer", "public.base"}) {
		t.Errorf("told %+v", dump.Info.Subset)
	}
	if !slices.ContainsFunc(dump.Info.Tables, func(t engine.Table) bool {
		return t.Name == "event_2a" && t.Rows == 1 &&
			t.Of == 3
	}) {
		t.Errorf("told %+v", dump.Info.Tables)
	}
}

// A limit on the rows or on the size is respected. Rows of partitions count, and the size is
// measured in bytes.
func TestSubsetWithinALimit(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	execute(t, from, `CREATE TABLE "lo'ng" (id int PRIMARY KEY, v text);
		ALTER TABLE "lo'ng" ALTER v SET STORAGE EXTERNAL;
		INSERT INTO "lo'ng" SELECT n, repeat('x', 4000) FROM generate_series(1, 1000) n;
		CREATE TABLE parts (id int) PARTITION BY RANGE (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (501);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (501) TO (2000);
		INSERT INTO parts SELECT generate_series(1, 1000)`)
	for _, want := range []engine.Subset{{Rows: 200}, {Bytes: 430_000}} { // about a tenth
		dump, err := subsetOf(t, from, want)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]int64{}
		for _, table := range dump.Info.Tables {
			rows[table.Name] = table.Rows
		}
		for name, n := range map[string]int64{"long": rows["lo'ng"], "parts": rows["parts_1"] + rows["parts_2"]} {
			if n < 50 || n > 150 {
				t.Errorf("%+v: %d of 1000 rows of %s", want, n, name)
			}
		}
	}
}

// A long chain of references is followed to its end.
func TestSubsetFollowsAChain(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	execute(t, from,
		`CREATE TABLE chain (id int PRIMARY KEY, before int REFERENCES chain); INSERT INTO chain `+
			`SELECT i, nullif(i - 1, 0) FROM generate_series(1, 1000) i`)
	dump, err := subsetOf(t, from, engine.Subset{Where: map[string]string{"chain": "id = 300"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dump, false); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, to, "SELECT count(*) || ' to ' || max(id) FROM chain"); got[0] != "300 to 300" {
		t.Errorf("got %s", got[0])
	}
}

func TestSubsetConditionsThatAreWrong(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	execute(t, from,
		"CREATE SCHEMA other; CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE u (a int); CREATE TABLE other.u (a "+
			"int); "+
			"INSERT INTO t VALUES (1)")
	for name, want := range map[string]engine.Subset{
		"no such table":     {Where: map[string]string{"tt": "true"}},
		"several such":      {Where: map[string]string{"u": "true"}},
		"no such column":    {Where: map[string]string{"t": "b = 1"}},
		"no SQL":            {Where: map[string]string{"t": "((("}},
		"no condition":      {Where: map[string]string{"t": "'x'"}},
		"a statement more":  {Where: map[string]string{"t": "true); DROP TABLE t; --"}},
		"divided by zero":   {Where: map[string]string{"t": "1 / (a - 1) = 1"}},
		"below nothing":     {Percent: -1},
		"over the whole":    {Percent: 100.5},
		"a catalog's table": {Where: map[string]string{"pg_class": "true"}},
	} {
		if _, err := subsetOf(t, from, want); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := texts(t, from, "SELECT count(*)::text FROM t"); fmt.Sprint(got) != "[1]" {
		t.Errorf("the source has %v", got)
	}
}
