package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"snap"
)

// This file writes the SQL of the listing.
//
// A caller may see the snapshots of all their audiences. Each audience is an index range of grants,
// ordered newest first. So the statement merges these ranges, reads each only as far as the page
// needs, and returns each snapshot once (page).
//
// Each of the caller's own audiences (user, admins, members, recipients, keys) is one range. On
// SQLite, so is each of their first few groups. All other groups are read together, as far as they
// reach the page:
//
//	base    the page-size-th newest row of the ranges: nothing older can be on the page
//	heads   the newest row of each of the caller's groups, if it is not older than base;
//	        groups.newest excludes most groups without reading their grants
//	thr     the page-size-th newest head, or base if that is newer
//	wide    for each group whose head is not older than thr: its rows not older than thr, at most
//	        a page of them
//
// For a caller in very many groups, reading each group is most of the cost, and far down a listing,
// groups.newest excludes no group. So the statement first reads, down to base, the range of
// everything that is shared with any group, and picks the snapshots that are shared with the
// caller's groups (near). It reads the groups one by one only when that range is long and has too
// few snapshots of the caller's groups (whole is 0).
//
// The cost does not depend on how many snapshots there are.

// shape holds everything by which the SQL of one listing can differ from that of another.
type shape struct {
	dialect dialect
	scope   scope
	target  bool
	typ     bool
	size    int
}

// scope says which of the caller's audiences a listing merges.
type scope int

const (
	scopeMember scope = iota // all audiences of a member or viewer, including their groups
	scopeAdmin               // admins, members and recipients, for an admin or a key with the scope private
	scopeShared
	scopeMine
	scopeReceived
	scopeKey // all audiences of an organization-level key without the scope private
)

// kinds returns the kinds of audience that the scope includes, except groups, of which a caller can
// have several.
func (sc scope) kinds() []snap.AudienceKind {
	switch sc {
	case scopeAdmin:
		return []snap.AudienceKind{snap.KindAdmins, snap.KindMembers, snap.KindRecipients}
	case scopeShared:
		return []snap.AudienceKind{snap.KindMembers, snap.KindRecipients}
	case scopeMine:
		return []snap.AudienceKind{snap.KindUser}
	case scopeReceived:
		return []snap.AudienceKind{snap.KindRecipients}
	case scopeKey:
		return []snap.AudienceKind{snap.KindKeys, snap.KindMembers, snap.KindRecipients}
	}
	return []snap.AudienceKind{snap.KindUser, snap.KindMembers, snap.KindRecipients}
}

// kindList returns the kinds of audience that the scope includes, with groups, as a list in SQL.
func (sc scope) kindList() string {
	var list []string
	for _, k := range sc.kinds() {
		list = append(list, strconv.Itoa(int(k)))
	}
	if sc == scopeMember {
		list = append(list, strconv.Itoa(int(snap.KindGroup)))
	}
	return strings.Join(list, ", ")
}

// Limits for reading the range of everything that is shared with groups.
const (
	manyGroups = 64  // the range is read for callers in more groups than this
	nearRows   = 512 // the maximum number of rows that are read from it
)

// fewGroups returns how many groups are each merged as a range of their own. On PostgreSQL, a range
// costs more than reading all groups together.
func (sh shape) fewGroups() int {
	if sh.dialect == postgres {
		return 0
	}
	return 8
}

func (s *Store) shapeOf(c snap.Caller, v selection, n int) shape {
	sh := shape{dialect: s.dialect, target: v.target != 0, typ: v.typ != "", size: n}
	for _, size := range []int{2, 11, defaultLimit + 1, maxLimit + 1} {
		if n <= size {
			sh.size = size
			break
		}
	}
	switch {
	case v.filter == snap.FilterShared:
		sh.scope = scopeShared
	case v.filter == snap.FilterMine:
		sh.scope = scopeMine
	case v.filter == snap.FilterReceived:
		sh.scope = scopeReceived
	case slices.Contains(c.Audiences(), snap.AudienceOf(snap.KindAdmins, c.Org.ID)):
		sh.scope = scopeAdmin
	case c.User == nil:
		sh.scope = scopeKey
	default:
		sh.scope = scopeMember
	}
	return sh
}

