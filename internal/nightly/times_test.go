package nightly

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
)

// runsOf returns the moments at which an agent that looks every minute begins runs, in UTC.
func runsOf(t *testing.T, spec, zone, from string, hours int) (begun []string) {
	t.Helper()
	times, err := Parse(spec, zone)
	if err != nil {
		t.Fatal(err)
	}
	start, err := time.Parse(time.RFC3339, from)
	if err != nil {
		t.Fatal(err)
	}
	after := times.Wall(start)
	for minute := range hours * 60 {
		now := start.Add(time.Duration(minute) * time.Minute)
		due, missed := times.Due(after, now)
		if missed > 0 {
			t.Errorf("%d missed before %s", missed, due)
		}
		if due != "" {
			begun, after = append(begun, now.Format("02T15:04")), due
		}
	}
	return begun
}

// Every night runs once, also when clocks change: a time that is skipped runs at the change, and a
// time that comes twice runs the first time.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, zone, from string
		want             string
	}{
		"no change":           {"17 3 * * *", "Europe/Berlin", "2026-01-10T12:00:00Z", "11T02:17 12T02:17"},
		"before a spring gap": {"30 1 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "29T00:30 29T23:30"},
		"in a spring gap":     {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "29T01:00 30T00:30"},
		"after a spring gap":  {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "29T01:00 30T01:00"},
		"twice in autumn":     {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "25T00:30 26T01:30"},
		"New York, gap":       {"15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "08T07:00 09T06:15"},
		"New York, twice":     {"15 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "01T05:15 02T06:15"},
		"half an hour, gap":   {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "03T15:30 04T15:15"},
		"half an hour, twice": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "04T14:45 05T15:15"},
		"a gap at midnight":   {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "23T22:00 24T21:00"},
		"in the expression":   {"CRON_TZ=Asia/Kolkata 0 3 * * *", "UTC", "2026-01-10T12:00:00Z", "10T21:30 11T21:30"},
		"hourly over a repeated hour": {"0 0-4 * * *", "Europe/Berlin", "2026-10-24T21:30:00Z",
			"24T22:00 24T23:00 25T00:00 25T02:00 25T03:00"},
		"hourly over a gap": {"0 0-4 * * *", "Europe/Berlin", "2026-03-28T22:30:00Z",
			"28T23:00 29T00:00 29T01:00 29T02:00"},
	} {
		hours := 48
		if strings.HasPrefix(name, "hourly") {
			hours = 8
		}
		if got := runsOf(t, c.spec, c.zone, c.from, hours); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), c.want)
		}
	}
}

// Slots begin in their order, whatever a zone's clocks do, at a moment with that time of day, or at
// the moment when the clock jumps over it.
func TestSlotsAreInOrder(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Tehran",
		"America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "UTC"}
	rapid.Check(t, func(rt *rapid.T) {
		times, err := Parse("* * * * *", rapid.SampledFrom(zones).Draw(rt, "zone"))
		if err != nil {
			rt.Fatal(err)
		}
		wall := time.Unix(60*rapid.Int64Range(1262304000/60, 1893456000/60).Draw(rt, "wall"), 0).UTC()
		step := time.Duration(rapid.IntRange(1, 3000).Draw(rt, "step")) * time.Minute
		one, two := Slot(wall.Format(slotFormat)), Slot(wall.Add(step).Format(slotFormat))
		a, b := times.At(one), times.At(two)
		if b.Before(a) {
			rt.Errorf("%s begins at %s, and %s at %s", one, a, two, b)
		}
		before := times.Wall(a.Add(-time.Minute))
		if now := times.Wall(a); now != one && !(before < one && one < now) {
			rt.Errorf("%s begins at %s, when it is %s and was %s", one, a, now, before)
		}
	})
}

// A bad schedule is one clear error.
func TestBadSchedules(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{" ", ""}, {"61 * * * *", ""}, {"* * * *", ""}, {"@every 1h", ""}, {"0 0 30 2 *", ""},
		{"17 3 * * *", "Mars/Olympus"}, {"CRON_TZ=", ""}, {"CRON_TZ=UTC", ""}, {"17 3 * * *", "Local"},
		{"CRON_TZ=../../etc/passwd 17 3 * * *", ""}, {strings.Repeat("*", 9999), ""}} {
		if _, err := Parse(c[0], c[1]); snap.CodeOf(err) != snap.CodeUsage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q in %q: %v", c[0], c[1], err)
		}
	}
	times, err := Parse("0 3 13 * FRI", "") // either the day of the month or that of the week
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC); len(days) < 5; {
		_, now = times.Next(now)
		days = append(days, now.Format("02"))
	}
	if !slices.Equal(days, []string{"06", "13", "20", "27", "03"}) {
		t.Errorf("%v", days)
	}
}
