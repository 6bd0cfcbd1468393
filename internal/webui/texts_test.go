package webui

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// notTexts are the literals with spaces that no person reads: lines of an
// event stream.
var notTexts = []string{": ready\n\n", "event: %s\n", "data: %s\n"}

// English texts are in two places: texts.go and the templates. The route table, wrapping errors and
// log messages are not texts (decision 31).
func TestTextsAreInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || !slices.Contains(files, "texts.go") {
		t.Fatalf("texts.go is not among %q: %v", files, err)
	}
	places := token.NewFileSet()
	for _, name := range files {
		if name == "texts.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(places, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range textsIn(t, file) {
			t.Errorf("%s: %s belongs in texts.go", places.Position(l.Pos()), l.Value)
		}
	}
}

// The test above finds a sentence anywhere in a file.
func TestTextsAreFound(t *testing.T) {
	t.Parallel()
	for source, found := range map[string]int{
		`var a = "two words"`:                                                1,
		"var a = `with ` + b":                                                1,
		`func f() { s.done("Deleted " + n, "it is gone") }`:                  2,
		`func f() error { return snap.Usage("no", "do that, or leave it") }`: 1,
		`var a = []string{"one", "ONE TWO", "no-cache", "/a/b"}`:             0,
		`func f() { s.o.Log.Error("it failed", "err", err) }`:                0,
		`func f() error { return fmt.Errorf("do it: %w", err) }`:             0,
		`func f() { handle("GET /snapshots", nil); handle("get it", nil) }`:  1,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(textsIn(t, file)); n != found {
			t.Errorf("%d texts in %s, not %d", n, source, found)
		}
	}
}

// textsIn returns the string literals of a file that read as English: several words, or one word
// and the space before the next part of its sentence.
func textsIn(t *testing.T, file *ast.File) (found []*ast.BasicLit) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.CallExpr:
			return !wrapsOrLogs(n)
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				t.Fatal(err)
			}
			if isText(text) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func isText(s string) bool {
	route := strings.HasPrefix(s, "GET /") || strings.HasPrefix(s, "POST /")
	return strings.Contains(s, " ") && strings.ContainsFunc(s, unicode.IsLower) && !route &&
		!slices.Contains(notTexts, s)
}

// wrapsOrLogs reports whether a call is one that wraps an error, or writes to
// a log.
func wrapsOrLogs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch on := f.X.(type) {
	case *ast.Ident:
		return on.Name == "fmt" && f.Sel.Name == "Errorf"
	case *ast.SelectorExpr:
		return on.Sel.Name == "Log" || on.Sel.Name == "log"
	}
	return false
}
