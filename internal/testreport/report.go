package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of `go test -json`, see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// name is a test of a package; an empty test is the package itself.
type name struct{ pkg, test string }

// skip is a skipped test with its reason.
type skip struct {
	name
	reason string
}

// report follows the events of one run.
type report struct {
	out    io.Writer
	output map[name][]string // of tests and packages that still run
	skips  []skip
	passed int
	failed int
	broken bool // a package failed or did not build
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[name][]string{}}
}

// read reads events until the input ends. It passes on lines that are not events, such as messages of
// the go command itself.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.out, line)
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add follows one event.
func (r *report) add(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.broken = true
	case "run":
		r.output[n] = nil // a test that hangs without output is named too
	case "output":
		r.keep(n, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(n, e.Action == "fail")
		} else {
			r.endTest(n, e.Action)
		}
	}
}

// keep holds a line of output until its test or package ends. Lines that only say that a test began
// or continued are dropped.
func (r *report) keep(n name, line string) {
	for _, noise := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(line, noise) {
			return
		}
	}
	r.output[n] = append(r.output[n], line)
}

func (r *report) endTest(n name, action string) {
	lines := r.output[n]
	delete(r.output, n)
	switch action {
	case "fail":
		r.failed++
		fmt.Fprint(r.out, strings.Join(lines, ""))
	case "skip":
		r.skips = append(r.skips, skip{n, reason(lines)})
	default:
		r.passed++
	}
}

// endPackage prints the package's own lines. If the package failed, it also prints the output of
// tests that never ended, as after a panic or a timeout.
func (r *report) endPackage(n name, failed bool) {
	r.broken = r.broken || failed
	for _, line := range r.output[n] {
		if line != "PASS\n" && line != "testing: warning: no tests to run\n" {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.output, n)
	for _, left := range r.left(n.pkg) {
		if failed {
			fmt.Fprintf(r.out, "--- UNFINISHED: %s\n%s", left.test, strings.Join(r.output[left], ""))
		}
		delete(r.output, left)
	}
}

// left returns the tests of a package that began and did not end.
func (r *report) left(pkg string) []name {
	var all []name
	for n := range r.output {
		if n.pkg == pkg && n.test != "" {
			all = append(all, n)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].test < all[j].test })
	return all
}

// reason returns a skipped test's message without file and line.
func reason(lines []string) string {
	var said []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "--- SKIP") {
			continue
		}
		if _, after, found := strings.Cut(line, ".go:"); found {
			if _, text, found := strings.Cut(after, ": "); found {
				line = text
			}
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// finish prints the skipped tests and the count, and reports whether the run succeeded.
func (r *report) finish() bool {
	sort.SliceStable(r.skips, func(i, j int) bool {
		a, b := r.skips[i], r.skips[j]
		if a.pkg != b.pkg {
			return a.pkg < b.pkg
		}
		return a.test < b.test
	})
	if len(r.skips) > 0 {
		fmt.Fprintln(r.out, "\nskipped:")
	}
	for _, s := range r.skips {
		fmt.Fprintf(r.out, "--- SKIP: %s %s: %s\n", s.pkg, s.test, s.reason)
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skips))
	return r.failed == 0 && !r.broken
}
