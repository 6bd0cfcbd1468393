package delta

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"snap"
	"snap/internal/archive"
	"snap/internal/servertest"
)

// TestUnchangedBlocksAreCopied checks that only the block with the changed row is compressed again.
func TestUnchangedBlocksAreCopied(t *testing.T) {
	t.Parallel()
	before := joined(rows(80_000, 1))
	after := bytes.Clone(before)
	copy(after[len(after)/2:], "changed here")
	base, result := pack(t, snap.Postgres, "a", before), pack(t, snap.Postgres, "b", after)
	d := bytes.NewReader(write(t, base, result))
	h, err := ReadHeader(d)
	if err != nil {
		t.Fatal(err)
	}
	content, err := base.open(t).Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	blocks, err := archive.NewBlockCoder()
	if err != nil {
		t.Fatal(err)
	}
	defer blocks.Close()
	const size = 1 << 20
	p := &resultReader{ctx: t.Context(), r: d, base: content, blocks: blocks, left: h.outline().Size()}
	var all bytes.Buffer
	compressed := 0
	for left := int64(len(after)); left > 0; left -= size {
		n := min(left, size)
		block, err := p.NextBlock(n)
		if err != nil {
			t.Fatal(err)
		}
		if block != nil {
			all.Write(after[all.Len():][:n]) // the whole file is compared below
			continue
		}
		compressed++
		if _, err := io.CopyN(&all, p, n); err != nil {
			t.Fatal(err)
		}
	}
	if compressed != 1 || !bytes.Equal(all.Bytes(), after) {
		t.Errorf("%d of %d blocks are compressed again", compressed, len(after)/size+1)
	}
	if got, err := apply(t.Context(), base.open(t), write(t, base, result)); err != nil ||
		!bytes.Equal(got, result.bytes) {
		t.Errorf("the result differs: %v", err)
	}
}

// TestBlocksOfOtherEncodersAreNotCopied checks that blocks of another encoder are not copied,
// because their bytes can differ from those that the result needs.
func TestBlocksOfOtherEncodersAreNotCopied(t *testing.T) {
	t.Parallel()
	ours := pack(t, snap.Postgres, "a", joined(rows(40_000, 1)))
	older, err := withEncoder(ours, archive.Encoder+1)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []packed{ours, older} {
		content, err := f.open(t).Content(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		for _, at := range []int64{0, 1 << 20, 77} {
			block, err := content.StoredBlock(at, 1<<20)
			if wanted := f.File == ours.File && at != 77; err != nil || (block != nil) != wanted {
				t.Errorf("the block at %d: found %t, want %t, error %v", at, block != nil, wanted, err)
			}
		}
	}
}

// TestChangesOfLargeFiles checks files of several blocks, some of which stay unchanged: at the same
// position, at another one, or in another section.
func TestChangesOfLargeFiles(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		const block = 1 << 20
		before := joined(rows(65_000, 1)) // between 4 and 5 blocks
		after := bytes.Clone(before)
		for n := 1 + r.IntN(3); n > 0 && len(after) > 3*block; n-- {
			at := r.IntN(len(after))
			switch r.IntN(5) {
			case 0: // other bytes, as many
				copy(after[at:], "other bytes")
			case 1: // new rows
				after = slices.Insert(after, at, joined(rows(1+r.IntN(900), 2))...)
			case 2: // whole blocks move
				after = slices.Concat(after[2*block:3*block], after[:2*block], after[3*block:])
			case 3:
				after = slices.Delete(after, at, min(len(after), at+r.IntN(block)))
			case 4:
				after = after[:max(3*block, at)]
			}
		}
		engine := []snap.Engine{snap.Postgres, snap.SQLite}[seed%2]
		split := r.IntN(3) * block
		base := pack(t, engine, "before", before[:split], before[split:])
		result := pack(t, engine, "after", after[:split], after[split:])
		got, err := apply(t.Context(), base.open(t), write(t, base, result))
		if err != nil || !bytes.Equal(got, result.bytes) {
			t.Errorf("seed %d: the result differs: %v, %v", seed, err, errors.Unwrap(err))
		}
	}
}
