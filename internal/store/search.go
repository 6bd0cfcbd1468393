package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"snap"
)

// The cost of a search must not depend on the number of snapshots, including those that match but
// that the caller is not allowed to see. A range is the list of the caller's own grants for one
// target, owner, label, day or time. Each search word selects ranges: those of targets, owners and
// labels that have a word beginning with the search word, and those of days and times that begin
// with it. Each range is ordered newest first, and only a little more than a page of it is read
// (keysText). The ranges of several words are read together, only as far as the word with the
// fewest matches requires (intersect).

const (
	fewCandidates = 5000 // IDs with the same beginning that are checked one by one
	maxValues     = 5000 // targets, owners or labels whose ranges are read; with more, the search reads the listing
	fewValues     = 64   // with more values, much of the listing matches, so the listing is tried first
	maxSources    = 8    // words of a search whose ranges are read; the other words are compared with each snapshot
)

// search returns the n newest snapshots that match the words of q and the conditions of v, and
// whose keys are less than the parameter before. If q is blank, every snapshot matches. If it is
// not blank but contains no words, none matches.
func (s *Store) search(ctx context.Context, c snap.Caller, v selection, q string, before int64, n int) ([]snap.Snapshot,
	error) {
	words := snap.SearchWords(q)
	switch {
	case len(words) > 0:
	case strings.TrimSpace(q) != "":
		return nil, nil
	case !v.needsSearch():
		return s.list(ctx, c, v, before, n)
	}
	chosen, err := s.matcher(ctx, c, v)
	if err != nil {
		return nil, err
	}
	fits := func(sn snap.Snapshot) bool { return (len(words) == 0 || Matches(sn, q)) && chosen(sn) }
	if done, err := s.indexSome(ctx); !done {
		if ctx.Err() != nil {
			return nil, err
		}
		// While rows are not yet indexed, after an upgrade or on a full disk, the slower scan gives
		// correct results.
		return s.scanMatching(ctx, c, v, before, n, fits)
	}
	sources := s.extraSources(c, v)
	for _, w := range words[:min(len(words), maxSources)] {
		source, err := s.wordSource(ctx, c, v, w)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	if v.target != 0 || v.typ != "" {
		sources = append(sources, s.listSource(c, v))
	}
	return s.intersect(ctx, c, sources, max(v.since-1, 0), before, n, fits)
}

// extraSources returns the sources for the conditions that the listing's statement does not check.
func (s *Store) extraSources(c snap.Caller, v selection) (all []source) {
	if v.owner.text != "" {
		all = append(all, s.ownerSource(c, v))
	}
	if v.expiresSoon {
		all = append(all, func(ctx context.Context, before int64, n int) ([]int64, error) {
			return s.expiringSoon(ctx, c, before, n)
		})
	}
	return all
}

// source returns the keys of the n newest visible snapshots that match a condition, newest first.
// It considers only keys that are less than the parameter before.
type source func(ctx context.Context, before int64, n int) ([]int64, error)

// intersect returns the n newest snapshots that every source has, that fit, and whose keys are less
// than the parameter before. after is the key at which it stops reading. In each round, the source
// whose page reaches furthest back supplies the candidates. The next round begins at the older of
// two points: the end of that page, or the newest key that every source can still have.
func (s *Store) intersect(ctx context.Context, c snap.Caller, sources []source, after, before int64, n int,
	fits func(snap.Snapshot) bool) (found []snap.Snapshot, err error) {
	size := n
	if len(sources) > 1 {
		size = maxLimit + 1
	}
	for {
		newest, end := int64(math.MaxInt64), int64(math.MaxInt64)
		var keys []int64
		for _, next := range sources {
			page, err := next(ctx, before, size)
			if err != nil || len(page) == 0 {
				return found, err
			}
			last := page[len(page)-1]
			if len(page) < size {
				last = 0
			}
			if newest = min(newest, page[0]); last < end {
				keys, end = page, last
			}
		}
		all, err := s.byKeys(ctx, c, slices.DeleteFunc(keys, func(key int64) bool { return key > newest }))
		if err != nil {
			return nil, err
		}
		for _, sn := range all {
			if fits(sn) {
				found = append(found, sn)
			}
		}
		if len(found) >= n {
			return found[:n], nil
		}
		if before = min(end, newest+1); before <= after {
			return found, nil
		}
	}
}

// byKeys returns the snapshots with these keys that the caller may see.
func (s *Store) byKeys(ctx context.Context, c snap.Caller, keys []int64) ([]snap.Snapshot, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return s.snapshots(ctx, c, selectOne+`s.key IN (SELECT v FROM `+s.each("$5")+` AS e) AND `+visible,
		append(s.viewerArgs(c), jsonArray(keys))...)
}

func keysOf(all []snap.Snapshot) (keys []int64) {
	for _, sn := range all {
		keys = append(keys, sn.Key)
	}
	return keys
}

// newestKeys returns the n largest keys, each once, newest first. It changes keys.
func newestKeys(keys []int64, n int) []int64 {
	slices.SortFunc(keys, func(a, b int64) int { return cmp.Compare(b, a) })
	keys = slices.Compact(keys)
	return keys[:min(n, len(keys))]
}

// listSource returns the listing itself as a source.
func (s *Store) listSource(c snap.Caller, v selection) source {
	return func(ctx context.Context, before int64, n int) ([]int64, error) {
		all, err := s.list(ctx, c, v, before, n)
		return keysOf(all), err
	}
}

// scanSource returns a source that scans the listing for the snapshots that fit.
func (s *Store) scanSource(c snap.Caller, v selection, fits func(snap.Snapshot) bool) source {
	return func(ctx context.Context, before int64, n int) ([]int64, error) {
		all, err := s.scanMatching(ctx, c, v, before, n, fits)
		return keysOf(all), err
	}
}

// condition restricts one column of grants to a list of values, or to the values between two
// bounds.
type condition struct {
	column   string
	values   []int64
	from, to int64
}

func (s *Store) wordSource(ctx context.Context, c snap.Caller, v selection, word string) (source, error) {
	conditions, count, err := s.conditionsOf(ctx, c, word)
	if err != nil {
		return nil, err
	}
	ids, isID := snap.SearchID(word)
	var withID []int64
	if isID {
		withID, err = collect(ctx, s, `SELECT key FROM snapshots WHERE id >= $1 AND id < $2 LIMIT `+
			strconv.Itoa(fewCandidates+1), scanOne[int64], ids, ids+lastRune)
		if err != nil {
			return nil, err
		}
	}
	if count > maxValues || len(withID) > fewCandidates {
		return s.scanSource(c, v, func(sn snap.Snapshot) bool { return Matches(sn, word) }), nil
	}
	return func(ctx context.Context, before int64, n int) (keys []int64, err error) {
		if count > fewValues {
			page, err := s.list(ctx, c, v, before, maxLimit+1)
			if err != nil {
				return nil, err
			}
			page = slices.DeleteFunc(page, func(sn snap.Snapshot) bool { return !Matches(sn, word) })
			if len(page) >= n {
				return keysOf(page[:n]), nil
			}
		}
		for _, f := range conditions {
			more, err := s.conditionKeys(ctx, c, v, f, before, n)
			if err != nil {
				return nil, err
			}
			keys = append(keys, more...)
		}
		if len(withID) > 0 {
			all, err := s.byKeys(ctx, c, withID)
			if err != nil {
				return nil, err
			}
			keys = append(keys, slices.DeleteFunc(keysOf(all), func(key int64) bool { return key >= before })...)
		}
		return newestKeys(keys, n), nil
	}, nil
}

// lastRune sorts after every character that can occur in a word.
const lastRune = "\U0010ffff"

// conditionsOf returns the conditions whose ranges a word selects, and roughly how many values they
// have.
func (s *Store) conditionsOf(ctx context.Context, c snap.Caller, word string) (all []condition, count int, err error) {
	for _, kind := range []struct {
		kind   int
		org    int64
		column string
	}{{wordsOfTarget, c.Org.ID, "target_id"}, {wordsOfOwner, c.Org.ID, "owner_id"}, {wordsOfLabel, 0, "label_id"}} {
		ids, err := collect(ctx, s, `SELECT id FROM words WHERE org_id = $1 AND kind = $2 AND word >= $3 AND word < $4
			LIMIT `+strconv.Itoa(maxValues+1), scanOne[int64], kind.org, kind.kind, word, word+lastRune)
		if err != nil {
			return nil, 0, err
		}
		count += len(ids) // more than maxValues if the limit cut them off
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) > 0 {
			all = append(all, condition{column: kind.column, values: ids})
		}
	}
	for column, digits := range map[string]int{"named_day": 8, "named_time": 6} {
		from, to, ok := digitsFrom(word, digits)
		if !ok {
			continue
		}
		all = append(all, condition{column: column, from: from, to: to})
		if len(word) < digits-2 {
			count += fewValues + 1
		}
	}
	return all, count, nil
}

