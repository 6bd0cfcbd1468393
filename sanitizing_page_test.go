package snap_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snap/internal/sanitize"
)

// TestSanitizingPage compares docs/sanitizing.md with the program: the page names every mask, and
// its first example is a valid rules file.
func TestSanitizingPage(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/sanitizing.md")
	for _, name := range sanitize.MaskNames() {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page lacks the mask %s", name)
		}
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(example[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sanitize.ReadRules(file); err != nil {
		t.Error(err)
	}
}
