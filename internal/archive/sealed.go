package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"filippo.io/age"

	"snap"
)

// maxRecipients limits the recipients of a file, maxAgeHeader the age header that lists them, and
// maxPublic the public part. Sizes are in bytes.
const (
	maxRecipients = 256
	maxAgeHeader  = 1 << 20
	maxPublic     = 64 << 10
)

// public is the part of an encrypted file that is readable without a key: the manifest of format 2.
// It contains no names or times and nothing about the tables.
type public struct {
	Format    int         `json:"format"`
	Engine    snap.Engine `json:"engine"`
	Type      snap.Type   `json:"type"`
	Encrypted ageFile     `json:"encrypted"`
}

// ageFile is the position of the age file within an encrypted snapshot file, and its checksum.
type ageFile struct {
	Offset int64  `json:"offset"`
	Stored int64  `json:"stored"`
	SHA256 string `json:"sha256"`
}

// check validates the public part against the format. end is the offset at which the age file must
// end.
func (p public) check(end int64) error {
	switch {
	case p.Format != FormatEncrypted:
		return corrupt("its manifest and its header name different versions of the format", nil)
	case !p.Engine.Valid() || !p.Type.Valid():
		return corrupt("its manifest has no valid engine or type", nil)
	case p.Encrypted.Offset != headerSize || p.Encrypted.Stored != end-headerSize ||
		!hexSum.MatchString(p.Encrypted.SHA256):
		return corrupt("its encrypted part has the wrong size", nil)
	}
	return nil
}

// seal writes the outer structure of an encrypted file: a header, an age file that contains the
// plain snapshot file, the public part and a footer.
type seal struct {
	dst   io.Writer
	whole hash.Hash
	inner hash.Hash // of the age file
	at    int64
	plain io.WriteCloser
}

