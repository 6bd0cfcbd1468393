package servertest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Template returns a function that copies files into a folder. fill writes the files at the first
// call, once for all tests of a process, because migrating a database takes longer than most tests
// that need one.
func Template(fill func(dir string) error) func(t testing.TB, dir string) {
	files := sync.OnceValues(func() (map[string][]byte, error) {
		dir, err := os.MkdirTemp("", "servertest-template-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := fill(dir); err != nil {
			return nil, err
		}
		return readFolder(dir)
	})
	return func(t testing.TB, dir string) {
		t.Helper()
		all, err := files()
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range all {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// readFolder returns the content of a folder's files by name.
func readFolder(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}
