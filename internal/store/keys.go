package store

import (
	"context"
	"errors"
	"time"

	"snap"
)

// Key is an API key without its secret.
type Key struct {
	ID        int64
	Kind      snap.CredentialKind
	Name      string
	Hint      string // first 8 and last 4 characters
	Org       snap.OrgRef
	UserID    int64  // 0 for organization-level keys
	User      string // e-mail of the user it acts as
	Scopes    []snap.Scope
	Created   time.Time
	CreatedBy string    // e-mail of who made it; empty for the operator
	Expires   time.Time // zero is never
	LastUsed  time.Time
	Revoked   time.Time
}

// Keys returns the caller's own keys or, with all, every key of the
// organization, which takes an owner or admin.
func (s *Store) Keys(ctx context.Context, c snap.Caller, all bool) ([]Key, error) {
	return nil, errors.ErrUnsupported
}

// RevokeKey ends one of the caller's keys or, for an owner or admin, any key of
// the organization. Others' keys are not found.
func (s *Store) RevokeKey(ctx context.Context, c snap.Caller, id int64) error {
	return errors.ErrUnsupported
}

// OrgKeys returns every key of an organization, for the operator.
func (s *Store) OrgKeys(ctx context.Context, orgID int64) ([]Key, error) {
	return nil, errors.ErrUnsupported
}

// RevokeOrgKey ends a key of an organization, for the operator.
func (s *Store) RevokeOrgKey(ctx context.Context, orgID, id int64) error {
	return errors.ErrUnsupported
}
