package sample_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"snap/internal/sample"
)

var small = sample.Options{Customers: 200, Products: 20, Staff: 10, Orders: 300}

func write(t *testing.T, o sample.Options) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a shop ü?#.db")
	if _, err := sample.Write(t.Context(), file, o); err != nil {
		t.Fatal(err)
	}
	return file
}

func fingerprint(t *testing.T, file string) []sample.Table {
	t.Helper()
	tables, err := sample.Fingerprint(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestSameSeedSameData(t *testing.T) {
	t.Parallel()
	first, second := fingerprint(t, write(t, small)), fingerprint(t, write(t, small))
	if !reflect.DeepEqual(first, second) {
		t.Errorf("two runs differ:\n%v\n%v", first, second)
	}
	other := small
	other.Seed = 2
	if reflect.DeepEqual(first, fingerprint(t, write(t, other))) {
		t.Error("another seed gives the same data")
	}
}

// TestRows checks the count that Write returns, with a tenth of the default size,
// which has a few hundred thousand rows.
func TestRows(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	rows, err := sample.Write(t.Context(), file, sample.Options{Customers: 2000, Products: 40, Staff: 4, Orders: 7000})
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, table := range fingerprint(t, file) {
		if table.Name != "schema" {
			counted += table.Rows
		}
		if table.Rows == 0 {
			t.Errorf("%s is empty", table.Name)
		}
	}
	if counted != rows || rows < 25_000 || rows > 50_000 {
		t.Errorf("%d rows written, %d found; a tenth of a few hundred thousand was expected", rows, counted)
	}
}

func TestDataIsSoundAndRealistic(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+copyOf(t, write(t, small)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, check := range []struct {
		query string
		want  string
	}{
		{"PRAGMA integrity_check", "ok"},
		{"SELECT count(*) FROM pragma_foreign_key_check", "0"},
		{"SELECT count(*) > 0 FROM customers WHERE phone IS NULL", "1"},
		{"SELECT count(*) > 0 FROM customers WHERE length(name) <> length(CAST(name AS BLOB))", "1"},
		{"SELECT count(*) > 0 FROM products WHERE typeof(photo) = 'blob'", "1"},
		{"SELECT count(*) > 0 FROM staff WHERE manager_id IS NOT NULL", "1"},
		{"SELECT count(*) > 0 FROM order_events", "1"},
		{"SELECT count(*) FROM order_totals", "300"},
	} {
		if got := scan(t, db, check.query); got != check.want {
			t.Errorf("%s: got %s, want %s", check.query, got, check.want)
		}
	}
}

// TestMask checks that MaskSQL leaves no personal data.
func TestMask(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+copyOf(t, write(t, small)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), sample.MaskSQL); err != nil {
		t.Fatal(err)
	}
	for _, personal := range []string{
		"SELECT count(*) FROM customers WHERE name NOT LIKE 'Customer %' OR email NOT LIKE '%@example.test' OR card " +
			"IS NOT NULL",
		"SELECT count(*) FROM customers WHERE street NOT LIKE '%Sample Street' OR phone <> '+1 555 0100' OR " +
			"birthday NOT LIKE '%-01-01'",
		"SELECT count(*) FROM staff WHERE name NOT LIKE 'Colleague %' OR salary <> 50000",
		"SELECT count(*) FROM orders WHERE note IS NOT NULL",
	} {
		if got := scan(t, db, personal); got != "0" {
			t.Errorf("%s: %s", personal, got)
		}
	}
}

func TestWriteNeverOverwrites(t *testing.T) {
	t.Parallel()
	file := write(t, small)
	before := fingerprint(t, file)
	if _, err := sample.Write(t.Context(), file, small); err == nil {
		t.Error("an existing file was accepted")
	}
	if !reflect.DeepEqual(before, fingerprint(t, file)) {
		t.Error("the existing file was changed")
	}
}

func TestFingerprintSeesOneValue(t *testing.T) {
	t.Parallel()
	file := copyOf(t, write(t, small))
	before := fingerprint(t, file)
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(),
		"UPDATE products SET weight = NULL WHERE id = (SELECT max(id) FROM products "+
			"WHERE weight IS NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(before, fingerprint(t, file)) {
		t.Error("a changed value was not seen")
	}
}

// copyOf copies a database to a path that needs no escaping.
func copyOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

func scan(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var got string
	if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}
