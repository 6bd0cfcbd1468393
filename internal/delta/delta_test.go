package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/archive"
)

// packed is a snapshot file in memory.
type packed struct {
	bytes []byte
	File
}

func (p packed) open(t testing.TB) *archive.Reader {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(p.bytes), int64(len(p.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pack makes a snapshot file with these sections.
func pack(t testing.TB, e snap.Engine, name string, sections ...[]byte) packed {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range sections {
		s, err := w.Section(fmt.Sprintf("dump%c", 'a'+i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close(archive.Manifest{Engine: e, Target: "shop", Name: name, Type: snap.TypeSnapshot,
		Created: time.Date(2026, 1, 1, 0, 0, 0, len(name), time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return packed{b.Bytes(), File{sum.Size, sum.SHA256}}
}

// write returns the delta between two files.
func write(t testing.TB, base, result packed) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := Write(t.Context(), &b, base.open(t), result.open(t), base.File, result.File, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if n.Size != int64(b.Len()) {
		t.Fatalf("Write reports %d bytes and wrote %d", n.Size, b.Len())
	}
	return b.Bytes()
}

// apply applies a delta to a base.
func apply(ctx context.Context, base *archive.Reader, d []byte) ([]byte, error) {
	r := bytes.NewReader(d)
	h, err := ReadHeader(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = Apply(ctx, &b, h, base, r)
	return b.Bytes(), err
}

// rows returns rows of a dump of n rows, the same ones for the same seed.
func rows(n int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%d\tcustomer %d\t%x@example.com\t%d\t2026-01-%02d\n", int(seed)*1_000_000+i, r.IntN(1e6),
			r.Uint64(), r.IntN(1000), 1+r.IntN(28))
	}
	return all
}

func joined(parts ...[]string) []byte {
	var b strings.Builder
	for _, p := range parts {
		for _, s := range p {
			b.WriteString(s)
		}
	}
	return []byte(b.String())
}

// changed returns rows with one percent updated and moved to the end, 0.2 percent deleted, and 5
// percent appended, as PostgreSQL's dump has them.
func changed(old []string) []string {
	r := rand.New(rand.NewPCG(3, 3))
	var all, moved []string
	for _, row := range old {
		switch n := r.IntN(1000); {
		case n < 10:
			moved = append(moved, strings.Replace(row, "customer", "client", 1))
		case n < 12:
		default:
			all = append(all, row)
		}
	}
	return append(append(all, moved...), rows(len(old)/20, 99)...)
}

// TestSmallChangesAreSmallDeltas measures the cases that deltas are made for.
func TestSmallChangesAreSmallDeltas(t *testing.T) {
	t.Parallel()
	old := rows(40_000, 1)
	base := pack(t, snap.Postgres, "before", joined(old), joined(rows(5000, 2)))
	for _, c := range []struct {
		name    string
		percent float64
		result  packed
	}{
		{"nothing", 0.1, pack(t, snap.Postgres, "later", joined(old), joined(rows(5000, 2)))},
		{"some rows", 6.5, pack(t, snap.Postgres, "after", joined(changed(old)), joined(rows(5000, 2)))},
		{"a table moved", 0.2, pack(t, snap.Postgres, "moved", joined(rows(5000, 2), old))},
		{"fewer rows", 0.2, pack(t, snap.Postgres, "fewer", joined(old[100:30_000]), joined(rows(5000, 2)))},
	} {
		d := write(t, base, c.result)
		got, err := apply(t.Context(), base.open(t), d)
		if err != nil || !bytes.Equal(got, c.result.bytes) {
			t.Fatalf("%s: the result differs: %v %v", c.name, err, errors.Unwrap(err))
		}
		percent := 100 * float64(len(d)) / float64(len(c.result.bytes))
		t.Logf("%s: %d of %d bytes, %.2f %%", c.name, len(d), len(c.result.bytes), percent)
		if percent > c.percent {
			t.Errorf("%s: %.2f %%, want at most %.2f", c.name, percent, c.percent)
		}
	}
}

// TestDeltaGivesTheResult is the contract, for any two files: of lines, of pages and of anything.
func TestDeltaGivesTheResult(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		e := rapid.SampledFrom([]snap.Engine{snap.Postgres, snap.SQLite}).Draw(r, "engine")
		first := content(r, "base")
		base := pack(t, e, "base", first, content(r, "base 2"))
		result := pack(t, e, "result", edited(r, first), content(r, "result 2"))
		got, err := apply(t.Context(), base.open(t), write(t, base, result))
		if err != nil || !bytes.Equal(got, result.bytes) {
			r.Fatalf("the result differs: %v", err)
		}
	})
}

func content(r *rapid.T, label string) []byte {
	all := rows(rapid.IntRange(0, 3000).Draw(r, label+" rows"), uint64(rapid.IntRange(1, 3).Draw(r, label+" seed")))
	b := joined(all, []string{rapid.StringN(0, 50, -1).Draw(r, label+" rest")})
	if rapid.Bool().Draw(r, label+" long") {
		b = append(b, bytes.Repeat([]byte("0123456789abcdef"), rapid.IntRange(0, 100_000).Draw(r, label+" times"))...)
	}
	return b
}

// edited returns a content with some ranges removed, repeated or replaced.
func edited(r *rapid.T, b []byte) []byte {
	for range rapid.IntRange(0, 6).Draw(r, "edits") {
		if len(b) == 0 {
			return b
		}
		from := rapid.IntRange(0, len(b)-1).Draw(r, "from")
		to := rapid.IntRange(from, min(len(b), from+100_000)).Draw(r, "to")
		with := [][]byte{nil, []byte("new\tvalue\n"), append(bytes.Clone(b[from:to]), b[from:to]...),
			bytes.ToUpper(b[from:to])}[rapid.IntRange(0, 3).Draw(r, "edit")]
		b = append(append(bytes.Clone(b[:from]), with...), b[to:]...)
	}
	return b
}

// TestNothingWrongIsAResult damages the delta or the base. Every outcome but an error or the right
// bytes is a failure, and the error says that the whole file is needed.
func TestNothingWrongIsAResult(t *testing.T) {
	t.Parallel()
	old := rows(4000, 1)
	base, other := pack(t, snap.Postgres, "base", joined(old)), pack(t, snap.Postgres, "b", joined(old[10:]))
	result := pack(t, snap.Postgres, "result", joined(changed(old)))
	d := write(t, base, result)
	check := func(r *rapid.T, base []byte, d []byte) {
		reader, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
		if err != nil {
			return
		}
		got, err := apply(t.Context(), reader, d)
		if err == nil && !bytes.Equal(got, result.bytes) {
			r.Fatal("wrong bytes were accepted")
		}
		if code := snap.CodeOf(err); err != nil && code != snap.CodeCorrupt && code != snap.CodeInvalid {
			r.Fatalf("the error has code %q: %v", code, err)
		}
		if len(got) > len(result.bytes)+1<<20 {
			r.Fatalf("it wrote %d bytes", len(got))
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		b, x := bytes.Clone(base.bytes), bytes.Clone(d)
		switch rapid.IntRange(0, 4).Draw(r, "damage") {
		case 0:
			x[rapid.IntRange(0, len(x)-1).Draw(r, "at")] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		case 1:
			x = x[:rapid.IntRange(0, len(x)-1).Draw(r, "length")]
		case 2:
			x = append(x, 0)
		case 3:
			b[rapid.IntRange(0, len(b)-1).Draw(r, "at")] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		case 4:
			b = other.bytes
		}
		check(r, b, x)
	})
}

// TestLimits: a delta that is no use ends early, a file that cannot be rebuilt has none, and a
// cancelled context ends the work.
func TestLimits(t *testing.T) {
	t.Parallel()
	base, result := pack(t, snap.Postgres, "base", joined(rows(9000, 1))), pack(t, snap.Postgres, "result",
		joined(rows(9000, 2)))
	var b bytes.Buffer
	_, err := Write(t.Context(), &b, base.open(t), result.open(t), base.File, result.File, 10_000)
	if !errors.Is(err, ErrLarge) || b.Len() > 10_000 {
		t.Errorf("%d bytes, error %v", b.Len(), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ended, &b, base.open(t), result.open(t), base.File, result.File, 1<<40); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := apply(ended, base.open(t), write(t, base, result)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestIndexKeepsASample: an index that is full keeps every second anchor and stays within its size.
func TestIndexKeepsASample(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes 64 MiB of memory")
	}
	x, r := newIndex(), rand.New(rand.NewPCG(1, 1))
	const many = 5_000_000
	hashes := make([]uint64, many)
	for i := range hashes {
		hashes[i] = r.Uint64()
		x.add(hashes[i], int64(i))
	}
	if len(x.slots) != maxSlots || x.mask == 0 {
		t.Fatalf("%d slots, mask %x", len(x.slots), x.mask)
	}
	found := 0
	for i, h := range hashes {
		switch at := x.find(h); at {
		case int64(i):
			found++
		case -1:
		default:
			t.Fatalf("anchor %d is found at %d", i, at)
		}
	}
	if found < many/4 || found != x.used {
		t.Errorf("%d of %d anchors are found, %d used", found, many, x.used)
	}
}

// FuzzApply: whatever the delta is, applying it ends, and its result is right or refused.
func FuzzApply(f *testing.F) {
	old := rows(300, 1)
	base, result := pack(f, snap.Postgres, "base", joined(old)), pack(f, snap.Postgres, "result", joined(changed(old)))
	f.Add(write(f, base, result))
	f.Add(write(f, base, base))
	f.Fuzz(func(t *testing.T, d []byte) {
		r := bytes.NewReader(d)
		h, err := ReadHeader(r)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Apply(t.Context(), &b, h, base.open(t), r); int64(b.Len()) > h.Result.Size {
			t.Errorf("%d bytes of %d, error %v", b.Len(), h.Result.Size, err)
		}
	})
}
