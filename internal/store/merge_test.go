package store_test

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// The merge of a listing cuts off rows that cannot be on the page. With many groups of skewed
// sizes, pages of every size and from every position equal the result of a plain walk over all
// grants.
func TestMergeFindsWhatAPlainWalkFinds(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	n := sizes{snapshots: 4000, users: 100, groups: 600}
	for name, options := range map[string]func(t *testing.T) store.Options{
		"sqlite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir()} },
		"postgres": func(t *testing.T) store.Options { return store.Options{URL: postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := seed(t, options(t), n)
			d.rareGroups(n)
			for _, count := range []int{8, 9, 40} { // read as a range each, and read together
				d.callers[fmt.Sprint(count, " groups")] = d.inGroups(0, count)
			}
			for who, c := range d.callers {
				for _, q := range []store.Query{{}, {Filter: snap.FilterShared}, {Filter: snap.FilterMine},
					{Target: "shop-000"},
					{Type: snap.TypeSanitized}, {Target: "orders-001", Type: snap.TypeSanitized}} {
					d.compareWalk(who, c, q)
				}
			}
		})
	}
}

// If nothing is shared org-wide, the page's floor is very low, and the range of everything shared
// with groups is cut. It has a full page for a caller in most groups, but not for one in a hundred
// groups with few shares.
func TestMergeLooksAtGroupsWhenTheirRangeIsCut(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	onEach(t, func(t *testing.T, o store.Options) {
		n := sizes{snapshots: 6000, users: 100, groups: 600}
		d := seed(t, o, n)
		d.rareGroups(n)
		_, err := d.DB().Exec(`DELETE FROM grants WHERE audience & 7 = 2`)
		d.ok(err)
		for _, who := range []string{"500 groups", "rare groups", "5 groups"} {
			d.compareWalk(who, d.callers[who], store.Query{})
		}
	})
}

// rareGroups adds a caller who is in the hundred groups with the fewest shares.
func (d *seeded) rareGroups(n sizes) {
	d.callers["rare groups"] = d.inGroups(n.groups-100, 100)
}

// inGroups makes a caller who is in the groups with the numbers from first to first+count-1. Groups
// with low numbers have the most shares.
func (d *seeded) inGroups(first, count int) snap.Caller {
	var groups []string
	for i := range count {
		groups = append(groups, fmt.Sprintf("group-%04d", first+i))
	}
	return d.user(d.acme, fmt.Sprintf("in%dto%d", first, first+count), snap.RoleMember, groups...)
}

// compareWalk compares all pages of 50 and 200, and the first and last twenty
// of 1 and 10.
func (d *seeded) compareWalk(who string, c snap.Caller, q store.Query) {
	d.t.Helper()
	want := d.walk(c, q)
	for _, limit := range []int{1, 10, 50, 200} {
		q.Limit = limit
		for at := 0; at <= len(want); at += limit {
			if limit <= 10 && at > 20*limit && at < len(want)-20*limit {
				continue
			}
			q.Cursor = ""
			if at > 0 {
				q.Cursor = store.Cursor(want[at-1])
			}
			page, err := d.Snapshots(d.ctx, c, q)
			d.ok(err)
			var got []int64
			for _, sn := range page.Items {
				got = append(got, sn.Key)
			}
			if end := min(at+limit, len(want)); !slices.Equal(got, want[at:end]) {
				d.t.Fatalf("%s, %+v, from %d of %d: %v, want %v", who, q, at, len(want), got, want[at:end])
			}
		}
	}
}

// walk returns the keys of everything that a query selects, by a plain query over grants and
// snapshots.
func (d *seeded) walk(c snap.Caller, q store.Query) []int64 {
	d.t.Helper()
	kinds := "0, 1, 2, 3, 4"
	switch q.Filter {
	case snap.FilterShared:
		kinds = "2, 4"
	case snap.FilterMine:
		kinds = "0"
	}
	var audiences []string
	for _, a := range c.Audiences() {
		audiences = append(audiences, fmt.Sprint(int64(a)))
	}
	rows, err := d.DB().Query(`SELECT DISTINCT s.key FROM grants g JOIN snapshots s ON s.key = g.snapshot
		WHERE g.audience IN (`+strings.Join(audiences, ", ")+`) AND g.audience & 7 IN (`+kinds+`)
			AND coalesce(g.expires_at, $1) > $2
		AND $3 IN ('', s.target) AND $4 IN ('', s.type) ORDER BY s.key DESC`,
		int64(math.MaxInt64), d.clock.Now().UnixMilli(), q.Target, string(q.Type))
	d.ok(err)
	all, err := store.Drain(rows, func(rows *sql.Rows) (key int64, err error) {
		err = rows.Scan(&key)
		return key, err
	})
	d.ok(err)
	return all
}

// onEach runs a test on each database.
func onEach(t *testing.T, f func(t *testing.T, o store.Options)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, store.Options{DataDir: t.TempDir()}) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, store.Options{URL: postgres(t)}) })
}
