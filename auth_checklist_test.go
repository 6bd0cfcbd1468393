package snap_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSignInChecklist: every id of the sign-in checklist is named by a test, as
// in "// D4: ...", so that a search for it finds the proof.
func TestSignInChecklist(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	id := regexp.MustCompile(`\b[DTCFSKLAU]\d{1,2}\b`)
	list := regexp.MustCompile(id.String() + `(, ` + id.String() + `)*:`) // not S3 in a sentence
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case path == "auth_checklist_test.go": // its examples are no proof
			return nil
		case !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "//") || strings.HasPrefix(line, "#") {
				for _, name := range id.FindAllString(strings.Join(list.FindAllString(line, -1), " "), -1) {
					named[name] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for letter, last := range map[string]int{"D": 12, "T": 10, "C": 4, "F": 6, "S": 5, "K": 7, "L": 4, "A": 5,
		"U": 17} {
		for n := 1; n <= last; n++ {
			if name := fmt.Sprint(letter, n); !named[name] {
				t.Errorf("no test names %s", name)
			}
		}
	}
}
