package store_test

import (
	"errors"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// A channel that is deleted while a push applies it leaves no share. The push is held at its lock of
// the group, after it has read the channels.
func TestChannelDeletedDuringAPush(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	w := newWorld(t, store.Options{URL: postgres(t)})
	alice := w.user(w.acme, "alice", snap.RoleOwner)
	gus := w.user(w.acme, "gus", snap.RoleMember, "eng")
	h, err := w.AddChannel(w.ctx, alice, store.NewChannel{Target: "shop", Type: snap.TypeSnapshot, GroupID: "eng"})
	w.ok(err)
	u := w.upload("shop", snap.TypeSnapshot)
	w.ok(w.BeginUpload(w.ctx, alice, u))
	hold, err := w.DB().BeginTx(w.ctx, nil)
	w.ok(err)
	_, err = hold.ExecContext(w.ctx, `SELECT id FROM groups WHERE org_id = $1 FOR UPDATE`, w.acme.ID)
	w.ok(err)
	pushed, deleted := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.CompleteUpload(w.ctx, alice, u); pushed <- err }()
	w.waiting(1)
	go func() { deleted <- w.DeleteChannel(w.ctx, alice, h.ID) }()
	w.waiting(2) // the deletion waits for the push
	w.ok(hold.Rollback())
	w.ok(<-pushed)
	w.ok(<-deleted)
	if _, err := w.Snapshot(w.ctx, gus, u.ID); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("the share of a deleted channel is left: %v", err)
	}
}

// waiting returns when this many transactions of PostgreSQL wait for locks.
func (w *world) waiting(want int) {
	w.t.Helper()
	for n := 0; n < want; {
		w.ok(w.DB().QueryRowContext(w.ctx, `SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted
			AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`).Scan(&n))
	}
}
