package local

// Event tells how far a long action is.
type Event struct {
	Phase  string // what is being done now, such as "dump"; a short word
	Done   int64  // bytes done
	Total  int64  // bytes in all; 0 when not known
	Detail string // more for a person, such as a table's name
}

// Progress receives events; it may be nil. It is called from one goroutine at a
// time and must return quickly.
type Progress func(Event)

func (p Progress) report(e Event) {
	if p != nil {
		p(e)
	}
}

// bytes returns a byte counter that reports as the given phase.
func (p Progress) bytes(phase string) func(done, total int64) {
	return func(done, total int64) { p.report(Event{Phase: phase, Done: done, Total: total}) }
}

// phase reports that a phase begins.
func (p Progress) phase(name string) { p.report(Event{Phase: name}) }

// following returns a byte counter that reports as the phase that began last,
// and the function that begins one.
func (p Progress) following(first string) (bytes func(done, total int64), begin func(string)) {
	now := first
	return func(done, total int64) { p.report(Event{Phase: now, Done: done, Total: total}) },
		func(name string) { now = name; p.phase(name) }
}
