package diff

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// A spill divides entries into parts by their identity, so that the parts of both sides can be
// compared one after the other. Full blocks of a part are written to a temporary file.
const (
	parts        = 256
	entrySize    = 28  // bytes
	blockEntries = 600 // in a block
)

// entry is a row.
type entry struct {
	identity

	row   uint64 // hash of the common columns
	table uint32
}

func (e entry) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.identity[0])
	b = binary.LittleEndian.AppendUint64(b, e.identity[1])
	b = binary.LittleEndian.AppendUint64(b, e.row)
	return binary.LittleEndian.AppendUint32(b, e.table)
}

func entryIn(b []byte) entry {
	return entry{
		identity: identity{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])},
		row:      binary.LittleEndian.Uint64(b[16:]), table: binary.LittleEndian.Uint32(b[24:]),
	}
}

func (e entry) compare(o entry) int {
	return cmp.Or(cmp.Compare(e.table, o.table), cmp.Compare(e.identity[0], o.identity[0]),
		cmp.Compare(e.identity[1], o.identity[1]), cmp.Compare(e.row, o.row))
}

// spill holds the entries of one side.
type spill struct {
	dir    string
	size   int      // bytes of a block
	file   *os.File // nil until a block is full
	end    int64
	blocks [parts][]int64 // positions in the file
	open   [parts][]byte  // the last block of each part
}

func (s *spill) add(e entry) error {
	part := e.identity[0] % parts
	s.open[part] = e.append(s.open[part])
	if len(s.open[part]) < s.size {
		return nil
	}
	return s.write(int(part))
}

// write moves the block of a part to the file.
func (s *spill) write(part int) (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.dir, "diff-*"); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(s.open[part], s.end); err != nil {
		return err
	}
	s.blocks[part] = append(s.blocks[part], s.end)
	s.end += int64(len(s.open[part]))
	s.open[part] = s.open[part][:0]
	return nil
}

// part returns the entries of a part in order.
func (s *spill) part(number int) ([]entry, error) {
	all := make([]entry, 0, len(s.blocks[number])*s.size/entrySize+len(s.open[number])/entrySize)
	room := make([]byte, s.size)
	for _, at := range s.blocks[number] {
		if _, err := s.file.ReadAt(room, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		all = appendEntries(all, room)
	}
	all = appendEntries(all, s.open[number])
	slices.SortFunc(all, entry.compare)
	return all, nil
}

func appendEntries(all []entry, b []byte) []entry {
	for ; len(b) >= entrySize; b = b[entrySize:] {
		all = append(all, entryIn(b))
	}
	return all
}

func (s *spill) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

func (c *comparison) close() {
	for _, s := range c.spills {
		s.close()
	}
}

// differences calls see for every identity whose rows differ, with the number of rows that were
// removed, added and changed.
func (c *comparison) differences(see func(table int, id identity, removed, added, changed int64)) error {
	for number := range parts {
		before, err := c.spills[0].part(number)
		if err != nil {
			return err
		}
		after, err := c.spills[1].part(number)
		if err != nil {
			return err
		}
		for len(before) > 0 || len(after) > 0 {
			first := firstOf(before, after)
			b, a := leading(before, first), leading(after, first)
			before, after = before[len(b):], after[len(a):]
			removed, added := unmatched(b, a)
			if changed := min(removed, added); removed+added > 0 {
				see(int(first.table), first.identity, int64(removed-changed), int64(added-changed), int64(changed))
			}
		}
	}
	return nil
}

// firstOf returns the lower one of the first entries.
func firstOf(before, after []entry) entry {
	if len(after) == 0 || len(before) > 0 && before[0].compare(after[0]) <= 0 {
		return before[0]
	}
	return after[0]
}

// leading returns the entries at the start of a sorted list that have the table and the identity of
// an entry.
func leading(sorted []entry, e entry) []entry {
	n := 0
	for n < len(sorted) && sorted[n].table == e.table && sorted[n].identity == e.identity {
		n++
	}
	return sorted[:n]
}

// unmatched returns the numbers of entries in two sorted lists without an equal one in the other.
func unmatched(before, after []entry) (removed, added int) {
	for len(before) > 0 && len(after) > 0 {
		switch order := cmp.Compare(before[0].row, after[0].row); {
		case order == 0:
			before, after = before[1:], after[1:]
		case order < 0:
			removed, before = removed+1, before[1:]
		default:
			added, after = added+1, after[1:]
		}
	}
	return removed + len(before), added + len(after)
}
