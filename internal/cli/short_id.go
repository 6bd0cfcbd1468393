package cli

import "snap"

// minID is the minimum number of characters of an ID shown after snap_. safeID is the number shown
// if more pages follow; that many characters hold 60 random bits.
const (
	minID  = 8
	safeID = 12
)

// shortener truncates the IDs of a listing so that each stays unique within it (SPEC 2.1).
type shortener struct {
	length int             // characters after snap_, set by the first page
	shown  map[string]bool // the short forms that are in use
}

// setLength sets the length from the first page. more reports whether other pages follow.
func (s *shortener) setLength(ids []string, more bool) {
	if s.length > 0 {
		return
	}
	s.length = minID
	if more {
		s.length = safeID
	}
	for !s.unique(ids) {
		s.length++
	}
	s.shown = map[string]bool{}
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

// id returns the short form of an ID, or the whole ID if that form was already used.
func (s *shortener) id(id string) string {
	short := s.cut(id)
	if s.shown[short] {
		return id
	}
	s.shown[short] = true
	return short
}
