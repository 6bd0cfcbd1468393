package cli

import "snap"

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

// learn settles the length by the first page; more says that others follow.
func (s *shortener) learn(ids []string, more bool) {
	if s.length > 0 {
		return
	}
	s.length = leastID
	if more {
		s.length = safeID
	}
	for !s.unique(ids) {
		s.length++
	}
	s.shown = map[string]struct{}{}
}

func (s *shortener) unique(ids []string) bool {
	seen := map[string]string{}
	for _, id := range ids {
		short := s.cut(id)
		if other, ok := seen[short]; ok && other != id {
			return false
		}
		seen[short] = id
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
