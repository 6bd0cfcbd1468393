package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"snap"
)

// waitingLevel is a group of device grants whose number is limited: those of an address, of a site
// or of a network, or all grants.
type waitingLevel struct {
	where string // SQL condition that selects the group's grants
	args  []any  // of the condition
	part  string // the column by which the group is divided
	mine  string // the new grant's value in that column
	max   int
}

// waitingLevels returns the groups that a new grant belongs to, the smallest first, so that a group
// makes room before its parent is checked.
func waitingLevels(g DeviceGrant, max DeviceLimits, now int64) []waitingLevel {
	const all = `state = 'pending' AND expires_at > $1`
	const network = all + ` AND network = $2`
	const site = network + ` AND site = $3`
	const address = site + ` AND address = $4`
	args := []any{now, g.Network, g.Site, g.Address}
	return []waitingLevel{
		{address, args[:4], "", "", max.PerAddress},
		{site, args[:3], "address", g.Address, max.PerSite},
		{network, args[:2], "site", g.Site, max.PerNetwork},
		{all, args[:1], "network", g.Network, max.Total},
	}
}

var errTooManyWaiting = &snap.Error{
	Code:   snap.CodeRateLimited,
	Detail: "too many logins are waiting for approval",
	Hint:   "wait a few minutes and try again",
}

// makeRoom returns nil when the group has room for one more grant. In a full group, it drops the
// oldest grants that nobody has opened, from the busiest part. It fails if the new grant's own part
// is at least as busy, or if the group is not divided into parts.
func (l waitingLevel) makeRoom(ctx context.Context, tx *sql.Tx) error {
	waiting, err := l.count(ctx, tx, "")
	if err != nil || waiting < l.max {
		return err
	}
	if l.part == "" {
		return errTooManyWaiting
	}
	busiest, most, err := l.busiest(ctx, tx)
	if err != nil {
		return err
	}
	next := len(l.args) + 1
	inPart := fmt.Sprintf(" AND %s = $%d", l.part, next)
	mine, err := l.count(ctx, tx, inPart, l.mine)
	if err != nil {
		return err
	}
	if mine >= most {
		return errTooManyWaiting
	}
	// Dropping a tenth at a time keeps a flood from causing this search at every request.
	_, err = tx.ExecContext(ctx, `DELETE FROM device_grants WHERE hash IN (
		SELECT hash FROM device_grants WHERE `+l.where+inPart+` AND opened_at IS NULL
		ORDER BY created_at LIMIT $`+strconv.Itoa(next+1)+`)`, slices.Concat(l.args, []any{busiest, most/10 + 1})...)
	return err
}

// count returns how many of the group's waiting grants also satisfy the condition.
func (l waitingLevel) count(ctx context.Context, tx *sql.Tx, condition string, args ...any) (n int, err error) {
	err = tx.QueryRowContext(ctx,
		`SELECT count(*) FROM device_grants WHERE `+l.where+condition, slices.Concat(l.args, args)...).Scan(&n)
	return n, err
}

// busiest returns the part of the group with the most grants that nobody has opened, and their
// number. If several parts have as many, it returns the one with the oldest of these grants.
func (l waitingLevel) busiest(ctx context.Context, tx *sql.Tx) (part string, grants int, err error) {
	err = tx.QueryRowContext(ctx,
		`SELECT `+l.part+`, count(*) FROM device_grants WHERE `+l.where+` AND opened_at IS NULL
		GROUP BY `+l.part+` ORDER BY count(*) DESC, min(created_at) LIMIT 1`, l.args...).Scan(&part, &grants)
	return part, grants, noRowsAs(err, nil)
}
