package webui

import (
	"context"
	"strconv"
	"time"

	"snap/api"
	"snap/internal/local"
)

// tally is a count that may be a lower bound: "200+".
type tally struct {
	N     int
	More  bool
	Known bool
}

// String returns the count for the filter row, or "" if it is unknown.
func (t tally) String() string {
	switch {
	case !t.Known:
		return ""
	case t.More:
		return strconv.Itoa(t.N) + "+"
	}
	return strconv.Itoa(t.N)
}

// counts are the numbers in the filter row, within the search and the target.
type counts struct{ All, Local, Cloud, Shared tally }

// countLife is how long counts of a large cloud listing are cached.
const countLife = 5 * time.Second

// count counts the rows of each kind. If the current page is complete, it makes no further requests.
// Otherwise it counts at most collectLimit cloud snapshots.
func (s *Server) count(ctx context.Context, l *listing, here []local.Snapshot, page api.SnapshotPage) counts {
	q, c := l.Query, counts{Local: tally{N: len(here), Known: true}}
	if !s.cloud.configured() {
		c.All = c.Local
		return c
	}
	if l.Problem != nil {
		return c
	}
	found := page
	if q.Show == showShared || !q.collected() && !whole(q, page) {
		var err error
		if found, err = s.fetchCounts(ctx, q, l.Me); err != nil {
			return c
		}
	}
	base := s.cloud.base()
	ids, sums := map[string]bool{}, map[string]bool{}
	for _, item := range found.Items {
		ids[item.ID], sums[item.SHA256] = true, true
		if item.Shared {
			c.Shared.N++
		}
	}
	only := 0
	for _, l := range here {
		if !ids[l.Cloud[base]] && !sums[l.SHA256] {
			only++
		}
	}
	more := found.NextCursor != ""
	c.Cloud = tally{N: len(found.Items), More: more, Known: true}
	c.All = tally{N: c.Cloud.N + only, More: more, Known: true}
	c.Shared.Known, c.Shared.More = true, more
	return c
}

// fetchCounts collects the snapshots that the query finds without its filter row.
func (s *Server) fetchCounts(ctx context.Context, q query, me api.Me) (api.SnapshotPage, error) {
	all := q.first(showAll)
	return s.cloud.counts(all, func() (found api.SnapshotPage, err error) {
		if found, err = s.everything(ctx, all); err == nil {
			found.Items = s.keep(found.Items, q, me)
		}
		return found, err
	})
}
