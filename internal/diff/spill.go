package diff

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"snap"
)

// A spill divides entries into parts by their identity, so that the parts of both sides can be
// compared one after the other. Full blocks of a part are written to a temporary file.
const (
	parts        = 256
	entrySize    = 28  // bytes
	blockEntries = 600 // in a block
)

// entry is a row, or several equal ones.
type entry struct {
	identity

	row   uint64 // hash of the common columns
	table uint32
	rows  uint32
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
		row:      binary.LittleEndian.Uint64(b[16:]), table: binary.LittleEndian.Uint32(b[24:]), rows: 1,
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

// packEntries is the number of entries of a part that may be in memory before equal ones are joined.
// Only databases with more than 50 million rows, or with many equal rows, have larger parts.
const packEntries = 1 << 18

// maxSameIdentity is the number of different rows of one table that may have the same identity. A
// primary key allows only one, but a snapshot from somebody else may have more.
const maxSameIdentity = 1 << 16

// part returns the entries of a part in order.
func (s *spill) part(number int) (all []entry, err error) {
	buf, limit := make([]byte, s.size), packEntries
	for _, at := range s.blocks[number] {
		if _, err := s.file.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if all = appendEntries(all, buf); len(all) < limit {
			continue
		}
		if all, err = joinEqual(all); err != nil {
			return nil, err
		}
		limit = max(packEntries, 2*len(all))
	}
	return joinEqual(appendEntries(all, s.open[number]))
}

// joinEqual sorts entries and joins equal ones. It fails if too many different rows have one identity,
// because they could not be divided into parts that fit into memory.
func joinEqual(all []entry) ([]entry, error) {
	slices.SortFunc(all, entry.compare)
	kept, same := all[:0], 0
	for _, e := range all {
		last := len(kept) - 1
		if last >= 0 && kept[last].compare(e) == 0 && kept[last].rows <= math.MaxUint32-e.rows {
			kept[last].rows += e.rows
			continue
		}
		if last < 0 || kept[last].table != e.table || kept[last].identity != e.identity {
			same = 0
		}
		if same++; same > maxSameIdentity {
			return nil, &snap.Error{Code: snap.CodeInvalid,
				Detail: fmt.Sprintf("more than %d rows of a table have the same primary key and cannot be compared",
					maxSameIdentity),
				Hint: "build one of the two snapshots without that table, using --exclude-table"}
		}
		kept = append(kept, e)
	}
	return kept, nil
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

// differences calls report for every identity whose rows differ, with the number of rows that were
// removed, added and changed.
func (c *comparison) differences(report func(table int, id identity, removed, added, changed int64)) error {
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
			b, a := sameIdentity(before, first), sameIdentity(after, first)
			before, after = before[len(b):], after[len(a):]
			removed, added := unmatched(b, a)
			if changed := min(removed, added); removed+added > 0 {
				report(int(first.table), first.identity, removed-changed, added-changed, changed)
			}
		}
	}
	return nil
}

// firstOf returns the lower of the two first entries.
func firstOf(before, after []entry) entry {
	if len(after) == 0 || len(before) > 0 && before[0].compare(after[0]) <= 0 {
		return before[0]
	}
	return after[0]
}

// sameIdentity returns the entries at the start of a sorted list that have the table and the identity
// of an entry.
func sameIdentity(sorted []entry, e entry) []entry {
	n := 0
	for n < len(sorted) && sorted[n].table == e.table && sorted[n].identity == e.identity {
		n++
	}
	return sorted[:n]
}

// unmatched returns, for each of two sorted lists, the number of rows without an equal row in the
// other list. It changes the lists.
func unmatched(before, after []entry) (removed, added int64) {
	for len(before) > 0 && len(after) > 0 {
		order := cmp.Compare(before[0].row, after[0].row)
		if order == 0 {
			matched := min(before[0].rows, after[0].rows)
			before[0].rows -= matched
			after[0].rows -= matched
		}
		if order < 0 || before[0].rows == 0 {
			removed, before = removed+int64(before[0].rows), before[1:]
		}
		if order > 0 || after[0].rows == 0 {
			added, after = added+int64(after[0].rows), after[1:]
		}
	}
	return removed + rowsOf(before), added + rowsOf(after)
}

func rowsOf(all []entry) (n int64) {
	for _, e := range all {
		n += int64(e.rows)
	}
	return n
}
