package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// BenchmarkSearch measures searches of a member who sees half of all snapshots. The other half is
// private to somebody else. The words are targets, owners, labels, days and times of day of both
// halves. A search that read hidden or unrelated snapshots would cost more with more of them. The
// benchmark prints one table for each database, as ratios to a bare read of 50 rows, with
// SNAP_BENCH_SIZES and SNAP_BENCH_DB as in [BenchmarkAccess].
func BenchmarkSearch(b *testing.B) {
	for _, db := range benchDatabases {
		b.Run(db, func(b *testing.B) {
			skipOther(b, db)
			table := &ratios{db: db}
			for _, n := range benchSizes(b) {
				o := store.Options{DataDir: b.TempDir()}
				if db == "postgres" {
					o = store.Options{URL: servertest.Postgres(b)}
				}
				d := &seeded{world: newWorld(b, o), callers: map[string]snap.Caller{}}
				d.fillHalves(n)
				table.sizes = append(table.sizes, n)
				table.list(d, "the listing", d.callers["mia"], store.Query{})
				for _, q := range []string{"shop", "alice", "20260102", "2026", "1", "vault", "robot", "nightly",
					"020000",
					"0200", "02", "20251201", "20251", "shop alice", "shop vault", "robot 2026", "alice 020000",
					"zzz"} {
					table.list(d, "search "+q, d.callers["mia"], store.Query{Q: q})
				}
				table.list(d, "search vault, target shop", d.callers["mia"], store.Query{Q: "vault", Target: "shop"})
				d.Close()
			}
			table.print()
			for b.Loop() { // the table is the result
			}
		})
	}
}

// fillHalves writes n snapshots. Every other one is a robot's: it is private, and its name has two
// o'clock on a day in December. The rest are alice's: their names have other hours in January, and
// they are shared org-wide.
func (d *seeded) fillHalves(n int) {
	alice, robot := d.user(d.acme, "alice", snap.RoleMember), d.user(d.acme, "robot", snap.RoleMember)
	d.callers["mia"] = d.user(d.acme, "mia", snap.RoleMember)
	d.push(alice, "shop", snap.TypeSnapshot)
	d.push(robot, "vault", snap.TypeSnapshot)
	r := rand.New(rand.NewPCG(3, 4))
	start := d.clock.Now().UnixMilli() - int64(n)*1000
	var snapshots, grants [][]any
	for i := range n {
		key := (start+int64(i)*1000)<<22 | int64(r.Uint32()&(1<<22-1))
		at := time.Date(2026, 1, 1+i%28, 3+i%20, i%60, i/60%60, 0, time.UTC)
		owner, target, name := alice.User.ID, int64(1), snap.SnapshotName("shop", at)
		if i%2 == 0 {
			at = time.Date(2025, 12, 1+i%28, 2, 0, 0, 0, time.UTC)
			owner, target, name = robot.User.ID, 2, snap.SnapshotName("vault", at)+"-nightly"
		}
		who := []snap.Audience{snap.AudienceOf(snap.KindAdmins, d.acme.ID), snap.AudienceOf(snap.KindUser, owner)}
		if i%2 == 1 {
			who = append(who, snap.AudienceOf(snap.KindMembers, d.acme.ID))
		}
		for _, a := range who {
			grants = append(grants, []any{int64(a), key, target, "snapshot", nil, start, nil})
		}
		d.newest = key
		snapshots = append(snapshots, []any{key, fmt.Sprintf("snap_%016x", r.Uint64()), d.acme.ID, owner, target,
			[]string{"shop", "vault"}[target-1], name, name, "snapshot", "sqlite", int64(1), "00", "blob", int64(0),
			start + int64(i)*1000})
		if len(snapshots) == 20_000 || i == n-1 {
			d.bulk("snapshots", []string{"key", "id", "org_id", "owner_id", "target_id", "target", "name", "folded",
				"type", "engine", "size", "sha256", "blob", "widened", "created_at"}, snapshots)
			d.bulk("grants", []string{"audience", "snapshot", "target_id", "type", "expires_at", "created_at",
				"created_by"}, grants)
			snapshots, grants = nil, nil
		}
	}
	began := time.Now()
	d.ok(d.Index(d.ctx))
	fmt.Printf("indexed %d snapshots in %v\n", n, time.Since(began).Round(time.Millisecond))
	d.flush()
}