// listing returns the SQL statement for a shape. Its parameters are those of [Store.viewerArgs],
// then $5, the key below which the page begins, then the target and the type if the shape has them.
func (s *Store) listing(sh shape) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.listings[sh]
	if !ok {
		text = sh.text()
		s.listings[sh] = text
	}
	return text
}

func (s *Store) listingArgs(c snap.Caller, sh shape, v selection, before int64) []any {
	args := append(s.viewerArgs(c), before)
	if sh.target {
		args = append(args, v.target)
	}
	if sh.typ {
		args = append(args, string(v.typ))
	}
	return args
}

func (sh shape) text() string {
	ranges, groups := sh.ranges(), ""
	if sh.scope == scopeMember {
		groups = sh.groupsText()
		const wide = "SELECT DISTINCT id, CAST(NULL AS bigint) AS shared, CAST(NULL AS bigint) AS received FROM wide"
		ranges = append(ranges, sh.ordered(wide, "id"))
	}
	shared := "ids.shared"
	if sh.scope == scopeMine {
		shared = sharedHere
	}
	rows := "snapshots s LEFT JOIN users u ON u.id = s.owner_id AND s.org_id = $3 WHERE s.key = ids.id"
	if sh.dialect == postgres { // LATERAL keeps the planner from reversing the join
		rows = "LATERAL (SELECT * FROM snapshots p WHERE p.key = ids.id OFFSET 0) AS s\n" +
			"LEFT JOIN LATERAL (SELECT * FROM users x WHERE x.id = s.owner_id AND s.org_id = $3 OFFSET 0) AS u ON true"
	}
	return "WITH " + groups + "ids AS (" + sh.page(ranges) + ")\n" +
		"SELECT " + snapshotColumns + ", " + shared + ", ids.received\nFROM ids CROSS JOIN " + rows
}

// page returns SQL that merges ranges into their newest page, with each snapshot once. Both
// databases read ordered ranges alternately, so they read little more than the page. No range
// contains a snapshot twice, so the inner limit is large enough for the page.
func (sh shape) page(ranges []string) string {
	return fmt.Sprintf(`
  SELECT id, max(shared) AS shared, max(received) AS received FROM (
  %s
  ORDER BY id DESC LIMIT %d) AS x GROUP BY id ORDER BY id DESC LIMIT %d`,
		strings.Join(ranges, "\n  UNION ALL\n  "), len(ranges)*sh.size, sh.size)
}

// ranges returns SQL for the grants to each of the caller's own audiences, and to their first few
// groups.
func (sh shape) ranges() (all []string) {
	for _, kind := range sh.scope.kinds() {
		all = append(all, sh.oneRange(kind, ""))
	}
	if sh.scope == scopeMember {
		for i := range sh.fewGroups() {
			all = append(all, sh.oneRange(snap.KindGroup, fmt.Sprintf(" ORDER BY m.audience LIMIT 1 OFFSET %d", i)))
		}
	}
	return all
}

// oneRange returns SQL for the grants to the caller's audience of a kind. suffix ends the subquery
// for that audience.
func (sh shape) oneRange(kind snap.AudienceKind, suffix string) string {
	const none, until = "CAST(NULL AS bigint)", "coalesce(g.expires_at, 0)"
	shared, received := none, none
	switch kind {
	case snap.KindMembers:
		shared = until
	case snap.KindRecipients:
		received = until
	}
	text := fmt.Sprintf("SELECT g.snapshot AS id, %s AS shared, %s AS received FROM grants g\n"+
		"    WHERE g.audience = (SELECT m.audience FROM membership m WHERE m.principal = $1 AND m.kind = %d%s)\n"+
		"    AND g.snapshot < $5 AND %s%s", shared, received, kind, suffix, liveGrant, sh.where())
	return sh.ordered(text, "g.snapshot")
}