// NewEncryptedWriter starts a file that each of the recipients can decrypt with their own identity.
// It is used like [NewWriter] and also writes in one pass.
func NewEncryptedWriter(dst io.Writer, jobs int, recipients []age.Recipient) (*Writer, error) {
	if len(recipients) == 0 || len(recipients) > maxRecipients {
		return nil, snap.Usage(fmt.Sprintf("a snapshot can be encrypted to 1 to %d recipients, not to %d",
			maxRecipients, len(recipients)), "use fewer keys, such as one for each team")
	}
	s := newSeal(dst)
	if err := s.write(header(FormatEncrypted)); err != nil {
		return nil, fmt.Errorf("write the header: %w", err)
	}
	plain, err := age.Encrypt(writerFunc(s.writeStored), recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	// No buffer is needed: the plain writer writes whole blocks, which age splits into small chunks.
	s.plain = plain
	w, err := NewWriter(plain, jobs)
	if err != nil {
		return nil, err
	}
	w.seal = s
	return w, nil
}

func newSeal(dst io.Writer) *seal { return &seal{dst: dst, whole: sha256.New(), inner: sha256.New()} }

func (s *seal) write(p []byte) error {
	n, err := s.dst.Write(p)
	s.whole.Write(p[:n])
	s.at += int64(n)
	return err
}

// writeStored writes bytes of the age file and adds them to its checksum.
func (s *seal) writeStored(p []byte) (int, error) {
	if err := s.write(p); err != nil {
		return 0, err
	}
	s.inner.Write(p)
	return len(p), nil
}

// close ends the age file and writes the public part and the footer.
func (s *seal) close(e snap.Engine, t snap.Type) (Summary, error) {
	if err := s.plain.Close(); err != nil {
		return Summary{}, fmt.Errorf("encrypt: %w", err)
	}
	text, err := json.Marshal(public{Format: FormatEncrypted, Engine: e, Type: t,
		Encrypted: ageFile{Offset: headerSize, Stored: s.at - headerSize,
			SHA256: hex.EncodeToString(s.inner.Sum(nil))}})
	if err != nil {
		return Summary{}, fmt.Errorf("write the manifest: %w", err)
	}
	foot := footer{offset: uint64(s.at), length: uint64(len(text)), sum: sha256.Sum256(text)}
	for _, part := range [][]byte{text, foot.bytes()} {
		if err := s.write(part); err != nil {
			return Summary{}, fmt.Errorf("write the manifest: %w", err)
		}
	}
	return Summary{Size: s.at, SHA256: hex.EncodeToString(s.whole.Sum(nil))}, nil
}

// sealed is the outer structure of an encrypted file being read.
type sealed struct {
	public     public
	recipients int
	inside     *Reader // set when unlocked
	key        []byte  // the age file key; set when unlocked
}

// Sealed reports whether an encrypted file begins at the current position of r. It consumes
// nothing.
func Sealed(r *bufio.Reader) bool {
	head, err := r.Peek(headerSize)
	return err == nil && bytes.Equal(head, header(FormatEncrypted))
}

// readSealed reads the public part and counts the recipients.
func (r *Reader) readSealed() error {
	r.sealed = &sealed{}
	if r.foot.length > maxPublic {
		return corrupt("its manifest is out of bounds", nil)
	}
	text := make([]byte, r.foot.length)
	if err := r.readAt(text, int64(r.foot.offset)); err != nil {
		return err
	}
	if sha256.Sum256(text) != r.foot.sum {
		return corrupt("its manifest is damaged", nil)
	}
	if err := json.Unmarshal(text, &r.sealed.public); err != nil {
		return corrupt("its manifest cannot be read", err)
	}
	if err := r.sealed.public.check(int64(r.foot.offset)); err != nil {
		return err
	}
	p := r.sealed.public
	r.manifest = Manifest{Format: p.Format, Engine: p.Engine, Type: p.Type}
	head, err := age.ExtractHeader(io.LimitReader(r.encrypted(), maxAgeHeader))
	if err != nil {
		return r.unreadable("its list of recipients is damaged", err)
	}
	r.sealed.recipients = countRecipients(head)
	return nil
}

// countRecipients counts the recipients that an age header lists.
func countRecipients(head []byte) int { return bytes.Count(head, []byte("\n-> ")) }

// encrypted returns a reader of the age file.
func (r *Reader) encrypted() *io.SectionReader {
	return io.NewSectionReader(r.src, r.sealed.public.Encrypted.Offset, r.sealed.public.Encrypted.Stored)
}

// unreadable distinguishes a damaged file from a failing disk.
func (r *Reader) unreadable(why string, err error) error {
	var disk *os.PathError
	if errors.As(err, &disk) {
		return fmt.Errorf("read the snapshot file: %w", err)
	}
	return corrupt(why, err)
}

// Encrypted returns the number of recipients, or 0 if the file is not encrypted.
func (r *Reader) Encrypted() (recipients int) {
	if r.sealed == nil {
		return 0
	}
	return r.sealed.recipients
}

// Locked reports whether the file is encrypted and not unlocked. A locked file has no sections, and
// its manifest contains only the format, the engine and the type.
func (r *Reader) Locked() bool { return r.sealed != nil && r.sealed.inside == nil }

// Unlock decrypts an encrypted file with the first identity that is one of its recipients. If none
// is, the error has code identity_missing. Unlock must be called before any concurrent use. It does
// nothing on an unencrypted or unlocked file.
func (r *Reader) Unlock(identities ...age.Identity) error {
	if !r.Locked() {
		return nil
	}
	if len(identities) == 0 {
		return noIdentity(r.sealed.recipients, nil)
	}
	var refused error
	var key []byte
	tried := make([]age.Identity, len(identities))
	for i, id := range identities {
		tried[i] = recordingIdentity{id, &refused, &key}
	}
	plain, size, err := age.DecryptReaderAt(r.encrypted(), r.sealed.public.Encrypted.Stored, tried...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return noIdentity(r.sealed.recipients, err)
	case refused != nil:
		return fmt.Errorf("unlock the snapshot: %w", refused)
	case err != nil:
		return r.unreadable("its encrypted part is damaged", err)
	}
	inside, err := newReader(&decryptedReader{plain, r}, size, r.bounds)
	if err != nil {
		return err
	}
	switch m := inside.manifest; {
	case inside.sealed != nil:
		return corrupt("it is encrypted twice", nil)
	case m.Engine != r.manifest.Engine || m.Type != r.manifest.Type:
		return corrupt(fmt.Sprintf("its content has type %s and engine %s, but its manifest states type "+
			"%s and engine %s", m.Type, m.Engine, r.manifest.Type, r.manifest.Engine), nil)
	}
	r.sealed.inside, r.sealed.key = inside, key
	return nil
}

// recordingIdentity records the file key, or the reason why an identity could not be used, such as a
// wrong passphrase. The identity returns such a reason as a [snap.Error]. Other errors mean that the
// file is damaged.
type recordingIdentity struct {
	age.Identity
	refused *error
	key     *[]byte
}

// Unwrap implements age.Identity.
func (w recordingIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	key, err := w.Identity.Unwrap(stanzas)
	var reason *snap.Error
	if errors.As(err, &reason) {
		*w.refused = err
	}
	*w.key = bytes.Clone(key) // age clears its own
	return key, err
}

// decryptedReader reads decrypted bytes. It returns an error of code corrupt_snapshot if a chunk was
// modified.
type decryptedReader struct {
	plain io.ReaderAt
	file  *Reader
}

// ReadAt implements io.ReaderAt.
func (d *decryptedReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := d.plain.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		err = d.file.unreadable("its encrypted part is damaged", err)
	}
	return n, err
}

// noIdentity returns the error for a file with this number of recipients. The cause is nil if there
// was no identity to try.
func noIdentity(recipients int, cause error) error {
	to := snap.Plural(recipients, "recipient", "recipients")
	e := &snap.Error{Code: snap.CodeNoIdentity, Cause: cause,
		Detail: "the snapshot is encrypted to " + to + ", and no key on this machine opens it",
		Hint: "give the file of your age identity or SSH key with --identity FILE, or under identities in the " +
			"configuration"}
	if cause != nil {
		e.Detail = "the snapshot is encrypted to " + to + ", and none of the identities that were tried opens it"
		e.Hint = "use another --identity FILE, or ask the snapshot's owner to encrypt it to you too"
	}
	return e
}

// buffered reads ahead, so that each of age's chunks is decrypted only once.
func buffered(r io.Reader) io.Reader { return bufio.NewReaderSize(r, 1<<20) }