// digitsFrom returns the smallest and the largest number that consist of a leading 1 and this many
// digits that begin with word. ok is false if word is longer or has other characters.
func digitsFrom(word string, digits int) (from, to int64, ok bool) {
	if len(word) > digits || strings.Trim(word, "0123456789") != "" {
		return 0, 0, false
	}
	rest := digits - len(word)
	from, err := strconv.ParseInt("1"+word+strings.Repeat("0", rest), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	to, err = strconv.ParseInt("1"+word+strings.Repeat("9", rest), 10, 64)
	return from, to, err == nil
}

// conditionKeys returns the keys of the n newest snapshots on which the caller has a grant that
// meets this condition, newest first. It considers only keys that are less than the parameter
// before.
func (s *Store) conditionKeys(ctx context.Context, c snap.Caller, v selection, f condition, before int64,
	n int) ([]int64, error) {
	sh := s.shapeOf(c, selection{filter: v.filter}, n)
	args := []any{c.Principal(), s.now().UnixMilli(), before}
	if f.values != nil {
		args = append(args, jsonArray(f.values))
	} else {
		args = append(args, f.from, f.to)
	}
	keys, err := collect(ctx, s, s.keysText(sh, f), scanOne[int64], args...)
	return keys[:min(n, len(keys))], err
}

// keysText returns the statement of conditionKeys. Its parameters are $1 the principal, $2 the
// current time, $3 the key below which the page begins, and either $4 the values as a JSON array or
// $4 and $5 the bounds. For each audience and value, the statement reads the newest snapshot
// (heads). With a page of n snapshots, nothing older than the n-th newest of these can be on the
// page (thr). From each range that reaches above this limit, the statement reads at most a page
// (wide). For bounds, it first looks up the values that exist for each audience, one by one
// (pairs), without reading their grants.
func (s *Store) keysText(sh shape, f condition) string {
	pairs := `SELECT aud.a AS a, e.v AS d FROM aud CROSS JOIN ` + s.each("$4") + ` AS e`
	if f.values == nil {
		pairs = `SELECT aud.a AS a, (` + nextValue + ` g.audience = aud.a AND g.{column} >= $4 AND g.{column} <= $5
    ORDER BY g.{column} DESC LIMIT 1) AS d FROM aud
  UNION ALL SELECT r.a, (` + nextValue + ` g.audience = r.a AND g.{column} >= $4 AND g.{column} < r.d
    ORDER BY g.{column} DESC LIMIT 1) FROM pairs r WHERE r.d IS NOT NULL`
	}
	text := keysSQLite
	if s.dialect == postgres {
		text = keysPostgres
	}
	return strings.NewReplacer("{kinds}", sh.scope.kindList(), "{column}", f.column,
		"{size}", strconv.Itoa(sh.size), "{last}", strconv.Itoa(sh.size-1)).Replace(
		strings.NewReplacer("{pairs}", pairs, "{of}", grantsOf).Replace(text))
}

const (
	nextValue = `SELECT g.{column} FROM grants g WHERE g.{column} > 0 AND`
	// grantsOf selects the live grants g of a pair r.
	grantsOf = `g.audience = r.a AND g.{column} = r.d AND g.{column} > 0 AND ` + liveGrant

	keysSQLite = `WITH RECURSIVE aud(a) AS MATERIALIZED (
  SELECT m.audience FROM membership m WHERE m.principal = $1 AND m.kind IN ({kinds})),
pairs(a, d) AS ({pairs}),
heads(a, d, h) AS MATERIALIZED (
  SELECT r.a, r.d, (SELECT g.snapshot FROM grants g WHERE {of} AND g.snapshot < $3 ORDER BY g.snapshot DESC LIMIT 1)
  FROM pairs r WHERE r.d IS NOT NULL),
thr(t) AS MATERIALIZED (
  SELECT coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads WHERE h IS NOT NULL)
    ORDER BY h DESC LIMIT 1 OFFSET {last}), 0)),
top(a, d, h, c) AS MATERIALIZED (
  SELECT r.a, r.d, r.h, coalesce((SELECT g.snapshot FROM grants g WHERE {of} AND g.snapshot <= r.h
    AND g.snapshot >= thr.t ORDER BY g.snapshot DESC LIMIT 1 OFFSET {last}), thr.t)
  FROM thr CROSS JOIN heads r WHERE r.h >= thr.t),
low(c) AS MATERIALIZED (SELECT coalesce(max(c), 0) FROM top),
wide(id) AS MATERIALIZED (
  SELECT g.snapshot FROM low CROSS JOIN top r CROSS JOIN grants g
  WHERE r.h >= low.c AND {of} AND g.snapshot BETWEEN low.c AND r.h)
SELECT DISTINCT id FROM wide ORDER BY id DESC LIMIT {size}`

	keysPostgres = `WITH RECURSIVE aud AS MATERIALIZED (
  SELECT m.audience AS a FROM membership m WHERE m.principal = $1 AND m.kind IN ({kinds})),
pairs AS ({pairs}),
heads AS MATERIALIZED (
  SELECT r.a, r.d, h.snapshot AS h FROM pairs r CROSS JOIN LATERAL (
    SELECT g.snapshot FROM grants g WHERE {of} AND g.snapshot < $3 ORDER BY g.snapshot DESC LIMIT 1) AS h),
thr AS MATERIALIZED (
  SELECT coalesce((SELECT h FROM (SELECT DISTINCT h FROM heads) AS d ORDER BY h DESC LIMIT 1 OFFSET {last}), 0) AS t),
wide AS MATERIALIZED (
  SELECT w.snapshot AS id FROM thr CROSS JOIN heads r CROSS JOIN LATERAL (
    SELECT g.snapshot FROM grants g WHERE {of} AND g.snapshot <= r.h AND g.snapshot >= thr.t
    ORDER BY g.snapshot DESC LIMIT {size}) AS w
  WHERE r.h >= thr.t)
SELECT DISTINCT id FROM wide ORDER BY id DESC LIMIT {size}`
)

// byPrefix returns the n newest visible snapshots whose ID begins with the prefix of q, that match
// its other conditions, and whose keys are less than the parameter before. It first counts the
// snapshots with this prefix, of all organizations. If there are few, it checks them one by one. If
// there are many, it scans the caller's listing, which soon fills a page because IDs are random.
func (s *Store) byPrefix(ctx context.Context, c snap.Caller, v selection, q Query, before int64,
	n int) ([]snap.Snapshot, error) {
	chosen, err := s.matcher(ctx, c, v)
	if err != nil {
		return nil, err
	}
	fits := func(sn snap.Snapshot) bool { return chosen(sn) && (q.Q == "" || Matches(sn, q.Q)) }
	var count int
	prefix, end := q.IDPrefix, q.IDPrefix+lastRune
	err = s.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE id >= $1 AND id < $2 LIMIT `+
		strconv.Itoa(fewCandidates+1)+`) AS c`, prefix, end).Scan(&count)
	if err != nil || count == 0 {
		return nil, err
	}
	if count > fewCandidates {
		return s.scanMatching(ctx, c, v, before, n, func(sn snap.Snapshot) bool {
			return strings.HasPrefix(sn.ID, prefix) && fits(sn)
		})
	}
	all, err := s.snapshots(ctx, c, selectOne+`s.id >= $5 AND s.id < $6 AND s.key < $7 AND `+visible,
		append(s.viewerArgs(c), prefix, end, before)...)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(sn snap.Snapshot) bool { return !fits(sn) })
	return all[:min(n, len(all))], nil
}

// byIDs returns the n newest visible snapshots that have one of the IDs of q, match its other
// conditions, and have a key less than the parameter before. It looks up each ID by itself, because
// [Store.Snapshot] does the same work for a hidden snapshot and for an ID that never existed.
func (s *Store) byIDs(ctx context.Context, c snap.Caller, v selection, q Query, before int64,
	n int) (found []snap.Snapshot, err error) {
	chosen, err := s.matcher(ctx, c, v)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.IDs))) {
		sn, err := s.Snapshot(ctx, c, id)
		switch {
		case errors.Is(err, snap.ErrNotFound):
		case err != nil:
			return nil, err
		case sn.Key < before && chosen(sn) && strings.HasPrefix(id, q.IDPrefix) && (q.Q == "" || Matches(sn, q.Q)):
			found = append(found, sn)
		}
	}
	newestFirst(found)
	return found[:min(n, len(found))], nil
}

// matcher returns a function that reports whether v selects a snapshot that the caller may see.
func (s *Store) matcher(ctx context.Context, c snap.Caller, v selection) (func(snap.Snapshot) bool, error) {
	var target string
	if v.target != 0 {
		if err := s.row(ctx, `SELECT name FROM targets WHERE id = $1`, v.target).Scan(&target); err != nil {
			return nil, err
		}
	}
	soon := map[int64]bool{}
	if v.expiresSoon {
		keys, err := s.expiringSoon(ctx, c, v.until, math.MaxInt)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			soon[key] = true
		}
	}
	return func(sn snap.Snapshot) bool {
		return FilterMatches(c, sn, v.filter) && (v.target == 0 || sn.Target == target) &&
			(v.typ == "" || sn.Type == v.typ) && v.owner.matches(sn) && (!v.expiresSoon || soon[sn.Key]) &&
			sn.Key >= v.since && sn.Key < v.until
	}, nil
}

// FilterMatches reports whether a filter selects a snapshot that the caller sees.
func FilterMatches(c snap.Caller, sn snap.Snapshot, f snap.Filter) bool {
	switch f {
	case snap.FilterShared:
		return sn.Shared
	case snap.FilterReceived:
		return sn.Received
	case snap.FilterMine:
		return c.User != nil && sn.Owner != nil && sn.Owner.ID == c.User.ID
	}
	return true
}

// scanMatching scans the listing until it has n matching snapshots.
func (s *Store) scanMatching(ctx context.Context, c snap.Caller, v selection, before int64, n int,
	fits func(snap.Snapshot) bool) (chosen []snap.Snapshot, err error) {
	for {
		page, err := s.list(ctx, c, v, before, maxLimit+1)
		if err != nil {
			return nil, err
		}
		for _, sn := range page {
			if fits(sn) {
				chosen = append(chosen, sn)
			}
		}
		if len(chosen) >= n {
			return chosen[:n], nil
		}
		if len(page) <= maxLimit {
			return chosen, nil
		}
		before = page[len(page)-1].Key
	}
}
