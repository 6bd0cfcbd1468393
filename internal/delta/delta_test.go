package delta

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/archive"
	"snap/internal/servertest"
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

// pack creates a snapshot file with these sections.
func pack(t testing.TB, e snap.Engine, name string, sections ...[]byte) packed {
	t.Helper()
	p, err := packedFile(e, name, sections...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func packedFile(e snap.Engine, name string, sections ...[]byte) (packed, error) {
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, 2)
	if err != nil {
		return packed{}, err
	}
	for i, content := range sections {
		s, err := w.Section(fmt.Sprintf("dump%c", 'a'+i))
		if err != nil {
			return packed{}, err
		}
		if _, err := s.Write(content); err != nil {
			return packed{}, err
		}
		if err := s.Close(); err != nil {
			return packed{}, err
		}
	}
	sum, err := w.Close(archive.Manifest{Engine: e, Target: "shop", Name: name, Type: snap.TypeSnapshot,
		Created: time.Date(2026, 1, 1, 0, 0, 0, len(name), time.UTC)})
	return packed{b.Bytes(), File{sum.Size, sum.SHA256}}, err
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

// madeRows are the rows that tests have asked for, by seed.
var madeRows = struct {
	sync.Mutex
	by map[uint64][]string
}{by: map[uint64][]string{}}

// rows returns the first n rows of a dump. They depend only on the seed, and tests share them.
func rows(n int, seed uint64) []string {
	madeRows.Lock()
	defer madeRows.Unlock()
	if len(madeRows.by[seed]) < n {
		madeRows.by[seed] = makeRows(max(n, 4000), seed)
	}
	return madeRows.by[seed][:n:n]
}

func makeRows(n int, seed uint64) []string {
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

// widened returns rows with a text appended to each. For "\b" it removes the last two bytes of each
// instead.
func widened(old []string, text string) []string {
	all := make([]string, len(old))
	for i, row := range old {
		row = strings.TrimSuffix(row, "\n")
		if text == "\b" {
			row = row[:len(row)-2]
		} else {
			row += text
		}
		all[i] = row + "\n"
	}
	return all
}

// TestShortRows checks that rows shorter than the bytes that the index hashes are still found if each
// of them, or every second one, has changed.
func TestShortRows(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	r := rand.New(rand.NewPCG(5, 5))
	old := make([]string, 60_000)
	for i := range old {
		old[i] = fmt.Sprintf("%d\t%d\t%d\t%d.%02d\n", i, r.IntN(30_000), r.IntN(9), r.IntN(100_000), r.IntN(100))
	}
	half, fewer := slices.Clone(old), []string{}
	for i := range half {
		if i%2 == 0 {
			half[i] = fmt.Sprintf("%d\tnew\n", i)
		}
		if i%7 != 0 {
			fewer = append(fewer, old[i])
		}
	}
	base := pack(t, snap.Postgres, "base", joined(old))
	for name, c := range map[string]struct {
		rows    []string
		percent float64
	}{"a column": {widened(old, "\t7"), 0.5}, "half": {half, 14}, "fewer": {fewer, 2.5}} {
		result := pack(t, snap.Postgres, "result", joined(c.rows))
		d := write(t, base, result)
		percent := 100 * float64(len(d)) / float64(len(result.bytes))
		t.Logf("%s: %d of %d bytes, %.2f %%", name, len(d), len(result.bytes), percent)
		if percent > c.percent {
			t.Errorf("%s: %.2f %%, want at most %.2f", name, percent, c.percent)
		}
		if got, err := apply(t.Context(), base.open(t), d); err != nil || !bytes.Equal(got, result.bytes) {
			t.Errorf("%s: the result differs: %v", name, err)
		}
	}
}

// TestRowsOfStatements checks that the delta is small if each short row of INSERT statements gets a
// value before its closing parenthesis, although the lines with the columns, which repeat, lead the
// writer back to the first statement.
func TestRowsOfStatements(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	columns := "INSERT INTO `event` (`id`,`customer`,`kind`,`value`,`reading`,`accepted`"
	before, after := []string{columns + ") VALUES\n"}, []string{columns + ",`added`) VALUES\n"}
	for i := range 60_000 {
		row := fmt.Sprintf("(%d,%d,%d,%d.%02d", i, r.IntN(30_000), r.IntN(9), r.IntN(100_000), r.IntN(100))
		if end := "),\n"; i%2000 != 1999 {
			before, after = append(before, row+end), append(after, row+",7"+end)
		} else {
			end = ");\n" + columns
			before, after = append(before, row+end+") VALUES\n"), append(after, row+",7"+end+",`added`) VALUES\n")
		}
	}
	base, result := pack(t, snap.MySQL, "base", joined(before)), pack(t, snap.MySQL, "result", joined(after))
	d := write(t, base, result)
	if percent := 100 * float64(len(d)) / float64(len(result.bytes)); percent > 0.5 {
		t.Errorf("a column takes %.2f %% of the file", percent)
	}
	if got, err := apply(t.Context(), base.open(t), d); err != nil || !bytes.Equal(got, result.bytes) {
		t.Errorf("the result differs: %v", err)
	}
}

// TestTablesThatGrewAndMoved checks that rows are found far away although every one has grown.
func TestTablesThatGrewAndMoved(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	r := rand.New(rand.NewPCG(7, 7))
	var before, after [2][]string
	for table, rows := range []int{110_000, 10_000} { // nearBytes is as long as about 104,000 rows
		for i := range rows {
			row := fmt.Sprintf("(%d,'%064x',%d", i, r.Uint64(), r.IntN(1_000_000))
			before[table] = append(before[table], row+"),\n")
			after[table] = append(after[table], row+",7),\n")
		}
	}
	base := pack(t, snap.MySQL, "base", joined(before[0], before[1]))
	result := pack(t, snap.MySQL, "result", joined(after[1], after[0]))
	d := write(t, base, result)
	if percent := 100 * float64(len(d)) / float64(len(result.bytes)); percent > 0.2 {
		t.Errorf("a column takes %.2f %% of the file", percent)
	}
	if got, err := apply(t.Context(), base.open(t), d); err != nil || !bytes.Equal(got, result.bytes) {
		t.Errorf("the result differs: %v", err)
	}
}

// TestSmallChangesAreSmallDeltas measures the cases that deltas are made for.
func TestSmallChangesAreSmallDeltas(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
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
		{"a column", 0.2, pack(t, snap.Postgres, "column", joined(widened(old, "\t7")), joined(rows(5000, 2)))},
		{"no column", 5, pack(t, snap.Postgres, "narrow", joined(widened(old, "\b")), joined(rows(5000, 2)))},
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

// After a jump to the end of the base, the writer finds its way back to the beginning, although a row
// has changed every few KB there.
func TestWriterReturnsFromTheEnd(t *testing.T) {
	t.Parallel()
	old := rows(160_000, 1)
	moved := old[len(old)-1000:]
	rest := slices.Clone(old[:len(old)-1000])
	for i := 50; i < len(rest); i += 100 {
		rest[i] = strings.Replace(rest[i], "customer", "client", 1)
	}
	base := pack(t, snap.MySQL, "a", joined(old))
	result := pack(t, snap.MySQL, "b", joined(moved, rest))
	if size := int64(len(write(t, base, result))); size > result.Size/10 {
		t.Errorf("the delta has %d bytes of %d", size, result.Size)
	}
}

// TestDeltaGivesTheResult checks that applying the delta between any two files gives the second
// one: files of lines, of pages, and of arbitrary bytes.
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
		b = append(b, bytes.Repeat([]byte("0123456789abcdef"), rapid.IntRange(0, 70_000).Draw(r, label+" times"))...)
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

// TestNothingWrongIsAResult damages the delta or the base. The outcome must be the right bytes, or
// an error that says that the whole file is needed.
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

// TestLimits checks that writing a useless delta ends early, and that a canceled context ends the
// work.
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
		t.Errorf("canceled: %v", err)
	}
	if _, err := apply(ended, base.open(t), write(t, base, result)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestHostileDeltasEndEarly checks that a small delta is soon refused if it reads much of its base
// for each byte of its result, whether it reads ranges, dictionaries or the manifest.
func TestHostileDeltasEndEarly(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	base := pack(t, snap.Postgres, "base", make([]byte, 40<<20)) // more than the blocks that are cached
	content, err := base.open(t).Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	end := content.Size() - content.Manifest
	for name, part := range map[string]func() group{
		"dictionaries": func() (g group) {
			for i := range int64(36) {
				g.dict = append(g.dict, span{i << 20, 1})
			}
			g.ops, g.literals = []op{{literal: minPacked}}, make([]byte, minPacked)
			return g
		},
		"ranges": func() (g group) {
			for i := range int64(36) {
				g.ops = append(g.ops, op{copied: 1, jump: 1<<20 - 1})
				if i == 35 {
					g.ops = append(g.ops, op{copied: 1, jump: -36 << 20})
				}
			}
			return g
		},
	} {
		var d bytes.Buffer
		outline := []archive.Extent{{Name: "dump", Size: 1 << 20}}
		if err := writeHeader(&d, Header{Base: base.File, Result: File{1 << 20, base.SHA256},
			Encoder: archive.Encoder, Sections: outline}); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			if err := writeGroup(&d, part()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := apply(t.Context(), base.open(t), d.Bytes())
		if snap.CodeOf(err) != snap.CodeCorrupt || !errors.Is(err, archive.ErrLoads) {
			t.Errorf("%s, in a delta of %d bytes: %v", name, d.Len(), err)
		}
	}
	for at := end; at < end+10_000 && at < content.Size(); at++ {
		content.LimitLoads(1)
		if _, err := content.From(at); err != nil {
			t.Fatalf("the manifest is loaded for each of its bytes: %v", err)
		}
	}
}

// TestHostilePairsEndEarly checks that comparing two files soon ends if they were made so that each
// line of the result leads to another block of the base.
func TestHostilePairsEndEarly(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	const line, mib = 128, 1 << 20
	content := make([]byte, 24*mib) // more than the blocks that are cached
	for at := 0; at < len(content); at += line {
		copy(content[at:], fmt.Sprintf("%-*d\n", line-1, at))
	}
	var far []byte
	for n := range 4000 {
		at := n*mib%len(content) + n*line%mib
		far = append(far, content[at:at+line]...)
	}
	base, result := pack(t, snap.Postgres, "base", content), pack(t, snap.Postgres, "result", far)
	_, err := Write(t.Context(), io.Discard, base.open(t), result.open(t), base.File, result.File, 1<<30)
	if !errors.Is(err, archive.ErrLoads) {
		t.Errorf("the delta was written: %v", err)
	}
}

// TestContentOutOfProportion checks that a delta cannot describe far more content than its result has
// room for, when it is read and when it is written.
func TestContentOutOfProportion(t *testing.T) {
	t.Parallel()
	base := pack(t, snap.Postgres, "base", joined(rows(10, 1)))
	for size, code := range map[int64]snap.Code{manyBytes: "", 1 << 30: "", 1<<30 + 1001: snap.CodeInvalid,
		1 << 40: snap.CodeInvalid} {
		var d bytes.Buffer
		h := Header{Base: base.File, Result: File{1 << 30 / maxRatio, base.SHA256}, Encoder: archive.Encoder,
			Sections: []archive.Extent{{Name: "dump", Size: size}}}
		if err := writeHeader(&d, h); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadHeader(&d); snap.CodeOf(err) != code {
			t.Errorf("%d bytes of content: %v, want %q", size, err, code)
		}
	}
	zeros := pack(t, snap.Postgres, "zeros", make([]byte, manyBytes+1))
	if _, err := Write(t.Context(), io.Discard, base.open(t), zeros.open(t), base.File, zeros.File,
		1<<40); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("a file of %d bytes: %v", zeros.Size, err)
	}
}

// writeGroup writes a group without checking it, with its literals compressed by zstd.
func writeGroup(w io.Writer, g group) error {
	b := binary.AppendUvarint(make([]byte, 4), uint64(len(g.ops)))
	b = binary.AppendUvarint(b, uint64(len(g.dict)))
	at := int64(0)
	for _, s := range g.dict {
		b = binary.AppendUvarint(binary.AppendVarint(b, s.at-at), uint64(s.size))
		at = s.at + s.size
	}
	literals, err := compressed(g.literals, nil)
	if err != nil {
		return err
	}
	b = part{asIs, len(g.encodeOps()), g.encodeOps()}.append(literals.append(b))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err = w.Write(b)
	return err
}

// TestIndexKeepsASample checks that a full index keeps every second anchor and does not exceed its
// size.
func TestIndexKeepsASample(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a second")
	}
	x, r := newIndex(maphash.MakeSeed(), 1<<20), rand.New(rand.NewPCG(1, 1))
	const many = 2_000_000
	hashes := make([]uint64, many)
	for i := range hashes {
		hashes[i] = r.Uint64()
		x.add(hashes[i], int64(i))
	}
	if len(x.slots) != x.limit || x.mask == 0 {
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
	if found < many/8 || found != x.used {
		t.Errorf("%d of %d anchors are found, %d used", found, many, x.used)
	}
}

// TestNearbyFollows checks that all anchors near the expected position are found, while it moves
// on, and after jumps.
func TestNearbyFollows(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	plain := make([]byte, 40<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(plain)
	content, err := pack(t, snap.SQLite, "base", plain).open(t).Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	seed := maphash.MakeSeed()
	w := &writer{ctx: t.Context(), base: content, anchors: anchors{binary: true}, nearby: newNearby(seed)}
	for _, at := range []int64{0, 3, 5, 7, 9, 12, 14, 15, 17, 13, 30, 32, 33, 29, 39, 12, 14, 1} { // MiB
		w.in.at += step
		w.drift = at<<20 - w.in.at
		if err := w.follow(); err != nil {
			t.Fatal(err)
		}
		until := min(len(plain)-anchorBytes, int(w.expected()+step))
		for i := max(0, int(w.expected()-step)); ; i++ {
			if i = w.anchors.next(plain, i, 0); i >= until {
				break
			}
			found := w.nearby.find(maphash.Bytes(seed, plain[i:i+anchorBytes]))
			if found < 0 || !bytes.Equal(plain[found:found+anchorBytes], plain[i:i+anchorBytes]) {
				t.Fatalf("at %d MiB, the anchor at %d is found at %d", at, i, found)
			}
		}
	}
}

// FuzzApply checks that applying any delta ends, and writes no more bytes than its header
// announces.
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

// history simulates one database and its snapshots on three machines. Rows and tables change, and
// snapshots are transferred from machine to machine, by delta if that is possible. Files lose bytes
// or disappear, and either side of a transfer is killed at any point.
type history struct {
	*rapid.T
	random *rand.Rand
	engine snap.Engine
	page   int // bytes of a page of SQLite
	tables []*dbTable
	named  int              // tables so far
	built  []packed         // every snapshot as its build wrote it
	places []map[int][]byte // the files of each machine, by the number of the snapshot
	whole  int              // transfers of whole files
	deltas int              // transfers by delta that succeeded
}

// dbTable is a table. Its rows are in pages, as a database keeps them.
type dbTable struct {
	name    string
	columns []string
	pages   [][][]string
}

// histories returns how many histories TestHistories runs: SNAP_HISTORIES, or a hundred, or 20 with
// -short.
func histories() int {
	if n, err := strconv.Atoi(os.Getenv("SNAP_HISTORIES")); err == nil {
		return n
	}
	if testing.Short() {
		return 20
	}
	return 100
}

// TestHistories checks that a transfer ends with the file that was built, or with an error that
// names the reason. A failed transfer leaves no file, and no transfer changes another file.
// SNAP_HISTORIES is the number of histories.
func TestHistories(t *testing.T) {
	t.Parallel()
	count, whole, deltas := 0, 0, 0
	for count < histories() && !t.Failed() {
		rapid.Check(t, func(r *rapid.T) {
			if count >= histories() {
				return
			}
			h := begin(r)
			for range rapid.IntRange(2, 10).Draw(r, "steps") {
				h.step()
			}
			h.deliver()
			count, whole, deltas = count+1, whole+h.whole, deltas+h.deltas
		})
	}
	t.Logf("%d histories: %d transfers by delta, %d of whole files", count, deltas, whole)
	if count >= 100 && deltas < whole/20 {
		t.Errorf("only %d transfers were by delta, %d of whole files", deltas, whole)
	}
}

func begin(r *rapid.T) *history {
	h := &history{T: r, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)),
		engine: rapid.SampledFrom([]snap.Engine{snap.Postgres, snap.MySQL, snap.SQLite}).Draw(r, "engine"),
		page:   rapid.SampledFrom([]int{512, 1024, 4096}).Draw(r, "page")}
	for range 3 {
		h.places = append(h.places, map[int][]byte{})
	}
	h.create()
	h.build()
	for to := range h.places[1:] {
		h.transfer(0, 0, to+1)
	}
	return h
}

// pick draws a number below n.
func (h *history) pick(n int, label string) int { return rapid.IntRange(0, n-1).Draw(h.T, label) }

func (h *history) step() {
	steps := []func(){h.change, h.change, h.alter, h.create, h.build, h.build, h.build, h.send, h.send, h.send,
		h.send, h.damage, h.lose, h.buildOlder}
	steps[h.pick(len(steps), "step")]()
}

// create adds a table with some rows.
func (h *history) create() {
	h.named++
	t := &dbTable{name: fmt.Sprintf("table_%d", h.named), columns: []string{"id", "name", "note"}}
	h.tables = append(h.tables, t)
	h.insert(t, h.random.IntN(400))
}

func (h *history) table() *dbTable {
	if len(h.tables) == 0 {
		h.create()
	}
	return h.tables[h.pick(len(h.tables), "table")]
}

func (h *history) value() string {
	return strings.Repeat("v", h.random.IntN(20)) + strconv.FormatUint(h.random.Uint64(), 36)
}

func (h *history) insert(t *dbTable, n int) {
	for range n {
		if last := len(t.pages) - 1; last < 0 || len(t.pages[last]) == 8 {
			t.pages = append(t.pages, nil)
		}
		row := make([]string, len(t.columns))
		for i := range row {
			row[i] = h.value()
		}
		last := len(t.pages) - 1
		t.pages[last] = append(t.pages[last], row)
	}
}

// change updates, deletes and inserts some rows of a table, or updates all its rows and inserts
// some.
func (h *history) change() {
	t := h.table()
	percent := rapid.SampledFrom([]int{0, 1, 5, 100}).Draw(h.T, "percent")
	moves := rapid.Bool().Draw(h.T, "updated rows move to the end")
	var moved [][]string
	for i, page := range t.pages {
		t.pages[i] = slices.DeleteFunc(page, func(row []string) bool {
			switch n := h.random.IntN(100); {
			case n < percent:
				row[len(row)-1] = h.value()
				if moves {
					moved = append(moved, row)
				}
				return moves
			default:
				return n == 99 && percent > 0
			}
		})
	}
	t.pages = append(t.pages, moved)
	h.insert(t, h.random.IntN(1+percent))
}

// alter changes the schema.
func (h *history) alter() {
	t := h.table()
	switch h.pick(5, "change of the schema") {
	case 0:
		t.columns = append(t.columns, fmt.Sprintf("column_%d", h.random.IntN(1000)))
		t.each(func(row []string) []string { return append(row, h.value()) })
	case 1:
		if n := len(t.columns) - 1; n > 0 {
			t.columns = t.columns[:n]
			t.each(func(row []string) []string { return row[:n] })
		}
	case 2:
		t.name += "_renamed"
	case 3:
		h.tables = slices.DeleteFunc(h.tables, func(other *dbTable) bool { return other == t })
	case 4: // a vacuum, or another order of the tables
		h.random.Shuffle(len(t.pages), func(i, j int) { t.pages[i], t.pages[j] = t.pages[j], t.pages[i] })
		h.random.Shuffle(len(h.tables), func(i, j int) { h.tables[i], h.tables[j] = h.tables[j], h.tables[i] })
	}
}

func (t *dbTable) each(f func([]string) []string) {
	for _, page := range t.pages {
		for i, row := range page {
			page[i] = f(row)
		}
	}
}

// dump returns the database in the form in which an engine keeps it in a snapshot.
func (h *history) dump() []byte {
	var b bytes.Buffer
	switch h.engine {
	case snap.Postgres: // pg_dump's custom format: a binary list of contents, then rows of COPY
		b.WriteString("PGDMP\x01\x0e\x00\x04\x08\x01")
		for i, t := range h.tables {
			fmt.Fprintf(&b, "\x00%c\x00\x00CREATE TABLE public.%s (%s);\n", i, t.name,
				strings.Join(t.columns, " text, "))
		}
		for i, t := range h.tables {
			fmt.Fprintf(&b, "\x01\x00%c\x00\x00\x00", i)
			t.each(func(row []string) []string {
				b.WriteString(strings.Join(row, "\t") + "\n")
				return row
			})
			b.WriteString("\\.\n\n")
		}
	case snap.MySQL: // statements
		for _, t := range h.tables {
			fmt.Fprintf(&b, "CREATE TABLE `%s` (\n  `%s` text\n);\n", t.name, strings.Join(t.columns, "` text,\n  `"))
			t.each(func(row []string) []string {
				fmt.Fprintf(&b, "INSERT INTO `%s` VALUES ('%s');\n", t.name, strings.Join(row, "','"))
				return row
			})
		}
	default: // pages
		head := fmt.Appendf([]byte("SQLite format 3\x00"), "%c%c\x01\x01\x00@  ", h.page>>8, h.page&255)
		for _, t := range h.tables {
			head = fmt.Appendf(head, "CREATE TABLE %s(%s)\x00", t.name, strings.Join(t.columns, ","))
		}
		h.paged(&b, head)
		for _, t := range h.tables {
			for _, page := range t.pages {
				cells := []byte{13, 0, 0, 0, byte(len(page))}
				for _, row := range page {
					cells = append(cells, strings.Join(row, "\x1b")...)
				}
				h.paged(&b, cells)
			}
		}
	}
	return b.Bytes()
}

// paged writes content and fills its last page.
func (h *history) paged(b *bytes.Buffer, content []byte) {
	b.Write(content)
	b.Write(make([]byte, (h.page-len(content)%h.page)%h.page))
}

// build takes a snapshot on the first machine.
func (h *history) build() {
	p, err := packedFile(h.engine, fmt.Sprintf("shop-%d", len(h.built)), h.dump())
	if err != nil {
		h.Fatal(err)
	}
	h.keep(p)
}

// buildOlder takes a snapshot as an older version of the program does, whose encoder has no number.
func (h *history) buildOlder() {
	h.build()
	n := len(h.built) - 1
	older, err := withEncoder(h.built[n], 0)
	if err != nil {
		h.Fatal(err)
	}
	h.built = h.built[:n]
	h.keep(older)
}

func (h *history) keep(p packed) {
	h.places[0][len(h.built)] = bytes.Clone(p.bytes)
	h.built = append(h.built, p)
}

// withEncoder returns a file with another encoder in its manifest.
func withEncoder(p packed, encoder int) (packed, error) {
	r, err := archive.NewReader(bytes.NewReader(p.bytes), p.Size)
	if err != nil {
		return p, err
	}
	content, err := r.Content(context.Background())
	if err != nil {
		return p, err
	}
	defer content.Close()
	stream, err := content.Range(0, content.Size())
	if err != nil {
		return p, err
	}
	defer stream.Close()
	all, err := io.ReadAll(stream)
	if err != nil {
		return p, err
	}
	at := len(all) - int(content.Manifest)
	manifest := bytes.Replace(all[at:], fmt.Appendf(nil, `"encoder":%d`, archive.Encoder),
		fmt.Appendf(nil, `"encoder":%d`, encoder), 1)
	var b bytes.Buffer
	sum, err := archive.Rebuild(&b, archive.Outline{Sections: content.Sections, Manifest: int64(len(manifest))},
		bytes.NewReader(append(all[:at], manifest...)))
	return packed{b.Bytes(), File{sum.Size, sum.SHA256}}, err
}

// any draws a file of a machine.
func (h *history) any(place map[int][]byte, label string) (int, bool) {
	var all []int
	for n := range len(h.built) {
		if place[n] != nil {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return all[h.pick(len(all), label)], true
}

// damage changes or cuts off bytes of a file.
func (h *history) damage() {
	place := h.places[h.pick(len(h.places), "machine")]
	n, found := h.any(place, "damaged")
	if !found {
		return
	}
	place[n] = h.broken(place[n])
}

// broken returns bytes with one changed, or without their end.
func (h *history) broken(b []byte) []byte {
	b = bytes.Clone(b)
	at := h.random.IntN(len(b))
	if rapid.Bool().Draw(h.T, "cut off") {
		return b[:max(at, 1)]
	}
	b[at] ^= byte(1 + h.random.IntN(255))
	return b
}

// lose removes a file.
func (h *history) lose() {
	place := h.places[h.pick(len(h.places), "machine")]
	if n, found := h.any(place, "lost"); found {
		delete(place, n)
	}
}

// send transfers a snapshot between two machines. The base is any file that both have.
func (h *history) send() {
	from := h.pick(len(h.places), "from")
	to := (from + 1 + h.pick(len(h.places)-1, "to")) % len(h.places)
	n, found := h.any(h.places[from], "sent")
	if !found || h.places[to][n] != nil {
		return
	}
	h.transfer(n, from, to)
}

// errKilled is the error of a machine that was killed.
var errKilled = errors.New("killed")

// transfer transfers a snapshot by delta, and the whole file if that fails.
func (h *history) transfer(n, from, to int) {
	before := fingerprint(h.places[to])
	file, err := []byte(nil), errors.New("no base")
	if base, found := h.base(n, from, to); found {
		file, err = h.byDelta(n, base, h.places[from], h.places[to])
		if err == nil {
			h.deltas++
		}
	}
	if err != nil {
		h.whole++
		file, err = received(h.places[from][n], h.built[n].File)
	}
	if fingerprint(h.places[to]) != before {
		h.Fatal("the transfer changed another file")
	}
	switch intact := bytes.Equal(h.places[from][n], h.built[n].bytes); {
	case err == nil && !bytes.Equal(file, h.built[n].bytes):
		h.Fatal("a wrong file was accepted")
	case err == nil:
		h.places[to][n] = file
	case intact:
		h.Fatalf("an intact file was not transferred: %v", err)
	}
}

// base draws a base that both machines have. Sometimes the receiver loses it before the delta arrives.
func (h *history) base(n, from, to int) (int, bool) {
	both := map[int][]byte{}
	for i := range h.built {
		b := h.places[from][i]
		if b != nil && i != n && (h.places[to][i] != nil || h.random.IntN(20) == 0) {
			both[i] = b
		}
	}
	return h.any(both, "base")
}

// received returns a file that was transferred as a whole, if it is the announced one.
func received(b []byte, f File) ([]byte, error) {
	if sum := sha256.Sum256(b); int64(len(b)) != f.Size || hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, &snap.Error{Code: snap.CodeChecksumMismatch, Detail: "the file has a different checksum"}
	}
	return bytes.Clone(b), nil
}

func fingerprint(place map[int][]byte) [32]byte {
	var all []byte
	for n := range 1000 {
		if b := place[n]; b != nil {
			sum := sha256.Sum256(b)
			all = append(append(all, byte(n)), sum[:]...)
		}
	}
	return sha256.Sum256(all)
}

// byDelta tries once to transfer a snapshot by delta. The transfer may fail at any point.
func (h *history) byDelta(n, base int, from, to map[int][]byte) ([]byte, error) {
	d, err := h.written(from[base], from[n], h.built[base].File, h.built[n].File)
	if err != nil {
		return nil, err
	}
	killed := -1 // the bytes that the receiver writes before it is killed
	switch h.random.IntN(12) {
	case 0:
		d = h.broken(d)
	case 1:
		killed = h.random.IntN(int(h.built[n].Size))
	case 2:
		d = append(bytes.Clone(d), d[:h.random.IntN(len(d))+1]...)
	case 3: // another version of the format
		d = bytes.Clone(d)
		d[9]++
	}
	file, err := h.applied(to[base], d, h.built[base].File, h.built[n].File, killed)
	h.clear(err)
	return file, err
}

// written writes a delta, and may be killed while it does.
func (h *history) written(base, result []byte, from, to File) ([]byte, error) {
	old, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		return nil, err
	}
	now, err := archive.NewReader(bytes.NewReader(result), int64(len(result)))
	if err != nil {
		return nil, err
	}
	dst, left := &bytes.Buffer{}, -1
	if h.random.IntN(12) == 0 {
		left = h.random.IntN(4096)
	}
	_, err = Write(h.Context(), &mortal{dst, left}, old, now, from, to, to.Size)
	h.clear(err)
	return dst.Bytes(), err
}

// applied does what a receiver does: it keeps the result only if nothing failed.
func (h *history) applied(base, d []byte, from, to File, killed int) ([]byte, error) {
	in := bytes.NewReader(d)
	header, err := ReadHeader(in)
	if err != nil {
		return nil, err
	}
	if header.Base != from || header.Result != to {
		return nil, snap.Invalid("the delta is not from this base to this snapshot", "transfer the whole file")
	}
	old, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	err = Apply(h.Context(), &mortal{out, killed}, header, old, in)
	if int64(out.Len()) > to.Size {
		h.Fatalf("%d bytes were written, %d announced", out.Len(), to.Size)
	}
	return out.Bytes(), err
}

// clear fails the test unless an error is one that the program handles by transferring the whole
// file.
func (h *history) clear(err error) {
	var known *snap.Error
	switch {
	case err == nil, errors.Is(err, errKilled), errors.Is(err, ErrLarge):
	case !errors.As(err, &known):
		h.Fatalf("the error is not one for people: %v", err)
	case known.Detail == "", known.Code != snap.CodeCorrupt && known.Code != snap.CodeInvalid:
		h.Fatalf("the error is not clear: %s %v", known.Code, known)
	}
}

// mortal is a writer that is killed after a number of bytes. With a negative number it is never
// killed.
type mortal struct {
	io.Writer
	left int
}

func (m *mortal) Write(b []byte) (int, error) {
	if m.left >= 0 && len(b) > m.left {
		n, _ := m.Writer.Write(b[:m.left])
		m.left = 0
		return n, errKilled
	}
	if m.left >= 0 {
		m.left -= len(b)
	}
	return m.Writer.Write(b)
}

// deliver transfers every snapshot that is still intact on some machine to all machines.
func (h *history) deliver() {
	for n, p := range h.built {
		source := slices.IndexFunc(h.places, func(f map[int][]byte) bool { return bytes.Equal(f[n], p.bytes) })
		if source < 0 {
			continue // it was lost or damaged everywhere
		}
		for to, place := range h.places {
			if !bytes.Equal(place[n], p.bytes) {
				delete(place, n)
				h.transfer(n, source, to)
			}
		}
	}
}

// TestSameIsReported checks for PostgreSQL and SQLite that equal sections are reported as
// unchanged, and only if no byte differs.
func TestSameIsReported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		e := rapid.SampledFrom([]snap.Engine{snap.Postgres, snap.SQLite}).Draw(r, "engine")
		dump := bytes.Repeat(joined(rows(rapid.IntRange(2, 3000).Draw(r, "rows"), rapid.Uint64().Draw(r, "seed"))),
			rapid.IntRange(1, 2).Draw(r, "times"))
		again := bytes.Clone(dump)
		differs := rapid.Bool().Draw(r, "differs")
		if differs {
			again[rapid.IntRange(0, len(again)-1).Draw(r, "at")] ^= 1
		}
		base, result := pack(t, e, "base", dump), pack(t, e, "the result", again)
		var b bytes.Buffer
		w, err := Write(t.Context(), &b, base.open(t), result.open(t), base.File, result.File, 1<<40)
		if err != nil || w.Same == differs {
			r.Fatalf("%+v for %d bytes, error %v", w, len(dump), err)
		}
	})
}
