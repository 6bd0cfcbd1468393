package store

import (
	"fmt"
	"strings"

	"snap"
)

// This page writes the listing's SQL.
//
// What a caller may see is the union of their audiences, and each audience is
// an index range of grants that is ordered newest first. So a page is a merge
// of ranges, read only as far as the page needs, each snapshot once (page).
//
// The caller's own audiences (user, admins, members, recipients) are a range
// each, and so are their first few groups on SQLite. All further groups are one
// range together, of what reaches the page:
//
//	floor   the page-size-th newest of the ranges: nothing older can be on the page
//	heads   the newest row of each of the caller's groups, if above the floor;
//	        groups.newest tells most apart without a probe
//	thr     the page-size-th newest head, or the floor
//	wide    the rows above thr of the groups that reach it, a page each
//
// For a caller in very many groups a look at each is the most of it, and when
// the page lies deep, groups.newest tells none apart. So first the range above
// floor of all that is shared with groups is read, and what is shared with the
// caller's is picked (near). Only when that range is long and has too little of
// theirs (whole is 0), the groups are looked at.
//
// Nothing of it depends on how many snapshots there are. A plain union of 500
// groups, or one predicate over all grants ordered by time, costs 10 to 1000
// times as much.

// shape tells listings apart whose SQL differs.
type shape struct {
	kinds  string // of the caller's own audiences that are merged
	groups bool   // merge the caller's groups too
	target bool
	typ    bool
	size   int
}

// The kinds of audience of which a caller has at most one each.
const (
	kindsMember   = "024"
	kindsAdmin    = "124" // an admin's own audience and groups add nothing
	kindsShared   = "24"
	kindsMine     = "0"
	kindsReceived = "4"
)

// fewGroups is how many groups are merged as a range each. PostgreSQL starts
// and ends a range for more than what looking at all of them together costs.
func fewGroups(pg bool) int {
	if pg {
		return 0
	}
	return 8
}

func shapeOf(c snap.Caller, v choice, n int) shape {
	sh := shape{target: v.target != 0, typ: v.typ != "", size: n}
	for _, size := range []int{2, 11, defaultLimit + 1, maxLimit + 1} {
		if n <= size {
			sh.size = size
			break
		}
	}
	switch {
	case v.filter == snap.FilterShared:
		sh.kinds = kindsShared
	case v.filter == snap.FilterMine:
		sh.kinds = kindsMine
	case v.filter == snap.FilterReceived:
		sh.kinds = kindsReceived
	case c.User == nil || c.Role.IsAdmin():
		sh.kinds = kindsAdmin
	default:
		sh.kinds, sh.groups = kindsMember, true
	}
	return sh
}

// listing returns the statement of a shape. Its parameters are those of
// [Store.viewer], then $5 the key below which the page begins, then the target
// and the type if the shape has them.
func (s *Store) listing(sh shape) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.listings[sh]
	if !ok {
		text = listingText(sh, s.pg)
		s.listings[sh] = text
	}
	return text
}

// listingArgs returns the arguments of a listing's statement.
func (s *Store) listingArgs(c snap.Caller, sh shape, v choice, before int64) []any {
	args := append(s.viewer(c), before)
	if sh.target {
		args = append(args, v.target)
	}
	if sh.typ {
		args = append(args, string(v.typ))
	}
	return args
}

func listingText(sh shape, pg bool) string {
	var b strings.Builder
	b.WriteString("WITH ")
	ranges := sh.ranges(pg)
	if sh.groups {
		b.WriteString(sh.groupsText(pg))
		ranges = append(ranges, sh.ordered("SELECT DISTINCT id, 0 AS shared, CAST(NULL AS bigint) AS received FROM wide", "id", pg))
	}
	b.WriteString("ids AS (" + sh.page(ranges) + ")")
	shared := "ids.shared"
	if sh.kinds == kindsMine {
		shared = sharedHere
	}
	b.WriteString("\nSELECT " + snapshotColumns + ", " + shared + ", ids.received\nFROM ids CROSS JOIN ")
	if pg { // pinned, else the planner may turn the join around
		b.WriteString("LATERAL (SELECT * FROM snapshots p WHERE p.key = ids.id OFFSET 0) AS s\n" +
			"LEFT JOIN LATERAL (SELECT * FROM users x WHERE x.id = s.owner_id AND s.org_id = $3 OFFSET 0) AS u ON true")
	} else {
		b.WriteString("snapshots s LEFT JOIN users u ON u.id = s.owner_id AND s.org_id = $3 WHERE s.key = ids.id")
	}
	return b.String()
}

