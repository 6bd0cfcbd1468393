package webui

import "sync"

// trail remembers how the pages of lists follow each other, because the service's cursors only lead
// forward. After a restart, every page but the first links back only to the first.
type trail struct {
	mu    sync.Mutex
	steps map[string]step // by the address of the page
}

// step describes the position of a page in its list.
type step struct {
	previous query
	rows     int // number of rows on the pages before it
}

// trailLimit is the maximum number of remembered steps.
const trailLimit = 2000

func (t *trail) add(to query, s step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil || len(t.steps) >= trailLimit {
		t.steps = map[string]step{}
	}
	t.steps[to.URL()] = s
}

func (t *trail) to(q query) (s step, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.steps[q.URL()]
	return s, ok
}

// follow sets the position of a page in its list.
func (t *trail) follow(l *listing) {
	s, ok := t.to(l.Query)
	if ok {
		l.Previous, l.Before = &s.previous, s.rows
	}
	l.Placed = ok || l.Query.isFirst()
	if l.Next != nil && l.Placed {
		t.add(*l.Next, step{l.Query, l.Before + len(l.Rows)})
	}
}
