package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Only the pattern of Glob has characters with a special meaning, not the folder.
func TestGlob(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "back[up]s")
	want := filepath.Join(dir, "3f", "a[1]")
	if err := errors.Join(os.MkdirAll(filepath.Dir(want), 0o700), os.WriteFile(want, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := Glob(dir, "[0-9a-f][0-9a-f]/*"); !slices.Equal(got, []string{want}) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := Glob(filepath.Join(dir, "missing"), "*"); len(got) > 0 {
		t.Errorf("found %q in a folder that does not exist", got)
	}
}

func TestPreallocate(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Preallocate(f, 12345); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 12345 {
		t.Errorf("size %v, %v", info, err)
	}
	if err := SyncDir(filepath.Dir(f.Name())); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(filepath.Dir(f.Name()), "none")); runtime.GOOS != "windows" &&
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	if !Full(fmt.Errorf("write: %w", &fs.PathError{Err: syscall.ENOSPC})) || Full(fs.ErrNotExist) || Full(nil) {
		t.Error("a full disk must be recognized by its error, wrapped or not")
	}
}

// A file is replaced through a new file in the same folder, not in the system's folder for
// temporary files. Only the remains of killed processes are removed.
func TestReplace(t *testing.T) {
	tmp, dir := t.TempDir(), t.TempDir()
	long := time.Unix(1, 0)
	if err := os.Chtimes(tmp, long, long); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	path := filepath.Join(dir, "secret")
	for _, name := range []string{".secret123456", ".secret.swp", "secret1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one", "two"} {
		if err := Replace(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if info, err := os.Stat(tmp); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("a file was created in the folder for temporary files: %v, %v", info.ModTime(), err)
	}
	RemoveTemporary(path)
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".secret.swp", "secret", "secret1"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v; want %v", names, err, want)
	}
	if err := Replace(filepath.Join(dir, "none", "secret"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing folder: %v", err)
	}
}

// A name with brackets is not a pattern: the temporary files of other names stay.
func TestRemoveTemporaryOfBrackets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, others := filepath.Join(dir, ".shop[12].json3"), filepath.Join(dir, ".shop1.json3")
	if err := errors.Join(os.WriteFile(own, nil, 0o600), os.WriteFile(others, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	RemoveTemporary(filepath.Join(dir, "shop[12].json"))
	if left := Glob(dir, "*"); !slices.Equal(left, []string{others}) {
		t.Errorf("left %q, want only %q", left, others)
	}
}

// Bytes that bypass the cache reach the file at any offset and length, even
// where bypassing the cache is impossible.
func TestWriteAt(t *testing.T) {
	t.Parallel()
	want := make([]byte, 4*sector+100)
	for i := range want {
		want[i] = byte(i % 251)
	}
	for name, open := range map[string]func(string) *os.File{
		"direct": OpenDirect, "cached": func(string) *os.File { return nil }} {
		path := filepath.Join(t.TempDir(), "f")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		direct := open(path)
		if direct != nil {
			defer direct.Close()
		}
		for _, part := range []struct{ from, to int }{{2 * sector, 4*sector + 100}, {sector, 2 * sector}, {0, 5},
			{5, sector}} {
			if err := WriteAt(f, direct, want[part.from:part.to], int64(part.from)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want the %d that were written", name, len(got), err, len(want))
		}
	}
}
