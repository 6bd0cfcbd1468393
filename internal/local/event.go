package local

// Event reports the progress of a long operation.
type Event struct {
	Phase  string // current phase, a short word such as "dump"
	Done   int64  // bytes done
	Total  int64  // total bytes, at least Done; 0 if unknown
	Detail string // additional information for people, such as a table's name
}

// Progress receives events. It may be nil. It is never called concurrently and must return quickly.
type Progress func(Event)

func (p Progress) report(e Event) {
	if p == nil {
		return
	}
	if e.Total > 0 { // may be an estimate that was too low
		e.Total = max(e.Total, e.Done)
	}
	p(e)
}

// bytes returns a byte counter that reports as the given phase.
func (p Progress) bytes(phase string) func(done, total int64) {
	return func(done, total int64) { p.report(Event{Phase: phase, Done: done, Total: total}) }
}

// phase reports the start of a phase.
func (p Progress) phase(name string) { p.report(Event{Phase: name}) }

// phases returns a byte counter that reports as the current phase, and a function that begins
// another phase. first is the phase at the start.
func (p Progress) phases(first string) (bytes func(done, total int64), begin func(string)) {
	now := first
	return func(done, total int64) { p.report(Event{Phase: now, Done: done, Total: total}) },
		func(name string) { now = name; p.phase(name) }
}
