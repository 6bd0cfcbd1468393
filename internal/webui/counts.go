package webui

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

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

// counts are the numbers in the filter row. They count only rows that match the search, the target,
// the type and the other filters.
type counts struct{ All, Local, Cloud, Shared tally }

// countLife is how long counts of a large cloud listing are cached.
const countLife = 5 * time.Second

// count counts the rows for each filter. If the current page has all cloud snapshots, it makes no
// further requests for them.
func (s *Server) count(ctx context.Context, l *listing, here []local.Snapshot, page api.SnapshotPage) counts {
	c := counts{Local: tally{N: len(here), Known: true}}
	if !s.cloud.configured() {
		c.All = c.Local
		return c
	}
	if l.Problem != nil {
		return c
	}
	n, err := s.numbers(ctx, l, here, page)
	if err != nil {
		return c
	}
	c.Cloud = tally{N: n.all.Count, More: n.all.More, Known: true}
	c.All = tally{N: n.all.Count + n.local, More: n.all.More, Known: true}
	c.Shared = tally{N: n.shared.Count, More: n.shared.More, Known: true}
	return c
}

// totals has the numbers of all cloud snapshots, of the shared ones among them, and of local
// snapshots without a copy in the cloud.
type totals struct {
	all, shared api.Count
	local       int
}

// numbers counts the snapshots that the query finds, regardless of the selected filter.
func (s *Server) numbers(ctx context.Context, l *listing, here []local.Snapshot, page api.SnapshotPage) (n totals,
	err error) {
	q := l.Query
	localOnly := func() (n int) {
		for _, r := range s.join(ctx, here, page, whole(q, page)) {
			if r.Cloud == nil {
				n++
			}
		}
		return n
	}
	if complete(q, page) && q.Show != showShared {
		for _, item := range page.Items {
			if item.Shared {
				n.shared.Count++
			}
		}
		n.all.Count, n.local = len(page.Items), localOnly()
		return n, nil
	}
	key := q.sorted(newestFirst).first(showAll)
	return s.cloud.cachedTotals(key, func() (n totals, err error) {
		g, ctx := errgroup.WithContext(ctx)
		for which, into := range map[show]*api.Count{showAll: &n.all, showShared: &n.shared} {
			o, some := q.first(which).options(l.Me, s.o.Now())
			if !some {
				continue
			}
			g.Go(func() (err error) {
				*into, err = s.cloud.client().CountSnapshots(ctx, o)
				return err
			})
		}
		n.local = localOnly()
		err = g.Wait()
		return n, err
	})
}
