package mysql

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// filled creates a database of two tables that are always changed together. The server knows that
// the table a is larger, so a dump reads that table first.
func filled(t *testing.T, server string) string {
	t.Helper()
	url := servertest.MySQL(t, server)
	script(t, url,
		"CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, pad VARCHAR(500)); CREATE TABLE b (id INT PRIMARY KEY "+
			"AUTO_INCREMENT, pad VARCHAR(500)); INSERT INTO a (pad) VALUES (repeat('x', 500)); INSERT INTO b (pad) "+
			"VALUES "+
			"('x');")
	for range 13 {
		script(t, url, "INSERT INTO a (pad) SELECT pad FROM a; INSERT INTO b (pad) SELECT pad FROM b;")
	}
	script(t, url, "ANALYZE TABLE a, b")
	return url
}

// With several connections, a dump shows the database at one moment and does not block writers.
func TestOneMomentWithoutBlockingWriters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := filled(t, server)
		db, _ := openURL(t, url)
		defer db.Close()
		wrote := 0
		out := writerFunc(func(p []byte) (int, error) {
			tx, err := db.Begin()
			for _, table := range []string{"a", "b"} {
				if err == nil {
					_, err = tx.Exec("INSERT INTO " + table + " (pad) VALUES ('new')")
				}
			}
			if err == nil {
				err = tx.Commit()
			}
			wrote++
			return len(p), err
		})
		info, err := Engine{}.Dump(t.Context(), url, out, engine.Options{Jobs: 3})
		if err != nil || wrote < 4 {
			t.Fatalf("%v; %d writes", err, wrote)
		}
		for _, table := range info.Tables {
			if table.Rows != 8192 {
				t.Errorf("%s has %d rows", table.Name, table.Rows)
			}
		}
	})
}

// If the schema changes during a build, the build fails with a clear error, or the
// snapshot shows the moment before the change.
func TestSchemaChangedDuringBuild(t *testing.T) {
	t.Parallel()
	onEach(t, testSchemaChanged)
}

func testSchemaChanged(t *testing.T, server string) {
	for name, change := range map[string]string{
		"a column more": "ALTER TABLE b ADD COLUMN late INT",
		"a table less":  "DROP TABLE b",
		"a table more":  "CREATE TABLE c (a INT)",
		"an index more": "CREATE INDEX late ON b (pad)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := filled(t, server)
			db, _ := openURL(t, url)
			defer db.Close()
			c, err := session(t.Context(), db, "SET SESSION lock_wait_timeout = 5")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			done := false
			out := writerFunc(func(p []byte) (int, error) {
				if !done && bytes.Contains(p, []byte("INSERT INTO `a`")) {
					done = true
					if _, err := c.ExecContext(t.Context(), change); err != nil {
						return 0, fmt.Errorf("%s: %w", change, err)
					}
				}
				return len(p), nil
			})
			info, err := Engine{}.Dump(t.Context(), url, out, engine.Options{Jobs: 1})
			// in MySQL, the list of tables also shows the transaction's moment
			if name == "a table more" && strings.HasPrefix(server, "mysql") {
				if err != nil || len(info.Tables) != 2 {
					t.Errorf("%+v, %v", info.Tables, err)
				}
				return
			}
			if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "schema changed") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A user without the privilege RELOAD can build. If the user has no access to routines, the
// snapshot has none, and a warning says so.
func TestRights(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := filled(t, server)
		script(t, url, "CREATE PROCEDURE p() SELECT 1")
		db, d := openURL(t, url)
		defer db.Close()
		reader := "reader_" + d.name
		for _, statement := range []string{
			"CREATE USER " + reader + "@'127.0.0.1' IDENTIFIED BY 's3cret'",
			"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON " + quote(d.name) + ".* TO " + reader + "@'127.0.0.1'",
		} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			db, _ := openURL(t, url)
			defer db.Close()
			if _, err := db.ExecContext(context.Background(), "DROP USER "+reader+"@'127.0.0.1'"); err != nil {
				t.Error(err)
			}
		})
		own := strings.Replace(url, "root@", reader+":s3cret@", 1)
		var b bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), own, &b, engine.Options{Jobs: 3})
		switch {
		case err != nil:
			t.Fatal(err) // the server does not list routines that a user has no access to at all
		case len(info.Tables) != 2 || info.Tables[0].Rows != 8192:
			t.Errorf("%+v", info.Tables)
		}
		if !strings.Contains(strings.Join(info.Warnings, " "), "routines") {
			t.Errorf("that routines may be missing is not said: %q", info.Warnings)
		}
	})
}
