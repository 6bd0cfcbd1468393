package command

import (
	"fmt"
	"io"
)

// Result writes to standard output and remembers the first failed write. Callers of print functions
// rarely check for errors, but a command must fail if its result could not be written. A Result is
// not safe for concurrent use.
type Result struct {
	to  io.Writer
	err error
}

// NewResult returns a result that writes to w.
func NewResult(w io.Writer) *Result { return &Result{to: w} }

// Write implements io.Writer.
func (r *Result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("write the result to standard output: %w", err)
	}
	return n, err
}

// Err returns the first error of a write, or nil.
func (r *Result) Err() error { return r.err }
