package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"snap"
)

// Query selects a page of a listing. The zero value selects the first page of all snapshots that
// the caller can see.
type Query struct {
	Filter snap.Filter // "" means all
	Target string      // exactly this target
	Type   snap.Type
	// Q holds the words of a search; see [Matches].
	Q string
	// IDPrefix is the beginning of public IDs, as snap.CleanIDPrefix returns it.
	IDPrefix string
	// IDs selects only snapshots with these public IDs. The other conditions apply to them too.
	IDs []string
	// Owner is the e-mail of the user of the caller's organization who pushed the snapshots. If no
	// user has that e-mail, it is the beginning of an e-mail, or of the slug of the organization
	// that shared the snapshots with the caller's organization.
	Owner string
	// Since and Until limit the time of the push: it is not before Since, and it is before Until.
	// Zero means no limit.
	Since, Until time.Time
	// ExpiresSoon selects snapshots with a share that ends within [snap.SoonExpiring], if the
	// caller may know about that share.
	ExpiresSoon bool
	Limit       int    // 0 means 50; at most 200
	Cursor      string // Page.Next of the previous page, "" for the first
}

// Page is one page of a listing, newest first. Next is the cursor of the following page, or "" on
// the last page.
type Page struct {
	Items []snap.Snapshot
	Next  string
}

// The page sizes.
const (
	defaultLimit = 50
	maxLimit     = 200
	maxIDs       = 100 // in a query
)

// Snapshots returns a page of the snapshots that q selects and the caller may see, newest first.
// Its cost depends neither on the number of snapshots nor on the depth of the page. It fails with
// code invalid for an invalid filter, type, limit or cursor, and for too many IDs.
func (s *Store) Snapshots(ctx context.Context, c snap.Caller, q Query) (Page, error) {
	before, err := q.check()
	if err != nil || c.Principal() == 0 {
		return Page{}, err
	}
	v, err := s.selection(ctx, c, q)
	if err != nil {
		return Page{}, noRowsAs(err, nil) // no snapshot has such a target
	}
	before = min(before, v.until)
	found, err := s.find(ctx, c, v, q, before, q.Limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: found}
	if len(found) > q.Limit {
		page = Page{Items: found[:q.Limit], Next: cursor(found[q.Limit-1].Key)}
	}
	return page, s.nameShares(ctx, c, page.Items)
}

// find returns the n newest snapshots that q selects, that the caller may see, and whose keys are
// less than before. v is the selection of q.
func (s *Store) find(ctx context.Context, c snap.Caller, v selection, q Query, before int64,
	n int) (found []snap.Snapshot, err error) {
	switch {
	case len(q.IDs) > 0:
		found, err = s.byIDs(ctx, c, v, q, before, n)
	case q.IDPrefix != "":
		found, err = s.byPrefix(ctx, c, v, q, before, n)
	case q.Q != "" || v.needsSearch():
		found, err = s.search(ctx, c, v, q.Q, before, n)
	default:
		found, err = s.list(ctx, c, v, before, n)
	}
	return v.fromSince(found), err
}

// check sets the defaults and returns the key below which the page begins.
func (q *Query) check() (before int64, err error) {
	if q.Filter == "" {
		q.Filter = snap.FilterAll
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	switch {
	case !q.Filter.Valid():
		return 0, snap.Invalid("the filter is unknown", "use all, shared, mine or received")
	case q.Type != "" && !q.Type.Valid():
		return 0, snap.Invalid("the type is unknown", "use snapshot or sanitized")
	case len(q.IDs) > maxIDs:
		return 0, snap.Invalid("there are more than 100 IDs", "send several requests")
	case q.Limit < 0 || q.Limit > maxLimit:
		return 0, snap.Invalid("the limit is not between 1 and 200", "omit it to use 50")
	case q.Cursor == "":
		return math.MaxInt64, nil
	}
	return position(q.Cursor)
}

// A cursor is a position, not a page: a version byte and the key of the last item on the page. A
// push, unshare or deletion therefore cannot invalidate it.
const cursorVersion = 1

func cursor(key int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{cursorVersion}, uint64(key)))
}

func position(cursor string) (key int64, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 9 || b[0] != cursorVersion {
		return 0, snap.Invalid("the cursor is not valid", "omit it to start at the first page")
	}
	return int64(binary.BigEndian.Uint64(b[1:])), nil
}

// selection holds the conditions of a query, except its IDs and the words of its search.
type selection struct {
	filter      snap.Filter
	target      int64 // 0 means every target
	typ         snap.Type
	owner       ownerFilter
	expiresSoon bool
	since       int64 // the least key
	until       int64 // the first key that is too large
}

// needsSearch reports whether v has conditions that the listing's statement does not check.
func (v selection) needsSearch() bool { return v.owner.text != "" || v.expiresSoon }

// selection looks up the query's target and owner. It fails with sql.ErrNoRows when no snapshot
// ever had that target.
func (s *Store) selection(ctx context.Context, c snap.Caller, q Query) (v selection, err error) {
	v = selection{filter: q.Filter, typ: q.Type, expiresSoon: q.ExpiresSoon, until: math.MaxInt64}
	if !q.Since.IsZero() {
		v.since = firstKey(q.Since)
	}
	if !q.Until.IsZero() {
		v.until = firstKey(q.Until)
	}
	if q.Target != "" {
		if err := s.row(ctx, `SELECT id FROM targets WHERE name = $1`, q.Target).Scan(&v.target); err != nil {
			return v, err
		}
	}
	v.owner, err = s.ownerFilter(ctx, c, q.Owner)
	return v, err
}

// firstKey returns the least key of the snapshots that were pushed at t or later.
func firstKey(t time.Time) int64 {
	const last = int64(math.MaxInt64) >> keyBits
	return min(max(t.UnixMilli(), 0), last) << keyBits
}

// fromSince cuts off the snapshots that are older than the selection allows. found must be sorted
// newest first.
func (v selection) fromSince(found []snap.Snapshot) []snap.Snapshot {
	for i, sn := range found {
		if sn.Key < v.since {
			return found[:i]
		}
	}
	return found
}

// list returns the n newest snapshots that v selects, that the caller may see, and whose keys are
// less than before, newest first.
func (s *Store) list(ctx context.Context, c snap.Caller, v selection, before int64, n int) ([]snap.Snapshot, error) {
	sh := s.shapeOf(c, v, n)
	found, err := s.snapshots(ctx, c, s.listing(sh), s.listingArgs(c, sh, v, before)...)
	if len(found) > n {
		found = found[:n]
	}
	return found, err
}

// newestFirst sorts snapshots in the order of every listing.
func newestFirst(all []snap.Snapshot) {
	slices.SortFunc(all, func(a, b snap.Snapshot) int { return cmp.Compare(b.Key, a.Key) })
}
