package move_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"snap"
	"snap/internal/move"
	"snap/internal/servertest"
)

// A backup and a restore that find no room name the disk that is full.
func TestBackUpAndRestoreOnFullDisks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	small := servertest.SmallDisk(t, 8<<20)
	from, dir := embedded(t), t.TempDir()
	c := from.start(t, "")
	c.Push(c.As("alice@acme.test"), "shop", bytes.Repeat([]byte("x"), 9<<20))
	full := func(err error, at string) {
		t.Helper()
		is(t, err, snap.CodeStorageFull, "the disk of "+at+" is full")
		var e *snap.Error
		if errors.As(err, &e); e.Hint == "" {
			t.Error("there is no hint")
		}
	}
	_, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir}, move.Progress{})
	ok(t, err)
	backups, data := filepath.Join(small, "backups"), filepath.Join(small, "data")
	_, err = move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: backups}, move.Progress{})
	full(err, backups)
	_, err = move.Restore(ctx, dir, "", data, move.Progress{})
	full(err, data)
	servertest.FillDisk(t, small, 64<<10) // too little for the database
	_, err = move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: backups}, move.Progress{})
	full(err, backups)
}
