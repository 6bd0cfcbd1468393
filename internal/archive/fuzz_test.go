package archive

import (
	"bytes"
	"crypto/sha256"
	"io"
	"testing"
)

func sum256(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }

// FuzzReader: whatever the bytes, reading ends without a panic, and what is
// read is never more than the manifest announced.
func FuzzReader(f *testing.F) {
	file, _ := pack(f, map[string][]byte{"dump": noise(400, 1)})
	f.Add(file)
	f.Add(file[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		readWhole(t, file)
	})
}

// FuzzManifest: the same with any manifest under a right checksum, which is
// what an enemy would send.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"engine":"sqlite","type":"snapshot","name":"n","created":"2026-01-01T00:00:00Z","sections":[]}`), []byte{})
	f.Add([]byte(`{"format":1,"engine":"sqlite","type":"snapshot","name":"n","created":"2026-01-01T00:00:00Z","sections":[{"name":"dump","offset":16,"stored":3,"size":9,"sha256":""}]}`), []byte("abc"))
	f.Fuzz(func(t *testing.T, manifest, body []byte) {
		file := append(header(Format), body...)
		foot := footer{offset: uint64(len(file)), length: uint64(len(manifest)), sum: sha256.Sum256(manifest)}
		file = append(append(file, manifest...), foot.bytes()...)
		readWhole(t, file)
	})
}

// readWhole reads all that a file says it has, where it can be opened at all.
func readWhole(t *testing.T, file []byte) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return
	}
	for _, s := range r.Manifest().Sections {
		in, err := r.Section(s.Name)
		if err != nil {
			t.Fatalf("a listed section: %v", err)
		}
		n, _ := io.Copy(io.Discard, io.LimitReader(in, 1<<24))
		in.Close()
		if n > s.Size {
			t.Fatalf("%d bytes from a section of %d", n, s.Size)
		}
	}
}
