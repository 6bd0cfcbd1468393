package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck checks that a mistake in one system's files is found, in a program and in a test.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module m\n\ngo 1.26\n",
		"main.go":            "package main\n\nimport \"syscall\"\n\nfunc main() { _ = syscall.Getpid() }\n",
		"main_windows.go":    "package main\n\nvar wrong int = \"text\"\n",
		"main_test.go":       "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { only() }\n",
		"only_darwin.go":     "package main\n\nfunc only() {}\n",
		"only_linux_test.go": "package main\n\nfunc only() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(dir, "linux/amd64", "darwin/arm64"); err != nil {
		t.Errorf("linux and macOS: %v", err)
	}
	err := check(dir, "windows/amd64")
	for _, want := range []string{"for windows/amd64", "main_windows.go:3", "undefined: only"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("windows: %v, want %q", err, want)
		}
	}
}
