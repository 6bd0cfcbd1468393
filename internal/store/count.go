package store

import (
	"context"
	"fmt"

	"snap"
)

// The maximum numbers of snapshots that are counted. They bound the cost of a count. maxCounted
// applies to grants, which are counted in their index, and maxFound to the results of a search,
// which are read page by page.
const (
	maxCounted = 100_000
	maxFound   = 10_000
)

// Count returns how many snapshots a listing of q has for the caller, on all its pages. more is
// true if there are more than n, because counting ended early. It fails like [Store.Snapshots].
func (s *Store) Count(ctx context.Context, c snap.Caller, q Query) (n int, more bool, err error) {
	if _, err := q.check(); err != nil || c.Principal() == 0 {
		return 0, false, err
	}
	v, err := s.selection(ctx, c, q)
	if err != nil {
		return 0, false, noRowsAs(err, nil) // no snapshot has such a target
	}
	if len(q.IDs) > 0 || q.IDPrefix != "" || q.Q != "" || v.needsSearch() {
		return s.countFound(ctx, c, v, q)
	}
	text, args := s.countText(c, v)
	err = s.row(ctx, text, args...).Scan(&n)
	return min(n, maxCounted), n > maxCounted, err
}

// countText returns a statement and its arguments. The statement counts the snapshots on which the
// caller has a live grant, each once. It merges the same audiences as the listing.
func (s *Store) countText(c snap.Caller, v selection) (text string, args []any) {
	sh := s.shapeOf(c, v, 1)
	args = []any{c.Principal(), s.now().UnixMilli(), v.since, v.until}
	where := ""
	if sh.target {
		args = append(args, v.target)
		where += fmt.Sprintf(" AND g.target_id = $%d", len(args))
	}
	if sh.typ {
		args = append(args, string(v.typ))
		where += fmt.Sprintf(" AND g.type = $%d", len(args))
	}
	return fmt.Sprintf(`SELECT count(*) FROM (
  SELECT DISTINCT g.snapshot FROM membership m CROSS JOIN grants g
  WHERE m.principal = $1 AND m.kind IN (%s) AND g.audience = m.audience AND %s
  AND g.snapshot >= $3 AND g.snapshot < $4%s LIMIT %d) AS counted`,
		sh.scope.kindList(), liveGrant, where, maxCounted+1), args
}

// countFound counts what a search finds, page by page.
func (s *Store) countFound(ctx context.Context, c snap.Caller, v selection, q Query) (n int, more bool, err error) {
	for before := v.until; n < maxFound; {
		found, err := s.find(ctx, c, v, q, before, maxLimit+1)
		if err != nil {
			return 0, false, err
		}
		if len(found) <= maxLimit {
			return n + len(found), false, nil
		}
		n += maxLimit
		before = found[maxLimit-1].Key
	}
	return n, true, nil
}
