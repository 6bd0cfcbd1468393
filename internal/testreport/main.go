// Testreport reads the events of `go test -json` from stdin and prints a summary
// for people: the line of every package as `go test` prints it, the whole output
// of every test that failed, and at the end every skipped test by name with its
// reason. It exits 1 if anything failed or did not build.
//
//	go test -json ./... | testreport
package main

import (
	"fmt"
	"os"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}
