package store_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// BenchmarkAccess measures the access rule on both databases, as ratios to a bare read of 50 rows
// by primary key, or of one row. Both use the same database and driver, and take turns in the same
// run. It prints one table for each database.
//
//	SNAP_BENCH_SIZES=10000,100000,1000000 go test ./internal/store -run '^$' -bench Access -benchtime 1x -timeout 1h
//
// Without SNAP_BENCH_SIZES it runs at 10,000 snapshots only. SNAP_BENCH_DB (sqlite or postgres)
// chooses one database, SNAP_BENCH_BULK=no leaves out operations on many rows.
func BenchmarkAccess(b *testing.B) {
	for _, db := range benchDatabases {
		b.Run(db, func(b *testing.B) {
			skipOther(b, db)
			table := &ratios{db: db}
			for _, n := range benchSizes(b) {
				o := store.Options{DataDir: b.TempDir()}
				if db == "postgres" {
					o = store.Options{URL: servertest.Postgres(b)}
				}
				d := seed(b, o, sizes{snapshots: n, users: 20_000, groups: 2_000})
				table.measure(d, n)
				d.Close()
			}
			table.print()
			for b.Loop() { // the table is the result
			}
		})
	}
}

var benchDatabases = []string{"sqlite", "postgres"}

func skipOther(b *testing.B, db string) {
	if only := os.Getenv("SNAP_BENCH_DB"); only != "" && only != db {
		b.Skip("SNAP_BENCH_DB is " + only)
	}
}

func benchSizes(b *testing.B) (all []int) {
	text := os.Getenv("SNAP_BENCH_SIZES")
	if text == "" {
		text = "10000"
	}
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			b.Fatalf("SNAP_BENCH_SIZES: %v", err)
		}
		all = append(all, n)
	}
	return all
}

// ratios is the table of one database: a row for each measured thing, a column
// for each size.
type ratios struct {
	db    string
	sizes []int
	rows  []*ratioRow
}

type ratioRow struct {
	name        string
	ratio, cost []float64 // by size; cost in microseconds
}

func (r *ratios) add(name string, ratio, cost float64) {
	i := slices.IndexFunc(r.rows, func(row *ratioRow) bool { return row.name == name })
	if i < 0 {
		r.rows = append(r.rows, &ratioRow{name: name})
		i = len(r.rows) - 1
	}
	r.rows[i].ratio = append(r.rows[i].ratio, ratio)
	r.rows[i].cost = append(r.rows[i].cost, cost)
}

func (r *ratios) print() {
	fmt.Printf("\n%s: times a bare read by primary key (microseconds, median)\n%-34s", r.db, "")
	for _, n := range r.sizes {
		fmt.Printf("%20d", n)
	}
	fmt.Printf("%10s\n", "growth")
	for _, row := range r.rows {
		fmt.Printf("%-34s", row.name)
		for i := range row.ratio {
			fmt.Printf("%10.1f (%7.0f)", row.ratio[i], row.cost[i])
		}
		fmt.Printf("%10.2f\n", row.ratio[len(row.ratio)-1]/row.ratio[0])
	}
}

// measure takes all measurements at one size.
func (r *ratios) measure(d *seeded, n int) {
	r.sizes = append(r.sizes, n)
	for _, who := range []string{"admin", "no groups", "5 groups", "500 groups", "three old", "one received", "ended"} {
		c := d.callers[who]
		r.list(d, who, c, store.Query{})
		if deep := d.deep(c); deep != "" {
			r.list(d, who+", deep page", c, store.Query{Cursor: deep})
		}
	}
	for _, who := range []string{"admin", "5 groups", "500 groups"} {
		c := d.callers[who]
		r.list(d, who+", shared", c, store.Query{Filter: snap.FilterShared})
		r.list(d, who+", mine", c, store.Query{Filter: snap.FilterMine})
		r.list(d, who+", received", c, store.Query{Filter: snap.FilterReceived})
		r.list(d, who+", target", c, store.Query{Target: "shop-000"})
		r.list(d, who+", type", c, store.Query{Type: snap.TypeSanitized})
		// a full page at every size
		r.list(d, who+", target and type", c, store.Query{Target: "shop-000", Type: snap.TypeSnapshot})
		r.list(d, who+", search", c, store.Query{Q: "RS-001"})
	}
	r.check(d)
	r.writes(d)
	if os.Getenv("SNAP_BENCH_BULK") != "no" {
		r.bulk(d)
	}
	for swept := int64(1000); swept == 1000; { // as a service does every ten minutes
		var err error
		swept, err = d.Sweep(d.ctx, 1000)
		d.ok(err)
	}
	r.list(d, "ended, when swept", d.callers["ended"], store.Query{})
}

// deep returns the cursor of page 1000, or of a full page near the end.
func (d *seeded) deep(c snap.Caller) (cursor string) {
	var last string
	q := store.Query{Limit: 200}
	for range 250 {
		page, err := d.Snapshots(d.ctx, c, q)
		d.ok(err)
		if page.Next == "" {
			break
		}
		cursor, last, q.Cursor = last, page.Next, page.Next
	}
	return cursor
}

// list measures a page of 50 against a bare read of 50 of the newest rows.
func (r *ratios) list(d *seeded, name string, c snap.Caller, q store.Query) {
	q.Limit = 50
	bare := d.bareRange()
	ratio, cost := compare(bare, func() error { _, err := d.Snapshots(d.ctx, c, q); return err }, d.ok)
	r.add(name, ratio, cost)
}

