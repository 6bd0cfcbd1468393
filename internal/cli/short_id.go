package cli

import (
	"snap"
	"snap/api"
)

// leastID is how many characters of an ID, after snap_, are always shown, and
// safeID how many when pages follow that are not known yet: 60 random bits.
const (
	leastID = 8
	safeID  = 12
)

// shortener truncates the IDs of a listing so that each stays unique in what
// is shown (SPEC 2.1).
type shortener struct {
	length int                 // characters after snap_; settled by the first page
	shown  map[string]struct{} // what was shown on earlier pages
}

// learn settles the length by a page; more says that others follow.
func (s *shortener) learn(page []api.Snapshot, more bool) {
	if s.length > 0 {
		return
	}
	s.length = leastID
	if more {
		s.length = safeID
	}
	for !s.unique(page) {
		s.length++
	}
	s.shown = map[string]struct{}{}
}

func (s *shortener) unique(page []api.Snapshot) bool {
	seen := map[string]string{}
	for _, item := range page {
		short := s.cut(item.ID)
		if other, ok := seen[short]; ok && other != item.ID {
			return false
		}
		seen[short] = item.ID
	}
	return true
}

func (s *shortener) cut(id string) string {
	if n := len(snap.IDPrefix) + s.length; n < len(id) {
		return id[:n]
	}
	return id
}

// id returns an ID as it is shown: whole when its short form was shown before.
func (s *shortener) id(id string) string {
	short := s.cut(id)
	if _, taken := s.shown[short]; taken {
		return id
	}
	s.shown[short] = struct{}{}
	return short
}
