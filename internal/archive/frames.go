package archive

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// frames compresses a stream as zstd frames of frameSize each, several at a
// time, and writes them in order. Every frame has zstd's own checksum. Memory
// is bounded by the number of jobs.
type frames struct {
	dst    io.Writer
	enc    *zstd.Encoder
	chunk  []byte
	size   int64 // bytes taken in
	order  chan chan []byte
	done   chan struct{}
	failed atomic.Pointer[error]
}

func newFrames(dst io.Writer, jobs int) (*frames, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(jobs), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	f := &frames{dst: dst, enc: enc, order: make(chan chan []byte, jobs), done: make(chan struct{})}
	go f.drain()
	return f, nil
}

// Write takes in bytes. After a failure to write it returns that error.
func (f *frames) Write(p []byte) (int, error) {
	taken := 0
	for len(p) > 0 {
		if err := f.failed.Load(); err != nil {
			return taken, *err
		}
		if f.chunk == nil {
			f.chunk = make([]byte, 0, frameSize)
		}
		n := min(len(p), frameSize-len(f.chunk))
		f.chunk = append(f.chunk, p[:n]...)
		p, taken = p[n:], taken+n
		if len(f.chunk) == frameSize {
			f.flush()
		}
	}
	f.size += int64(taken)
	return taken, nil
}

// flush sends the chunk to be compressed. It waits while too many are on
// their way.
func (f *frames) flush() {
	if len(f.chunk) == 0 {
		return
	}
	in, result := f.chunk, make(chan []byte, 1)
	f.chunk = nil
	f.order <- result
	go func() { result <- f.enc.EncodeAll(in, make([]byte, 0, len(in)/2)) }()
}

// drain writes the frames in order.
func (f *frames) drain() {
	defer close(f.done)
	for result := range f.order {
		frame := <-result
		if f.failed.Load() != nil {
			continue
		}
		if _, err := f.dst.Write(frame); err != nil {
			f.failed.Store(&err)
		}
	}
}

// Close writes what is left and returns the first error.
func (f *frames) Close() error {
	f.flush()
	close(f.order)
	<-f.done
	if err := f.enc.Close(); err != nil {
		return fmt.Errorf("end zstd: %w", err)
	}
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}
