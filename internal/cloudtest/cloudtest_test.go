package cloudtest_test

import (
	"testing"
	"time"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// The keys of all organizations have expired, not only the first one.
func TestExpiredKey(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(time.Now())})
	for _, slug := range []string{"acme", "globex"} {
		if _, err := c.Client(c.ExpiredKey(slug)).Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s: %v", slug, err)
		}
	}
}
