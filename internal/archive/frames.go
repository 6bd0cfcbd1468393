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
	enc    [2]*zstd.Encoder // taken in turn
	next   int
	chunk  []byte
	size   int64 // bytes taken in
	order  chan chan []byte
	done   chan struct{}
	failed atomic.Pointer[error]
}

func newFrames(dst io.Writer, jobs int) (*frames, error) {
	f := &frames{dst: dst, order: make(chan chan []byte, jobs), done: make(chan struct{})}
	// Every second frame is compressed harder: a dump gets smaller than gzip
	// makes it, for half of what that costs in every frame.
	for i, level := range []zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedBetterCompression} {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(jobs), zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(true), zstd.WithWindowSize(frameSize))
		if err != nil {
			return nil, fmt.Errorf("start zstd: %w", err)
		}
		f.enc[i] = enc
	}
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
	in, result, enc := f.chunk, make(chan []byte, 1), f.enc[f.next%2]
	f.chunk = nil
	f.next++
	f.order <- result
	go func() { result <- enc.EncodeAll(in, make([]byte, 0, len(in)/2)) }()
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
	for _, enc := range f.enc {
		if err := enc.Close(); err != nil {
			return fmt.Errorf("end zstd: %w", err)
		}
	}
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}
