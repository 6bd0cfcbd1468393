package archive

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// blockWriter compresses a stream into blocks, several at a time, and writes them in order. Memory
// is bounded by the number of jobs: every block has a packer, and there is one more packer than
// jobs, so that one fills while the others work.
type blockWriter struct {
	dst      io.Writer
	encoders encoders
	free     chan *packer
	order    chan *packer
	filling  *packer
	size     int64 // bytes received
	done     chan struct{}
	failed   atomic.Pointer[error]
}

func newBlockWriter(dst io.Writer, jobs int) (*blockWriter, error) {
	e, err := newEncoders(jobs)
	if err != nil {
		return nil, err
	}
	w := &blockWriter{dst: dst, encoders: e, free: make(chan *packer, jobs+1), order: make(chan *packer, jobs+1),
		done: make(chan struct{})}
	for range jobs + 1 {
		w.free <- newPacker(e)
	}
	go w.drain()
	return w, nil
}

// Write adds bytes to the stream. Once writing a block has failed, Write returns the error of that
// write.
func (w *blockWriter) Write(b []byte) (int, error) {
	taken := 0
	for len(b) > 0 {
		if err := w.failed.Load(); err != nil {
			return taken, *err
		}
		if w.filling == nil {
			w.filling = <-w.free
		}
		p := w.filling
		n := min(len(b), blockSize-len(p.content))
		p.content = append(p.content, b[:n]...)
		b, taken = b[n:], taken+n
		if len(p.content) == blockSize {
			w.flush()
		}
	}
	w.size += int64(taken)
	return taken, nil
}

// copyBlock adds a block that is already compressed and holds size bytes of content. The content
// before it must end with a whole block.
func (w *blockWriter) copyBlock(block []byte, size int64) error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	p := <-w.free
	p.block = append(p.block[:0], block...)
	p.ready <- struct{}{}
	w.order <- p
	w.size += size
	return nil
}

// flush starts packing the block that was filled.
func (w *blockWriter) flush() {
	p := w.filling
	if p == nil {
		return
	}
	w.filling = nil
	w.order <- p
	go func() {
		p.pack()
		p.ready <- struct{}{}
	}()
}

// drain writes the blocks in order.
func (w *blockWriter) drain() {
	defer close(w.done)
	for p := range w.order {
		<-p.ready
		if w.failed.Load() == nil {
			if _, err := w.dst.Write(p.block); err != nil {
				w.failed.Store(&err)
			}
		}
		p.content = p.content[:0]
		w.free <- p
	}
}

// Close writes the remaining data and returns the first error.
func (w *blockWriter) Close() error {
	w.flush()
	close(w.order)
	<-w.done
	if err := w.encoders.close(); err != nil {
		return err
	}
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// blockReader reads a sequence of blocks. It unpacks several at a time and returns them in order.
// It reads ahead at most as many blocks as it has unpackers.
type blockReader struct {
	zstd    *zstd.Decoder
	free    chan *unpacker
	order   chan *unpacker
	current *unpacker
	left    []byte // unread content of the current block
	err     error
	stop    chan struct{}
	done    chan struct{}
}

func newBlockReader(src io.Reader, jobs int) (*blockReader, error) {
	dec, err := newBlockDecoder(jobs)
	if err != nil {
		return nil, err
	}
	r := &blockReader{zstd: dec, free: make(chan *unpacker, jobs+1), order: make(chan *unpacker, jobs+1),
		stop: make(chan struct{}), done: make(chan struct{})}
	for range jobs + 1 {
		r.free <- &unpacker{zstd: dec, ready: make(chan error, 1)}
	}
	go r.fetch(src)
	return r, nil
}

// fetch reads blocks and starts unpacking them, until a block cannot be read, the last block is
// read, or the reader is closed.
func (r *blockReader) fetch(src io.Reader) {
	defer close(r.done)
	for {
		var u *unpacker
		select {
		case u = <-r.free:
		case <-r.stop:
			return
		}
		err := u.read(src)
		r.order <- u
		if err != nil {
			u.ready <- err
			return
		}
		go func() { u.ready <- u.unpack() }()
	}
}

// Read implements io.Reader.
func (r *blockReader) Read(b []byte) (int, error) {
	for len(r.left) == 0 && r.err == nil {
		if r.current != nil {
			r.free <- r.current
		}
		r.current = <-r.order
		if r.err = <-r.current.ready; r.err == nil {
			r.left = r.current.content
		}
	}
	if len(r.left) == 0 {
		return 0, r.err
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// Close stops the work in progress.
func (r *blockReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.left, r.err = nil, os.ErrClosed
	close(r.stop)
	<-r.done
	close(r.order)
	for u := range r.order {
		<-u.ready //nolint:errcheck // the result is no longer used
	}
	r.zstd.Close()
	return nil
}