// ordered returns SQL that reads a page of a range, newest first. PostgreSQL needs the order here.
// SQLite infers it from the outer order, and would sort twice if it were stated here too.
func (sh shape) ordered(text, by string) string {
	if sh.dialect == sqlite {
		return text
	}
	return fmt.Sprintf("SELECT * FROM (%s ORDER BY %s DESC LIMIT %d) AS r", text, by, sh.size)
}

// groupsText returns the part of the statement for the caller's further groups.
func (sh shape) groupsText() string {
	text, near := groupsSQLite, nearSQLite
	if sh.dialect == postgres {
		text, near = groupsPostgres, nearPostgres
	}
	if sh.target || sh.typ { // with a target or type, the range would too often be too long
		near = noneNear
	}
	text = strings.NewReplacer("{near}", near, "{page}", sh.page(sh.ranges())).Replace(text)
	return strings.NewReplacer(
		"{few}", strconv.Itoa(sh.fewGroups()), "{many}", strconv.Itoa(manyGroups), "{rows}", strconv.Itoa(nearRows),
		"{where}", liveGrant+sh.where(), "{size}", strconv.Itoa(sh.size), "{last}", strconv.Itoa(sh.size-1),
	).Replace(text)
}

// liveGrant is snap.Grant.Live in SQL.
const liveGrant = "(g.expires_at IS NULL OR g.expires_at > $2)"

// where returns the conditions on the columns that the grants' indexes have.
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

// groupsPostgres is the part of the merge for groups.
const groupsPostgres = `further AS MATERIALIZED (
  SELECT m.audience AS a FROM membership m WHERE ` + callersGroups + ` ORDER BY m.audience LIMIT 1 OFFSET {few}),
base AS MATERIALIZED (
  SELECT (SELECT CASE WHEN count(*) = {size} THEN min(id) ELSE 0 END FROM ({page}) AS p) AS t FROM further),
{near},
heads AS MATERIALIZED (
  SELECT m.audience AS a, h.snapshot AS h FROM further CROSS JOIN whole CROSS JOIN base CROSS JOIN membership m
  CROSS JOIN LATERAL (SELECT 1 FROM groups n WHERE n.id = m.audience` + subjectOf + ` AND n.newest >= base.t
      OFFSET 0) AS n
  CROSS JOIN LATERAL (SELECT g.snapshot FROM grants g WHERE g.audience = m.audience AND g.snapshot < $5
    AND g.snapshot >= base.t AND {where} ORDER BY g.snapshot DESC LIMIT 1) AS h
  WHERE whole.x = 0 AND ` + callersGroups + ` AND m.audience >= further.a),
thr AS MATERIALIZED (
  SELECT greatest(base.t, coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads) AS d
    ORDER BY h DESC LIMIT 1 OFFSET {last}), 0)) AS t FROM base),
wide AS MATERIALIZED (
  SELECT r.snapshot AS id FROM thr CROSS JOIN heads CROSS JOIN LATERAL (
    SELECT g.snapshot FROM grants g WHERE g.audience = heads.a AND g.snapshot <= heads.h AND g.snapshot >= thr.t
    AND {where} ORDER BY g.snapshot DESC LIMIT {size}) AS r
  WHERE heads.h >= thr.t UNION ALL SELECT id FROM near),
`

