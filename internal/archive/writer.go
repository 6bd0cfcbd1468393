package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"

	"snap"
)

// Summary is the size and checksum of a whole file.
type Summary struct {
	Size   int64
	SHA256 string // lower-case hexadecimal
}

// Writer writes one snapshot file: call [NewWriter], then Section at least once, closing each
// section before the next, then Close. It is not safe for concurrent use.
type Writer struct {
	dst      io.Writer
	jobs     int
	whole    hash.Hash
	at       int64
	sections []Section
	open     *sectionWriter
	seal     *seal // set for an encrypted file
}

// NewWriter starts a file by writing the header. jobs is the number of blocks compressed at a time;
// 0 means the number of cores.
func NewWriter(dst io.Writer, jobs int) (*Writer, error) {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	w := &Writer{dst: dst, jobs: jobs, whole: sha256.New()}
	if _, err := w.write(header(Format)); err != nil {
		return nil, fmt.Errorf("write the header: %w", err)
	}
	return w, nil
}

// write appends bytes to the file and to its checksum.
func (w *Writer) write(p []byte) (int, error) {
	n, err := w.dst.Write(p)
	w.whole.Write(p[:n])
	w.at += int64(n)
	return n, err
}

// Section starts a section. Names are lower-case words with hyphens. Closing the returned writer
// ends the section.
func (w *Writer) Section(name string) (io.WriteCloser, error) { return w.section(name) }

func (w *Writer) section(name string) (*sectionWriter, error) {
	if w.open != nil || !sectionName.MatchString(name) || len(w.sections) == maxSections {
		return nil, fmt.Errorf("the section %q cannot begin here", name)
	}
	s := &sectionWriter{w: w, section: Section{Name: name, Offset: w.at}, sum: sha256.New()}
	blocks, err := newBlockWriter(writerFunc(s.writeStored), w.jobs)
	if err != nil {
		return nil, err
	}
	s.blocks, w.open = blocks, s
	return s, nil
}

// Close sets the manifest's Format, Encoder and Sections, and writes the manifest and the footer.
// It does not close the underlying writer.
func (w *Writer) Close(m Manifest) (Summary, error) {
	if w.open != nil {
		return Summary{}, errors.New("a section is still open")
	}
	m.Format, m.Encoder, m.Sections = Format, Encoder, w.sections
	if err := m.check(Format, w.at); err != nil {
		return Summary{}, fmt.Errorf("the manifest is not complete: %w", err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return Summary{}, fmt.Errorf("write the manifest: %w", err)
	}
	if len(text) > maxManifest {
		return Summary{}, &snap.Error{Code: snap.CodeTooLarge,
			Detail: "the database has too many tables for a snapshot file"}
	}
	done, err := w.finish(bytes.NewReader(text))
	if err == nil && w.seal != nil {
		return w.seal.close(m.Engine, m.Type)
	}
	return done, err
}

// finish writes the text of the manifest and the footer.
func (w *Writer) finish(manifest io.Reader) (Summary, error) {
	foot, sum := footer{offset: uint64(w.at)}, sha256.New()
	n, err := io.Copy(io.MultiWriter(writerFunc(w.write), sum), manifest)
	if err != nil {
		return Summary{}, fmt.Errorf("write the manifest: %w", err)
	}
	foot.length, foot.sum = uint64(n), [sha256.Size]byte(sum.Sum(nil))
	if _, err := w.write(foot.bytes()); err != nil {
		return Summary{}, fmt.Errorf("write the manifest: %w", err)
	}
	return Summary{Size: w.at, SHA256: hex.EncodeToString(w.whole.Sum(nil))}, nil
}

type sectionWriter struct {
	w       *Writer
	blocks  *blockWriter
	section Section
	sum     hash.Hash
}

// writeStored writes bytes of the section to the file and adds them to the section's checksum.
func (s *sectionWriter) writeStored(p []byte) (int, error) {
	n, err := s.w.write(p)
	s.sum.Write(p[:n])
	return n, err
}

func (s *sectionWriter) Write(p []byte) (int, error) { return s.blocks.Write(p) }

// Close ends the section and adds it to the manifest. Calling it again does nothing.
func (s *sectionWriter) Close() error {
	if s.w.open != s {
		return nil
	}
	s.w.open = nil
	if err := s.blocks.Close(); err != nil {
		return fmt.Errorf("write the section %s: %w", s.section.Name, err)
	}
	s.section.Size = s.blocks.size
	s.section.Stored = s.w.at - s.section.Offset
	s.section.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	s.w.sections = append(s.w.sections, s.section)
	return nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