const bareColumns = `s.key, s.id, s.org_id, s.owner_id, s.target, s.name, s.type, s.engine, s.size, ` +
	`s.sha256, s.blob, s.created_at`

// bareRange reads 50 rows of snapshots by their primary key.
func (d *seeded) bareRange() func() error {
	stmt, err := d.Reads().Prepare(`SELECT ` + bareColumns + ` FROM snapshots s WHERE s.key < $1 ` +
		`ORDER BY s.key DESC LIMIT 50`)
	d.ok(err)
	at := d.newest
	return func() error {
		rows, err := stmt.QueryContext(d.ctx, at)
		if err != nil {
			return err
		}
		defer rows.Close()
		var all []snap.Snapshot
		for rows.Next() {
			sn, err := scanBare(rows)
			if err != nil {
				return err
			}
			all = append(all, sn)
		}
		if len(all) != 50 {
			return fmt.Errorf("%d rows", len(all))
		}
		return rows.Err()
	}
}

func scanBare(row interface{ Scan(...any) error }) (sn snap.Snapshot, err error) {
	var owner sql.NullInt64
	var created int64
	var blob string
	err = row.Scan(&sn.Key, &sn.ID, &sn.Org.ID, &owner, &sn.Target, &sn.Name, &sn.Type, &sn.Engine, &sn.Size,
		&sn.SHA256,
		&blob, &created)
	sn.Created = time.UnixMilli(created)
	return sn, err
}

// checked is how many snapshots are looked up in turn, spread over the whole table.
const checked = 500

// check measures the lookup of one snapshot, visible or hidden, against that of one row by its
// primary key.
func (r *ratios) check(d *seeded) {
	stmt, err := d.Reads().Prepare(`SELECT ` + bareColumns + ` FROM snapshots s WHERE s.key = $1`)
	d.ok(err)
	i := 0
	next := func() int { i = (i + 1) % checked; return i * (len(d.ids) / checked) }
	bare := func() error { _, err := scanBare(stmt.QueryRowContext(d.ctx, d.keys[next()])); return err }
	look := func(name string, ask func(id string) error) {
		one := func() error {
			err := ask(d.ids[next()])
			if snap.CodeOf(err) == snap.CodeNotFound {
				return nil
			}
			return err
		}
		for range checked { // both find their rows in memory
			d.ok(bare())
		}
		for range checked {
			d.ok(one())
		}
		ratio, cost := compare(bare, one, d.ok)
		r.add(name, ratio, cost)
	}
	for _, who := range []string{"admin", "5 groups", "500 groups", "one received"} {
		c := d.callers[who]
		look("check, "+who, func(id string) error { _, err := d.Bytes(d.ctx, c, id); return err })
		look("whole record, "+who, func(id string) error { _, err := d.Snapshot(d.ctx, c, id); return err })
	}
}

// writes measures sharing and unsharing against the lookup of the whole record.
func (r *ratios) writes(d *seeded) {
	c := d.callers["admin"]
	sn, err := d.Snapshot(d.ctx, c, d.ids[len(d.ids)/2])
	d.ok(err)
	bare := func() error { _, err := d.Snapshot(d.ctx, c, sn.ID); return err }
	ratio, cost := compare(bare, func() error {
		if err := d.Share(d.ctx, c, sn); err != nil {
			return err
		}
		return d.Unshare(d.ctx, c, sn)
	}, d.ok)
	r.add("share and unshare (x whole record)", ratio, cost)
}

// bulk measures operations on many rows, once each.
func (r *ratios) bulk(d *seeded) {
	once := func(name string, n int, f func()) {
		start := time.Now()
		f()
		us := float64(time.Since(start).Microseconds())
		r.add(name, us/float64(n), us)
	}
	var changed []string
	for i := range 500 {
		changed = append(changed, fmt.Sprintf("group-%04d", (i*4+1)%2000))
	}
	once("sign-in changing 500 (us each)", 1000, func() { d.user(d.acme, "many", snap.RoleMember, changed...) })
	pusher := d.callers["5 groups"]
	var pushed []snap.Snapshot
	once("10000 pushes (us each)", 10_000, func() {
		for range 10_000 {
			pushed = append(pushed, d.push(pusher, "shop-000", snap.TypeSnapshot))
		}
	})
	admin, shared := d.callers["admin"], pushed[:1000]
	once("1000 shares with an org (us each)", len(shared), func() {
		for _, sn := range shared {
			_, _, err := d.ShareOrg(d.ctx, admin, sn, d.globex.Slug, time.Time{})
			d.ok(err)
		}
	})
	once("and ending them (us each)", len(shared), func() {
		for _, sn := range shared {
			d.ok(d.UnshareOrg(d.ctx, admin, sn, d.globex.Slug))
		}
	})
}

// compare takes turns at both and returns the ratio of the medians and the
// second's median in microseconds.
func compare(bare, measured func() error, ok func(error)) (ratio, cost float64) {
	const turns = 200
	var a, b []float64
	for i := range turns + 20 {
		start := time.Now()
		ok(bare())
		between := time.Now()
		ok(measured())
		end := time.Now()
		if i >= 20 { // after warming up
			a = append(a, float64(between.Sub(start).Nanoseconds())/1000)
			b = append(b, float64(end.Sub(between).Nanoseconds())/1000)
		}
	}
	slices.Sort(a)
	slices.Sort(b)
	return b[turns/2] / a[turns/2], b[turns/2]
}
