package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"snap"
)

// DeviceGrant is a login through the device authorization grant (RFC 8628), until it is redeemed or
// expires.
type DeviceGrant struct {
	UserCode string // normalized: upper case, no separators
	ClientID string
	Scope    string
	Program  string // the requesting program, as it names itself
	Host     string // the requesting host, as the program names it
	Address  string // the address that the request came from
	Site     string // the /56 of an IPv6 address, or the IPv4 address itself
	Network  string // the /48 of an IPv6 address, or the /24 of an IPv4 address
	Opened   bool   // a signed-in person has looked at it
	Created  time.Time
	Expires  time.Time
	Wait     time.Duration // minimum wait between two polls
	UserID   int64         // the user who approved
}

// The states of a device grant after "pending".
const (
	deviceApproved = "approved"
	deviceDenied   = "denied"
	deviceUsed     = "used"
)

// DeviceLimits limits the number of grants that wait for approval at one time.
type DeviceLimits struct{ PerAddress, PerSite, PerNetwork, Total int }

// AddDeviceGrant stores a new grant under the SHA-256 of its device code. When too many grants
// wait, AddDeviceGrant drops the oldest grants that nobody has opened, from the busiest address,
// site or network. If the new grant comes from the busiest one itself, or if its own address has
// too many waiting grants, AddDeviceGrant drops nothing and fails with rate_limited. It fails with
// conflict if the user code is in use.
func (s *Store) AddDeviceGrant(ctx context.Context, g DeviceGrant, hash []byte, max DeviceLimits) error {
	now := s.now().UnixMilli()
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx,
			`DELETE FROM device_grants WHERE expires_at < $1`, now-time.Hour.Milliseconds()); err != nil {
			return err
		}
		for _, l := range waitingLevels(g, max, now) {
			if err := l.makeRoom(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO device_grants(hash, user_code, client_id, scope, program, host, address, site, network,
				created_at, expires_at, wait_ms, state)
			VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'pending')`,
			hash, g.UserCode, g.ClientID, g.Scope, g.Program, g.Host, g.Address, g.Site, g.Network, now,
			g.Expires.UnixMilli(), g.Wait.Milliseconds())
		return err
	})
	if violatesUnique(err) {
		return &snap.Error{Code: snap.CodeConflict, Detail: "the user code is already in use", Cause: err}
	}
	return err
}

var errNoGrant = &snap.Error{
	Code:   snap.CodeNotFound,
	Detail: "this code is unknown, has expired or was already used",
	Hint:   "check the code in your terminal, or run `snapcli login` again",
}

// PendingDevice returns the grant that waits for approval under a user code. It fails with
// not_found if there is none.
func (s *Store) PendingDevice(ctx context.Context, userCode string) (g DeviceGrant, err error) {
	err = s.read.QueryRowContext(ctx, `
		SELECT user_code, client_id, scope, program, host, address, created_at, expires_at, opened_at IS NOT NULL
		FROM device_grants WHERE user_code = $1 AND state = 'pending' AND expires_at > $2`,
		userCode, s.now().UnixMilli()).
		Scan(&g.UserCode, &g.ClientID, &g.Scope, &g.Program, &g.Host, &g.Address, toTime(&g.Created),
			toTime(&g.Expires), &g.Opened)
	return g, noRowsAs(err, errNoGrant)
}

// OpenDevice records that a signed-in person has looked at the grant under a user code, so that it
// is never dropped to make room. It does nothing when there is no such grant.
func (s *Store) OpenDevice(ctx context.Context, userCode string) error {
	return s.exec(ctx, `UPDATE device_grants SET opened_at = $1 WHERE user_code = $2 AND opened_at IS NULL`,
		s.now().UnixMilli(), userCode)
}

// ApproveDevice approves the grant under a user code on behalf of a user. It fails with not_found
// unless the grant is waiting.
func (s *Store) ApproveDevice(ctx context.Context, userCode string, userID int64) error {
	return s.decideDevice(ctx, userCode, deviceApproved, nullID(userID), "")
}

// DenyDevice denies the grant under a user code; the client gets the reason. It fails with
// not_found unless the grant is waiting.
func (s *Store) DenyDevice(ctx context.Context, userCode, reason string) error {
	return s.decideDevice(ctx, userCode, deviceDenied, nullID(0), reason)
}

func (s *Store) decideDevice(ctx context.Context, userCode, state string, user sql.NullInt64, reason string) error {
	return s.attempt(ctx, func() error {
		res, err := s.write.ExecContext(ctx, `
			UPDATE device_grants SET state = $1, user_id = $2, reason = $3
			WHERE user_code = $4 AND state = 'pending' AND expires_at > $5`,
			state, user, reason, userCode, s.now().UnixMilli())
		return requireChanged(res, err, errNoGrant)
	})
}

// PollResult is the result of a poll of the token endpoint (RFC 8628 section 3.5).
type PollResult int

// The results of a poll.
const (
	PollUnknown  PollResult = iota // this client has no such code, or it was used
	PollPending                    // not decided yet
	PollSlowDown                   // polled too early: the wait is now 5 s longer
	PollDenied
	PollExpired
	PollApproved // this poll, and no other, gets the session
)

// Poll is one poll of the token endpoint, with the data to store if the grant was approved.
type Poll struct {
	Hash     []byte // SHA-256 of the device code
	ClientID string
	Refresh  []byte    // SHA-256 of the session's first refresh token
	Idle     time.Time // when the session ends if it is not used
	Expires  time.Time // when the session ends at the latest
}

// PollDevice handles a poll. Of all polls of an approved grant, exactly one gets PollApproved and
// the new session.
func (s *Store) PollDevice(ctx context.Context, p Poll) (result PollResult, n Session, reason string, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		g, state, err := readDevice(ctx, tx, p)
		if errors.Is(err, sql.ErrNoRows) {
			result = PollUnknown
			return nil
		}
		if err != nil {
			return err
		}
		reason = g.reason
		switch {
		case state == deviceUsed:
			result = PollUnknown
		case !s.now().Before(g.Expires):
			result = PollExpired
		case state == deviceDenied:
			result = PollDenied
		case state == deviceApproved:
			result, n, err = s.redeemDevice(ctx, tx, g.DeviceGrant, p)
			if errors.Is(err, errSignedOut) {
				result, reason, err = PollDenied, errSignedOut.Detail, nil
			}
		default:
			result, err = s.pollPending(ctx, tx, g, p)
		}
		return err
	})
	return result, n, reason, err
}

type polledGrant struct {
	DeviceGrant
	polled time.Time
	reason string
}

func readDevice(ctx context.Context, tx *sql.Tx, p Poll) (g polledGrant, state string, err error) {
	var wait int64
	err = tx.QueryRowContext(ctx, `
		SELECT scope, program, host, address, created_at, expires_at, wait_ms, polled_at, state, reason,
			coalesce(user_id, 0)
		FROM device_grants WHERE hash = $1 AND client_id = $2`, p.Hash, p.ClientID).
		Scan(&g.Scope, &g.Program, &g.Host, &g.Address, toTime(&g.Created), toTime(&g.Expires), &wait,
			toTime(&g.polled), &state, &g.reason, &g.UserID)
	g.Wait = time.Duration(wait) * time.Millisecond
	return g, state, err
}

// redeemDevice consumes an approved grant and creates its session. Of concurrent polls, the update
// succeeds for only one.
func (s *Store) redeemDevice(ctx context.Context, tx *sql.Tx, g DeviceGrant, p Poll) (PollResult, Session, error) {
	first, err := changed(tx.ExecContext(ctx,
		`UPDATE device_grants SET state = 'used' WHERE hash = $1 AND state = 'approved'`, p.Hash))
	if err != nil || !first {
		return PollUnknown, Session{}, err
	}
	name := g.Program
	if g.Host != "" {
		name += " on " + g.Host
	}
	n, err := s.addSession(ctx, tx, Session{
		UserID: g.UserID, Kind: snap.LoginToken, Name: name, Address: g.Address, Began: g.Created,
		ClientID: p.ClientID, Scope: g.Scope, Idle: p.Idle, Expires: p.Expires,
	}, nil)
	if err != nil {
		return PollUnknown, Session{}, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO refresh_tokens(hash, session_id) VALUES($1, $2)`, p.Refresh, n.ID)
	return PollApproved, n, err
}

// pollTolerance is how early a poll may come without counting as too early, because networks and
// clocks are not exact.
const pollTolerance = 500 * time.Millisecond

// slowDown is how much each poll that comes too early adds to the wait (RFC 8628 section 3.5).
const slowDown = 5 * time.Second

func (s *Store) pollPending(ctx context.Context, tx *sql.Tx, g polledGrant, p Poll) (PollResult, error) {
	result, now := PollPending, s.now()
	if !g.polled.IsZero() && now.Before(g.polled.Add(g.Wait-pollTolerance)) {
		result = PollSlowDown
		g.Wait += slowDown
	}
	_, err := tx.ExecContext(ctx, `UPDATE device_grants SET polled_at = $1, wait_ms = $2 WHERE hash = $3`,
		now.UnixMilli(), g.Wait.Milliseconds(), p.Hash)
	return result, err
}

// DeviceGrants returns how many grants are stored, for tests.
func (s *Store) DeviceGrants(ctx context.Context) (n int, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT count(*) FROM device_grants`).Scan(&n)
	return n, err
}
