package store

import (
	"context"
	"strconv"
	"strings"

	"snap"
)

// ownerFilter is the condition of a query about the owner. The zero value matches every owner.
type ownerFilter struct {
	text  string  // folded
	exact bool    // the text is the whole e-mail of a user
	users []int64 // the users of the caller's organization that match; if there are very many, only some
}

// ownerFilter returns the filter for text, which is the Owner of a query.
func (s *Store) ownerFilter(ctx context.Context, c snap.Caller, text string) (o ownerFilter, err error) {
	if o.text = snap.FoldCase(text); o.text == "" {
		return o, nil
	}
	find := func(condition string, args ...any) error {
		o.users, err = collect(ctx, s, `SELECT id FROM users WHERE org_id = $1 AND `+condition+` LIMIT `+
			strconv.Itoa(maxValues+1), scanOne[int64], append([]any{c.Org.ID}, args...)...)
		return err
	}
	if err := find(`email_folded = $2`, o.text); err != nil {
		return o, err
	}
	if o.exact = len(o.users) > 0; !o.exact {
		err = find(`email_folded >= $2 AND email_folded < $3`, o.text, o.text+lastRune)
	}
	return o, err
}

// matches reports whether the filter selects a snapshot that the caller sees.
func (o ownerFilter) matches(sn snap.Snapshot) bool {
	name := ""
	switch {
	case sn.Received && !o.exact:
		name = sn.Org.Slug
	case !sn.Received && sn.Owner != nil:
		name = sn.Owner.Email
	}
	if o.exact {
		return snap.FoldCase(name) == o.text
	}
	return o.text == "" || strings.HasPrefix(snap.FoldCase(name), o.text)
}

// ownerSource returns the source for the owners of v. The snapshots of the caller's organization
// are found in an index. The received ones are read one by one, because no index contains their
// organization.
func (s *Store) ownerSource(c snap.Caller, v selection) source {
	o := v.owner
	if len(o.users) > maxValues {
		return s.scanSource(c, v, o.matches)
	}
	received := v
	received.filter = snap.FilterReceived
	from := s.scanSource(c, received, o.matches)
	if o.exact || v.filter == snap.FilterMine {
		from = func(context.Context, int64, int) ([]int64, error) { return nil, nil }
	}
	return func(ctx context.Context, before int64, n int) ([]int64, error) {
		keys, err := from(ctx, before, n)
		if err != nil || len(o.users) == 0 {
			return keys, err
		}
		own, err := s.conditionKeys(ctx, c, v, condition{column: "owner_id", values: o.users}, before, n)
		return newestKeys(append(keys, own...), n), err
	}
}
