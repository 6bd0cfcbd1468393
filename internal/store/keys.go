package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"snap"
)

// Key is an API key without its secret (SPEC 5.1).
type Key struct {
	ID        int64
	Kind      snap.CredentialKind
	Name      string
	Hint      string // first 8 and last 4 characters
	Org       snap.OrgRef
	UserID    int64  // 0 for organization-level keys
	User      string // e-mail of the user it acts as
	Scopes    []snap.Scope
	Networks  []netip.Prefix // the key may be used from these only; empty means from anywhere
	Created   time.Time
	CreatedBy string    // e-mail of its creator; empty for the operator
	Expires   time.Time // zero means never; at most the organization's max_key_age after Created
	LastUsed  time.Time
	Revoked   time.Time
}

// IdleSince returns when the key was last used, or when it was created if it was never used.
func (k Key) IdleSince() time.Time {
	if k.LastUsed.IsZero() {
		return k.Created
	}
	return k.LastUsed
}

// AddKey stores a key by the SHA-256 of its secret. It uses these fields of k: Kind, Name, Hint,
// Org.ID, UserID, Scopes, Networks and Expires. by is the user who creates the key, or 0 for the
// operator.
func (s *Store) AddKey(ctx context.Context, k Key, hash []byte, by int64) (Key, error) {
	var id int64
	err := s.tx(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `
			INSERT INTO api_keys(hash, kind, name, hint, org_id, user_id, scopes, created_at, created_by, expires_at,
				networks)
			VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`,
			hash, string(k.Kind), k.Name, k.Hint, k.Org.ID, nullID(k.UserID), joinWords(k.Scopes),
			s.now().UnixMilli(), nullID(by), millis(k.Expires), joinNetworks(k.Networks)).Scan(&id)
		if err != nil {
			return err
		}
		if k.Kind == snap.SCIMKey {
			if err := s.replaceSCIMKeys(ctx, tx, k.Org.ID, id); err != nil {
				return err
			}
		}
		return s.recordKey(ctx, tx, id, snap.AuditKeyCreated)
	})
	if err != nil {
		return Key{}, err
	}
	return one(s.keys(ctx, `WHERE k.id = $1`, id))
}

// usableKey is the condition that a key k of an organization o may be used at the time $2. The
// policy max_key_age also ends keys that were created before the policy was set.
const usableKey = ` AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
	AND (o.max_key_age = 0 OR k.created_at + o.max_key_age > $2)`

// touchEvery is the minimum time between two updates of a "last used" time.
const touchEvery = time.Minute

// TouchKey records that a key was used. used is the recorded time of its last use. TouchKey writes
// at most once a minute.
func (s *Store) TouchKey(ctx context.Context, id int64, used time.Time) error {
	now := s.now()
	if now.Sub(used) < touchEvery {
		return nil
	}
	_, err := s.write.ExecContext(ctx,
		`UPDATE api_keys SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`,
		now.UnixMilli(), id, now.Add(-touchEvery).UnixMilli())
	if err == nil {
		_, err = s.write.ExecContext(ctx, markUsed+`(SELECT k.user_id FROM api_keys k WHERE k.id = $2)`,
			now.UnixMilli(), id)
	}
	return ignoreDiskFull(err)
}

// KeyQuery selects keys.
type KeyQuery struct {
	All  bool          // every key of the organization instead of the caller's own
	Idle time.Duration // only keys that have not been used for at least this long; 0 means every key
}

// Keys returns the caller's own keys, the newest first. With All, or if the caller is not a user,
// it returns every key of the organization, and fails with forbidden unless the caller is an owner
// or admin. Revoked keys and expired credentials of CI jobs are left out.
func (s *Store) Keys(ctx context.Context, c snap.Caller, q KeyQuery) ([]Key, error) {
	if q.All || c.User == nil {
		if err := snap.Allowed(c, snap.ActAdminister, snap.Snapshot{}); err != nil {
			return nil, err
		}
		return s.OrgKeys(ctx, c.Org.ID, q.Idle)
	}
	return s.keys(ctx, `WHERE k.user_id = $1`+listedKeys, c.User.ID, s.idleBefore(q.Idle), s.now().UnixMilli())
}

// OrgKeys returns all keys of an organization that were not revoked and have not been used for at
// least idle, except expired credentials of CI jobs, the newest first. It is for the operator.
func (s *Store) OrgKeys(ctx context.Context, orgID int64, idle time.Duration) ([]Key, error) {
	return s.keys(ctx, `WHERE k.org_id = $1`+listedKeys, orgID, s.idleBefore(idle), s.now().UnixMilli())
}

