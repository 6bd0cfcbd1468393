package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"snap"
	"snap/internal/store"
)

// seeded is a store filled with many snapshots, and the callers whose listings
// are measured in it.
type seeded struct {
	*world
	callers map[string]snap.Caller
	newest  int64 // key of the newest snapshot
	ids     []string
	keys    []int64
}

// sizes are the numbers of rows of the seeded tables.
type sizes struct{ snapshots, users, groups int }

// seed fills a store: one organization with nine tenths of the snapshots, with skewed targets and
// groups; another with the rest, where a member may see three old snapshots and nothing else;
// recipients of one share and of many ended ones. The numbers are the same at every run.
func seed(t testing.TB, o store.Options, n sizes) *seeded {
	w := newWorld(t, o)
	w.ctx = store.WithoutTimeLimit(w.ctx) // a statement takes longer on a busy machine
	d := &seeded{world: w, callers: map[string]snap.Caller{}}
	groups := func(count int) (ids []string) {
		for i := range count {
			ids = append(ids, fmt.Sprintf("group-%04d", i*n.groups/max(count, 1)))
		}
		return ids
	}
	var all []string
	for i := range n.groups {
		all = append(all, fmt.Sprintf("group-%04d", i))
	}
	w.user(w.acme, "keeper", snap.RoleMember, all...)
	d.callers["admin"] = w.user(w.acme, "admin", snap.RoleAdmin)
	d.callers["no groups"] = w.user(w.acme, "none", snap.RoleMember)
	d.callers["5 groups"] = w.user(w.acme, "five", snap.RoleMember, groups(5)...)
	d.callers["500 groups"] = w.user(w.acme, "many", snap.RoleMember, groups(min(500, n.groups))...)
	for i := range 200 { // enough for an index of them to be worth using
		w.org(fmt.Sprintf("other-%d", i))
	}
	hidden := w.org("hidden")
	d.callers["three old"] = w.user(hidden, "old", snap.RoleViewer)
	d.callers["one received"] = w.user(w.org("recipient"), "one", snap.RoleMember)
	d.callers["ended"] = w.user(w.org("ended"), "ended", snap.RoleMember)
	d.fill(hidden, n)
	return d
}

// pushers are callers, each of whom owns about one in 150 snapshots.
var pushers = []string{"admin", "5 groups", "500 groups"}

// endedShares is about how many shares with one recipient have ended and are not swept yet. It does
// not depend on the number of snapshots, because ended shares are swept every ten minutes.
const endedShares = 1000

// fill writes the rows in bulk.
func (d *seeded) fill(hidden snap.OrgRef, n sizes) {
	r := rand.New(rand.NewPCG(1, 2))
	first, last := d.bulkUsers(n.users)
	groups := map[string]int64{}
	counts, err := d.Groups(d.ctx, d.callers["admin"])
	d.ok(err)
	for _, g := range counts {
		groups[g.GroupID] = g.ID
	}
	targets := d.bulkTargets(200)
	skewed := rand.NewZipf(r, 1.1, 4, uint64(n.groups-1))
	byTarget := rand.NewZipf(r, 1.2, 4, uint64(len(targets)-1))
	start := d.clock.Now().UnixMilli() - int64(n.snapshots)*1000
	var snapshots, grants [][]any
	grant := func(a snap.Audience, key, target int64, typ string, until any) {
		grants = append(grants, []any{int64(a), key, target, typ, until, start, nil})
	}
	newest := map[int64]int64{}
	for i := range n.snapshots {
		key := (start+int64(i)*1000)<<22 | int64(r.Uint32()&(1<<22-1))
		id := fmt.Sprintf("snap_%016x", r.Uint64())
		ti := int(byTarget.Uint64())
		typ := string(snap.TypeSnapshot)
		if r.IntN(4) == 0 {
			typ = string(snap.TypeSanitized)
		}
		owner, org := first+r.Int64N(last-first+1), d.acme.ID
		if r.IntN(50) == 0 { // the callers push too
			owner = d.callers[pushers[r.IntN(len(pushers))]].User.ID
		}
		if i%10 == 9 || i < 3 {
			org = hidden.ID
			owner = d.callers["three old"].User.ID
			if i >= 3 {
				owner = 0
			}
		}
		name := snap.SnapshotName(targets[ti], time.UnixMilli(start+int64(i)*1000))
		target, widened := int64(ti+1), 0
		d.newest, d.ids, d.keys = key, append(d.ids, id), append(d.keys, key)
		grant(snap.AudienceOf(snap.KindAdmins, org), key, target, typ, nil)
		if owner != 0 {
			grant(snap.AudienceOf(snap.KindUser, owner), key, target, typ, nil)
		}
		if org == d.acme.ID {
			if r.IntN(10) == 0 {
				grant(snap.AudienceOf(snap.KindMembers, org), key, target, typ, nil)
			}
			if r.IntN(5) == 0 {
				g := groups[fmt.Sprintf("group-%04d", skewed.Uint64())]
				grant(snap.AudienceOf(snap.KindGroup, g), key, target, typ, nil)
				newest[g], widened = key, 1
			}
			if i == n.snapshots/2 {
				grant(snap.AudienceOf(snap.KindRecipients, d.callers["one received"].Org.ID), key, target, typ, nil)
				widened = 1
			}
			if i%max(n.snapshots/endedShares, 1) == 0 {
				grant(snap.AudienceOf(snap.KindRecipients, d.callers["ended"].Org.ID), key, target, typ, start)
				widened = 1
			}
		}
		var by any
		if owner != 0 {
			by = owner
		}
		snapshots = append(snapshots, []any{key, id, org, by, target, targets[ti], name, strings.ToLower(name), typ,
			"sqlite", int64(1000), fmt.Sprintf("%064x", i), "blob", widened, start + int64(i)*1000})
		if len(snapshots) == 20_000 || i == n.snapshots-1 {
			d.bulk("snapshots", []string{"key", "id", "org_id", "owner_id", "target_id", "target", "name", "folded",
				"type",
				"engine", "size", "sha256", "blob", "widened", "created_at"}, snapshots)
			d.bulk("grants", []string{"audience", "snapshot", "target_id", "type", "expires_at", "created_at",
				"created_by"},
				grants)
			snapshots, grants = nil, nil
		}
	}
	for g, key := range newest {
		_, err := d.DB().Exec(`UPDATE groups SET newest = $1 WHERE id = $2`, key, g)
		d.ok(err)
	}
	d.ok(d.Index(d.ctx))
	d.flush()
}

