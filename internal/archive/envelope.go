package archive

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"
	"golang.org/x/crypto/chacha20poly1305"

	"snap"
)

// Envelope is the part of an encrypted file that cannot be derived from the file inside: the age
// header with its recipients, the file key and the nonce. With the envelope and the content of the
// file inside, the encrypted file can be written again, byte for byte.
type Envelope struct {
	Sealing
	header []byte // of the age file
	key    []byte // the age file key
}

// Sealing is the public part of an envelope, without the age header. Everybody who has the
// encrypted file can read this part in the file.
type Sealing struct {
	Engine snap.Engine `json:"engine"`
	Type   snap.Type   `json:"type"`
	Nonce  string      `json:"nonce"`  // of the age file, in hexadecimal
	Header int         `json:"header"` // bytes of the age header
}

// Check returns an error if the sealing is not valid.
func (s Sealing) Check() error {
	nonce, err := hex.DecodeString(s.Nonce)
	if err != nil || len(nonce) != ageNonce || !s.Engine.Valid() || !s.Type.Valid() || s.Header < 1 ||
		s.Header > maxAgeHeader {
		return corrupt("its encryption is described wrongly", err)
	}
	return nil
}

// Envelope returns the envelope of an unlocked encrypted file.
func (r *Reader) Envelope() (*Envelope, error) {
	if r.sealed == nil || r.sealed.key == nil {
		return nil, errors.New("the file is not encrypted, or not unlocked")
	}
	head, err := age.ExtractHeader(io.LimitReader(r.encrypted(), maxAgeHeader))
	if err != nil {
		return nil, r.unreadable("its list of recipients is damaged", err)
	}
	stored := make([]byte, len(head)+ageNonce)
	if err := r.readAt(stored, headerSize); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(stored, head) {
		return nil, corrupt("its list of recipients is not in the standard form", nil)
	}
	public := Sealing{r.manifest.Engine, r.manifest.Type, hex.EncodeToString(stored[len(head):]), len(head)}
	return &Envelope{public, head, r.sealed.key}, nil
}

// Seal starts another age file with the header and the file key of the envelope, but with a new
// nonce. Only the envelope's recipients can decrypt it. Closing the writer ends the file.
func (e *Envelope) Seal(dst io.Writer) (io.WriteCloser, error) {
	nonce := make([]byte, ageNonce)
	_, _ = rand.Read(nonce) // it never fails
	if _, err := dst.Write(slices.Concat(e.header, nonce)); err != nil {
		return nil, err
	}
	return newChunks(dst, e.key, nonce)
}

// OpenSealed reads an age file that [Envelope.Seal] wrote, with the first identity that is one of
// the recipients. If none is, the error has code identity_missing. s is the public part of the
// envelope. The caller must know it, because the age file does not contain it. OpenSealed returns
// the envelope and the decrypted content.
func OpenSealed(s Sealing, src io.Reader, identities ...age.Identity) (*Envelope, io.Reader, error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	head := make([]byte, s.Header)
	if _, err := io.ReadFull(src, head); err != nil {
		return nil, nil, corrupt("its list of recipients is incomplete", err)
	}
	if len(identities) == 0 {
		return nil, nil, noIdentity(countRecipients(head), nil)
	}
	key, err := age.DecryptHeader(head, identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, nil, noIdentity(countRecipients(head), err)
	}
	if err != nil {
		return nil, nil, corrupt("it cannot be decrypted", err)
	}
	plain, err := age.Decrypt(io.MultiReader(bytes.NewReader(head), src), age.NewInjectedFileKeyIdentity(key))
	if err != nil {
		return nil, nil, corrupt("it cannot be decrypted", err)
	}
	return &Envelope{s, head, key}, plain, nil
}

// Rebuild is like the function [Rebuild], for an encrypted file with this envelope.
func (e *Envelope) Rebuild(dst io.Writer, o Outline, content io.Reader) (Summary, error) {
	nonce, err := hex.DecodeString(e.Nonce)
	if err != nil {
		return Summary{}, err
	}
	s := newSeal(dst)
	if err := s.write(header(FormatEncrypted)); err != nil {
		return Summary{}, err
	}
	if _, err := s.writeStored(slices.Concat(e.header, nonce)); err != nil {
		return Summary{}, err
	}
	if s.plain, err = newChunks(writerFunc(s.writeStored), e.key, nonce); err != nil {
		return Summary{}, err
	}
	if _, err := Rebuild(s.plain, o, content); err != nil {
		return Summary{}, err
	}
	return s.close(e.Engine, e.Type)
}

// The payload of an age file, as specified in age-encryption.org/v1: chunks of 64 KiB, each
// encrypted with ChaCha20-Poly1305 under a key that is derived from the file key and the nonce. age
// itself always chooses new random bytes, so it cannot write the same file again.
const (
	ageNonce = 16
	ageChunk = 64 << 10
)

// chunks encrypts the payload of an age file.
type chunks struct {
	dst   *bufio.Writer
	aead  cipher.AEAD
	count [chacha20poly1305.NonceSize]byte // the number of the chunk, and a byte that marks the last one
	plain []byte
	next  uint64
}

func newChunks(dst io.Writer, fileKey, nonce []byte) (*chunks, error) {
	key, err := hkdf.Key(sha256.New, fileKey, nonce, "payload", chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	aead, err := chacha20poly1305.New(key)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return &chunks{dst: bufio.NewWriterSize(dst, 4*ageChunk), aead: aead,
		plain: make([]byte, 0, ageChunk+chacha20poly1305.Overhead)}, nil
}

// Write implements io.Writer.
func (c *chunks) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		if len(c.plain) == ageChunk {
			if err := c.flush(); err != nil {
				return all - len(p), err
			}
		}
		n := min(len(p), ageChunk-len(c.plain))
		c.plain, p = append(c.plain, p[:n]...), p[n:]
	}
	return all, nil
}

// flush encrypts the chunk in c.plain and writes the result.
func (c *chunks) flush() error {
	binary.BigEndian.PutUint64(c.count[3:], c.next)
	c.next++
	_, err := c.dst.Write(c.aead.Seal(c.plain[:0], c.count[:], c.plain, nil))
	c.plain = c.plain[:0]
	return err
}

// Close writes the last chunk.
func (c *chunks) Close() error {
	c.count[len(c.count)-1] = 1
	return errors.Join(c.flush(), c.dst.Flush())
}
