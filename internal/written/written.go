// Package written knows whether the result of a command was written. A full
// disk behind standard output must fail the command, or the script that called
// it goes on with half a result; and most of those who print do not look.
package written

import (
	"fmt"
	"io"
)

// Result is standard output that remembers the first write that failed. It is
// for one goroutine.
type Result struct {
	to   io.Writer
	lost error
}

// To returns a result that is written to w.
func To(w io.Writer) *Result { return &Result{to: w} }

func (r *Result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if err != nil && r.lost == nil {
		r.lost = fmt.Errorf("write the result to standard output: %w", err)
	}
	return n, err
}

// Lost is why something of the result was not written, nil if all was.
func (r *Result) Lost() error { return r.lost }
