package webui

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
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

// cloudCounts are the two counts that come from the service.
type cloudCounts struct {
	all, shared api.SnapshotPage
}

// countLife is how long counts of a large cloud listing are cached.
const countLife = 5 * time.Second

// count counts the rows of each kind. If the current page is complete, it makes no further
// requests. Otherwise it requests at most api.MaxLimit rows of each kind from the service.
func (s *Server) count(ctx context.Context, q query, here []local.Snapshot, online bool, page api.SnapshotPage) counts {
	c := counts{Local: tally{N: len(here), Known: true}}
	if !s.cloud.configured() {
		c.All = c.Local
		return c
	}
	if !online {
		return c
	}
	found := cloudCounts{all: page}
	if !whole(q, page) {
		var err error
		if found, err = s.fetchCounts(ctx, q); err != nil {
			return c
		}
	}
	base := s.cloud.base()
	ids, sums := map[string]bool{}, map[string]bool{}
	for _, item := range found.all.Items {
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
	more := found.all.NextCursor != ""
	c.Cloud = tally{N: len(found.all.Items), More: more, Known: true}
	c.All = tally{N: c.Cloud.N + only, More: more, Known: true}
	c.Shared.Known = true
	if more {
		c.Shared = tally{N: len(found.shared.Items), More: found.shared.NextCursor != "", Known: true}
	}
	return c
}

func (s *Server) fetchCounts(ctx context.Context, q query) (cloudCounts, error) {
	o := q.first(showAll).options()
	o.Limit = api.MaxLimit
	return s.cloud.counts(o, func() (found cloudCounts, err error) {
		g, ctx := errgroup.WithContext(ctx)
		shared := o
		shared.Filter = snap.FilterShared
		g.Go(func() (err error) {
			found.all, err = s.cloud.client().Snapshots(ctx, o)
			return err
		})
		g.Go(func() (err error) {
			found.shared, err = s.cloud.client().Snapshots(ctx, shared)
			return err
		})
		err = g.Wait()
		return found, err
	})
}
