package delta

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// TestLineRanges checks that the end of a range is found if a newline determines it, also where
// blocks divide the range.
func TestLineRanges(t *testing.T) {
	t.Parallel()
	text := []byte("(1,2),\n(31,'four'),\n\n(5);\nb\n\nlast\n")
	for before := range len(text) { // bytes of the text in the first block
		whole := append(make([]byte, 1<<20-before), text...)
		content, err := pack(t, snap.MySQL, "base", whole).open(t).Content(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		begin := len(whole) - len(text)
		for at := range text {
			for line := 1; line <= 4; line++ {
				p := &resultReader{base: content, at: int64(begin)}
				o := op{jump: int64(at), line: line}
				err := p.measure(&o)
				newline := -1
				if at+line < len(text) {
					newline = bytes.IndexByte(text[at+line:], '\n')
				}
				if newline < 0 {
					continue // it may be found in the manifest
				}
				if want := newline + 1; err != nil || o.copied != want || o.line != 0 {
					t.Fatalf("line %d from %q: %d bytes, want %d, error %v", line, text[at:], o.copied, want, err)
				}
			}
		}
	}
}

// TestOperationsAreEncoded checks that encoded operations are decoded unchanged, and that a number
// out of range is refused.
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
				o.copied, o.jump = 7, rapid.Int64().Draw(r, "jump")
				o.line = rapid.IntRange(1, maxShort+1).Draw(r, "line")
			}
			g.ops, literals = append(g.ops, o), literals+o.literal
		}
		ops, err := decodeOps(g.encodeOps(), len(g.ops), literals)
		if err != nil {
			r.Fatal(err)
		}
		for i, o := range g.ops {
			if o.line > 0 {
				o.copied = 0
			}
			if ops[i] != o {
				r.Fatalf("%+v is read as %+v", o, ops[i])
			}
		}
	})
	for _, odd := range []uint64{2*maxShort + 3, 2*maxShort + 5, 1<<51 - 1, 1<<51 + 2} {
		b := binary.AppendVarint(binary.AppendUvarint([]byte{0}, odd), 0)
		if _, err := decodeOps(b, 1, 0); err == nil {
			t.Errorf("%d is accepted as a range", odd)
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
	f.Add(slices.Concat(all(op{literal: 3, copied: 1, jump: 9, line: 1}), all(op{copied: 1, line: 1})), 2, 3)
	f.Add(all(op{copied: 1, line: 1, jump: int64(size) - 1}), 1, 0)
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
