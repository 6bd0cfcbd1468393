package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// spool is a file with the rows of tables. One goroutine writes the file while others already read
// from it. Each reader reads the rows of one table.
type spool struct {
	file *os.File
	buf  []byte // rows that are not written to the file yet
	end  int64  // of the file

	mu      sync.Mutex
	changed sync.Cond
	blocks  []*block // the blocks that have rows so far
	waiting []*block // the blocks that can be given to a session
	ended   bool     // no more rows will come
	err     error    // the reason if the spool ended early
}

// spoolPiece is the number of bytes that are written, and become readable, at a time.
const spoolPiece = 1 << 20

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, "restore-*.rows")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	s := &spool{file: file}
	s.changed.L = &s.mu
	return s, nil
}

// remove closes and removes the file.
func (s *spool) remove() {
	s.file.Close()
	os.Remove(s.file.Name())
}

// begin starts the rows of b.
func (s *spool) begin(b *block) { b.offset = s.end }

// write adds rows of b.
func (s *spool) write(b *block, rows []byte) error {
	s.buf = append(s.buf, rows...)
	if len(s.buf) < spoolPiece {
		return nil
	}
	return s.flush(b, false)
}

// finish marks the rows of b as complete.
func (s *spool) finish(b *block) error { return s.flush(b, true) }

// flush makes the complete rows of b available to readers. It never offers a table without rows.
func (s *spool) flush(b *block, whole bool) error {
	n, err := s.file.Write(s.buf)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := bytes.LastIndexByte(s.buf, '\n') + 1
	if whole {
		last = n
	}
	if last > 0 {
		b.ends = append(b.ends, b.size+int64(last))
	}
	first := b.size <= noRows
	s.end, b.size, b.whole, s.buf = s.end+int64(n), b.size+int64(n), whole, s.buf[:0]
	if first && b.size > noRows {
		s.blocks, s.waiting = append(s.blocks, b), append(s.waiting, b)
	}
	s.changed.Broadcast()
	return nil
}

// close ends the spool. err must not be nil if rows are missing.
func (s *spool) close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.err = true, err
	s.changed.Broadcast()
}

// wait waits until the spool has ended. If it ended early, wait returns the reason.
func (s *spool) wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended {
		s.changed.Wait()
	}
	return s.err
}

// next returns the largest known table that no session loads yet or that can use another session.
// It returns nil if there is no such table and none will follow.
func (s *spool) next() *block {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.waiting = slices.DeleteFunc(s.waiting, func(b *block) bool { return b.whole && b.taken == len(b.ends) })
		if len(s.waiting) > 0 || s.ended {
			break
		}
		s.changed.Wait()
	}
	if len(s.waiting) == 0 {
		return nil
	}
	b := slices.MaxFunc(s.waiting, func(a, b *block) int { return cmp.Compare(a.size, b.size) })
	if !b.shared {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *block) bool { return other == b })
	}
	return b
}

// offerAgain offers all tables to the sessions again.
func (s *spool) offerAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.Clone(s.blocks)
	for _, b := range s.blocks {
		b.taken = 0
	}
}

// rows returns a reader for the rows of b that no other reader of b has read. The reader waits for
// rows that are not written yet.
func (s *spool) rows(b *block, report func(bytes int)) io.Reader {
	return &spoolReader{spool: s, b: b, report: report}
}

type spoolReader struct {
	spool     *spool
	b         *block
	at, until int64           // of the piece being read
	report    func(bytes int) // called with the number of bytes that were read
}

// Read implements io.Reader.
func (r *spoolReader) Read(p []byte) (n int, err error) {
	if r.at == r.until {
		if r.at, r.until, err = r.spool.piece(r.b); err != nil {
			return 0, err
		}
	}
	n, err = r.spool.file.ReadAt(p[:min(int64(len(p)), r.until-r.at)], r.b.offset+r.at)
	r.at += int64(n)
	r.report(n)
	return n, err
}

// piece waits for the next piece of b that no reader has read, and returns its position. It returns
// io.EOF after the last piece.
func (s *spool) piece(b *block) (from, to int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b.taken == len(b.ends) && !b.whole && !s.ended {
		s.changed.Wait()
	}
	switch {
	case b.taken < len(b.ends):
	case b.whole:
		return 0, 0, io.EOF
	default:
		return 0, 0, fmt.Errorf("the rows of %s are incomplete: %w", b.table(), s.err)
	}
	if b.taken > 0 {
		from = b.ends[b.taken-1]
	}
	b.taken++
	return from, b.ends[b.taken-1], nil
}
