package snap_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPage: every test that SECURITY.md names as a proof exists, and every row names at
// least one, except in the table of changes in the database, which has no column for tests.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	exist := testNames(t)
	page := read(t, "SECURITY.md")
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	rows := 0
	tables := regexp.MustCompile(`(?m)^\| change in the database .*\n(\|.*\n)*`).ReplaceAllString(page, "")
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| they") ||
			strings.HasPrefix(line, "| event |") || strings.HasPrefix(line, "| it tries |") {
			continue
		}
		rows++
		proofs := name.FindAllStringSubmatch(line, -1)
		if len(proofs) == 0 {
			t.Errorf("no test proves %q", line)
		}
		for _, proof := range proofs {
			if !exist[proof[1]] {
				t.Errorf("SECURITY.md names the test %s, which does not exist", proof[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows", rows)
	}
}

// testNames returns the names of the functions in the module's tests; tests and fuzz targets are
// among them.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin" || path == "tools"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if signature, is := strings.CutPrefix(line, "func "); is {
				name, _, _ := strings.Cut(signature, "(")
				names[name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
