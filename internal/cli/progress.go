package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"snap"
	"snap/internal/local"
)

// progress shows the progress of a long action: one bar per phase on a terminal, a line every few
// seconds in a pipe, events with --json, nothing with --quiet. The caller must call end before it
// prints anything else.
func (a *app) progress() (report local.Progress, end func()) {
	switch {
	case a.flags.quiet:
		return nil, func() {}
	case a.flags.json:
		return (&pulse{now: a.now, every: eventEvery, say: a.sayEvent}).observe, func() {}
	case !a.io.ErrTerminal || a.flags.debug || a.env("TERM") == "dumb":
		return phases(a.io.Err, &pulse{now: a.now, every: lineEvery, say: a.sayLine}), func() {}
	}
	b := &bars{box: mpb.New(mpb.WithOutput(a.io.Err), mpb.WithWidth(24), mpb.WithRefreshRate(100*time.Millisecond))}
	return b.observe, b.end
}

// pausableProgress is like progress, for an action that asks questions. pausing wraps a question so
// that no progress is shown while the question is asked.
func (a *app) pausableProgress() (report local.Progress,
	pausing func(ask func(local.Preflight) error) func(local.Preflight) error, end func()) {
	show, hide := a.progress()
	report = func(e local.Event) {
		if show != nil {
			show(e)
		}
	}
	pausing = func(ask func(local.Preflight) error) func(local.Preflight) error {
		return func(p local.Preflight) error {
			hide()
			defer func() { show, hide = a.progress() }()
			return ask(p)
		}
	}
	return report, pausing, func() { hide() }
}

// phases writes a line at the start of each phase, and the lines of the pulse in between.
func phases(w io.Writer, p *pulse) local.Progress {
	last := ""
	return func(e local.Event) {
		if e.Phase != last {
			last = e.Phase
			fmt.Fprintf(w, "%s ...\n", snap.CleanText(e.Phase))
		}
		p.observe(e)
	}
}

// bars shows one progress bar per phase.
type bars struct {
	box    *mpb.Progress
	bar    *mpb.Bar
	phase  string
	spins  bool // the total is unknown
	mu     sync.Mutex
	detail string
}

func (b *bars) observe(e local.Event) {
	if e.Phase != b.phase || b.bar == nil || b.spins && e.Total > 0 {
		b.finish()
		b.phase, b.spins = e.Phase, e.Total <= 0
		b.bar = b.add(snap.CleanText(e.Phase), e.Total)
	}
	b.mu.Lock()
	b.detail = snap.CleanText(e.Detail)
	b.mu.Unlock()
	if e.Total > 0 {
		b.bar.SetTotal(e.Total, false)
	}
	b.bar.SetCurrent(e.Done)
}

func (b *bars) add(phase string, total int64) *mpb.Bar {
	name := decor.Name(phase, decor.WC{W: 10, C: decor.DindentRight})
	detail := decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return " " + b.detail
	})
	if total <= 0 {
		return b.box.New(0, mpb.SpinnerStyle().PositionLeft(), mpb.PrependDecorators(name),
			mpb.AppendDecorators(decor.Any(bytesDone), detail), mpb.BarRemoveOnComplete())
	}
	return b.box.New(total, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding("─"),
		mpb.PrependDecorators(name), mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(decor.Any(bytesDone), decor.AverageSpeed(decor.SizeB1000(0), "  % .1f"),
			decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 6}), detail))
}

// bytesDone formats how many bytes of a phase are done. It returns "" for a phase that does not
// count bytes.
func bytesDone(s decor.Statistics) string {
	switch {
	case s.Total > 0:
		return size(s.Current) + " / " + size(s.Total)
	case s.Current > 0:
		return size(s.Current)
	}
	return ""
}

func (b *bars) finish() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.bar.Wait()
	}
}

// end removes the bars, so that they do not garble later output.
func (b *bars) end() {
	b.finish()
	b.bar = nil
	b.box.Wait()
}
