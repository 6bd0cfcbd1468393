package webui

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/local"
)

// show is the selected filter of the filter row (SPEC 4.6).
type show string

const (
	showAll    show = "all"    // local snapshots, and all cloud snapshots that the caller may see
	showLocal  show = "local"  // on this machine, including synced
	showCloud  show = "cloud"  // in the cloud, including synced
	showShared show = "shared" // with a shared cloud copy
)

// pageSize is the number of rows per page. With the filter All and the order newest first, a page
// has local rows in addition.
const pageSize = 50

// query describes a listing. Its URL is the page's address.
type query struct {
	Show   show
	Q      string // see matches
	Target string
	Type   snap.Type
	Sort   order
	filters
	// Cursor and Before say where the page begins: Cursor in the cloud's listing, and Before in the
	// local listing, which continues with snapshots older than Before. In a collected list, Cursor
	// is the number of preceding rows.
	Cursor string
	Before time.Time
}

func parseQuery(v url.Values) query {
	q := query{Show: show(v.Get("show")), Q: strings.TrimSpace(v.Get("q")), Target: v.Get("target"),
		Type: snap.Type(v.Get("type")), Cursor: v.Get("cursor")}
	switch q.Show {
	case showAll, showLocal, showCloud, showShared:
	default:
		q.Show = showAll
	}
	if q.Sort = order(v.Get("sort")); !q.Sort.valid() {
		q.Sort = newestFirst
	}
	if !q.Type.Valid() {
		q.Type = ""
	}
	q.filters = filters{Only: onlyKind(v.Get("only")), Owner: strings.TrimSpace(v.Get("owner")), From: v.Get("from"),
		To: v.Get("to")}
	if !slices.ContainsFunc(onlyChoices(), func(c onlyChoice) bool { return c.Only == q.Only }) {
		q.Only = onlyAny
	}
	if at, err := time.Parse(time.RFC3339Nano, v.Get("before")); err == nil {
		q.Before = at
	}
	return q
}

// URL returns the address of the page that shows this query.
func (q query) URL() string {
	v := parameters("q", q.Q, "target", q.Target, "type", string(q.Type), "sort", string(q.Sort),
		"only", string(q.Only), "owner", q.Owner, "from", q.From, "to", q.To, "cursor", q.Cursor)
	if q.Show != showAll {
		v.Set("show", string(q.Show))
	}
	if !q.Before.IsZero() {
		v.Set("before", q.Before.UTC().Format(time.RFC3339Nano))
	}
	return (&url.URL{Path: "/snapshots", RawQuery: v.Encode()}).String()
}

// parameters returns URL parameters without the empty ones; pairs alternates names and values.
func parameters(pairs ...string) url.Values {
	v := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			v.Set(pair[0], pair[1])
		}
	}
	return v
}

// first returns the query for the first page under the given filter.
func (q query) first(s show) query {
	q.Show, q.Cursor, q.Before = s, "", time.Time{}
	return q
}

// sorted returns the query for the first page in the given order.
func (q query) sorted(o order) query {
	q = q.first(q.Show)
	q.Sort = o
	return q
}

func (q query) isFirst() bool { return q.Cursor == "" && q.Before.IsZero() }

func (q query) narrowed() bool {
	return q.Q != "" || q.Target != "" || q.Type != "" || !q.filters.empty()
}

// collected reports whether all snapshots must be fetched to sort the list, because the service
// only lists the newest first.
func (q query) collected() bool { return q.Sort != newestFirst }

// matches applies the words, target and type of the query to a local snapshot, by the same rules as
// the service.
func (q query) matches(s local.Snapshot) bool {
	if q.Target != "" && s.Target != q.Target || q.Type != "" && s.Type != q.Type {
		return false
	}
	for _, id := range s.Cloud {
		if snap.Finds(q.Q, id, s.Name, s.Target) {
			return true
		}
	}
	return snap.Finds(q.Q, "", s.Name, s.Target)
}

// listing is one page of the list.
type listing struct {
	Query  query
	Rows   []row
	Next   *query // the next page; nil on the last one
	Counts counts
	Me     api.Me
	// Previous is the page before this one; nil on the first one, and if it is not known. Before is
	// the number of rows on the pages before this one, if Placed is set.
	Previous *query
	Before   int
	Placed   bool
	// SortedOnly means that only the newest snapshots were sorted, because there are more than
	// collectLimit.
	SortedOnly bool
	// Problem is why the cloud snapshots are missing. The local ones are present.
	Problem error
}

