package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"snap"
)

// packed returns content as a single block.
func packed(t testing.TB, content []byte) []byte {
	t.Helper()
	e, err := newEncoders(1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	p := newPacker(e)
	p.content = append(p.content, content...)
	p.pack()
	return p.block
}

// unpacked reads all blocks.
func unpacked(blocks []byte) ([]byte, error) {
	r, err := newBlockReader(bytes.NewReader(blocks), 2)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// tables draws rows in the format of a dump, and the text between them.
func tables(t *rapid.T) []byte {
	field := rapid.OneOf(
		rapid.StringMatching(`[0-9]{0,9}`), rapid.Just(`\N`), rapid.StringN(0, 200, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
	)
	var text []byte
	for range rapid.IntRange(0, 5).Draw(t, "tables") {
		fields := rapid.SliceOfN(field, 1, 6).Draw(t, "row")
		for range rapid.IntRange(0, 300).Draw(t, "rows") {
			text = append(append(text, strings.Join(fields, "\t")...), '\n')
		}
		text = append(text, field.Draw(t, "between")...)
	}
	return text
}

func TestColumnsJoinToWhatWasSplit(t *testing.T) {
	t.Parallel()
	var c columns // reused, as in a packer
	rapid.Check(t, func(t *rapid.T) {
		want := tables(t)
		c.split(want)
		again := columns{runs: c.runs, fields: append([][]byte(nil), c.fields...), rest: c.rest}
		if got, ok := again.join(nil); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%v: %q became %q", ok, want, got)
		}
	})
}

func TestBlocksHoldWhatWasPacked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := tables(t)
		if len(want) == 0 {
			return
		}
		var file bytes.Buffer
		w, err := newBlockWriter(&file, rapid.IntRange(1, 3).Draw(t, "jobs"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := unpacked(file.Bytes()); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: %q became %q", err, want, got)
		}
	})
}

