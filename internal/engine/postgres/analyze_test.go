package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"snap/internal/servertest"
)

// After a load the planner has complete statistics. They include those of indexed expressions and
// extended statistics, which are created after the rows, and those of tables with partitions or
// child tables.
func TestPlannerKnowsEverything(t *testing.T) {
	t.Parallel()
	for _, v := range servertest.PostgresVersions {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			from, to := servertest.PostgresVersion(t, v), servertest.PostgresVersion(t, v)
			e, _ := with(t, v)
			psql(t, from, script(t, `
				CREATE TABLE plain (a int PRIMARY KEY, b text); INSERT INTO plain SELECT n, n % 7
					FROM generate_series(1, 1000) n;
				CREATE TABLE "the mail" (a int, b text); INSERT INTO "the mail" SELECT n, 'A' || n
					FROM generate_series(1, 1000) n; CREATE INDEX lowered ON "the mail" (lower(b), a);
				CREATE TABLE pair (a int, b int); INSERT INTO pair SELECT n % 10, n % 5
					FROM generate_series(1, 1000) n; CREATE STATISTICS together ON a, b FROM pair;
				CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent); INSERT INTO parent
					SELECT generate_series(1, 100); INSERT INTO child SELECT generate_series(1, 100);
				CREATE TABLE root (a int, b text) PARTITION BY RANGE (a); CREATE TABLE leaf PARTITION OF root FOR
					VALUES FROM (0) TO (1000); INSERT INTO root SELECT n, n FROM generate_series(1, 100) n;
				CREATE MATERIALIZED VIEW seen AS SELECT * FROM plain`))
			if err := e.load(t, to, e.build(t, from)); err != nil {
				t.Fatal(err)
			}
			conn := connectTo(t, to)
			defer conn.Close(context.Background())
			rows, err := conn.Query(t.Context(),
				`SELECT format('%s.%s.%s', relname, attname, inherited) FROM pg_class c
				JOIN pg_attribute a ON attrelid = c.oid CROSS JOIN (VALUES (false), (true)) i (inherited)
				WHERE relnamespace = 'public'::regnamespace AND attnum > 0
					AND (relkind IN ('r', 'm') AND NOT inherited OR relkind = 'p' AND inherited OR relname = 'parent'
					OR relname = 'lowered' AND attname = 'lower' AND NOT inherited)
				AND NOT EXISTS (SELECT FROM pg_statistic WHERE starelid = attrelid AND staattnum = attnum
					AND stainherit = inherited)
				UNION ALL SELECT stxname FROM pg_statistic_ext e
					WHERE NOT EXISTS (SELECT FROM pg_statistic_ext_data WHERE stxoid = e.oid)`)
			if err != nil {
				t.Fatal(err)
			}
			if unknown, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(unknown) > 0 {
				t.Errorf("the planner does not know %v, %v", unknown, err)
			}
		})
	}
}

func TestIndexedTable(t *testing.T) {
	t.Parallel()
	for index, want := range map[string]string{
		"CREATE INDEX i ON public.customer USING btree (id, name);\n":                "",
		"CREATE INDEX i ON public.customer USING btree (lower(email));\n":            "public.customer",
		`CREATE UNIQUE INDEX i ON ONLY "a b"."T" USING gin (((data -> 'x'::text)));`: `"a b"."T"`,
		// needlessly analyzed a second time
		"CREATE INDEX i ON public.customer USING btree (id) WHERE (name IS NOT NULL);": "public.customer",
		"no index": "",
	} {
		got, expressions := indexedTable(index)
		if !expressions {
			got = ""
		}
		if got != want {
			t.Errorf("%q is of %q, want %q", index, got, want)
		}
	}
}
