package store

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"snap"
)

// A search, and a look-up by a part of an ID, must not cost more when there
// are more snapshots. Both first ask an index what there is at all, without
// regard to who may see it; if that is little, they look which of it the
// caller may see, and if it is much, so much of what the caller may see fits
// that going through the listing soon fills a page.

const (
	fewCandidates = 500 // rows of an index that are looked at one by one
	fewTargets    = 8   // targets whose listings are merged
)

// fold brings a name into the form in which searches compare it.
func fold(s string) string { return strings.ToLower(norm.NFC.String(strings.TrimSpace(s))) }

// Matches reports whether a search for q finds a snapshot: its target's name
// contains q, or its own name begins with q. Upper and lower case are the same.
func Matches(sn snap.Snapshot, q string) bool {
	q = fold(q)
	return strings.Contains(fold(sn.Target), q) || strings.HasPrefix(fold(sn.Name), q)
}

// search returns the n newest snapshots below a key that match the folded q.
func (s *Store) search(ctx context.Context, c snap.Caller, v choice, q string, before int64, n int) ([]snap.Snapshot,
	error) {
	targets, err := s.targetsLike(ctx, c, q)
	if err != nil {
		return nil, err
	}
	if len(targets) > fewTargets {
		return s.filtered(ctx, c, v, before, n, func(sn snap.Snapshot) bool { return Matches(sn, q) })
	}
	all, err := s.byPrefix(ctx, c, v, columnName, q, before, n)
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		if v.target != 0 && v.target != target {
			continue
		}
		one, err := s.list(ctx, c, choice{v.filter, target, v.typ}, before, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	newestFirst(all)
	all = slices.CompactFunc(all, func(a, b snap.Snapshot) bool { return a.Key == b.Key })
	return all[:min(n, len(all))], nil
}

// targetsLike returns targets whose folded name contains q, of those that
// anyone in the caller's organization could ever see; more than fewTargets of
// them when there are more.
func (s *Store) targetsLike(ctx context.Context, c snap.Caller, q string) ([]int64, error) {
	contains := `instr(folded, $2) > 0`
	if s.dialect == postgres {
		contains = `strpos(folded, $2) > 0`
	}
	return collect(ctx, s, `SELECT target_id FROM org_targets WHERE org_id = $1 AND `+contains+` LIMIT 9`,
		scanOne[int64], c.Org.ID, q)
}

// The columns of snapshots by whose beginning it can be looked up.
const (
	columnID   = "id"
	columnName = "folded"
)

// byPrefix returns the n newest visible snapshots below a key whose column
// begins with prefix.
func (s *Store) byPrefix(ctx context.Context, c snap.Caller, v choice, column, prefix string, before int64,
	n int) ([]snap.Snapshot, error) {
	var count int
	end := prefix + "\U0010ffff"
	err := s.row(ctx,
		`SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE `+column+` >= $1 AND `+column+` < $2 LIMIT 501) AS c`, prefix, end).Scan(&count)
	if err != nil || count == 0 {
		return nil, err
	}
	fits := func(sn snap.Snapshot) bool {
		if column == columnID {
			return strings.HasPrefix(sn.ID, prefix)
		}
		return strings.HasPrefix(fold(sn.Name), prefix)
	}
	if count > fewCandidates {
		return s.filtered(ctx, c, v, before, n, fits)
	}
	all, err := s.snapshots(ctx, c, selectOne+`s.`+column+` >= $5 AND s.`+column+` < $6 AND s.key < $7 AND `+visible,
		append(s.viewer(c), prefix, end, before)...)
	if err != nil {
		return nil, err
	}
	chosen, err := s.chosenBy(ctx, c, v)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(sn snap.Snapshot) bool { return !chosen(sn) })
	return all[:min(n, len(all))], nil
}

// chosenBy is v as a predicate on snapshots that c may see.
func (s *Store) chosenBy(ctx context.Context, c snap.Caller, v choice) (func(snap.Snapshot) bool, error) {
	var target string
	if v.target != 0 {
		if err := s.row(ctx, `SELECT name FROM targets WHERE id = $1`, v.target).Scan(&target); err != nil {
			return nil, err
		}
	}
	return func(sn snap.Snapshot) bool {
		return Chosen(c, sn, v.filter) && (v.target == 0 || sn.Target == target) && (v.typ == "" || sn.Type == v.typ)
	}, nil
}

// Chosen reports whether a filter chooses a snapshot that the caller sees.
func Chosen(c snap.Caller, sn snap.Snapshot, f snap.Filter) bool {
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

// filtered goes through the listing until it has n snapshots that fit.
func (s *Store) filtered(ctx context.Context, c snap.Caller, v choice, before int64, n int,
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
