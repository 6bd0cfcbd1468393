package sqlite

import (
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
	"snap/internal/subset/subsettest"
)

// With a limit on the rows, the subset is one that some percentage would choose and that is
// within the limit. If foreign keys force more rows, it is the subset with the smallest
// percentage that was tried. A limit that is not below the number of rows includes every row.
func TestSubsetWithinALimitOfRows(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rapid.Check(t, func(r *rapid.T) {
		m, _ := subsettest.Generate(r)
		var total int64
		for _, table := range m.Tables {
			total += int64(len(table.Rows))
		}
		limit := rapid.Int64Range(1, total+2).Draw(r, "limit")
		dir := t.TempDir()
		source := filepath.Join(dir, "source.db")
		makeDatabase(r, source, m.SQL(true))
		path, info, err := subsetOf(t, dir, source, engine.Subset{Rows: limit})
		if err != nil {
			r.Fatal(err)
		}
		var kept int64
		for _, table := range info.Tables {
			kept += table.Rows
		}
		percent := info.Subset.Percent
		switch {
		case limit >= total && (kept != total || percent != 100):
			r.Fatalf("%d of %d rows and %v percent with a limit of %d", kept, total, percent, limit)
		case limit < total && percent >= 100*float64(limit)/float64(total):
			r.Fatalf("%v percent for %d of %d rows", percent, limit, total)
		case kept > limit && percent > 10:
			r.Fatalf("%d of %d rows, more than %d, and still %v percent", kept, total, limit, percent)
		}
		if broken := sortedColumn(r, path, "SELECT \"table\" FROM pragma_foreign_key_check"); len(broken) > 0 {
			r.Fatalf("foreign keys of %v do not hold", broken)
		}
	})
}

// A limit on the size counts the bytes of the rows, so a table of long rows counts more than a
// table of short rows.
func TestSubsetWithinASize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source.db")
	makeDatabase(t, source, `CREATE TABLE "lo'ng" (id INTEGER PRIMARY KEY, v BLOB);
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
			INSERT INTO "lo'ng" SELECT i, zeroblob(1000) FROM n;
		CREATE TABLE short (id INTEGER PRIMARY KEY);
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO short SELECT i
			FROM n`)
	_, info, err := subsetOf(t, dir, source, engine.Subset{Bytes: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range info.Tables {
		if table.Rows < 100 || table.Rows > 250 {
			t.Errorf("%s has %d of %d rows; 200 kB are about a tenth of the database", table.Name, table.Rows, table.Of)
		}
	}
}
