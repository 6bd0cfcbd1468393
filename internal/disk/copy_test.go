package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A copy has the same bytes and is independent of the original. Copying never replaces a file, and
// leaves no file when it fails.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	want := bytes.Repeat([]byte("snapcli"), 100_000)
	if err := os.WriteFile(from, want, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := Copy(from, to, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if err := os.WriteFile(to, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(from); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the original changed with its copy (%v)", err)
	}
	if err := Copy(from, to, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("copying over an existing file: %v", err)
	}
	if err := Copy(dir, filepath.Join(dir, "folder"), 0o600); err == nil {
		t.Error("a folder was copied")
	}
	if _, err := os.Stat(filepath.Join(dir, "folder")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a failed copy left a file")
	}
}
