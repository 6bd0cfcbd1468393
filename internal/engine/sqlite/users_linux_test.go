package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Other processes that have a file open are listed, even if the path contains a symbolic link. This
// process and processes that have other files open are not listed.
func TestUsersOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "shop.db"), filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	holding := func(path string) *exec.Cmd {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		cmd := exec.Command("cat")
		cmd.ExtraFiles = []*os.File{f}
		in, err := cmd.StdinPipe() // the process runs until this pipe is closed
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			_ = cmd.Wait()
		})
		return cmd
	}
	holding(path + "-wal")
	want := []string{fmt.Sprintf("cat (process %d)", holding(path).Process.Pid)}
	for _, name := range []string{path, link} {
		if got := users(name); !slices.Equal(got, want) {
			t.Errorf("%s is used by %q, want %q", filepath.Base(name), got, want)
		}
	}
	if got := users(filepath.Join(dir, "none")); got != nil {
		t.Errorf("a file that is not there is used by %q", got)
	}
}