// page merges ranges: the newest page of them, each snapshot once. Both databases
// read ordered ranges by turns, so little more than the page is read. A range has
// a snapshot once, so the limit is no less than the page needs of them together.
func (sh shape) page(ranges []string) string {
	return fmt.Sprintf(`
  SELECT id, max(shared) AS shared, max(received) AS received FROM (
  %s
  ORDER BY id DESC LIMIT %d) AS x GROUP BY id ORDER BY id DESC LIMIT %d`, strings.Join(ranges, "\n  UNION ALL\n  "), len(ranges)*sh.size, sh.size)
}

// ranges are what is granted to each of the caller's own audiences, and to their
// first few groups.
func (sh shape) ranges(pg bool) (all []string) {
	for _, kind := range sh.kinds {
		all = append(all, sh.oneRange(kind, "", pg))
	}
	if sh.groups {
		for i := range fewGroups(pg) {
			all = append(all, sh.oneRange('3', fmt.Sprintf(" ORDER BY m.audience LIMIT 1 OFFSET %d", i), pg))
		}
	}
	return all
}

// oneRange is what is granted to the caller's audience of a kind.
func (sh shape) oneRange(kind rune, which string, pg bool) string {
	shared, received := "0", "CAST(NULL AS bigint)"
	switch kind {
	case '2':
		shared = "1"
	case '4':
		received = "coalesce(g.expires_at, 0)"
	}
	text := fmt.Sprintf("SELECT g.snapshot AS id, %s AS shared, %s AS received FROM grants g\n"+
		"    WHERE g.audience = (SELECT m.audience FROM membership m WHERE m.principal = $1 AND m.kind = %c%s)\n"+
		"    AND g.snapshot < $5 AND %s%s", shared, received, kind, which, liveGrant, sh.where())
	return sh.ordered(text, "g.snapshot", pg)
}

// ordered is a range of which a page is read, newest first. PostgreSQL must be
// told so here; SQLite knows it from the order of all, and would sort.
func (sh shape) ordered(text, by string, pg bool) string {
	if !pg {
		return text
	}
	return fmt.Sprintf("SELECT * FROM (%s ORDER BY %s DESC LIMIT %d) AS r", text, by, sh.size)
}

// groupsText is the part for the caller's further groups.
func (sh shape) groupsText(pg bool) string {
	text, near := groupsSQLite, nearSQLite
	if pg {
		text, near = groupsPostgres, nearPostgres
	}
	if sh.target || sh.typ { // of one target or type the range would be too long too often
		near = noneNear
	}
	text = strings.NewReplacer("{near}", near, "{page}", sh.page(sh.ranges(pg)), "{few}", fmt.Sprint(fewGroups(pg))).Replace(text)
	return strings.NewReplacer("{where}", liveGrant+sh.where(), "{size}", fmt.Sprint(sh.size), "{last}", fmt.Sprint(sh.size-1)).Replace(text)
}

// liveGrant is snap.Grant.Live in SQL.
const liveGrant = "(g.expires_at IS NULL OR g.expires_at > $2)"

// where returns the conditions on what the grants' indexes know.
func (sh shape) where() string {
	switch {
	case sh.target && sh.typ:
		return " AND g.target_id = $6 AND g.type = $7"
	case sh.target:
		return " AND g.target_id = $6"
	case sh.typ:
		return " AND g.type = $6"
	}
	return ""
}

// groupsPostgres is the groups' part of the merge.
const groupsPostgres = `further AS MATERIALIZED (
  SELECT m.audience AS a FROM membership m WHERE m.principal = $1 AND m.kind = 3 ORDER BY m.audience LIMIT 1 OFFSET {few}),
base AS MATERIALIZED (
  SELECT (SELECT CASE WHEN count(*) = {size} THEN min(id) ELSE 0 END FROM ({page}) AS p) AS t FROM further),
{near},
heads AS MATERIALIZED (
  SELECT m.audience AS a, h.snapshot AS h FROM further CROSS JOIN whole CROSS JOIN base CROSS JOIN membership m
  CROSS JOIN LATERAL (SELECT 1 FROM groups n WHERE n.id = m.audience >> 3 AND n.newest >= base.t OFFSET 0) AS n
  CROSS JOIN LATERAL (SELECT g.snapshot FROM grants g WHERE g.audience = m.audience AND g.snapshot < $5 AND g.snapshot >= base.t
    AND {where} ORDER BY g.snapshot DESC LIMIT 1) AS h
  WHERE whole.x = 0 AND m.principal = $1 AND m.kind = 3 AND m.audience >= further.a),
thr AS MATERIALIZED (
  SELECT greatest(base.t, coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads) AS d ORDER BY h DESC LIMIT 1 OFFSET {last}), 0)) AS t FROM base),
wide AS MATERIALIZED (
  SELECT r.snapshot AS id FROM thr CROSS JOIN heads CROSS JOIN LATERAL (
    SELECT g.snapshot FROM grants g WHERE g.audience = heads.a AND g.snapshot <= heads.h AND g.snapshot >= thr.t
    AND {where} ORDER BY g.snapshot DESC LIMIT {size}) AS r
  WHERE heads.h >= thr.t UNION ALL SELECT id FROM near),
`

