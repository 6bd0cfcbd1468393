package delta

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// sketchOf writes a dump to a sketch in pieces of random sizes.
func sketchOf(random *rand.Rand, e snap.Engine, dump []byte) *Sketch {
	s := NewSketch(e)
	for len(dump) > 0 {
		n := min(1+random.IntN(10_000), len(dump))
		_, _ = s.Write(dump[:n])
		dump = dump[n:]
	}
	return s
}

// encoded returns the sketch after encoding and decoding it.
func encoded(t testing.TB, s *Sketch) *Sketch {
	t.Helper()
	text, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var read Sketch
	if err := read.UnmarshalBinary(text); err != nil {
		t.Fatal(err)
	}
	return &read
}

// The estimate is close to the share of rows that were changed at random places.
func TestSketchEstimatesHowMuchIsNew(t *testing.T) {
	t.Parallel()
	const rows = 100_000
	for _, percent := range []int{0, 1, 10, 50, 100} {
		random := rand.New(rand.NewPCG(1, uint64(percent)))
		var old, now bytes.Buffer
		for i := range rows {
			value := random.Uint64()
			fmt.Fprintf(&old, "%d\tsomebody\t%d\n", i, value)
			if random.IntN(100) < percent {
				value++
			}
			fmt.Fprintf(&now, "%d\tsomebody\t%d\n", i, value)
		}
		base := encoded(t, sketchOf(random, snap.Postgres, old.Bytes()))
		got := 100 * sketchOf(random, snap.Postgres, now.Bytes()).New(base)
		if off := math.Abs(got - float64(percent)); off > 3 || percent == 0 && got != 0 || percent == 1 && off > 0.7 {
			t.Errorf("%d %% changed: %.2f %% are new", percent, got)
		}
		if n := len(base.samples); n != sketchSize {
			t.Errorf("the sketch has %d samples", n)
		}
	}
}

// Rows that were deleted, moved or repeated are not new, and neither are the pages of a SQLite file
// that stay in place.
func TestSketchKnowsWhatIsNotNew(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var rows []byte
	for i := range 1000 {
		rows = fmt.Appendf(rows, "%d\t%d\n", i, random.Uint64())
	}
	half := bytes.IndexByte(rows[len(rows)/2:], '\n') + len(rows)/2 + 1
	pages := bytes.Repeat([]byte{1}, 8*pageUnit)
	for i := range pages {
		pages[i] = byte(random.Uint64())
	}
	changed := bytes.Clone(pages)
	changed[3*pageUnit+77]++
	long := bytes.Repeat([]byte("x"), 3*sketchUnit)
	for _, c := range []struct {
		name     string
		engine   snap.Engine
		old, now []byte
		want     float64
	}{
		{"deleted", snap.Postgres, rows, rows[half:], 0},
		{"moved", snap.MySQL, rows, append(bytes.Clone(rows[half:]), rows[:half]...), 0},
		{"repeated", snap.MySQL, rows, append(bytes.Clone(rows), rows...), 0},
		{"all", snap.MySQL, rows, []byte("a\nb"), 1},
		{"first", snap.MySQL, nil, rows, 1},
		{"nothing", snap.MySQL, rows, nil, 0},
		{"a page", snap.SQLite, pages, changed, 1.0 / 8},
		{"a long line", snap.MySQL, long, append(bytes.Clone(long), 'y'), 1.0 / (sketchUnit + 1)},
	} {
		got := sketchOf(random, c.engine, c.now).New(encoded(t, sketchOf(random, c.engine, c.old)))
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v is new, want %v", c.name, got, c.want)
		}
	}
}

// Any bytes are either refused or decoded to a sketch that can be compared.
func TestDamagedSketches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "text")
		var s Sketch
		if err := s.UnmarshalBinary(text); (err == nil) != (len(text)%sampleSize == 0) {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
		other := NewSketch(snap.MySQL)
		_, _ = other.Write(text)
		if share := other.New(&s); !(share >= 0 && share <= 1) {
			t.Fatalf("%v is new", share)
		}
	})
	if err := new(Sketch).UnmarshalBinary(make([]byte, (sketchSize+1)*sampleSize)); err == nil {
		t.Error("a sketch that is too large was read")
	}
}

func BenchmarkSketch(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var rows []byte
	for len(rows) < 64<<20 {
		rows = fmt.Appendf(rows, "%d\tsomebody@example.test\t%d\tsome words about it\t2026-01-01\n", len(rows),
			random.Uint64())
	}
	b.SetBytes(int64(len(rows)))
	for b.Loop() {
		s := NewSketch(snap.Postgres)
		for p := rows; len(p) > 0; p = p[min(len(p), 64<<10):] {
			_, _ = s.Write(p[:min(len(p), 64<<10)])
		}
		if _, err := s.MarshalBinary(); err != nil {
			b.Fatal(err)
		}
	}
}
