package mysql

import (
	"testing"

	"snap/internal/servertest"
)

// TestEmptyDatabases checks that only a database without any object counts as empty.
func TestEmptyDatabases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.MySQL(t, server)
		db, _ := openURL(t, url)
		check := func(want bool, after string) {
			t.Helper()
			if info, err := (Engine{}).Check(t.Context(), url); err != nil || info.Empty != want {
				t.Errorf("empty after %q: %v, %v", after, info.Empty, err)
			}
		}
		check(true, "CREATE DATABASE")
		for _, c := range [][2]string{
			{"CREATE TABLE t (a INT)", "DROP TABLE t"},
			{"CREATE VIEW v AS SELECT 1", "DROP VIEW v"},
			{"CREATE PROCEDURE p() SELECT 1", "DROP PROCEDURE p"},
			{"CREATE EVENT e ON SCHEDULE EVERY 1 YEAR DO SELECT 1", "DROP EVENT e"},
		} {
			for i, empty := range []bool{false, true} {
				if _, err := db.ExecContext(t.Context(), c[i]); err != nil {
					t.Fatal(err)
				}
				check(empty, c[i])
			}
		}
	})
}
