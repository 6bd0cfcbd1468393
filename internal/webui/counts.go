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
	var only []local.Snapshot
	for _, l := range here {
		if !ids[l.Cloud[base]] && !sums[l.SHA256] {
			only = append(only, l)
		}
	}
	more := found.NextCursor != ""
	c.Cloud = tally{N: len(found.Items), More: more, Known: true}
	c.All = tally{N: c.Cloud.N + len(only), More: more, Known: true}
	c.Shared.Known, c.Shared.More = true, more
	if more && q.narrow.empty() {
		s.countBeyond(ctx, &c, q, only)
	}
	return c
}

// exactly has the service's numbers of all cloud snapshots and of the shared ones, and the number of
// local snapshots without a copy in the cloud.
type exactly struct {
	all, shared api.Count
	local       int
}

// countBeyond sets the exact numbers when there are more cloud snapshots than were collected. rest are
// the local snapshots that have no copy among those. Without an answer, the numbers stay lower bounds.
func (s *Server) countBeyond(ctx context.Context, c *counts, q query, rest []local.Snapshot) {
	n, err := kept(s.cloud, s.cloud.exact, q.first(showAll), func() (n exactly, err error) {
		if n.all, err = s.cloud.client().CountSnapshots(ctx, q.first(showAll).options()); err != nil {
			return n, err
		}
		for _, r := range s.join(ctx, rest, api.SnapshotPage{}, false) {
			if r.Cloud == nil {
				n.local++
			}
		}
		n.shared, err = s.cloud.client().CountSnapshots(ctx, q.first(showShared).options())
		return n, err
	})
	if err != nil {
		return
	}
	c.Cloud = tally{N: n.all.Count, More: n.all.More, Known: true}
	c.All = tally{N: n.all.Count + n.local, More: n.all.More, Known: true}
	c.Shared = tally{N: n.shared.Count, More: n.shared.More, Known: true}
}

// fetchCounts collects the snapshots that the query finds without its filter row.
func (s *Server) fetchCounts(ctx context.Context, q query, me api.Me) (api.SnapshotPage, error) {
	all := q.first(showAll)
	return kept(s.cloud, s.cloud.tally, all, func() (found api.SnapshotPage, err error) {
		if found, err = s.everything(ctx, all); err == nil {
			found.Items = s.keep(found.Items, q, me)
		}
		return found, err
	})
}