// list returns one page. By default, it has the cloud's snapshots in the cloud's order, marked as
// synced if a local copy exists, and in between, by time, the local snapshots of which the caller
// may see no cloud copy. list fails only if the local listing fails.
func (s *Server) list(ctx context.Context, q query) (listing, error) {
	out, local, page, err := s.rows(ctx, q)
	if err != nil {
		return out, err
	}
	out.Counts = s.count(ctx, &out, local, page)
	s.trail.follow(&out)
	return out, nil
}

// rows returns the rows of one page without the counts. It also returns the local snapshots and the
// page of cloud snapshots from which the rows were made.
func (s *Server) rows(ctx context.Context, q query) (listing, []local.Snapshot, api.SnapshotPage, error) {
	out := listing{Query: q}
	var page api.SnapshotPage
	here, err := s.o.Agent.Snapshots("")
	if err != nil {
		return out, nil, page, err
	}
	copies := copiesOf(here, s.cloud.base())
	if s.cloud.configured() {
		page, out.Problem = s.cloudPage(ctx, &out, q.collected())
	}
	local := s.matching(here, q, out.Me)
	switch {
	case q.collected():
		s.sortedPage(ctx, &out, local, copies, page)
	case q.Show == showLocal:
		s.localPage(ctx, &out, local, page)
	default:
		s.mergedPage(ctx, &out, local, copies, page)
	}
	for i := range out.Rows {
		out.Rows[i].Me, out.Rows[i].Back = out.Me, q.URL()
	}
	return out, local, page, nil
}

// newest returns all local snapshots and the newest collectLimit cloud snapshots, in no order.
func (s *Server) newest(ctx context.Context, q query) (listing, error) {
	out := listing{Query: q}
	here, err := s.o.Agent.Snapshots("")
	if err != nil {
		return out, err
	}
	var page api.SnapshotPage
	if s.cloud.configured() {
		page, out.Problem = s.cloudPage(ctx, &out, true)
	}
	s.mergedPage(ctx, &out, here, copiesOf(here, s.cloud.base()), page)
	if out.SortedOnly = page.NextCursor != ""; out.SortedOnly {
		out.Rows = append(out.Rows, s.olderLocal(ctx, here, page)...)
	}
	for i := range out.Rows {
		out.Rows[i].Me = out.Me
	}
	return out, nil
}

// olderLocal returns the local snapshots that are older than all cloud snapshots of the page and
// have no copy on it.
func (s *Server) olderLocal(ctx context.Context, here []local.Snapshot, page api.SnapshotPage) []row {
	oldest, listed := page.Items[len(page.Items)-1].Created, map[string]bool{}
	for _, item := range page.Items {
		listed[item.ID] = true
	}
	older := slices.DeleteFunc(slices.Clone(here), func(l local.Snapshot) bool { return !l.Created.Before(oldest) })
	return slices.DeleteFunc(s.join(ctx, older, page, false), func(r row) bool {
		return r.Cloud != nil && listed[r.Cloud.ID]
	})
}

// cloudPage concurrently requests the caller and the page. If all is set, it requests the newest
// collectLimit snapshots instead of the page.
func (s *Server) cloudPage(ctx context.Context, out *listing, all bool) (page api.SnapshotPage, err error) {
	if out.Query.Only == onlyMine { // the request then depends on the caller
		if out.Me, err = s.cloud.whoami(ctx); err != nil {
			return page, err
		}
	}
	o, some := out.Query.options(out.Me, s.o.Now())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		out.Me, err = s.cloud.whoami(ctx)
		return err
	})
	g.Go(func() (err error) {
		switch {
		case !some:
		case all:
			page, err = s.collect(ctx, o)
		default:
			page, err = s.cloud.client().Snapshots(ctx, o)
		}
		return err
	})
	err = g.Wait()
	return page, err
}

// complete reports whether the page contains all cloud snapshots of the list.
func complete(q query, page api.SnapshotPage) bool {
	return (q.Cursor == "" || q.collected()) && page.NextCursor == ""
}

// whole reports whether the page contains the cloud copy of every matching local snapshot that has
// one.
func whole(q query, page api.SnapshotPage) bool {
	return complete(q, page) && q.Show != showShared && q.filters.empty()
}

func (s *Server) matching(here []local.Snapshot, q query, me api.Me) []local.Snapshot {
	now := s.o.Now()
	return slices.DeleteFunc(slices.Clone(here), func(l local.Snapshot) bool {
		return !q.matches(l) || !q.hasLocal(l, me, now)
	})
}

