package sanitize

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"snap"
)

// minWatched is the length from which a value is looked for. Shorter ones
// stand elsewhere by chance.
const minWatched = 8

// Scanner passes a stream on and looks for original values in it. A value is
// found wherever it stands, in any column and across writes.
type Scanner struct {
	w       io.Writer
	watched []Watched
	starts  map[uint64][]int // by their first eight bytes
	filter  [1 << 16]bool    // by a mix of them, to pass by most places quickly
	tail    []byte           // the end of what was written, for values across writes
	longest int
	found   map[string]int // by column
}

// NewScanner returns a scanner that writes to w.
func NewScanner(w io.Writer, watched []Watched) *Scanner {
	s := &Scanner{w: w, watched: watched, starts: map[uint64][]int{}, found: map[string]int{}}
	for i, v := range watched {
		start := binary.LittleEndian.Uint64([]byte(v.Value))
		s.starts[start] = append(s.starts[start], i)
		s.filter[mix(start)] = true
		s.longest = max(s.longest, len(v.Value))
	}
	return s
}

func mix(start uint64) uint16 { return uint16((start * 0x9e3779b97f4a7c15) >> 48) }

// Write implements io.Writer.
func (s *Scanner) Write(p []byte) (int, error) {
	if len(s.watched) > 0 {
		// First what spans the last write and this one, then this one alone.
		border := len(s.tail)
		joined := slices.Concat(s.tail, p[:min(len(p), s.longest-1)])
		s.scan(joined, border)
		s.scan(p, len(p))
		s.keep(p)
	}
	return s.w.Write(p)
}

// keep remembers the last bytes of the stream.
func (s *Scanner) keep(p []byte) {
	most := s.longest - 1
	if len(p) >= most {
		s.tail = append(s.tail[:0], p[len(p)-most:]...)
		return
	}
	s.tail = append(s.tail, p...)
	s.tail = append([]byte(nil), s.tail[max(0, len(s.tail)-most):]...)
}

// scan looks for values that start before the given place.
func (s *Scanner) scan(b []byte, before int) {
	for i := 0; i+8 <= len(b) && i < before; i++ {
		start := binary.LittleEndian.Uint64(b[i:])
		if !s.filter[mix(start)] {
			continue
		}
		for _, at := range s.starts[start] {
			v := s.watched[at].Value
			if len(b)-i >= len(v) && string(b[i:i+len(v)]) == v {
				s.found[s.watched[at].Column]++
			}
		}
	}
}

// Result returns nil when no value was found, else an error that names the
// columns.
func (s *Scanner) Result() error {
	if len(s.found) == 0 {
		return nil
	}
	return snap.Invalid(
		fmt.Sprintf("original values of %s are still in the masked copy: another column has them too",
			some(sortedKeys(s.found))),
		"mask that column too; if the values are no secret, write shared: true into the column's rule")
}
