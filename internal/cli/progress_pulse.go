package cli

import (
	"fmt"
	"time"

	"snap/internal/local"
)

// The intervals at which progress is reported when no bar is drawn: as lines in a log, and as
// events with --json.
const (
	lineEvery  = 5 * time.Second
	eventEvery = time.Second
)

// pulse periodically reports the progress and speed of a phase.
type pulse struct {
	now   func() time.Time
	every time.Duration
	say   func(progressEvent)

	phase string
	began time.Time // start of the phase
	from  int64     // progress at the start of the phase: not 0 when a transfer resumes
	last  time.Time // when it last reported
}

// progressEvent is one line of progress that --json writes to standard error.
type progressEvent struct {
	Event   string `json:"event"` // always "progress"
	Phase   string `json:"phase"`
	Done    int64  `json:"done"`            // bytes
	Total   int64  `json:"total,omitempty"` // bytes, when known
	Rate    int64  `json:"bytes_per_second"`
	Seconds int64  `json:"seconds_left,omitempty"` // when it can be estimated
}

// observe receives progress and prints it at intervals. Short work prints nothing.
func (p *pulse) observe(e local.Event) {
	now := p.now()
	if e.Phase != p.phase {
		p.phase, p.began, p.from, p.last = e.Phase, now, e.Done, now
		return
	}
	if now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	rate := float64(max(0, e.Done-p.from)) / now.Sub(p.began).Seconds()
	event := progressEvent{Event: "progress", Phase: e.Phase, Done: e.Done, Total: e.Total, Rate: int64(rate)}
	if rate > 0 && e.Total > e.Done {
		event.Seconds = 1 + int64(float64(e.Total-e.Done)/rate)
	}
	p.say(event)
}

func (a *app) sayEvent(e progressEvent) {
	_ = encodeJSON(a.io.Err, e, "") // the program that reads the events may have ended
}

func (a *app) sayLine(e progressEvent) {
	line := e.Phase + ": " + size(e.Done)
	if e.Total > 0 {
		line += fmt.Sprintf(" of %s (%d%%)", size(e.Total), 100*e.Done/e.Total)
	}
	line += ", " + size(e.Rate) + "/s"
	if e.Seconds > 0 {
		line += ", " + brief(time.Duration(e.Seconds)*time.Second) + " left"
	}
	a.note("%s", line)
}

// brief formats a duration with the precision that matters: 40ms, 2.3s, 1m20s, 2h5m.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
}