// groupsSQLite is the same without LATERAL: low is what the page cannot reach
// below because one group alone fills it.
const groupsSQLite = `further(a) AS MATERIALIZED (
  SELECT m.audience FROM membership m WHERE m.principal = $1 AND m.kind = 3 ORDER BY m.audience LIMIT 1 OFFSET {few}),
base(t) AS MATERIALIZED (
  SELECT (SELECT CASE WHEN count(*) = {size} THEN min(id) ELSE 0 END FROM ({page})) FROM further),
{near},
heads(a, h) AS MATERIALIZED (
  SELECT m.audience, (SELECT g.snapshot FROM grants g WHERE g.audience = m.audience AND g.snapshot < $5 AND g.snapshot >= base.t
    AND {where} ORDER BY g.snapshot DESC LIMIT 1)
  FROM further CROSS JOIN whole CROSS JOIN base CROSS JOIN membership m CROSS JOIN groups n
  WHERE whole.x = 0 AND m.principal = $1 AND m.kind = 3 AND m.audience >= further.a AND n.id = m.audience >> 3 AND n.newest >= base.t),
thr(t) AS MATERIALIZED (
  SELECT max(base.t, coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads WHERE h IS NOT NULL) ORDER BY h DESC LIMIT 1 OFFSET {last}), 0)) FROM base),
top(a, h, c) AS MATERIALIZED (
  SELECT a, h, coalesce((SELECT g.snapshot FROM grants g WHERE g.audience = heads.a AND g.snapshot <= heads.h AND g.snapshot >= thr.t
    AND {where} ORDER BY g.snapshot DESC LIMIT 1 OFFSET {last}), thr.t)
  FROM thr CROSS JOIN heads WHERE heads.h >= thr.t),
low(c) AS MATERIALIZED (SELECT coalesce(max(c), 0) FROM top),
wide(id) AS MATERIALIZED (
  SELECT g.snapshot FROM low CROSS JOIN top CROSS JOIN grants g
  WHERE top.h >= low.c AND g.audience = top.a AND g.snapshot BETWEEN low.c AND top.h AND {where}
  UNION ALL SELECT id FROM near),
`

// The range of what is shared with groups: it is read for callers in more than
// 64 of them, and at most 512 rows of it. It has all of the page when it ends
// before that, or when a page's worth of it is the caller's.
const (
	nearPostgres = `many AS MATERIALIZED (
  SELECT count(*) AS x FROM (SELECT 1 FROM membership m WHERE m.principal = $1 AND m.kind = 3 LIMIT 1 OFFSET 64) AS d),
range AS MATERIALIZED (
  SELECT r.id, r.a FROM many CROSS JOIN base CROSS JOIN LATERAL (
    SELECT g.snapshot AS id, g.audience AS a FROM grants g WHERE g.audience & 7 = 3 AND g.snapshot < $5 AND g.snapshot >= base.t
    AND ` + liveGrant + ` ORDER BY g.snapshot DESC LIMIT 512) AS r
  WHERE many.x = 1),
near AS MATERIALIZED (
  SELECT DISTINCT r.id FROM range r CROSS JOIN LATERAL (
    SELECT 1 FROM membership m WHERE m.principal = $1 AND m.kind = 3 AND m.audience = r.a OFFSET 0) AS m),
whole AS MATERIALIZED (
  SELECT CASE WHEN many.x = 1 AND ((SELECT count(*) FROM range) < 512 OR (SELECT count(*) FROM near) >= {size}) THEN 1 ELSE 0 END AS x FROM many)`

	nearSQLite = `many(x) AS MATERIALIZED (
  SELECT count(*) FROM (SELECT 1 FROM membership m WHERE m.principal = $1 AND m.kind = 3 LIMIT 1 OFFSET 64)),
range(id, a) AS MATERIALIZED (
  SELECT g.snapshot, g.audience FROM grants g
  WHERE g.audience & 7 = 3 AND g.snapshot < $5 AND g.snapshot >= (SELECT base.t FROM many, base WHERE many.x = 1)
  AND ` + liveGrant + ` ORDER BY g.snapshot DESC LIMIT 512),
near(id) AS MATERIALIZED (
  SELECT DISTINCT r.id FROM range r CROSS JOIN membership m WHERE m.principal = $1 AND m.kind = 3 AND m.audience = r.a),
whole(x) AS MATERIALIZED (
  SELECT CASE WHEN many.x = 1 AND ((SELECT count(*) FROM range) < 512 OR (SELECT count(*) FROM near) >= {size}) THEN 1 ELSE 0 END FROM many)`

	noneNear = `near AS (SELECT 0 AS id WHERE 1 = 0), whole AS MATERIALIZED (SELECT 0 AS x)`
)
