//go:build linux

package soak

import (
	"slices"
	"sync"
	"time"
)

// truth is the test's knowledge of one fact of the service.
type truth int

const (
	no truth = iota
	yes
	unsure // a change of it was not answered
)

func both(a, b truth) truth {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return unsure
}

func either(a, b truth) truth {
	switch {
	case a == yes || b == yes:
		return yes
	case a == no && b == no:
		return no
	}
	return unsure
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// fact is one bit of the service's state. Only one worker changes it, so at most one change is in
// progress. All fields are guarded by the model.
type fact struct {
	is      truth
	pending bool // the value after the change that is in progress or was not answered
	until   time.Time
	pendEnd time.Time // the value of until after that change
}

// at returns the truth at a time; a share has ended at its end.
func (f *fact) at(now time.Time) truth {
	if f == nil {
		return no
	}
	if f.is == yes && !f.until.IsZero() && !now.Before(f.until) {
		return no
	}
	return f.is
}

// thing is one snapshot.
type thing struct {
	id, target, name, sha string
	seed                  uint64
	size                  int
	owner                 *person

	exists fact
	shared fact
	groups map[string]*fact // by group
	orgs   map[string]*fact // by slug
	// changes counts beginnings and ends of changes.
	changes int
}

// model holds all facts that must be true of the service.
type model struct {
	mu     sync.Mutex
	things []*thing
}

// begin records that a change of a fact is requested.
func (m *model) begin(t *thing, f *fact, to bool, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.is, f.pending, f.pendEnd = unsure, to, until
	t.changes++
}

// done records that the change was answered.
func (m *model) done(t *thing, f *fact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.is, f.until = truthOf(f.pending), f.pendEnd
	t.changes++
}

// retry reports whether the outcome of the last change is unknown, and returns what it requested.
func (m *model) retry(f *fact) (unanswered, to bool, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f.is == unsure, f.pending, f.pendEnd
}

// groupFact returns the fact of a share with a group. If there never was such a share, the fact is
// false.
func (m *model) groupFact(t *thing, group string) *fact { return m.named(&t.groups, group) }

// orgFact is like groupFact, for an organization.
func (m *model) orgFact(t *thing, slug string) *fact { return m.named(&t.orgs, slug) }

func (m *model) named(all *map[string]*fact, name string) *fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	if *all == nil {
		*all = map[string]*fact{}
	}
	if (*all)[name] == nil {
		(*all)[name] = &fact{}
	}
	return (*all)[name]
}

// add makes a thing known.
func (m *model) add(t *thing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.things = append(m.things, t)
}

// all returns the current things, only those of one owner if one is given.
func (m *model) all(owner *person) []*thing {
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner == nil {
		return slices.Clone(m.things)
	}
	var out []*thing
	for _, t := range m.things {
		if t.owner == owner {
			out = append(out, t)
		}
	}
	return out
}

// is returns the current state of a fact.
func (m *model) is(f *fact) truth {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f.at(time.Now())
}

// view is whether a person sees a thing, and after how many changes.
type view struct {
	sees             truth
	changes, signIns int
}

// view says whether a person sees a thing at a time, by SPEC 5.3.
func (m *model) view(p *person, t *thing, now time.Time) view {
	m.mu.Lock()
	defer m.mu.Unlock()
	way := truthOf(t.owner == p)
	if p.org == t.owner.org {
		way = either(way, truthOf(p.admin))
		way = either(way, t.shared.at(now))
		for group, share := range t.groups {
			way = either(way, both(share.at(now), p.groups[group].at(now)))
		}
	} else {
		way = either(way, t.orgs[p.org].at(now))
	}
	return view{both(way, t.exists.at(now)), t.changes, p.signIns}
}

// settled returns the view that held during the whole of a request. It returns false if the view
// changed in the meantime or is unknown.
func settled(before, after view) (truth, bool) {
	return before.sees, before == after && before.sees != unsure
}
