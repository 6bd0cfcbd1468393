package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// varied returns content with every kind of data that the encoder treats differently.
func varied() []byte {
	b := bytes.Repeat([]byte{0}, 3<<20)
	for i := range 60_000 {
		b = fmt.Appendf(b, "%d\tname %d\t%x\tconstant\n", i, i*7919%1000, noise(6, uint64(i)))
	}
	return append(append(b, noise(2<<20, 5)...), "the end"...)
}

// TestEncoderIsDeterministic protects deltas, which are applied by encoding the content again. If
// it fails after a change of the encoder or of its library, increase [Encoder] and replace the
// checksum.
func TestEncoderIsDeterministic(t *testing.T) {
	t.Parallel()
	const want = "05fdab68e11cc9d5eda33f0db8ca4b4b2c87ba019654e2ec6d9af12123ede93f"
	for _, jobs := range []int{1, 5} {
		var b bytes.Buffer
		w, err := NewWriter(&b, jobs)
		if err != nil {
			t.Fatal(err)
		}
		section, err := w.Section("dump")
		if err != nil {
			t.Fatal(err)
		}
		section.Write(varied())
		if err := section.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(sampleManifest()); err != nil {
			t.Fatal(err)
		}
		if got := w.sections[0].SHA256; got != want || Encoder != 1 {
			t.Errorf("encoder %d with %d jobs writes a section with the SHA-256 %s", Encoder, jobs, got)
		}
	}
}

// contentOf returns the whole content, and fails unless it has the announced size.
func contentOf(t *testing.T, c *Content) []byte {
	t.Helper()
	stream, err := c.Range(0, c.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	whole, err := io.ReadAll(stream)
	if err != nil || int64(len(whole)) != c.Size() {
		t.Fatalf("%d of %d bytes, error %v", len(whole), c.Size(), err)
	}
	return whole
}

// TestContent reads any range of a file's content, in any order, and rebuilds the file from it.
func TestContent(t *testing.T) {
	t.Parallel()
	large, _ := pack(t, map[string][]byte{"dump": varied()})
	small, _ := pack(t, map[string][]byte{"dump": noise(5000, 9), "extra": noise(70_000, 3)})
	for _, f := range [][]byte{large, small} {
		r, err := NewReader(bytes.NewReader(f), int64(len(f)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Content(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		whole := contentOf(t, c)
		rapid.Check(t, func(r *rapid.T) {
			from := rapid.IntRange(0, len(whole)).Draw(r, "from")
			p := make([]byte, min(rapid.IntRange(0, 3<<20).Draw(r, "size"), len(whole)-from))
			if _, err := c.ReadAt(p, int64(from)); err != nil || !bytes.Equal(p, whole[from:from+len(p)]) {
				r.Fatalf("%d bytes from %d: %v", len(p), from, err)
			}
			if c.kept > maxCached {
				r.Fatalf("%d bytes are cached", c.kept)
			}
		})
		if _, err := c.ReadAt(make([]byte, 2), c.Size()-1); !errors.Is(err, io.EOF) {
			t.Errorf("beyond the end: %v", err)
		}
		var again bytes.Buffer
		if _, err := Rebuild(&again, c.Outline, bytes.NewReader(whole)); err != nil || !bytes.Equal(again.Bytes(), f) {
			t.Errorf("the rebuilt file differs: %v", err)
		}
	}
}

// TestManySmallBlocks checks that the list of a content's blocks stays small.
func TestManySmallBlocks(t *testing.T) {
	t.Parallel()
	e, err := newEncoders(1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	p := newPacker(e)
	p.content = []byte("x")
	p.pack()
	for blocks, code := range map[int]snap.Code{fewBlocks: "", fewBlocks + 2: snap.CodeInvalid} {
		s := Section{Name: "dump", Offset: headerSize, Stored: int64(blocks * len(p.block)), Size: int64(blocks)}
		file := append(header(Format), bytes.Repeat(p.block, blocks)...)
		r := &Reader{src: bytes.NewReader(file), size: int64(len(file)),
			manifest: Manifest{Format: Format, Sections: []Section{s}}}
		c, err := r.Content(t.Context())
		if snap.CodeOf(err) != code {
			t.Errorf("%d blocks: error %v, want %q", blocks, err, code)
		}
		if err == nil {
			c.Close()
		}
	}
}

// TestBlocksWithoutBytes checks that the list of blocks stays small even if each block claims much
// content and stores none. A hostile file could otherwise have one for every 12 of its bytes.
func TestBlocksWithoutBytes(t *testing.T) {
	t.Parallel()
	head := append(binary.BigEndian.AppendUint32(nil, blockSize), make([]byte, blockHead-4)...)
	for more, code := range map[int]snap.Code{1: "", 2: snap.CodeInvalid} {
		file := bytes.Repeat(head, more)
		c := Content{r: &Reader{src: bytes.NewReader(file), size: int64(len(file))},
			blocks: make([]blockPosition, maxBlocks-1), end: (maxBlocks - 1) * blockSize}
		err := c.index(t.Context(), Section{Stored: int64(len(file)), Size: int64(more) * blockSize})
		if snap.CodeOf(err) != code {
			t.Errorf("%d blocks: error %v, want %q", len(c.blocks), err, code)
		}
	}
}

// TestSameBlocks checks that the blocks that two files have in common are found, wherever they are,
// and that the rest is not claimed to be the same.
func TestSameBlocks(t *testing.T) {
	t.Parallel()
	a, b := noise(3*blockSize+100, 1), noise(2*blockSize, 2)
	base, _ := pack(t, map[string][]byte{"dump": slices.Concat(a, b[:50])})
	for _, c := range []struct {
		now  []byte
		want []Same
	}{
		{slices.Concat(a, b[:50]), []Same{{0, 0, 3*blockSize + 150}}},
		{slices.Concat(a, b), []Same{{0, 0, 3 * blockSize}}},
		{slices.Concat(a[:blockSize], b[:blockSize], a[blockSize:2*blockSize]),
			[]Same{{0, 0, blockSize}, {2 * blockSize, blockSize, blockSize}}},
		{slices.Concat(b, a[1:]), nil},
	} {
		result, _ := pack(t, map[string][]byte{"dump": c.now})
		var contents []*Content
		for _, f := range [][]byte{base, result} {
			r, err := NewReader(bytes.NewReader(f), int64(len(f)))
			if err != nil {
				t.Fatal(err)
			}
			content, err := r.Content(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			contents = append(contents, content)
		}
		got, err := contents[1].Same(t.Context(), contents[0])
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d bytes: %v, want %v, error %v", len(c.now), got, c.want, err)
		}
	}
}

// TestContentOfDamagedFiles checks that blocks that do not match the manifest are refused when they
// are read. A few bits of a zstd frame have no meaning (RFC 8878, 3.1.1.1.1.4), so the content can
// be unharmed.
func TestContentOfDamagedFiles(t *testing.T) {
	t.Parallel()
	const size = 1<<20 + 5000
	content := noise(size, 1)
	file, _ := pack(t, map[string][]byte{"dump": content})
	whole, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		b := bytes.Clone(file)
		at := rapid.IntRange(headerSize, int(whole.foot.offset)-1).Draw(r, "at")
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
		reader, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		c, err := reader.Content(t.Context())
		read := make([]byte, size)
		if err == nil {
			defer c.Close()
			_, err = c.ReadAt(read, 0)
		}
		if unharmed := err == nil && bytes.Equal(read, content); !unharmed && snap.CodeOf(err) != snap.CodeCorrupt {
			r.Fatalf("error %v", err)
		}
	})
}