// listedKeys ends a query for a list of keys. The list has the keys that were last used at or
// before $2, without revoked ones and without credentials of CI jobs that have expired by $3.
const listedKeys = ` AND k.revoked_at IS NULL AND coalesce(k.last_used_at, k.created_at) <= $2
	AND (k.trust = '' OR k.expires_at > $3) ORDER BY k.id DESC`

func (s *Store) idleBefore(idle time.Duration) int64 {
	if idle <= 0 {
		return math.MaxInt64
	}
	return s.now().Add(-idle).UnixMilli()
}

// IdleKeys counts the usable keys of the caller, and for owners and admins those of the
// organization, that have not been used for [snap.IdleKey].
func (s *Store) IdleKeys(ctx context.Context, c snap.Caller) (own, all int, err error) {
	if c.User == nil {
		return 0, 0, nil
	}
	now := s.now()
	err = s.row(ctx, `
		SELECT coalesce(sum(CASE WHEN k.user_id = $1 THEN 1 ELSE 0 END), 0), count(*)
		FROM api_keys k JOIN orgs o ON o.id = k.org_id
		WHERE k.org_id = $3 AND coalesce(k.last_used_at, k.created_at) <= $4`+usableKey,
		c.User.ID, now.UnixMilli(), c.Org.ID, now.Add(-snap.IdleKey).UnixMilli()).Scan(&own, &all)
	if !c.IsAdmin() {
		all = 0
	}
	return own, all, err
}

// RevokeKey immediately revokes one of the caller's keys or, for an owner or admin, any key of the
// organization. It fails with not_found for other keys.
func (s *Store) RevokeKey(ctx context.Context, c snap.Caller, id int64) error {
	if c.IsAdmin() {
		return s.RevokeOrgKey(ctx, c.Org.ID, id)
	}
	if c.User == nil {
		return snap.Allowed(c, snap.ActAdminister, snap.Snapshot{})
	}
	return s.revokeKey(ctx, `user_id = $3`, id, c.User.ID)
}

// RevokeOrgKey immediately revokes a key of an organization. It is for the operator.
func (s *Store) RevokeOrgKey(ctx context.Context, orgID, id int64) error {
	return s.revokeKey(ctx, `org_id = $3`, id, orgID)
}

func (s *Store) revokeKey(ctx context.Context, condition string, id, owner int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx,
			`UPDATE api_keys SET revoked_at = $1 WHERE revoked_at IS NULL AND id = $2 AND `+condition,
			s.now().UnixMilli(), id, owner)
		if err := requireChanged(res, err, errNoKey); err != nil {
			return err
		}
		return s.recordKey(ctx, tx, id, snap.AuditKeyRevoked)
	})
}

var errNoKey = &snap.Error{Code: snap.CodeNotFound, Detail: "no such key", Hint: "list the keys to see which exist"}

func (s *Store) keys(ctx context.Context, where string, args ...any) ([]Key, error) {
	return collect(ctx, s, `
		SELECT k.id, k.kind, k.name, k.hint, o.id, o.slug, o.name, coalesce(k.user_id, 0), coalesce(u.email, ''),
			k.scopes, k.created_at, coalesce(b.email, ''), k.expires_at, k.last_used_at, k.revoked_at, k.networks,
			o.max_key_age
		FROM api_keys k JOIN orgs o ON o.id = k.org_id
			LEFT JOIN users u ON u.id = k.user_id LEFT JOIN users b ON b.id = k.created_by `+where, scanKey, args...)
}

func scanKey(rows *sql.Rows) (k Key, err error) {
	var scopes, networks string
	var maxAge int64
	err = rows.Scan(&k.ID, &k.Kind, &k.Name, &k.Hint, &k.Org.ID, &k.Org.Slug, &k.Org.Name, &k.UserID, &k.User, &scopes,
		toTime(&k.Created), &k.CreatedBy, toTime(&k.Expires), toTime(&k.LastUsed), toTime(&k.Revoked), &networks,
		&maxAge)
	if err != nil {
		return k, err
	}
	k.Scopes = splitWords[snap.Scope](scopes)
	if maxAge > 0 {
		k.Expires = earlier(k.Created.Add(time.Duration(maxAge)*time.Millisecond), k.Expires)
	}
	k.Networks, err = splitNetworks(networks)
	return k, err
}

func joinNetworks(networks []netip.Prefix) string {
	var words []string
	for _, n := range networks {
		words = append(words, n.String())
	}
	return strings.Join(words, " ")
}

// splitNetworks reverses joinNetworks. It fails on any other text instead of ignoring it, because a
// key without networks could be used from anywhere.
func splitNetworks(text string) (networks []netip.Prefix, err error) {
	for word := range strings.FieldsSeq(text) {
		n, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, fmt.Errorf("the networks of a key: %w", err)
		}
		networks = append(networks, n)
	}
	return networks, nil
}