// mergedPage fills the rows of the filters All, Cloud and Shared.
func (s *Server) mergedPage(ctx context.Context, out *listing, here []local.Snapshot, copies copies,
	page api.SnapshotPage) {
	q := out.Query
	for i := range page.Items {
		item := &page.Items[i]
		out.Rows = append(out.Rows, row{Cloud: item, Local: copies.of(*item)})
	}
	var until time.Time // older local snapshots belong to later pages
	if page.NextCursor != "" {
		until = page.Items[len(page.Items)-1].Created
		if !q.Before.IsZero() && q.Before.Before(until) {
			until = q.Before
		}
		next := q
		next.Cursor, next.Before = page.NextCursor, until
		out.Next = &next
	}
	if q.Show != showAll {
		if out.Next != nil {
			out.Next.Before = time.Time{}
		}
		return
	}
	var between []local.Snapshot
	for _, l := range here {
		if (q.Before.IsZero() || l.Created.Before(q.Before)) && !l.Created.Before(until) {
			between = append(between, l)
		}
	}
	for _, r := range s.join(ctx, between, page, whole(q, page)) {
		if r.Cloud == nil {
			out.Rows = append(out.Rows, r)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b row) int { return b.Created().Compare(a.Created()) })
}

// localPage fills the rows of the filter Local.
func (s *Server) localPage(ctx context.Context, out *listing, here []local.Snapshot, page api.SnapshotPage) {
	q := out.Query
	here = slices.DeleteFunc(here, func(l local.Snapshot) bool {
		return !q.Before.IsZero() && !l.Created.Before(q.Before)
	})
	if len(here) > pageSize {
		end := pageSize
		for end < len(here) && here[end].Created.Equal(here[end-1].Created) {
			end++ // a page ends between two different times, so that the next one can begin there
		}
		if end < len(here) {
			next := q
			next.Before = here[end-1].Created
			out.Next = &next
		}
		here = here[:end]
	}
	out.Rows = s.join(ctx, here, page, whole(q, page))
}

// join finds the cloud copies of local snapshots: on the current page by checksum or recorded ID,
// and if the page is not complete, by requesting the recorded IDs. A snapshot that the caller may
// no longer see has no cloud copy.
func (s *Server) join(ctx context.Context, here []local.Snapshot, page api.SnapshotPage, complete bool) []row {
	byID, bySum := map[string]*api.Snapshot{}, map[content]*api.Snapshot{}
	for i := range page.Items {
		byID[page.Items[i].ID] = &page.Items[i]
		bySum[content{page.Items[i].Target, page.Items[i].SHA256}] = &page.Items[i]
	}
	rows := make([]row, len(here))
	asked := map[string][]int{} // rows by their recorded ID, if it is not on the page
	for i := range here {
		l := &here[i]
		rows[i].Local = l
		id := l.Cloud[s.cloud.base()]
		if rows[i].Cloud = byID[id]; rows[i].Cloud == nil {
			rows[i].Cloud = bySum[content{l.Target, l.SHA256}]
		}
		if rows[i].Cloud == nil && id != "" && !complete {
			asked[id] = append(asked[id], i)
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(asked)), api.MaxIDs) {
		found, err := s.cloud.client().Snapshots(ctx, api.ListOptions{IDs: ids, Limit: api.MaxIDs})
		if err != nil {
			break // without a response, the rows are shown as local
		}
		for i := range found.Items {
			for _, row := range asked[found.Items[i].ID] {
				rows[row].Cloud = &found.Items[i]
			}
		}
	}
	return rows
}

// copies finds the local copies of cloud snapshots.
type copies struct {
	byID  map[string]*local.Snapshot
	bySum map[content]*local.Snapshot
}

// content identifies the copies of a snapshot. The same file can belong to several targets.
type content struct{ target, sha256 string }

func copiesOf(here []local.Snapshot, base string) copies {
	c := copies{byID: map[string]*local.Snapshot{}, bySum: map[content]*local.Snapshot{}}
	for i := range here {
		c.bySum[content{here[i].Target, here[i].SHA256}] = &here[i]
		if id := here[i].Cloud[base]; id != "" {
			c.byID[id] = &here[i]
		}
	}
	return c
}

func (c copies) of(s api.Snapshot) *local.Snapshot {
	if l := c.byID[s.ID]; l != nil {
		return l
	}
	return c.bySum[content{s.Target, s.SHA256}]
}
