package snap

import "time"

// spanUnits are the units of [Span], the longest first. Weeks and months are left out because "13
// days" is more precise than "1 week".
var spanUnits = [...]struct {
	name   string
	length time.Duration
}{
	{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second},
}

// Span formats how long something lasts, in one or two units: "1 day 12 hours", "59 seconds". The
// smaller unit is rounded. Less than half a second is "0 seconds". The sign is ignored.
func Span(d time.Duration) string {
	d = d.Abs().Round(time.Second)
	for i, unit := range spanUnits[:len(spanUnits)-1] {
		next := spanUnits[i+1]
		finer := spanUnits[min(i+2, len(spanUnits)-1)] // the precision of a span just below one unit
		if rounded := d.Round(next.length); d.Round(finer.length) >= unit.length {
			text := spanCount(rounded/unit.length, unit.name)
			if rest := rounded % unit.length / next.length; rest > 0 {
				text += " " + spanCount(rest, next.name)
			}
			return text
		}
	}
	return spanCount(d/time.Second, "second")
}

func spanCount(n time.Duration, unit string) string { return Plural(int64(n), unit, unit+"s") }

// UTC formats a time to the minute in UTC, for sentences that the service writes.
func UTC(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// About is like [Distance], in one unit: "in 2 days", "5 seconds ago". It is for places that do not
// show the time itself.
func About(now, t time.Time) string { return distance(now, t, about) }

// about rounds a duration and formats it in one unit.
func about(d time.Duration) string {
	d = d.Abs().Round(time.Second)
	for i, unit := range spanUnits[:len(spanUnits)-1] {
		if d.Round(spanUnits[i+1].length) >= unit.length {
			return spanCount(d.Round(unit.length)/unit.length, unit.name)
		}
	}
	return spanCount(d/time.Second, "second")
}

// Distance formats how far a time is from now, with [Span]: "in 1 day 12 hours", "5 seconds ago",
// or "now". Print it next to the time itself.
func Distance(now, t time.Time) string { return distance(now, t, Span) }

func distance(now, t time.Time, span func(time.Duration) string) string {
	d := t.Sub(now).Round(time.Second)
	switch {
	case d > 0:
		return "in " + span(d)
	case d < 0:
		return span(d) + " ago"
	}
	return "now"
}
