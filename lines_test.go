package snap_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxLine is where a line of Go ends, with a tab as four columns.
const maxLine = 120

// TestLinesFit: no line of Go is wider than maxLine, except the tag of a field, which cannot be
// broken.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	for file, source := range tracked(t, ".go") {
		for i, line := range wideLines(t, file, source) {
			t.Errorf("%s:%d: %d columns", file, i, width(line))
		}
	}
}

// tracked returns the tracked files whose names end with a suffix.
func tracked(t *testing.T, suffix string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, file := range trackedFiles(t) {
		if !strings.HasSuffix(file, suffix) {
			continue
		}
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		all[file] = source
	}
	return all
}

// wideLines returns the lines of a file that are too wide, by number.
func wideLines(t *testing.T, file string, source []byte) map[int][]byte {
	t.Helper()
	wide := map[int][]byte{}
	for i, line := range bytes.Split(source, []byte("\n")) {
		if width(line) > maxLine {
			wide[i+1] = line
		}
	}
	if len(wide) == 0 {
		return nil
	}
	places := token.NewFileSet()
	parsed, err := parser.ParseFile(places, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if field, is := n.(*ast.Field); is && field.Tag != nil {
			delete(wide, places.Position(field.Tag.Pos()).Line)
		}
		return true
	})
	return wide
}

// maxProse is where a line of prose ends in a document.
const maxProse = 100

// TestProseFits: no line of prose in a document is wider than maxProse. Tables, headings, code and
// lines with links may be.
func TestProseFits(t *testing.T) {
	t.Parallel()
	for file, source := range tracked(t, ".md") {
		code := false
		for i, line := range strings.Split(string(source), "\n") {
			fence := strings.HasPrefix(strings.TrimSpace(line), "```")
			code = code != fence
			free := code || fence || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") ||
				strings.Contains(line, "](") || strings.Contains(line, "://")
			if n := utf8.RuneCountInString(line); n > maxProse && !free {
				t.Errorf("%s:%d: %d columns", file, i+1, n)
			}
		}
	}
}

func width(line []byte) int { return utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t")) }

// maxTemplate is where a line of a page's template ends.
const maxTemplate = 200

// TestTemplatesFit: no line of a template is so wide that its logic cannot be followed.
func TestTemplatesFit(t *testing.T) {
	t.Parallel()
	for file, source := range tracked(t, ".html") {
		for i, line := range bytes.Split(source, []byte("\n")) {
			if n := width(line); n > maxTemplate {
				t.Errorf("%s:%d: %d columns", file, i+1, n)
			}
		}
	}
}
