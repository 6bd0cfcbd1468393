package login

import (
	"testing"
	"time"
)

// TestLongLivedToken: a token that lives for centuries does not count as expired.
func TestLongLivedToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if got := (tokenResponse{ExpiresIn: 9_999_999_999}).expiry(now); got.Before(now.AddDate(60, 0, 0)) {
		t.Errorf("it expires at %v", got)
	}
}
