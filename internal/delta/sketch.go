package delta

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"snap"
)

const (
	sketchSize = 4096     // maximum number of samples of a sketch
	sketchUnit = 64 << 10 // maximum bytes of a unit
	pageUnit   = 4096     // bytes of a unit of a SQLite file: the default size of a page
)

// Sketch is a sample of a dump's units: its lines, or pieces of 4 KiB of a SQLite file. The whole
// dump is passed to Write, which needs little memory. Two sketches show how much of one dump is new
// without reading the dumps again. Equal units count once.
type Sketch struct {
	page    bool
	maxUnit int            // bytes of a unit
	digest  *xxhash.Digest // of a unit that has not ended
	size    int            // bytes of that unit
	limit   uint64         // a unit is sampled if its hash is at most limit
	samples []sample
}

type sample struct {
	hash uint64
	size uint32
}

// NewSketch returns the sketch of an empty dump.
func NewSketch(e snap.Engine) *Sketch {
	s := &Sketch{maxUnit: sketchUnit, digest: xxhash.New(), limit: math.MaxUint64}
	if e == snap.SQLite {
		s.page, s.maxUnit = true, pageUnit
	}
	return s
}

// Write implements io.Writer. It never fails.
func (s *Sketch) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n, ends := s.unit(p)
		if ends && s.size == 0 {
			s.add(xxhash.Sum64(p[:n]), n)
		} else {
			_, _ = s.digest.Write(p[:n]) // it cannot fail
			if s.size += n; ends {
				s.end()
			}
		}
		p = p[n:]
	}
	return all, nil
}

// unit returns how many bytes at the beginning of p belong to the current unit, and whether it ends
// there.
func (s *Sketch) unit(p []byte) (n int, ends bool) {
	p = p[:min(len(p), s.maxUnit-s.size)]
	if !s.page {
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			return i + 1, true
		}
	}
	return len(p), s.size+len(p) == s.maxUnit
}

func (s *Sketch) end() {
	if s.size > 0 {
		s.add(s.digest.Sum64(), s.size)
		s.digest.Reset()
		s.size = 0
	}
}

func (s *Sketch) add(hash uint64, size int) {
	if hash > s.limit {
		return
	}
	if s.samples = append(s.samples, sample{hash, uint32(size)}); len(s.samples) == 2*sketchSize {
		s.cut()
	}
}

// cut keeps the samples with the lowest hashes.
func (s *Sketch) cut() {
	slices.SortFunc(s.samples, func(a, b sample) int { return cmp.Compare(a.hash, b.hash) })
	s.samples = slices.CompactFunc(s.samples, func(a, b sample) bool { return a.hash == b.hash })
	if len(s.samples) >= sketchSize {
		s.samples = s.samples[:sketchSize]
		s.limit = s.samples[sketchSize-1].hash
	}
}

// sampleSize is the number of bytes of an encoded sample.
const sampleSize = 12

// MarshalBinary implements encoding.BinaryMarshaler. Nothing more can be written to the sketch
// afterwards.
func (s *Sketch) MarshalBinary() ([]byte, error) {
	s.end()
	s.cut()
	b := make([]byte, 0, len(s.samples)*sampleSize)
	for _, x := range s.samples {
		b = binary.BigEndian.AppendUint64(b, x.hash)
		b = binary.BigEndian.AppendUint32(b, x.size)
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (s *Sketch) UnmarshalBinary(b []byte) error {
	if len(b)%sampleSize != 0 || len(b) > sketchSize*sampleSize {
		return errors.New("the sketch of a dump is damaged")
	}
	*s = *NewSketch("")
	for ; len(b) > 0; b = b[sampleSize:] {
		s.samples = append(s.samples, sample{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])})
	}
	s.cut()
	return nil
}

// New estimates the share of a dump's bytes that another dump, the base, does not have. Nothing
// more can be written to either sketch afterwards.
func (s *Sketch) New(base *Sketch) (share float64) {
	s.end()
	s.cut()
	base.end()
	base.cut()
	limit := min(s.limit, base.limit)
	var all, added uint64
	old := base.samples
	for _, x := range s.samples {
		if x.hash > limit {
			break
		}
		for len(old) > 0 && old[0].hash < x.hash {
			old = old[1:]
		}
		all += uint64(x.size)
		if len(old) == 0 || old[0].hash != x.hash {
			added += uint64(x.size)
		}
	}
	if all == 0 {
		return 0
	}
	return float64(added) / float64(all)
}
