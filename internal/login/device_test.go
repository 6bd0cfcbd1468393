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

// TestRefreshOfTheDefaultAccount: a new token replaces the old one of an account that is not in use.
func TestRefreshOfTheDefaultAccount(t *testing.T) {
	t.Parallel()
	const url = "https://cloud.test"
	c := contents{Sessions: map[string]Session{}, Others: map[string][]Session{key(url): {{RefreshToken: "old"}}}}
	c.put(url, Session{RefreshToken: "new"})
	if others := c.Others[key(url)]; len(c.Sessions) != 0 || len(others) != 1 || others[0].RefreshToken != "new" {
		t.Errorf("the accounts are %+v", c)
	}
}
