package cloud

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestFoldersOfKilledReplicasAreRemoved checks that a replica removes the deltas of replicas that
// no longer run, and neither those of running replicas nor anything else.
func TestFoldersOfKilledReplicasAreRemoved(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	live, remove, err := tempFolder(in)
	if err != nil {
		t.Fatal(err)
	}
	write := func(elements ...string) string {
		path := filepath.Join(append([]string{in}, elements...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	killed := write(tempDeltas+"1", deltasLock)
	write(tempDeltas+"1", deltasKept, "a-b")
	stay := []string{live, write(tempDeltas+"2", "new"), write("other", deltasLock), write("precious", "file")}
	link := filepath.Join(in, tempDeltas+"3")
	if err := os.Symlink(filepath.Join(in, "precious"), link); err != nil {
		t.Fatal(err)
	}
	second, removeSecond, err := tempFolder(in)
	if err != nil || second == live {
		t.Fatalf("%s, %v", second, err)
	}
	if _, err := os.Stat(filepath.Dir(killed)); !os.IsNotExist(err) {
		t.Errorf("the folder of a killed replica: %v", err)
	}
	for _, path := range append(stay, second) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, remove := range []func() error{remove, removeSecond} {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(live); !os.IsNotExist(err) {
		t.Errorf("a closed folder: %v", err)
	}
}

// TestReplicasStartTogether starts many replicas at once. Each has a folder of its own, which no other
// one removes.
func TestReplicasStartTogether(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	dirs := make([]string, 16)
	var starting sync.WaitGroup
	for i := range dirs {
		starting.Go(func() {
			dir, _, err := tempFolder(in)
			if err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
	}
	starting.Wait()
	sweepDeltas(in)
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if slices.Sort(dirs); len(slices.Compact(dirs)) != 16 {
		t.Errorf("two replicas share a folder: %v", dirs)
	}
}
