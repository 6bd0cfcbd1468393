package mysql

import (
	"os"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// If the destination's disk is full, a load fails with a clear error. The old
// database is unchanged, nothing is left behind, and the load succeeds once there
// is free space.
func TestFullDiskOfTheServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		script(t, from, big)
		d, _ := dumped(t, from)
		disk := servertest.SmallDisk(t, 512<<20)
		redo := "--innodb-redo-log-capacity=8M"
		if strings.HasPrefix(server, "mariadb") {
			redo = "--innodb-log-file-size=8M"
		}
		to := servertest.OwnMySQL(t, server, disk, redo)
		script(t, to,
			"CREATE TABLE old (a INT); INSERT INTO old VALUES (1); CREATE TRIGGER keepme BEFORE INSERT ON old FOR "+
				"EACH ROW "+
				"SET NEW.a = 2;")
		before := contents(t, to)
		ballast := servertest.FillDisk(t, disk, 16<<20)
		if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeStorageFull ||
			!strings.Contains(err.Error(), "no space left") {
			t.Errorf("with a full disk: %v", err)
		}
		if after := contents(t, to); after != before {
			t.Errorf("the old database changed: %s", difference(before, after))
		}
		if left := leftovers(t, to); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if err := load(t, to, d, false); err != nil {
			t.Errorf("with room again: %v", err)
		}
		if a, b := sorted(t, from, sumOfBig), sorted(t, to, sumOfBig); !slices.Equal(a, b) {
			t.Errorf("the rows %q became %q", a, b)
		}
	})
}

// A copy of a template that does not fit on the disk is refused before it begins.
func TestCopyChecksTheDisk(t *testing.T) {
	t.Parallel()
	disk := servertest.SmallDisk(t, 512<<20)
	to := servertest.OwnMySQL(t, "mariadb", disk, "--innodb-log-file-size=8M")
	script(t, to, big)
	ballast := servertest.FillDisk(t, disk, 1<<20)
	err := Engine{}.Copy(t.Context(), to, strings.Replace(to, "/own", "/snapcli_clone_x", 1), engine.CopyOptions{})
	if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(err.Error(), "a copy needs") {
		t.Errorf("%v", err)
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
}
