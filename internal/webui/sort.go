package webui

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/cases"

	"snap/api"
	"snap/internal/local"
)

// order is how the list is sorted. The service lists newest first. Any other order is computed
// here, for the newest collectLimit snapshots.
type order string

const (
	newestFirst order = ""
	oldestFirst order = "oldest"
	byTarget    order = "target" // in each target, the newest sanitized snapshot first
	byName      order = "name"
	bySize      order = "size"
)

// collectLimit is the maximum number of cloud snapshots that are fetched for sorting.
const collectLimit = 1000

// sortChoice is an entry of the menu that chooses the order.
type sortChoice struct {
	Order order
	Text  string
}

func (o order) valid() bool {
	return slices.ContainsFunc(sortChoices(), func(c sortChoice) bool { return c.Order == o })
}

// sortRows sorts rows, which are newest first, by the order. Rows with the same name or size stay
// newest first.
func sortRows(rows []row, o order) {
	switch o {
	case oldestFirst:
		slices.Reverse(rows)
	case byTarget:
		groupRows(rows)
	case byName:
		fold := cases.Fold()
		slices.SortStableFunc(rows,
			func(a, b row) int { return strings.Compare(fold.String(a.Name()), fold.String(b.Name())) })
	case bySize:
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.Size(), a.Size()) })
	}
}

// groupRows sorts rows, which are newest first, by target. In each group the newest sanitized
// snapshot comes first.
func groupRows(rows []row) {
	fold := cases.Fold()
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(fold.String(a.Target()), fold.String(b.Target())),
			strings.Compare(a.Target(), b.Target()))
	})
	for start := 0; start < len(rows); {
		end, best := start, -1
		for ; end < len(rows) && rows[end].Target() == rows[start].Target(); end++ {
			if best < 0 && rows[end].Sanitized() {
				best = end
			}
		}
		if best > start {
			first := rows[best]
			copy(rows[start+1:best+1], rows[start:best])
			rows[start] = first
		}
		start = end
	}
}

// collect fetches the snapshots that the service finds, up to collectLimit, in full pages.
func (s *Server) collect(ctx context.Context, o api.ListOptions) (page api.SnapshotPage, err error) {
	o.Cursor, o.Limit = "", api.MaxLimit
	for range collectLimit / api.MaxLimit {
		more, err := s.cloud.client().Snapshots(ctx, o)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, more.Items...)
		page.NextCursor, o.Cursor = more.NextCursor, more.NextCursor
		if o.Cursor == "" {
			break
		}
	}
	return page, nil
}

// sortedPage fills the rows of a page in an order other than newest first. Its cursor is the number
// of preceding rows.
func (s *Server) sortedPage(ctx context.Context, out *listing, here []local.Snapshot, copies copies,
	page api.SnapshotPage) {
	q := out.Query
	all := *out
	all.Query.Cursor = ""
	if q.Show == showLocal {
		all.Rows = s.join(ctx, here, page, whole(all.Query, page))
	} else {
		s.mergedPage(ctx, &all, here, copies, page)
	}
	sortRows(all.Rows, q.Sort)
	if q.Sort == byTarget {
		for i := range all.Rows {
			all.Rows[i].First = i == 0 || all.Rows[i].Target() != all.Rows[i-1].Target()
		}
	}
	from, _ := strconv.Atoi(q.Cursor)
	from = max(0, min(from, len(all.Rows)))
	to := min(from+pageSize, len(all.Rows))
	out.Rows, out.SortedOnly = all.Rows[from:to], q.Show != showLocal && page.NextCursor != ""
	if from > 0 {
		s.trail.add(q, step{q.at(from - pageSize), from})
	}
	if len(out.Rows) > 0 && q.Sort == byTarget {
		out.Rows[0].First = true
	}
	if to < len(all.Rows) {
		next := q.at(to)
		out.Next = &next
	}
}

// at returns the query for the page of a collected list that begins after the given number of rows.
func (q query) at(rows int) query {
	q.Cursor = ""
	if rows > 0 {
		q.Cursor = strconv.Itoa(rows)
	}
	return q
}
