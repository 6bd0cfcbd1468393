package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

func sum256(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }

// FuzzReader checks that reading any bytes ends without a panic, and never yields more than the
// manifest announced.
func FuzzReader(f *testing.F) {
	file, _ := pack(f, map[string][]byte{"dump": noise(400, 1)})
	f.Add(file)
	f.Add(file[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		readWhole(t, file)
	})
}

// FuzzManifest checks the same for any manifest with a correct checksum, as an attacker would send
// it.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":3,"engine":"sqlite","type":"snapshot","name":"n",`+
		`"created":"2026-01-01T00:00:00Z","sections":[]}`), []byte{}, false)
	f.Add([]byte(`{"format":1,"engine":"sqlite","type":"snapshot","name":"n","created":"2026-01-01T00:00:00Z",`+
		`"sections":[{"name":"dump","offset":16,"stored":3,"size":9,"sha256":""}]}`), []byte("abc"), true)
	f.Add([]byte(`{"format":3,"engine":"sqlite","type":"snapshot","name":"n","created":"2026-01-01T00:00:00Z",`+
		`"tables":null,"schema":{"tables":[{"name":"t","columns":[{"name":"c","type":{"name":"text"}`+
		`,"default":{"literal":{"kind":"string","value":"\""}}}]}],"programs":[{"kind":"view","name":"v"}`+
		`],"comment":"c"},"sections":[]}`), []byte{}, false)
	f.Fuzz(func(t *testing.T, manifest, body []byte, frames bool) {
		format := uint16(Format)
		if frames {
			format = formatFrames
		}
		file := append(header(format), body...)
		foot := footer{offset: uint64(len(file)), length: uint64(len(manifest)), sum: sha256.Sum256(manifest)}
		file = append(append(file, manifest...), foot.bytes()...)
		readWhole(t, file)
	})
}

// FuzzBlock checks that a block is either refused or no longer than its header says.
func FuzzBlock(f *testing.F) {
	for _, text := range []string{"a\tb\nc\td\n", "no line", strings.Repeat("1\t2.5\t\\N\n", 900),
		string(noise(3000, 6))} {
		b := packed(f, []byte(text))
		f.Add(uint32(len(text)), b[blockHead:])
	}
	f.Fuzz(func(t *testing.T, size uint32, body []byte) {
		dec, err := newBlockReader(bytes.NewReader(nil), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		head := binary.BigEndian.AppendUint32(nil, size)
		head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
		u := &unpacker{zstd: dec.zstd}
		if u.read(bytes.NewReader(append(append(head, 0, 0, 0, 0), body...))) != nil {
			return
		}
		_ = u.unpack()
		if len(u.content) > int(size) || cap(u.parts) > maxBlock || len(u.columns.runs) > maxRuns {
			t.Fatalf("%d bytes of %d", len(u.content), size)
		}
	})
}

// FuzzColumns checks that a block of any text holds exactly that text.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("a\tb\nc\td\n"))
	f.Add([]byte("\n\n\t\t\n x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || len(text) > blockSize {
			return
		}
		if got, err := unpacked(packed(t, text)); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%v: %q became %q", err, text, got)
		}
	})
}

// readWhole reads everything that a file claims to contain, if the file can be opened.
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
