package auditlog

import (
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

// Tree is the stored Merkle tree of an organization's log. Each line of the log has one node: the
// hash of the line followed by the hashes of the subtrees that the line completes, each 32 bytes,
// the smallest subtree first.
type Tree struct {
	// Nodes returns the nodes of these lines, which are numbered from 1.
	Nodes func(lines []int64) (map[int64][]byte, error)

	known map[int64]tlog.Hash // by tlog's index of stored hashes
}

// ErrDamaged means that nodes of the stored tree are missing or truncated.
var ErrDamaged = errors.New("the stored tree of the audit log is damaged")

// ReadHashes implements [tlog.HashReader]. It fails with [ErrDamaged] if a hash is missing.
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if t.known == nil {
		t.known = map[int64]tlog.Hash{}
	}
	var lines []int64
	for _, i := range indexes {
		if _, known := t.known[i]; !known {
			level, n := tlog.SplitStoredHashIndex(i)
			lines = append(lines, (n+1)<<level) // the line that completes the hash's subtree
		}
	}
	if len(lines) > 0 {
		nodes, err := t.Nodes(lines)
		if err != nil {
			return nil, err
		}
		for line, hashes := range nodes {
			t.keep(line, hashes)
		}
	}
	out := make([]tlog.Hash, len(indexes))
	for n, i := range indexes {
		h, known := t.known[i]
		if !known {
			return nil, ErrDamaged
		}
		out[n] = h
	}
	return out, nil
}

// keep remembers the hashes of a line's node.
func (t *Tree) keep(line int64, node []byte) {
	for level := 0; len(node) >= tlog.HashSize; level++ {
		t.known[tlog.StoredHashIndex(level, line>>level-1)] = tlog.Hash(node[:tlog.HashSize])
		node = node[tlog.HashSize:]
	}
}

// Append returns the node of a line that follows the first size lines. The caller must store it.
func (t *Tree) Append(size int64, line string) (node []byte, err error) {
	hashes, err := tlog.StoredHashes(size, []byte(line), t)
	if err != nil {
		return nil, err
	}
	for _, h := range hashes {
		node = append(node, h[:]...)
	}
	t.keep(size+1, node)
	return node, nil
}

// Root returns the root hash of the tree of the first size lines.
func (t *Tree) Root(size int64) (tlog.Hash, error) { return tlog.TreeHash(size, t) }

// Inclusion returns a proof that the line with this number is among the first size lines.
func (t *Tree) Inclusion(size, line int64) ([]tlog.Hash, error) {
	return tlog.ProveRecord(size, line-1, t)
}

// Growth returns a proof that the first size lines contain the first oldSize lines unchanged.
func (t *Tree) Growth(size, oldSize int64) ([]tlog.Hash, error) {
	return tlog.ProveTree(size, oldSize, t)
}

// Includes reports whether a proof from [Tree.Inclusion] shows that the text is the line with this
// number in the log.
func (c Checkpoint) Includes(line int64, text string, proof []tlog.Hash) bool {
	return line >= 1 && line <= c.Size &&
		tlog.CheckRecord(proof, c.Size, c.Root, line-1, tlog.RecordHash([]byte(text))) == nil
}

// Sum computes the root of a log whose lines are added one by one from the first. It holds at most
// one hash for each power of two.
type Sum struct {
	size  int64
	peaks []tlog.Hash // roots of complete subtrees, the largest first
}

// Add adds the next line.
func (s *Sum) Add(line string) { s.add(tlog.RecordHash([]byte(line)), 1) }

// add adds a subtree of the given number of lines, and joins subtrees of equal size.
func (s *Sum) add(root tlog.Hash, lines int64) {
	s.peaks = append(s.peaks, root)
	s.size += lines
	for n := s.size / lines; n%2 == 0; n /= 2 {
		last := len(s.peaks) - 2
		s.peaks = append(s.peaks[:last], tlog.NodeHash(s.peaks[last], s.peaks[last+1]))
	}
}

// Size returns how many lines were added.
func (s *Sum) Size() int64 { return s.size }

// Root returns the root of the lines so far, or the zero hash if there are none.
func (s *Sum) Root() tlog.Hash {
	if s.size == 0 {
		return tlog.Hash{}
	}
	root := s.peaks[len(s.peaks)-1]
	for i := len(s.peaks) - 2; i >= 0; i-- {
		root = tlog.NodeHash(s.peaks[i], root)
	}
	return root
}
