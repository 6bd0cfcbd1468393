package mysql

import (
	"context"
	"fmt"
	"io"
)

// turns makes concurrent readers write their statements in a fixed order: a reader writes one
// statement and then waits until every other reader has written one. The order therefore does not
// depend on the readers' speed. A database that has not changed gives the same dump again, so that
// a push transfers nothing.
type turns struct {
	w       io.Writer
	sources []source        // not read yet
	queue   []chan struct{} // of the readers; the first has its turn, and only it may use this struct
}

// turn is the handle of one reader. ready receives a value when it is the reader's turn.
type turn struct {
	shared *turns
	ready  chan struct{}
}

// newTurns returns turns for a number of readers.
func newTurns(w io.Writer, sources []source, readers int) []turn {
	t := &turns{w: w, sources: sources}
	all := make([]turn, readers)
	for i := range all {
		all[i] = turn{t, make(chan struct{}, 1)}
		t.queue = append(t.queue, all[i].ready)
	}
	t.queue[0] <- struct{}{}
	return all
}

// wait waits until it is this reader's turn.
func (t turn) wait(ctx context.Context) error {
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end gives the turn to the next reader. A reader that is done gets no further turn.
func (t turn) end(done bool) {
	q := t.shared.queue[1:]
	if !done {
		q = append(q, t.ready)
	}
	if t.shared.queue = q; len(q) > 0 {
		q[0] <- struct{}{}
	}
}

// next returns the next source to read, or nil when there are no more.
func (t turn) next(ctx context.Context) (s *source, err error) {
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	if left := t.shared.sources; len(left) > 0 {
		s, t.shared.sources = &left[0], left[1:]
	}
	t.end(s == nil)
	return s, nil
}

// write writes a statement.
func (t turn) write(ctx context.Context, b []byte) error {
	if err := t.wait(ctx); err != nil {
		return err
	}
	if _, err := t.shared.w.Write(b); err != nil {
		return fmt.Errorf("write the dump: %w", err)
	}
	t.end(false)
	return nil
}
