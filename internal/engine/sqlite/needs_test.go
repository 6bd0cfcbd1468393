package sqlite

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The command for a missing permission can be pasted into a shell.
func TestRemediesAreQuotedForTheShell(t *testing.T) {
	t.Parallel()
	const want = `chmod u+rw '/data/a $(b) "c".db', or run`
	if n := unusable(`/data/a $(b) "c".db`, "written", "rw", os.ErrPermission); !strings.HasPrefix(n.Remedy, want) {
		t.Errorf("%s, want %s", n.Remedy, want)
	}
}

// An error that does not come from SQLite is not attributed to it.
func TestOtherFailures(t *testing.T) {
	t.Parallel()
	err := failure("/data/shop.db", errors.New("read: input/output error"))
	if want := "the database /data/shop.db cannot be used: read: input/output error"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
