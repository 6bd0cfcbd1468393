package webui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/cases"

	"snap/api"
	"snap/internal/local"
)

// order is how the list is sorted. The service lists newest first. Any other order is computed
// here, for the newest sortLimit snapshots.
type order string

const (
	newestFirst order = ""
	oldestFirst order = "oldest"
	byName      order = "name"
	bySize      order = "size"
)

// sortLimit is the maximum number of cloud snapshots that are fetched for sorting.
const sortLimit = 1000

// sortChoice is an entry of the choice of orders.
type sortChoice struct {
	Order order
	Text  string
}

func (o order) valid() bool {
	return slices.ContainsFunc(sortChoices(), func(c sortChoice) bool { return c.Order == o })
}

// sortRows sorts by the order. Equal rows stay newest first.
func sortRows(rows []row, o order) {
	switch o {
	case oldestFirst:
		slices.Reverse(rows)
	case byName:
		fold := cases.Fold()
		slices.SortStableFunc(rows,
			func(a, b row) int { return strings.Compare(fold.String(a.Name()), fold.String(b.Name())) })
	case bySize:
		slices.SortStableFunc(rows, func(a, b row) int {
			switch {
			case a.Size() > b.Size():
				return -1
			case a.Size() < b.Size():
				return 1
			}
			return 0
		})
	}
}

// everything fetches the matching cloud snapshots, up to sortLimit.
func (s *Server) everything(ctx context.Context, q query) (page api.SnapshotPage, err error) {
	o := q.options()
	o.Cursor, o.Limit = "", api.MaxLimit
	for len(page.Items) < sortLimit {
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
	from, _ := strconv.Atoi(q.Cursor)
	from = max(0, min(from, len(all.Rows)))
	to := min(from+pageSize, len(all.Rows))
	out.Rows, out.SortedOnly = all.Rows[from:to], page.NextCursor != ""
	if to < len(all.Rows) {
		next := q
		next.Cursor = strconv.Itoa(to)
		out.Next = &next
	}
}
