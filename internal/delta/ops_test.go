package delta

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// TestLineRanges checks that a range up to a newline has the same bytes, regardless of how they are
// divided into blocks and reads.
func TestLineRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 1, 20, -1).Draw(r, "text") + "\n")
		want := text[:1+bytes.IndexByte(append(bytes.Clone(text[1:]), '\n'), '\n')]
		if len(text) == 1 {
			want = text
		}
		o, left, got := op{line: true}, text, []byte(nil)
		for len(left) > 0 {
			block := left[:rapid.IntRange(1, len(left)).Draw(r, "block")]
			chunk, ended := o.nextChunk(block, rapid.IntRange(1, 9).Draw(r, "most"))
			got, left = append(got, chunk...), left[len(chunk):]
			if ended {
				break
			}
			if len(chunk) == 0 {
				r.Fatal("nothing was taken and the range has not ended")
			}
		}
		if !bytes.Equal(got, want) {
			r.Fatalf("took %q of %q, want %q", got, text, want)
		}
	})
}

// TestOperationsAreEncoded checks that encoded operations are decoded unchanged, and that nothing
// else is accepted as an operation.
func TestOperationsAreEncoded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		g, literals := group{}, 0
		for range rapid.IntRange(1, 9).Draw(r, "operations") {
			o := op{literal: rapid.IntRange(0, 99).Draw(r, "literals")}
			switch rapid.IntRange(0, 2).Draw(r, "range") {
			case 0:
				o.copied, o.jump = rapid.IntRange(1, 1<<40).Draw(r, "bytes"), rapid.Int64().Draw(r, "jump")
			case 1:
				o.copied, o.jump, o.line = 7, rapid.Int64().Draw(r, "jump"), true
			}
			g.ops, literals = append(g.ops, o), literals+o.literal
		}
		ops, err := decodeOps(g.encodeOps(), len(g.ops), literals)
		if err != nil {
			r.Fatal(err)
		}
		for i, o := range g.ops {
			if o.line {
				o.copied = 0
			}
			if ops[i] != o {
				r.Fatalf("%+v is read as %+v", o, ops[i])
			}
		}
	})
	for _, odd := range []uint64{3, 5, 1<<51 - 1, 1<<51 + 2} {
		b := binary.AppendVarint(binary.AppendUvarint([]byte{0}, odd), 0)
		if _, err := decodeOps(b, 1, 0); err == nil {
			t.Errorf("%d bytes are a range", odd)
		}
	}
}

// FuzzOperations checks that any operations end within the announced bytes and the allowed work,
// and that their result is right or refused.
func FuzzOperations(f *testing.F) {
	old := rows(300, 1)
	base, result := pack(f, snap.Postgres, "base", joined(old)), pack(f, snap.Postgres, "result", joined(changed(old)))
	opened := base.open(f)
	content, err := opened.Content(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	size := int(content.Size())
	content.Close()
	now, err := result.open(f).Content(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	h := Header{Base: base.File, Result: result.File, Sections: now.Sections, Manifest: now.Manifest}
	now.Close()
	all := func(ops ...op) []byte {
		g := group{ops: ops}
		return g.encodeOps()
	}
	f.Add(all(op{copied: size}), 1, 0)
	f.Add(slices.Concat(all(op{literal: 3, copied: 1, jump: 9, line: true}), all(op{copied: 1, line: true})), 2, 3)
	f.Add(all(op{copied: 1, line: true, jump: int64(size) - 1}), 1, 0)
	f.Fuzz(func(t *testing.T, ops []byte, count, literals int) {
		if count < 0 || literals < 0 || literals > 1<<10 || len(ops) > 1<<16 {
			return
		}
		b := binary.AppendUvarint(make([]byte, 4), uint64(count))
		b = append(b, 0) // no dictionary
		b = part{asIs, literals, make([]byte, literals)}.append(b)
		b = part{asIs, len(ops), ops}.append(b)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		var out bytes.Buffer
		err := Apply(t.Context(), &out, h, opened, bytes.NewReader(slices.Concat(b, b, b)))
		if int64(out.Len()) > h.Result.Size || err == nil && !bytes.Equal(out.Bytes(), result.bytes) {
			t.Errorf("%d bytes of %d, error %v", out.Len(), h.Result.Size, err)
		}
		if code := snap.CodeOf(err); err != nil && code != snap.CodeCorrupt {
			t.Errorf("the error has code %q: %v", code, err)
		}
	})
}
