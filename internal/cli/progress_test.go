package cli

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/vbauerster/mpb/v8"

	"snap/internal/local"
)

// A log gets a line when a phase begins, and a line every few seconds with bytes, rate and time
// left. A program gets events. With --quiet, nothing is reported.
func TestProgressIsReportedAtIntervals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags globals
		want  string
	}{
		"log": {globals{}, "push ...\npush: 600 MB of 2.0 GB (30%), 100 MB/s, 15s left\n"},
		"json": {globals{json: true},
			`{"event":"progress","phase":"push","done":600000000,"total":2000000000,` +
				`"bytes_per_second":100000000,"seconds_left":15}` + "\n"},
		"quiet": {globals{quiet: true}, ""},
	} {
		var told bytes.Buffer
		now := time.Unix(0, 0)
		a := &app{io: IO{Err: &told}, flags: test.flags, now: func() time.Time { return now },
			env: func(string) string { return "" }}
		report, end := a.progress()
		for _, step := range []struct{ after, done int64 }{{0, 100e6}, {0, 150e6}, {5, 600e6}, {0, 700e6}} {
			now = now.Add(time.Duration(step.after) * time.Second)
			if report != nil {
				report(local.Event{Phase: "push", Done: step.done, Total: 2e9})
			}
		}
		end()
		if told.String() != test.want {
			t.Errorf("%s: %q, want %q", name, told.String(), test.want)
		}
	}
}

// A phase that learns its total only after it began gets a bar at that moment.
func TestSpinnerBecomesABar(t *testing.T) {
	t.Parallel()
	b := &bars{box: mpb.New(mpb.WithOutput(io.Discard))}
	t.Cleanup(b.end)
	b.observe(local.Event{Phase: "dump"})
	spinner := b.bar
	b.observe(local.Event{Phase: "dump", Done: 1, Total: 10})
	bar := b.bar
	b.observe(local.Event{Phase: "dump", Done: 2, Total: 10})
	if bar == spinner || b.bar != bar || bar.Current() != 2 {
		t.Errorf("spinner %p, then %p, then %p at %d", spinner, bar, b.bar, bar.Current())
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "1ms", 43200 * time.Microsecond: "43ms", 2340 * time.Millisecond: "2.3s",
		12700 * time.Millisecond: "13s", 80 * time.Second: "1m20s", 2*time.Hour + 5*time.Minute + 3*time.Second: "2h5m",
	} {
		if got := brief(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
