package postgres

import (
	"bytes"
	"os/exec"
	"testing"

	"snap/internal/servertest"
)

// TestUnchangedDatabasesHaveEqualDumps checks that a dump does not contain the time of the
// build, and that pg_restore can still read it.
func TestUnchangedDatabasesHaveEqualDumps(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	psql(t, url, script(t, `CREATE TABLE item (id int PRIMARY KEY, name text);
		INSERT INTO item VALUES (1, 'a'), (2, 'b')`))
	_, first := dumped(t, url)
	if !bytes.Contains(first[:60], []byte{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 70, 0, 0, 0}) {
		t.Errorf("the header has a time: % x", first[:60])
	}
	if _, second := dumped(t, url); !bytes.Equal(first, second) {
		t.Error("two dumps of the same data differ")
	}
	list := exec.CommandContext(t.Context(), "pg_restore", "--list")
	list.Stdin = bytes.NewReader(first)
	if out, err := list.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("1970-01-01")) {
		t.Errorf("pg_restore --list: %v\n%s", err, out)
	}
}
