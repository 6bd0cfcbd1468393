package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"

	"snap/internal/servertest"
)

func sampleManifest() Manifest {
	return Manifest{
		Engine: snap.SQLite, ServerVersion: "3.50", Target: "größe 東京", Name: "größe 東京-20260101T000000Z",
		Type: snap.TypeSnapshot, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Tables: []Table{{Schema: "main", Name: "t", Rows: 7}},
	}
}

// pack writes a file of these sections.
func pack(t testing.TB, sections map[string][]byte) ([]byte, Summary) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range sections {
		s, err := w.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), sum
}

func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.UintN(24))
	}
	return b
}

// unpack reads and verifies everything.
func unpack(file []byte) (map[string][]byte, Summary, error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, Summary{}, err
	}
	sum, err := r.Verify(context.Background(), nil)
	if err != nil {
		return nil, sum, err
	}
	got := map[string][]byte{}
	for _, s := range r.Manifest().Sections {
		in, err := r.Section(s.Name)
		if err != nil {
			return nil, sum, err
		}
		content, err := io.ReadAll(in)
		in.Close()
		if err != nil {
			return nil, sum, err
		}
		got[s.Name] = content
	}
	return got, sum, nil
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := map[string][]byte{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"dump", "database", "a-b", "x1"}), 0, 4,
			rapid.ID).Draw(t, "names") {
			want[name] = noise(rapid.IntRange(0, 70_000).Draw(t, "size"), rapid.Uint64().Draw(t, "seed"))
		}
		var b bytes.Buffer
		w, err := NewWriter(&b, rapid.IntRange(1, 4).Draw(t, "jobs"))
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range want {
			s, err := w.Section(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(s, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wrote, err := w.Close(sampleManifest())
		if err != nil {
			t.Fatal(err)
		}
		got, sum, err := unpack(b.Bytes())
		if err != nil || sum != wrote || len(got) != len(want) {
			t.Fatalf("%v; %+v, wrote %+v; %d sections, want %d", err, sum, wrote, len(got), len(want))
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Fatalf("section %s differs", name)
			}
		}
	})
}

func TestManyBlocksInOrder(t *testing.T) {
	t.Parallel()
	want := noise(3*blockSize+12345, 9)
	file, _ := pack(t, map[string][]byte{"dump": want})
	got, _, err := unpack(file)
	if err != nil || !bytes.Equal(got["dump"], want) {
		t.Fatalf("%v, equal %v", err, bytes.Equal(got["dump"], want))
	}
}

// If any byte is changed, the file is refused.
func TestEveryChangedByteIsFound(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	file, _ := pack(t, map[string][]byte{"dump": noise(1200, 3)})
	for i := range file {
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(file)
			bad[i] ^= flip
			if _, _, err := unpack(bad); !refused(err) {
				t.Fatalf("byte %d of %d xor %#x: %v", i, len(file), flip, err)
			}
		}
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	t.Parallel()
	file, _ := pack(t, map[string][]byte{"dump": noise(600, 4)})
	for n := range file {
		if _, _, err := unpack(file[:n]); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Fatalf("first %d of %d bytes: %v", n, len(file), err)
		}
		if _, _, err := unpack(append(bytes.Clone(file), file[:n+1]...)); err == nil && n+1 < len(file) {
			t.Fatalf("%d bytes more: accepted", n+1)
		}
	}
}

func refused(err error) bool {
	code := snap.CodeOf(err)
	return code == snap.CodeCorrupt || code == snap.CodeInvalid
}

func TestNewerFormatSaysUpdate(t *testing.T) {
	t.Parallel()
	file, _ := pack(t, nil)
	file[len(headMagic)+1] = Format + 1
	_, _, err := unpack(file)
	var e *snap.Error
	if !errors.As(err, &e) || e.Code != snap.CodeInvalid || e.Hint != "update snapcli" {
		t.Fatalf("got %v", err)
	}
}

// reseal returns the file with a changed manifest and correct checksums.
func reseal(t *testing.T, file []byte, change func(*Manifest)) []byte {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest()
	change(&m)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	f := footer{offset: r.foot.offset, length: uint64(len(text)), sum: sum256(text)}
	out := append(bytes.Clone(file[:r.foot.offset]), text...)
	return append(out, f.bytes()...)
}

func TestHostileManifests(t *testing.T) {
	t.Parallel()
	file, _ := pack(t, map[string][]byte{"dump": noise(3000, 5)})
	for name, change := range map[string]func(*Manifest){
		"traversal":       func(m *Manifest) { m.Sections[0].Name = "../../etc/passwd" },
		"before the file": func(m *Manifest) { m.Sections[0].Offset = -1 },
		"into the header": func(m *Manifest) { m.Sections[0].Offset = 0 },
		"too long":        func(m *Manifest) { m.Sections[0].Stored += 10 },
		"negative":        func(m *Manifest) { m.Sections[0].Size = -1 },
		"overflow":        func(m *Manifest) { m.Sections[0].Stored = 1<<63 - 1 },
		"twice":           func(m *Manifest) { m.Sections = append(m.Sections, m.Sections[0]) },
		"none":            func(m *Manifest) { m.Sections = nil },
		"content shorter": func(m *Manifest) { m.Sections[0].Size++ },
		"content longer":  func(m *Manifest) { m.Sections[0].Size-- },
		"no engine":       func(m *Manifest) { m.Engine = "oracle" },
		"no type":         func(m *Manifest) { m.Type = "" },
		"checksum":        func(m *Manifest) { m.Sections[0].SHA256 = "00" },
	} {
		if _, _, err := unpack(reseal(t, file, change)); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFullDiskWhileWriting(t *testing.T) {
	t.Parallel()
	full := writerFunc(func(p []byte) (int, error) {
		if len(p) > headerSize {
			return 0, syscall.ENOSPC
		}
		return len(p), nil
	})
	w, err := NewWriter(full, 2)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Section("dump")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(s, io.LimitReader(rand.NewChaCha8([32]byte{}), 20*blockSize))
	if closed := s.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(closed, syscall.ENOSPC) {
		t.Fatalf("write: %v, close: %v", err, closed)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Open(dir); snap.CodeOf(err) != snap.CodeCorrupt {
		t.Errorf("a folder: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(empty); snap.CodeOf(err) != snap.CodeCorrupt {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