// flush waits until the database has processed the rows that were just written.
func (d *seeded) flush() {
	d.t.Helper()
	settle := []string{`PRAGMA wal_checkpoint(TRUNCATE)`}
	if d.IsPostgres() {
		settle = []string{`VACUUM ANALYZE`, `CHECKPOINT`}
	}
	for _, text := range settle {
		_, err := d.DB().Exec(text)
		d.ok(err)
	}
}

// bulkUsers makes n members of acme and returns their first and last identifier.
func (d *seeded) bulkUsers(n int) (first, last int64) {
	d.ok(d.DB().QueryRow(`SELECT max(id) + 1 FROM principals`).Scan(&first))
	last = first + int64(n) - 1
	var kinds, users, members [][]any
	for id := first; id <= last; id++ {
		name := fmt.Sprintf("user%d@acme.test", id)
		kinds = append(kinds, []any{"user"})
		users = append(users, []any{id, d.acme.ID, "seed", name, name, name, name, "member", int64(0)})
		for _, a := range (snap.Caller{Org: d.acme, User: &snap.User{ID: id}}).Audiences() {
			members = append(members, []any{id, int64(a.Kind()), int64(a)})
		}
	}
	d.bulk("principals", []string{"kind"}, kinds)
	d.bulk("users", []string{"id", "org_id", "issuer", "subject", "email", "email_folded", "name", "role",
		"created_at"},
		users)
	d.bulk("membership", []string{"principal", "kind", "audience"}, members)
	return first, last
}

func (d *seeded) bulkTargets(n int) (names []string) {
	var rows, listed [][]any
	for i := range n {
		name := fmt.Sprintf("%s-%03d", []string{"shop", "orders", "billing", "events"}[i%4], i)
		names = append(names, name)
		rows = append(rows, []any{name})
		listed = append(listed, []any{d.acme.ID, int64(i + 1), name})
	}
	d.bulk("targets", []string{"name"}, rows)
	d.bulk("org_targets", []string{"org_id", "target_id", "folded"}, listed)
	return names
}

// bulk writes rows as fast as the database takes them.
func (d *seeded) bulk(table string, columns []string, rows [][]any) {
	d.t.Helper()
	if d.IsPostgres() {
		d.ok(copyRows(d.ctx, d.DB(), table, columns, rows))
		return
	}
	tx, err := d.DB().Begin()
	d.ok(err)
	defer tx.Rollback()
	marks := "?" + strings.Repeat(", ?", len(columns)-1)
	stmt, err := tx.Prepare(`INSERT INTO ` + table + `(` + strings.Join(columns, ", ") + `) VALUES(` + marks + `)`)
	d.ok(err)
	for _, row := range rows {
		_, err := stmt.Exec(row...)
		d.ok(err)
	}
	d.ok(tx.Commit())
}

func copyRows(ctx context.Context, db *sql.DB, table string, columns []string, rows [][]any) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
		return err
	})
}
