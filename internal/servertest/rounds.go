package servertest

import (
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Rounds runs a property test whose rounds are expensive, because each creates databases on a
// server. It runs at least the given number of rounds. If SNAP_ROUNDS sets a time, such as 5m, it
// continues until that time has passed. Only rounds that pass are counted, so rapid can repeat a
// failed round with simpler data.
func Rounds(t *testing.T, few int, round func(*rapid.T)) {
	t.Helper()
	var until time.Time
	if text := os.Getenv("SNAP_ROUNDS"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		until = time.Now().Add(d)
	}
	passed := 0
	over := func() bool { return passed >= few && !time.Now().Before(until) }
	for !over() {
		rapid.Check(t, func(r *rapid.T) {
			if !over() {
				round(r)
				passed++
			}
		})
	}
	t.Logf("%d rounds passed", passed)
}
