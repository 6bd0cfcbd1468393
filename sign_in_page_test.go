package snap_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"snap/internal/cloud"
)

// TestSignInPage compares docs/sign-in.md with the program, which must read every example without
// an error.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/sign-in.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)\n## ([^\n]+)\n.*?```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 5 {
		t.Fatalf("%d examples, want one of each provider", len(examples))
	}
	for _, example := range examples {
		file := filepath.Join(t.TempDir(), "snapcloud.yaml")
		if err := os.WriteFile(file, []byte(example[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := cloud.LoadConfig(file, []string{"SECRET=a-secret"})
		if err != nil {
			t.Errorf("%s: %v", example[1], err)
			continue
		}
		if in := c.Organizations[0].SignIn; in.ClientSecret != "a-secret" || len(in.Roles) == 0 {
			t.Errorf("%s: read as %+v", example[1], in)
		}
	}
}
