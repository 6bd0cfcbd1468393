package local

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/servertest"
)

// newestRecord returns the record of the newest snapshot, as a listing reads it.
func (s shop) newestRecord(t *testing.T) Snapshot {
	t.Helper()
	all, err := s.Snapshots(shopTarget)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d snapshots, %v", len(all), err)
	}
	return all[0]
}

// sketches returns how many sketches are on the machine.
func (s shop) sketches(t *testing.T) int {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.snapshotsDir(shopTarget), ".last-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(left)
}

// A snapshot is compared with the previous one of its type, unless the previous one was deleted.
func TestSnapshotsShowHowMuchIsNew(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	s := newShop(t)
	now := noon
	s.now = func() time.Time { now = now.Add(time.Minute); return now }
	build := func() Snapshot {
		t.Helper()
		if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		return s.newestRecord(t)
	}
	sanitize := func() Snapshot {
		t.Helper()
		if _, err := s.Sanitize(t.Context(), shopTarget,
			SanitizeOptions{SQL: s.sqlFile(t, "UPDATE customer SET email = 'x' || id")}, nil); err != nil {
			t.Fatal(err)
		}
		return s.newestRecord(t)
	}
	first, masked := build(), sanitize()
	if first.New != nil || masked.New != nil {
		t.Fatalf("the first ones: %+v and %+v", first.New, masked.New)
	}
	second := build()
	if n := second.New; n == nil || n.Since != first.Name || !n.Same || n.Share != 0 {
		t.Fatalf("unchanged: %+v, since %s", n, first.Name)
	}
	run(t, s.source, "UPDATE customer SET email = 'somebody else' WHERE id = 700")
	third := build()
	if n := third.New; n == nil || n.Since != second.Name || n.Same || n.Share <= 0 || n.Share > 0.2 {
		t.Errorf("one row changed: %+v", n)
	}
	if n := sanitize().New; n == nil || n.Since != masked.Name || !n.Same {
		t.Errorf("a masked copy of which nothing changed: %+v", n)
	}
	run(t, s.source, "UPDATE customer SET email = email || random()")
	fourth := build()
	if n := fourth.New; n == nil || n.Since != third.Name || n.Share < 0.3 || n.Share > 0.9 {
		t.Errorf("a table changed: %+v", n)
	}
	for _, name := range []string{third.Name, fourth.Name} {
		if err := s.DeleteSnapshot(name); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.sketches(t); n != 1 {
		t.Errorf("%d sketches; only that of the masked copy describes a snapshot", n)
	}
	if n := build().New; n != nil {
		t.Errorf("the previous one is deleted: %+v", n)
	}
}

// Builds succeed without a usable sketch, and the next build is compared again.
func TestADamagedSketchIsReplaced(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "not JSON": "{", "no sketch": `{"samples":"AAAA"}`, "other types": `{"created":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			now := noon
			s.now = func() time.Time { now = now.Add(time.Minute); return now }
			build := func() *New {
				t.Helper()
				built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				return built.New
			}
			build()
			if err := os.WriteFile(s.lastSeenPath(shopTarget, snap.TypeSnapshot), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if n := build(); n != nil {
				t.Errorf("compared with a damaged sketch: %+v", n)
			}
			if n := build(); n == nil || !n.Same {
				t.Errorf("after it was replaced: %+v", n)
			}
		})
	}
}

// An encrypted snapshot leaves nothing about its rows on the machine.
func TestEncryptedSnapshotsHaveNoSketch(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	to := Encryption{To: []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}}
	for range 2 {
		built, err := s.Build(t.Context(), shopTarget, BuildOptions{Encrypt: to}, nil)
		if err != nil || built.New != nil {
			t.Fatalf("%+v, %v", built.New, err)
		}
	}
	if n := s.sketches(t); n != 0 {
		t.Errorf("%d sketches", n)
	}
}

// arrived adds a snapshot to the listing, as a pull does.
func (s shop) arrived(t *testing.T, at time.Time, dump []byte) Snapshot {
	t.Helper()
	r := Snapshot{Target: shopTarget, Name: snap.SnapshotName(shopTarget, at), Type: snap.TypeSnapshot,
		Engine: snap.MySQL, Created: at, Pulled: true}
	path, err := s.snapshotFile(r.Target, r.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := archive.NewWriter(f, 1)
	if err != nil {
		t.Fatal(err)
	}
	section, err := w.Section(dumpSection)
	if err == nil {
		_, err = section.Write(dump)
	}
	if err == nil {
		err = section.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, err := w.Close(archive.Manifest{Engine: r.Engine, Target: r.Target, Name: r.Name, Type: r.Type, Created: at})
	if err != nil {
		t.Fatal(err)
	}
	r.Size, r.SHA256 = sum.Size, sum.SHA256
	if r, err = s.adopt(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// Pulled snapshots are compared too, in the order of their creation.
func TestPulledSnapshotsShowHowMuchIsNew(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var rows []byte
	for i := range 10_000 {
		rows = fmt.Appendf(rows, "%d\t%x\n", i, sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	first := s.arrived(t, noon, rows)
	if n := s.arrived(t, noon.Add(-time.Hour), rows).New; n != nil {
		t.Errorf("an older one is compared: %+v", n)
	}
	second := s.arrived(t, noon.Add(time.Hour), rows[:len(rows)/2])
	if n := second.New; n == nil || n.Since != first.Name || n.Same || n.Share > 0.001 {
		t.Errorf("rows were deleted: %+v", n)
	}
	third := s.arrived(t, noon.Add(3*time.Hour), rows)
	if n := third.New; n == nil || n.Since != second.Name || n.Share < 0.4 || n.Share > 0.6 {
		t.Errorf("half of the rows are new: %+v", n)
	}
}

// The dump of a pulled snapshot is read for its sketch only if it is not too large.
func TestLargeDumpsAreNotRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	path := s.arrived(t, noon, make([]byte, 1000)).Path
	r, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := readSketch(t.Context(), r, 1000); err != nil {
		t.Error(err)
	}
	if _, err := readSketch(t.Context(), r, 999); err == nil {
		t.Error("a dump that is too large is read")
	}
}
