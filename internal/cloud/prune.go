package cloud

import (
	"context"
	"fmt"
	"time"
)

// Accounts configures how long accounts are kept.
type Accounts struct {
	// PruneAfter is how long an account is kept after the person left. It is then deleted, if
	// nothing refers to it. Empty means 400 days.
	PruneAfter string `yaml:"prune_after"`
}

// The default and the minimum age at which accounts are deleted. The minimum is a little longer
// than the time for which notices and webhook messages are kept.
const (
	defaultPruneAfter = 400 * 24 * time.Hour
	minPruneAfter     = 31 * 24 * time.Hour
)

// pruneAfter returns how long an account is kept after the person left.
func (a Accounts) pruneAfter() (time.Duration, error) {
	d, err := parseSetting("accounts.prune_after", a.PruneAfter, defaultPruneAfter)
	if err == nil && d < minPruneAfter {
		return 0, fmt.Errorf("accounts.prune_after: %s is less than 31d", a.PruneAfter)
	}
	return d, err
}

// pruneEvery is how often accounts and groups are pruned, and pruneBatch is how many of them one
// transaction deletes in an organization. Nobody can sign in to the organization during that
// transaction.
const (
	pruneEvery = time.Hour
	pruneBatch = 200
)

// Prune deletes the accounts of people who left long ago, and groups without members, if nothing
// refers to them. It is background work.
func (s *Service) Prune(ctx context.Context) error {
	after, err := s.config.Accounts.pruneAfter()
	if err != nil {
		return err
	}
	orgs, err := s.store.Orgs(ctx)
	if err != nil {
		return err
	}
	for _, org := range orgs {
		for {
			n, err := s.store.Prune(ctx, org.ID, s.now().Add(-after), pruneBatch)
			if err != nil {
				return err
			}
			if n.Accounts+n.Groups == 0 {
				break
			}
			s.telemetry.metrics.pruned.WithLabelValues("account").Add(float64(n.Accounts))
			s.telemetry.metrics.pruned.WithLabelValues("group").Add(float64(n.Groups))
			s.log.Info("deleted accounts and groups that nothing refers to", "org", org.Slug,
				"accounts", n.Accounts, "groups", n.Groups)
		}
	}
	return nil
}
