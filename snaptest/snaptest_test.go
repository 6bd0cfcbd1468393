package snaptest_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"snap/internal/local"
	"snap/snaptest"
)

// Each test gets a database of its own with the whole snapshot. The database is dropped when the
// test ends. Only copies that were made in advance for later tests may remain.
func TestEveryTestHasItsOwn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SNAPCLI_CONFIG_DIR", dir)
	t.Setenv("SNAPCLI_DATA_DIR", filepath.Join(dir, "data"))
	agent := built(t, dir)
	shop := snaptest.For("shop", snaptest.Ahead(1))
	var files []string
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			file := strings.TrimPrefix(shop.URL(t), "sqlite://")
			files = append(files, file)
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var n int
			if err := db.QueryRow("SELECT count(*) FROM customer").Scan(&n); err != nil || n != 3 {
				t.Errorf("%d customers, %v", n, err)
			}
			if _, err := db.Exec("DELETE FROM customer"); err != nil {
				t.Error(err)
			}
		})
		if _, err := os.Stat(files[len(files)-1]); err == nil {
			t.Errorf("the database of %s is left behind", name)
		}
	}
	all, err := agent.Clones(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Kind != "warm" {
			t.Errorf("left behind: %+v", c)
		}
	}
}

// Setenv makes programs use the test's database.
func TestSetenv(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SNAPCLI_CONFIG_DIR", dir)
	t.Setenv("SNAPCLI_DATA_DIR", filepath.Join(dir, "data"))
	built(t, dir)
	snaptest.For("shop", snaptest.Ahead(0)).Setenv(t)
	if url := os.Getenv("DATABASE_URL"); !strings.HasPrefix(url, "sqlite://") {
		t.Errorf("DATABASE_URL is %q", url)
	}
}

// built is a machine with a snapshot of a SQLite database.
func built(t *testing.T, dir string) *local.Agent {
	t.Helper()
	source := filepath.Join(dir, "shop.db")
	db, err := sql.Open("sqlite", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY); INSERT INTO customer VALUES (1), (2), (3)")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.AddTarget(local.Target{Name: "shop", Source: "sqlite://" + source}); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return agent
}
