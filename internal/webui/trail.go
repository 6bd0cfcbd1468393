package webui

import "sync"

// trail remembers, for each page of a list, the page before it, because the service's cursors only
// lead forward. A page that is not remembered links back only to the first page.
type trail struct {
	mu    sync.Mutex
	steps map[string]step // by the address of the page
}

// step describes the position of a page in its list.
type step struct {
	previous query
	rows     int // number of rows on the pages before it
}

// trailLimit is the maximum number of remembered steps. Beyond it, all of them are forgotten.
const trailLimit = 2000

func (t *trail) add(to query, s step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil || len(t.steps) >= trailLimit {
		t.steps = map[string]step{}
	}
	t.steps[to.URL()] = s
}

// follow sets the position of a page in its list, and remembers the position of the next page.
func (t *trail) follow(l *listing) {
	t.mu.Lock()
	s, ok := t.steps[l.Query.URL()]
	t.mu.Unlock()
	if ok {
		l.Previous, l.Before = &s.previous, s.rows
	}
	l.Placed = ok || l.Query.isFirst()
	if l.Next != nil && l.Placed {
		t.add(*l.Next, step{l.Query, l.Before + len(l.Rows)})
	}
}
