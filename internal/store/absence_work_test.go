package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/store"
)

// SPEC 5.3 rule 2: looking up a hidden snapshot is the same work as looking up an ID that was never
// issued, however widely the hidden one is shared: the same steps, rows and pages of the database.
func TestHiddenAndAbsentAreTheSameWork(t *testing.T) {
	t.Parallel()
	d := seed(t, store.Options{URL: postgres(t)}, sizes{snapshots: 1500, users: 100, groups: 60})
	stranger := d.user(d.org("strangers"), "stranger", snap.RoleMember, "a", "b", "c")
	vacuum := func() {
		t.Helper()
		_, err := d.DB().ExecContext(d.ctx, "VACUUM ANALYZE")
		d.ok(err)
	}
	vacuum()
	ids := slices.Sorted(slices.Values(d.ids))
	work := func(id string) []step {
		t.Helper()
		st := d.Lookups(stranger, id)[0]
		d.explain(st) // from here on, the pages are in memory
		return d.explain(st)
	}
	first := after(ids[len(ids)/2])
	if steps := work(first); len(steps) < 5 {
		t.Fatalf("the plan has only %d steps", len(steps))
	}
	// The server's own vacuum may run between two measurements, so only a difference that stays
	// counts.
	compare := func(id string) {
		t.Helper()
		var absent, other []step
		for range 5 {
			if absent, other = work(first), work(id); reflect.DeepEqual(absent, other) {
				return
			}
			vacuum()
		}
		t.Fatalf("an absent snapshot costs\n%v\nand the one that is compared\n%v", absent, other)
	}
	for i := 1; i < len(ids)-1; i += len(ids) / 25 {
		compare(ids[i])        // hidden
		compare(after(ids[i])) // absent too
	}
}

// after returns an ID that never existed, next to one that exists.
func after(id string) string { return id[:len(id)-1] + string(id[len(id)-1]+1) }

// step is the work of one step of a plan.
type step struct {
	Type  string  `json:"Node Type"`
	Index string  `json:"Index Name"`
	Loops float64 `json:"Actual Loops"`
	Rows  float64 `json:"Actual Rows"`
	Pages int     `json:"Shared Hit Blocks"`
	Read  int     `json:"Shared Read Blocks"`
	Plans []step
}

// explain runs a statement on PostgreSQL and returns the work of each step.
func (d *seeded) explain(st store.Statement) (all []step) {
	d.t.Helper()
	conn, err := d.DB().Conn(d.ctx)
	d.ok(err)
	defer conn.Close()
	text := strings.ReplaceAll(st.Text, "$5", "'"+st.Args[4].(string)+"'")
	for i, a := range st.Args[:4] {
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i+1), fmt.Sprint(a))
	}
	var out string
	d.ok(conn.QueryRowContext(d.ctx,
		"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, FORMAT JSON) "+text).Scan(&out))
	var plans []struct{ Plan step }
	d.ok(json.Unmarshal([]byte(out), &plans))
	var flat func(step)
	flat = func(s step) {
		inner := s.Plans
		s.Plans = nil
		all = append(all, s)
		for _, p := range inner {
			flat(p)
		}
	}
	flat(plans[0].Plan)
	return all
}
