package move_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
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

// A transfer whose source has no room for the mark that it was moved says that everything was
// copied. The service starts at the destination.
func TestTransferFromAFullDisk(t *testing.T) {
	t.Parallel()
	small := servertest.SmallDisk(t, 16<<20)
	from, to := site{dir: filepath.Join(small, "data")}, embedded(t)
	from.start(t, "").Service.Close()
	var once sync.Once
	_, err := move.Transfer(t.Context(), from.place(t), to.place(t), move.Progress{Table: func(string, int64) {
		once.Do(func() { servertest.FillDisk(t, small, 0) })
	}}, false)
	is(t, err, snap.CodeInternal, "everything was copied")
	to.start(t, "")
}
