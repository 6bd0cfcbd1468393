package webui

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// revisions order page fragments, whose responses may arrive out of order: an older fragment never
// replaces a newer one.
type revisions struct {
	process string // identifies the process; numbers of different processes are not comparable
	last    atomic.Int64
}

func newRevisions() *revisions { return &revisions{process: rand.Text()[:8]} }

// next returns a revision that is newer than all before, such as "Q7XK2B4M.12". Obtain it before
// reading the data that a fragment shows, and after the change that the fragment confirms.
func (r *revisions) next() string { return r.process + "." + strconv.FormatInt(r.last.Add(1), 10) }
