package command

import (
	"fmt"
	"io"
)

// Result is standard output. It remembers the first failed write, because few callers of print
// functions check: a full disk behind standard output must fail the command. It is not safe for
// concurrent use.
type Result struct {
	to  io.Writer
	err error
}

// NewResult returns a result that writes to w.
func NewResult(w io.Writer) *Result { return &Result{to: w} }

func (r *Result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("write the result to standard output: %w", err)
	}
	return n, err
}

// Err returns the first error of a write, or nil.
func (r *Result) Err() error { return r.err }