// A line may have more fields than a block has columns, and a text may have no structure.
func TestWhatIsNoTableIsKept(t *testing.T) {
	t.Parallel()
	uneven := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range uneven {
		uneven[i] = "ab\t\n"[r.IntN(4)]
	}
	for name, want := range map[string][]byte{
		"wide":      bytes.Repeat([]byte(strings.Repeat("x\t", maxColumns+5)+"\n"), 9),
		"uneven":    uneven,
		"bytes":     noise(200_000, 4),
		"long line": bytes.Repeat([]byte("x"), blockSize),
		"one byte":  {0},
	} {
		if got, err := unpacked(packed(t, want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A column's content decides how it is stored.
func TestEveryColumnIsStoredItsOwnWay(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	random := make([]byte, 100_000)
	digits := make([]byte, 100_000)
	for i := range random {
		random[i], digits[i] = byte(r.Uint32()), '0'+byte(r.IntN(10))
	}
	for name, c := range map[string]struct {
		how     byte
		content []byte
	}{
		"nothing":     {asIs, nil},
		"random":      {asIs, random},
		"digits":      {asHuffman, digits},
		"repetitions": {asZstd, bytes.Repeat([]byte("a sentence that is here again. "), 2000)},
	} {
		e, err := newEncoders(1)
		if err != nil {
			t.Fatal(err)
		}
		if got := newPacker(e).part(nil, c.content, e.fast)[0]; got != c.how {
			t.Errorf("%s: stored in the way %d, not %d", name, got, c.how)
		}
		e.close()
	}
}

// block returns a block with the given size and body. Its checksum is that of the text "a\n".
func block(size int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(size))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum([]byte("a\n"), castagnoli))
	return append(b, body...)
}

// numbers returns numbers as encoded in a body.
func numbers(all ...uint64) (b []byte) {
	for _, n := range all {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func TestHostileBlocks(t *testing.T) {
	t.Parallel()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	bomb := enc.EncodeAll(make([]byte, 64<<20), nil)
	text, none := append(numbers(asIs, 2, 2), "a\n"...), numbers(asIs, 0, 0)
	if got, err := unpacked(block(2, numbers(1, 1, 1), text, none)); err != nil || string(got) != "a\n" {
		t.Fatalf("a block that is right: %q, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"no content":          block(0, numbers(0), none),
		"too much content":    block(maxBlock+1, numbers(0), none),
		"shorter":             block(3, numbers(1, 1, 1), text, none),
		"longer":              block(1, numbers(1, 1, 1), text, none),
		"another text":        block(2, numbers(1, 1, 1), numbers(asIs, 2, 2), []byte("b\n"), none),
		"no lines":            block(2, numbers(1, 0, 1), text, none),
		"no fields":           block(2, numbers(2, 1, 1, 1<<20, 0), text, none),
		"too many fields":     block(2, numbers(1, 1, maxColumns+1), text, none),
		"too many runs":       block(maxBlock, numbers(maxRuns+1), none),
		"fewer columns":       block(2, numbers(1, 1, 2), text, none, none),
		"fewer lines":         block(2, numbers(1, 2, 1), text, none),
		"something behind":    block(2, numbers(1, 1, 1), text, none, none),
		"nothing":             block(2),
		"another way":         block(2, numbers(0), numbers(9, 2, 2), []byte("a\n")),
		"stored beyond":       block(2, numbers(0), numbers(asIs, 2, 200), []byte("a\n")),
		"endless number":      block(2, bytes.Repeat([]byte{0xff}, 20)),
		"zstd bomb":           block(2, numbers(0), numbers(asZstd, 2, uint64(len(bomb))), bomb),
		"no zstd":             block(2, numbers(0), numbers(asZstd, 2, 3), []byte("abc")),
		"no Huffman table":    block(2, numbers(0), numbers(asHuffman, 2, 1, 0)),
		"Huffman, then more":  block(2, numbers(0), numbers(asHuffman, 0, 1, 0), numbers(asIs, 2, 2), []byte("a\n")),
		"half a head":         block(2, text)[:7],
		"less than announced": block(2, numbers(1, 1, 1), text, none)[:15],
	} {
		if got, err := unpacked(bad); err == nil {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

// Files from before the introduction of blocks can always be read.
func TestFramesAreRead(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/format1.snap")
	if err != nil {
		t.Fatal(err)
	}
	want := append(bytes.Repeat([]byte("the same row again\n"), 500_000), noise(3000, 5)...)
	got, _, err := unpack(file)
	if err != nil || !bytes.Equal(got["dump"], want) {
		t.Fatalf("%v, %d bytes", err, len(got["dump"]))
	}
	for i := 0; i < len(file); i += 7 {
		bad := bytes.Clone(file)
		bad[i] ^= 0x55
		if _, _, err := unpack(bad); !refused(err) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
}

// A section can be closed early, and closed twice. Nothing can be read from it afterwards.
func TestSectionIsClosedEarly(t *testing.T) {
	t.Parallel()
	file, _ := pack(t, map[string][]byte{"dump": noise(20*blockSize, 2)})
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{0, 1, blockSize, 3*blockSize + 1} {
		in, err := r.Section("dump")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.CopyN(io.Discard, in, n); got != n || err != nil {
			t.Fatalf("%d of %d bytes: %v", got, n, err)
		}
		for range 2 {
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.Read(make([]byte, 1)); err == nil {
			t.Fatal("read after the end")
		}
	}
}

// An error of the disk is not reported as a damaged snapshot.
func TestFailingDiskWhileReadingBlocks(t *testing.T) {
	t.Parallel()
	file, _ := pack(t, map[string][]byte{"dump": noise(3*blockSize, 2)})
	src := &failingDisk{src: bytes.NewReader(file)}
	r, err := NewReader(src, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	src.broken = true
	in, err := r.Section("dump")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var disk *os.PathError
	if _, err := io.Copy(io.Discard, in); !errors.As(err, &disk) || snap.CodeOf(err) == snap.CodeCorrupt {
		t.Fatalf("got %v", err)
	}
}

type failingDisk struct {
	src    io.ReaderAt
	broken bool
}

func (d *failingDisk) ReadAt(p []byte, at int64) (int, error) {
	if d.broken {
		return 0, &os.PathError{Op: "read", Path: "snapshot", Err: io.ErrUnexpectedEOF}
	}
	return d.src.ReadAt(p, at)
}