// groupsSQLite is groupsPostgres without LATERAL. low is the key below which the page cannot reach,
// because one group alone fills the page.
const groupsSQLite = `further(a) AS MATERIALIZED (
  SELECT m.audience FROM membership m WHERE ` + callersGroups + ` ORDER BY m.audience LIMIT 1 OFFSET {few}),
base(t) AS MATERIALIZED (
  SELECT (SELECT CASE WHEN count(*) = {size} THEN min(id) ELSE 0 END FROM ({page})) FROM further),
{near},
heads(a, h) AS MATERIALIZED (
  SELECT m.audience, (SELECT g.snapshot FROM grants g WHERE g.audience = m.audience AND g.snapshot < $5
    AND g.snapshot >= base.t AND {where} ORDER BY g.snapshot DESC LIMIT 1)
  FROM further CROSS JOIN whole CROSS JOIN base CROSS JOIN membership m CROSS JOIN groups n
  WHERE whole.x = 0 AND ` + callersGroups + ` AND m.audience >= further.a AND n.id = m.audience` + subjectOf + `
      AND n.newest >= base.t),
thr(t) AS MATERIALIZED (
  SELECT max(base.t, coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads WHERE h IS NOT NULL)
    ORDER BY h DESC LIMIT 1 OFFSET {last}), 0)) FROM base),
top(a, h, c) AS MATERIALIZED (
  SELECT a, h, coalesce((SELECT g.snapshot FROM grants g WHERE g.audience = heads.a AND g.snapshot <= heads.h
    AND g.snapshot >= thr.t AND {where} ORDER BY g.snapshot DESC LIMIT 1 OFFSET {last}), thr.t)
  FROM thr CROSS JOIN heads WHERE heads.h >= thr.t),
low(c) AS MATERIALIZED (SELECT coalesce(max(c), 0) FROM top),
wide(id) AS MATERIALIZED (
  SELECT g.snapshot FROM low CROSS JOIN top CROSS JOIN grants g
  WHERE top.h >= low.c AND g.audience = top.a AND g.snapshot BETWEEN low.c AND top.h AND {where}
  UNION ALL SELECT id FROM near),
`

// These parts read the range of everything that is shared with groups. The range suffices for the
// page when it ends before its limit, or when it has a full page of snapshots that the caller may
// see.
const (
	nearPostgres = `many AS MATERIALIZED (
  SELECT count(*) AS x FROM (SELECT 1 FROM membership m WHERE ` + callersGroups + ` LIMIT 1 OFFSET {many}) AS d),
range AS MATERIALIZED (
  SELECT r.id, r.a FROM many CROSS JOIN base CROSS JOIN LATERAL (
    SELECT g.snapshot AS id, g.audience AS a FROM grants g WHERE g.audience` + isGroup + ` AND g.snapshot < $5
        AND g.snapshot >= base.t
    AND ` + liveGrant + ` ORDER BY g.snapshot DESC LIMIT {rows}) AS r
  WHERE many.x = 1),
near AS MATERIALIZED (
  SELECT DISTINCT r.id FROM range r CROSS JOIN LATERAL (
    SELECT 1 FROM membership m WHERE ` + callersGroups + ` AND m.audience = r.a OFFSET 0) AS m),
whole AS MATERIALIZED (
  SELECT CASE WHEN many.x = 1 AND ((SELECT count(*) FROM range) < {rows} OR (SELECT count(*) FROM near) >= {size})
      THEN 1 ELSE 0 END AS x FROM many)`

	nearSQLite = `many(x) AS MATERIALIZED (
  SELECT count(*) FROM (SELECT 1 FROM membership m WHERE ` + callersGroups + ` LIMIT 1 OFFSET {many})),
range(id, a) AS MATERIALIZED (
  SELECT g.snapshot, g.audience FROM grants g
  WHERE g.audience` + isGroup + ` AND g.snapshot < $5 AND g.snapshot >= (SELECT base.t FROM many, base WHERE many.x = 1)
  AND ` + liveGrant + ` ORDER BY g.snapshot DESC LIMIT {rows}),
near(id) AS MATERIALIZED (
  SELECT DISTINCT r.id FROM range r CROSS JOIN membership m WHERE ` + callersGroups + ` AND m.audience = r.a),
whole(x) AS MATERIALIZED (
  SELECT CASE WHEN many.x = 1 AND ((SELECT count(*) FROM range) < {rows} OR (SELECT count(*) FROM near) >= {size})
      THEN 1 ELSE 0 END FROM many)`

	noneNear = `near AS (SELECT 0 AS id WHERE 1 = 0), whole AS MATERIALIZED (SELECT 0 AS x)`
)
