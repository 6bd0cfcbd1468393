package store_test

import (
	"testing"
	"time"

	"snap/internal/store"
)

// queue fills a store with people of acme whose identity provider can be asked about them: three
// quarters have waited longest but are not active, or are active in another organization, and one
// quarter is due.
func queue(t testing.TB, o store.Options, people int) *seeded {
	t.Helper()
	d := &seeded{world: newWorld(t, o)}
	first, last := d.bulkUsers(people)
	hour := d.clock.Now().Add(-time.Hour).UnixMilli()
	var rows [][]any
	for id := first; id <= last; id++ {
		org, used, checked := d.acme.ID, 0, hour
		switch {
		case id > last-int64(people/4):
			used, checked = 1, hour+id-first
		case id%2 == 0:
			used, org = 1, d.globex.ID
		}
		rows = append(rows, []any{id, org, hour, []byte("refresh"), checked, used, checked})
	}
	d.bulk("sign_ins", []string{"user_id", "org_id", "signed_in_at", "refresh", "checked_at", "used", "waits_from"},
		rows)
	d.flush()
	return d
}

// TestRechecksReadTheFrontOfTheQueue: the next person to ask about is found by an index, however
// many people are not active, due in other organizations, or due later.
func TestRechecksReadTheFrontOfTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		d := queue(t, store.Options{DataDir: t.TempDir()}, 2000)
		if bad := sqlitePlan(t, d.Store, store.Due(d.acme.ID)); bad != "" {
			t.Error(bad)
		}
		d.isFirstDue()
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := queue(t, store.Options{URL: postgres(t)}, 2000)
		if bad := postgresPlan(t, d.Store, 0, store.Due(d.acme.ID)); bad != "" {
			t.Error(bad)
		}
		d.isFirstDue()
	})
}

// isFirstDue checks that of two people who are due in acme, the one who has waited longer is first.
func (d *seeded) isFirstDue() {
	d.t.Helper()
	due, err := d.DueStandings(d.ctx, d.acme.ID, d.clock.Now().Add(-15*time.Minute), 2)
	d.ok(err)
	if len(due) != 2 || !due[0].Checked.Before(due[1].Checked) {
		d.t.Errorf("due: %+v", due)
	}
}

// BenchmarkDueStandings finds the next person to ask about among 80,000, of whom 20,000 are due.
func BenchmarkDueStandings(b *testing.B) {
	for _, db := range benchDatabases {
		b.Run(db, func(b *testing.B) {
			skipOther(b, db)
			o := store.Options{DataDir: b.TempDir()}
			if db == "postgres" {
				o = store.Options{URL: postgres(b)}
			}
			d := queue(b, o, 80_000)
			for b.Loop() {
				if due, err := d.DueStandings(d.ctx, d.acme.ID, d.clock.Now(), 1); err != nil || len(due) != 1 {
					b.Fatal(due, err)
				}
			}
		})
	}
}
