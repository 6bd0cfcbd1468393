package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/profile"
)

// dumped adds a snapshot with a dump to the listing, as a build does.
func (a *Agent) dumped(t *testing.T, target string, at time.Time, dump []byte) Snapshot {
	t.Helper()
	s := Snapshot{Target: target, Name: snap.SnapshotName(target, at), Type: snap.TypeSnapshot, Engine: snap.MySQL,
		Created: at, From: Provenance{Origin: Mine}}
	path, err := s.pathIn(a)
	if err != nil {
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
	sum, err := w.Close(archive.Manifest{Engine: s.Engine, Target: target, Name: s.Name, Type: s.Type, Created: at})
	if err != nil {
		t.Fatal(err)
	}
	s.Size, s.SHA256 = sum.Size, sum.SHA256
	if s, err = a.adopt(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s Snapshot) pathIn(a *Agent) (string, error) {
	path, err := a.snapshotFile(s.Target, s.Name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	return path, err
}

// nights and shortNights are the dumps of a table on three nights. On the second night nothing has
// changed, and on the third one row in a hundred.
var (
	nights      = sync.OnceValue(func() [3][]byte { return dumpsOfNights(4 << 20) })
	shortNights = sync.OnceValue(func() [3][]byte { return dumpsOfNights(1 << 20) })
)

func dumpsOfNights(size int) [3][]byte {
	random := rand.NewChaCha8([32]byte{7})
	row := make([]byte, 60)
	var first, last []byte
	for i := 0; len(first) < size; i++ {
		_, _ = random.Read(row)
		line := hex.AppendEncode(append(strconv.AppendInt(nil, int64(i), 10), '\t'), row)
		line = append(line, '\n')
		first = append(first, line...)
		if i%100 == 0 {
			copy(line[len(line)-10:], "changed")
		}
		last = append(last, line...)
	}
	return [3][]byte{first, first, last}
}

// Pulls from a profile transfer only the changes since the previous snapshot. The profile also
// has a whole object for each snapshot, so that all other pulls work too.
func TestPullsFromAProfileMoveOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	for kind, place := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rawURL := place(t)
			here, there := withProfile(t, rawURL), withProfile(t, rawURL)
			var before Snapshot
			for night, dump := range nights() {
				s := here.dumped(t, "shop", noon.Add(time.Duration(night)*24*time.Hour), dump)
				pushed, err := here.PushProfile(t.Context(), "", "shop", PushOptions{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if base := pushed.Base; base != before.Name || pushed.Unchanged != (night == 1) {
					t.Errorf("night %d: base %q, want %q; unchanged: %v", night, base, before.Name, pushed.Unchanged)
				}
				if pushed.Moved < s.Size || pushed.Moved > s.Size+s.Size/15 {
					t.Errorf("night %d: moved %d bytes for a file of %d", night, pushed.Moved, s.Size)
				}
				pulled, err := there.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
				if err != nil || pulled.Snapshot.SHA256 != s.SHA256 {
					t.Fatalf("night %d: %+v, %v", night, pulled, err)
				}
				if most := [3]int64{s.Size, 64 << 10, s.Size / 15}[night]; pulled.Moved > most {
					t.Errorf("night %d: pulled %d of %d bytes, want at most %d", night, pulled.Moved, s.Size, most)
				}
				before = s
			}
			for _, o := range []PullOptions{{}, {Full: true}} { // without a base, and with the whole file requested
				other := withProfile(t, rawURL)
				if o.Full {
					other.dumped(t, "shop", noon, nights()[0])
				}
				pulled, err := other.PullProfile(t.Context(), "", "shop", o, nil)
				if err != nil || pulled.Snapshot.SHA256 != before.SHA256 || pulled.Moved != before.Size {
					t.Errorf("%+v: %d bytes, %v", o, pulled.Moved, err)
				}
			}
		})
	}
}

// Anybody who can write to the profile can store any delta. A hostile delta never becomes a
// snapshot; the whole file is pulled instead.
func TestProfileWithAHostileDelta(t *testing.T) {
	t.Parallel()
	data := shortNights()
	foreign := withProfile(t, "file://"+t.TempDir())
	other := foreign.dumped(t, "shop", noon, data[2][:len(data[2])/2])
	for name, content := range map[string]func(t *testing.T, base, result Snapshot) []byte{
		"one byte":    func(*testing.T, Snapshot, Snapshot) []byte { return []byte("x") },
		"not a delta": func(*testing.T, Snapshot, Snapshot) []byte { return []byte(strings.Repeat("delta", 1000)) },
		"too large":   func(_ *testing.T, _, r Snapshot) []byte { return make([]byte, r.Size+1) },
		"to another snapshot": func(t *testing.T, base, _ Snapshot) []byte {
			f, _, err := writeDelta(t.Context(), filepath.Join(t.TempDir(), "d"), base, other, 1<<30, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			return readAll(t, f.Name())
		},
		"of other bytes": func(t *testing.T, base, result Snapshot) []byte {
			claimed := other
			claimed.Size, claimed.SHA256 = result.Size, result.SHA256
			f, _, err := writeDelta(t.Context(), filepath.Join(t.TempDir(), "d"), base, claimed, 1<<30, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			return readAll(t, f.Name())
		},
		"cut": func(t *testing.T, base, result Snapshot) []byte {
			f, n, err := writeDelta(t.Context(), filepath.Join(t.TempDir(), "d"), base, result, 1<<30, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			return readAll(t, f.Name())[:n.Size-7]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rawURL := places()["file"](t)
			here, there := withProfile(t, rawURL), withProfile(t, rawURL)
			base := here.dumped(t, "shop", noon, data[0])
			there.dumped(t, "shop", noon, data[0])
			result := here.dumped(t, "shop", noon.Add(time.Hour), data[2])
			if _, err := here.PushProfile(t.Context(), "", "shop", PushOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			store, err := profile.Open(t.Context(), rawURL, nil)
			if err != nil {
				t.Fatal(err)
			}
			wrong := content(t, base, result)
			sum := sha256.Sum256(wrong)
			if err := store.PutDelta(t.Context(), result.SHA256, base.SHA256, strings.NewReader(string(wrong)),
				int64(len(wrong)), hex.EncodeToString(sum[:])); err != nil {
				t.Fatal(err)
			}
			got, err := there.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			if err != nil || got.Snapshot.SHA256 != result.SHA256 || got.Moved != result.Size {
				t.Fatalf("%d of %d bytes, %v", got.Moved, result.Size, err)
			}
			intact(t, there, got.Snapshot.Name)
		})
	}
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// If the base is damaged on the machine that pulls or pushes, the whole file is transferred.
func TestProfileWithADamagedBase(t *testing.T) {
	t.Parallel()
	for kind, place := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rawURL := place(t)
			here, there := withProfile(t, rawURL), withProfile(t, rawURL)
			data := nights()
			first := here.dumped(t, "shop", noon, data[0])
			spoil := func(path string) {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.WriteAt([]byte("spoiled"), 1<<20); err != nil {
					t.Fatal(err)
				}
			}
			push := func() {
				t.Helper()
				if _, err := here.PushProfile(t.Context(), "", "shop", PushOptions{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			push()
			pulled, err := there.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			second := here.dumped(t, "shop", noon.Add(time.Hour), data[1])
			push()
			spoil(pulled.Snapshot.Path)
			spoil(first.Path)
			pulled, err = there.PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			if err != nil || pulled.Snapshot.SHA256 != second.SHA256 || pulled.Moved != second.Size {
				t.Errorf("the puller's base is damaged: %d bytes, %v", pulled.Moved, err)
			}
			if err := here.DeleteSnapshot(second.Name); err != nil {
				t.Fatal(err)
			}
			third := here.dumped(t, "shop", noon.Add(2*time.Hour), data[2])
			push()
			pulled, err = withProfile(t, rawURL).PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			if err != nil || pulled.Snapshot.SHA256 != third.SHA256 {
				t.Errorf("the pusher's base is damaged: %+v, %v", pulled, err)
			}
		})
	}
}

// A push can be interrupted at any point and repeated. The snapshot is then correct.
func TestInterruptedDeltaPushToAProfile(t *testing.T) {
	t.Parallel()
	for kind, place := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rawURL := place(t)
			a := withProfile(t, rawURL)
			data := nights()
			a.dumped(t, "shop", noon, data[0])
			if _, err := a.PushProfile(t.Context(), "", "shop", PushOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			s := a.dumped(t, "shop", noon.Add(time.Hour), data[1])
			for _, phase := range []string{"compare", "push"} {
				ctx, interrupt := context.WithCancel(t.Context())
				_, err := a.PushProfile(ctx, "", "shop", PushOptions{}, func(e Event) {
					if e.Phase == phase {
						interrupt()
					}
				})
				interrupt()
				wantHint(t, err, "resumes")
			}
			if _, err := a.PushProfile(t.Context(), "", "shop", PushOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			pulled, err := withProfile(t, rawURL).PullProfile(t.Context(), "", "shop", PullOptions{}, nil)
			if err != nil || pulled.Snapshot.SHA256 != s.SHA256 {
				t.Errorf("%+v, %v", pulled, err)
			}
		})
	}
}
