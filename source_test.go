package snap_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// rule is what one of the tests below rejects in Go code.
type rule func(name string, n ast.Node) (complaint string)

// rules are looked at together, because parsing the code takes longer than anything else here.
var rules = map[string]rule{
	"evaluation order": func(_ string, n ast.Node) string {
		if statement, is := n.(*ast.ReturnStmt); is && dependsOnOrder(statement) {
			return "assign first, then return"
		}
		return ""
	},
	"function names": func(_ string, n ast.Node) string {
		if f, is := n.(*ast.FuncDecl); is && slices.Contains(riddles, f.Name.Name) {
			return f.Name.Name + " does not say what the function does"
		}
		return ""
	},
	"goroutines": func(name string, n ast.Node) string {
		if !slices.Contains(unwatched(), filepath.ToSlash(filepath.Dir(name))) || strings.HasSuffix(name, "_test.go") {
			return ""
		}
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			return "the race detector does not watch this package"
		case *ast.ImportSpec:
			if strings.Contains(n.Path.Value, "sync") {
				return "the race detector does not watch this package: it must not need " + n.Path.Value
			}
		}
		return ""
	},
	"booleans": func(name string, n ast.Node) string {
		call, is := n.(*ast.CallExpr)
		if is && !strings.HasSuffix(name, "_test.go") && booleans(call) > 1 && !swaps(call) {
			return "name these booleans"
		}
		return ""
	},
}

// riddles are names that do not say what a function does.
var riddles = []string{"take", "bring", "look", "settle", "tell", "had", "alone", "agree", "whence", "beside",
	"spoken", "foretell", "meant"}

// unwatched returns the folders of our packages that the Makefile compiles without the race
// detector.
var unwatched = sync.OnceValue(func() (dirs []string) {
	text, _ := os.ReadFile("Makefile") // TestUnwatchedPackagesAreSequential fails if there is none
	for _, m := range regexp.MustCompile(`\bsnap/(internal/[a-z/]+)`).FindAllSubmatch(text, -1) {
		dirs = append(dirs, string(m[1]))
	}
	return dirs
})

// complaints returns what every rule rejects in the module's Go code.
var complaints = sync.OnceValues(func() (map[string][]string, error) {
	names, err := goFiles()
	found := map[string][]string{}
	for _, name := range names {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for of, complain := range rules {
				if complaint := complain(name, n); complaint != "" {
					found[of] = append(found[of], fmt.Sprintf("%s: %s", files.Position(n.Pos()), complaint))
				}
			}
			return true
		})
	}
	return found, err
})

// report fails the test with the complaints of one rule.
func report(t *testing.T, of string) {
	t.Helper()
	t.Parallel()
	found, err := complaints()
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range found[of] {
		t.Error(complaint)
	}
}

// TestReturnsDoNotDependOnEvaluationOrder rejects `return x, f(&x)`: Go does not define whether x
// is read before f changes it.
func TestReturnsDoNotDependOnEvaluationOrder(t *testing.T) { report(t, "evaluation order") }

// TestUnwatchedPackagesAreSequential rejects goroutines, channels and locks in packages that the
// race detector does not watch (docs/decisions/0297).
func TestUnwatchedPackagesAreSequential(t *testing.T) {
	if len(unwatched()) == 0 {
		t.Error("the Makefile names no package; is the test looking in the right place?")
	}
	report(t, "goroutines")
}

// TestFunctionNames rejects names that do not say what a function does.
func TestFunctionNames(t *testing.T) { report(t, "function names") }

// TestBooleansHaveNames rejects calls with two boolean literals, such as f(x, true, false): a
// reader cannot tell what they mean. Use two functions, an option or a named type instead.
func TestBooleansHaveNames(t *testing.T) { report(t, "booleans") }

// TestCommandsAreQuotedForAShell rejects commands with the verb %q in hints. People copy these
// commands, and within double quotes a shell runs $(...). A name may come from anybody:
// [snap.ShellWord] quotes it.
func TestCommandsAreQuotedForAShell(t *testing.T) {
	t.Parallel()
	unsafe := regexp.MustCompile("`snap(cli|cloud) [^`]*%q")
	names, err := goFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := unsafe.Find(text); found != nil {
			t.Errorf("%s: %s: write %%s with snap.ShellWord", name, found)
		}
	}
}

// booleans counts the arguments that are true or false.
func booleans(call *ast.CallExpr) (n int) {
	for _, arg := range call.Args {
		if id, is := arg.(*ast.Ident); is && (id.Name == "true" || id.Name == "false") {
			n++
		}
	}
	return n
}

// swaps reports whether a call is CompareAndSwap, which takes an old and a new value.
func swaps(call *ast.CallExpr) bool {
	f, is := call.Fun.(*ast.SelectorExpr)
	return is && f.Sel.Name == "CompareAndSwap"
}

// dependsOnOrder reports whether one result is a variable, or a field of one, and another result
// passes the address of that variable, or of one of its fields, to a call.
func dependsOnOrder(statement *ast.ReturnStmt) bool {
	values, addressed := map[string]bool{}, map[string]bool{}
	for _, result := range statement.Results {
		if name := variable(result); name != "" {
			values[name] = true
		}
		ast.Inspect(result, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				_, isFunc := n.(*ast.FuncLit)
				return !isFunc
			}
			for _, arg := range call.Args {
				if address, is := arg.(*ast.UnaryExpr); is && address.Op == token.AND {
					addressed[variable(address.X)] = true
				}
			}
			return true
		})
	}
	for name := range values {
		if addressed[name] {
			return true
		}
	}
	return false
}

// variable returns the name of the variable that an expression is, or is a field of, otherwise "".
func variable(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return variable(e.X)
	}
	return ""
}

// TestDependsOnOrder proves that the check above finds such returns.
func TestDependsOnOrder(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"return x, f(&x)":                true,
		"return x, row.Scan(&x.A)":       true,
		"return x.A, g(f(&x))":           true,
		"return x, nil":                  false,
		"return x, f(&y)":                false,
		"return &x, f(&x)":               false,
		"return x, func() { f(&x) }":     false,
		"return x, &T{Detail: f(other)}": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc _() { "+source+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		statement := file.Decls[0].(*ast.FuncDecl).Body.List[0].(*ast.ReturnStmt)
		if got := dependsOnOrder(statement); got != want {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
}

// TestBooleansAreCounted proves that the check above finds such calls.
func TestBooleansAreCounted(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{"f(x, true, false)": 2, "f(true, g(false))": 1, "f(x)": 0} {
		e, err := parser.ParseExpr(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := booleans(e.(*ast.CallExpr)); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}

// goFiles returns the module's Go files, tests included.
func goFiles() (names []string, err error) {
	err = filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && !hasOurCode(file) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(file, ".go") {
			names = append(names, file)
		}
		return nil
	})
	return names, err
}

// hasOurCode reports whether a folder belongs to the module.
func hasOurCode(dir string) bool {
	name := filepath.Base(dir)
	return !strings.HasPrefix(name, ".") && name != "testdata" && dir != "bin" && !isModule(dir)
}
