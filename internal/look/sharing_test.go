package look

import (
	"testing"
	"time"

	"snap"
)

// The choices of an end are a duration by the service's clock, or a moment.
func TestEndOf(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		choice, date, at string
		in               int64
	}{
		{"", "", "", 0},
		{"7d", "", "", 604800},
		{"date", "2026-12-31", "2026-12-31T23:59:59Z", 0},
	} {
		got, err := EndOf(try.choice, try.date)
		text := ""
		if got.ExpiresAt != nil {
			text = got.ExpiresAt.Format(time.RFC3339)
		}
		if err != nil || text != try.at || got.ExpiresIn != try.in {
			t.Errorf("%s %s: %q and %d, %v", try.choice, try.date, text, got.ExpiresIn, err)
		}
	}
	if _, err := EndOf("soon", ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("soon: %v", err)
	}
}
