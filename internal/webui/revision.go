package webui

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// revisions order the fragments of pages, whose answers may arrive in another
// order than they were made: an older fragment never replaces a newer one.
type revisions struct {
	process string // numbers of different processes do not compare
	last    atomic.Int64
}

func newRevisions() *revisions { return &revisions{process: rand.Text()[:8]} }

// next returns a revision that is newer than all before, as in "Q7XK2B4M.12".
// Take it before reading what the fragment shows, and after the change that it
// confirms.
func (r *revisions) next() string {
	return r.process + "." + strconv.FormatInt(r.last.Add(1), 10)
}
