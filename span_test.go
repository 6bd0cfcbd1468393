package snap_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
)

// A span is written in at most two units, with the smaller one rounded.
func TestSpan(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0:                                   "0 seconds",
		5 * time.Second:                     "5 seconds",
		-time.Second:                        "1 second",
		time.Minute:                         "1 minute",
		61 * time.Second:                    "1 minute 1 second",
		time.Hour - time.Millisecond:        "1 hour",
		90 * time.Minute:                    "1 hour 30 minutes",
		36 * time.Hour:                      "1 day 12 hours",
		day - 10*time.Second:                "1 day",
		day - 20*time.Minute:                "23 hours 40 minutes",
		day + 59*time.Minute:                "1 day 1 hour",
		7*day - 20*time.Millisecond:         "7 days",
		13 * day:                            "13 days",
		400*day + 5*time.Hour + time.Second: "400 days 5 hours",
	} {
		if got := snap.Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A rough distance has one unit, which is rounded.
func TestAbout(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-76*time.Hour - 12*time.Minute: "3 days ago", 36 * time.Hour: "in 2 days", -90 * time.Second: "2 minutes ago",
		-24*time.Hour + 10*time.Minute: "1 day ago", 23 * time.Hour: "in 23 hours", -5 * time.Second: "5 seconds ago",
		0: "now",
	} {
		if got := snap.About(now, now.Add(d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A distance says whether the time is in the future or in the past.
func TestDistance(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		36 * time.Hour: "in 1 day 12 hours", -5 * time.Second: "5 seconds ago", 100 * time.Millisecond: "now",
	} {
		if got := snap.Distance(now, now.Add(d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A span in words differs from the duration by at most half of its smaller unit and half a second.
func TestSpanIsExactToTwoUnits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(5000*24*time.Hour)).Draw(t, "d"))
		slack := time.Second / 2
		switch {
		case d >= 24*time.Hour-30*time.Second:
			slack = 30*time.Minute + time.Second/2
		case d >= time.Hour-time.Second/2:
			slack = 30*time.Second + time.Second/2
		}
		got, err := parseSpan(snap.Span(d))
		if err != nil || (got-d).Abs() > slack {
			t.Fatalf("%v is %q, which is %v: %v", d, snap.Span(d), got, err)
		}
	})
}

// parseSpan reads what Span writes.
func parseSpan(text string) (total time.Duration, err error) {
	units := map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute,
		"second": time.Second}
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i += 2 {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * units[strings.TrimSuffix(fields[i+1], "s")]
	}
	return total, nil
}
