package store

import (
	"context"
	"errors"
	"time"

	"snap"
)

// Session is a signed-in device (kind login) or browser.
type Session struct {
	ID       int64
	UserID   int64
	Kind     snap.CredentialKind // LoginToken or Browser
	Name     string              // the program and host that signed in
	Address  string
	ClientID string // of the OAuth client, for LoginToken
	Scope    string
	Created  time.Time
	LastUsed time.Time
	Expires  time.Time
}

// Sessions returns the caller's live sessions, the newest first.
func (s *Store) Sessions(ctx context.Context, c snap.Caller) ([]Session, error) {
	return nil, errors.ErrUnsupported
}

// EndSession ends one of the caller's sessions at once; others' are not found.
func (s *Store) EndSession(ctx context.Context, c snap.Caller, id int64) error {
	return errors.ErrUnsupported
}
