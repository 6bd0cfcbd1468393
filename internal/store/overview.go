package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// Day counts the events in an organization on one day, in UTC.
type Day struct {
	Start        time.Time
	Pushed       int   // snapshots
	PushedBytes  int64 // of these snapshots
	Deleted      int
	DeletedBytes int64
	Pulls        int // that were completed
	People       int // users of any organization who did something that is recorded
}

const dayMillis = int64(24 * time.Hour / time.Millisecond)

// Days counts the events in the audit log of the caller's organization by day, beginning at the
// given time. The oldest day comes first; days without events are left out. Pulls and People do not
// count lines that left the database for the archive. Authorization is the caller's job
// (snap.Allowed).
func (s *Store) Days(ctx context.Context, c snap.Caller, since time.Time) ([]Day, error) {
	bytes := `CAST(json_extract(a.body, '$.detail.bytes') AS INTEGER)`
	if s.dialect == postgres {
		bytes = `CAST(CAST(a.body AS json) #>> '{detail,bytes}' AS bigint)`
	}
	sum := func(action string) string {
		return `CAST(coalesce(sum(CASE WHEN a.action = '` + action + `' THEN ` + bytes + ` ELSE 0 END), 0) AS bigint)`
	}
	count := func(action string) string {
		return `sum(CASE WHEN a.action = '` + action + `' THEN 1 ELSE 0 END)`
	}
	pushed, deleted := string(snap.AuditPushed), string(snap.AuditDeleted)
	return collect(ctx, s, `
		SELECT a.at / $3, `+count(pushed)+`, `+sum(pushed)+`, `+count(deleted)+`, `+sum(deleted)+`,
			`+count(string(snap.AuditPulled))+`, count(DISTINCT CASE WHEN a.actor = '' THEN NULL ELSE a.actor END)
		FROM audit a WHERE a.org_id = $1 AND a.at >= $2 GROUP BY 1 ORDER BY 1`, scanDay, c.Org.ID,
		since.UnixMilli(), dayMillis)
}

func scanDay(rows *sql.Rows) (d Day, err error) {
	var day int64
	err = rows.Scan(&day, &d.Pushed, &d.PushedBytes, &d.Deleted, &d.DeletedBytes, &d.Pulls, &d.People)
	d.Start = time.UnixMilli(day * dayMillis).UTC()
	return d, err
}

// TargetUsage is how much storage the snapshots of one target use.
type TargetUsage struct {
	Target    string
	Snapshots int
	Bytes     int64
	Newest    time.Time
}

// TargetUsages returns the storage of the caller's organization by target, the largest first.
// Authorization is the caller's job (snap.Allowed).
func (s *Store) TargetUsages(ctx context.Context, c snap.Caller) ([]TargetUsage, error) {
	return collect(ctx, s, `
		SELECT target, count(*), CAST(sum(size) AS bigint), max(created_at) FROM snapshots WHERE org_id = $1
		GROUP BY target ORDER BY 3 DESC, target`, func(rows *sql.Rows) (u TargetUsage, err error) {
		err = rows.Scan(&u.Target, &u.Snapshots, &u.Bytes, toTime(&u.Newest))
		return u, err
	}, c.Org.ID)
}
