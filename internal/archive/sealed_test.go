package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"snap"

	"snap/internal/servertest"
)

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// packFor writes an encrypted file with one section.
func packFor(t testing.TB, content []byte, recipients ...age.Recipient) ([]byte, Summary) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewEncryptedWriter(&b, 2, recipients)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Section("dump")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sum, err := w.Close(sampleManifest())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), sum
}

// unseal opens, unlocks, verifies and reads an encrypted file.
func unseal(file []byte, ids ...age.Identity) ([]byte, Summary, error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, Summary{}, err
	}
	if err := r.Unlock(ids...); err != nil {
		return nil, Summary{}, err
	}
	sum, err := r.Verify(context.Background(), nil)
	if err != nil {
		return nil, sum, err
	}
	in, err := r.Section("dump")
	if err != nil {
		return nil, sum, err
	}
	defer in.Close()
	content, err := io.ReadAll(in)
	return content, sum, err
}

func TestEncryptedRoundTrip(t *testing.T) {
	t.Parallel()
	one, two := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to  []age.Recipient
		ids []age.Identity
	}{
		"one recipient":                {[]age.Recipient{one.Recipient()}, []age.Identity{one}},
		"the second of two":            {[]age.Recipient{one.Recipient(), two.Recipient()}, []age.Identity{two}},
		"a wrong identity comes first": {[]age.Recipient{one.Recipient()}, []age.Identity{two, one}},
		"a post-quantum recipient":     {[]age.Recipient{hybrid.Recipient()}, []age.Identity{hybrid}},
	} {
		want := noise(blockSize+70_000, 8) // two blocks, and many of age's chunks
		file, wrote := packFor(t, want, c.to...)
		got, sum, err := unseal(file, c.ids...)
		if err != nil || !bytes.Equal(got, want) || sum != wrote {
			t.Fatalf("%s: %v, equal %v, %+v, wrote %+v", name, err, bytes.Equal(got, want), sum, wrote)
		}
		whole := sha256.Sum256(file)
		if sum.SHA256 != hex.EncodeToString(whole[:]) || sum.Size != int64(len(file)) {
			t.Errorf("%s: the summary is not that of the file", name)
		}
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil || r.Encrypted() != len(c.to) {
			t.Errorf("%s: %v, %d recipients, want %d", name, err, r.Encrypted(), len(c.to))
		}
	}
}

// Without a key, a reader can see the engine and the type and verify the checksums. It cannot see
// names, times, tables or content.
func TestLockedFileRevealsLittle(t *testing.T) {
	t.Parallel()
	id := identity(t)
	file, wrote := packFor(t, []byte(strings.Repeat("secret@content.test ", 100)), id.Recipient())
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Manifest(); !r.Locked() || m.Engine != snap.SQLite || m.Type != snap.TypeSnapshot || m.Name != "" ||
		m.Tables != nil || m.Sections != nil {
		t.Errorf("locked %v, manifest %+v", r.Locked(), r.Manifest())
	}
	if sum, err := r.Verify(context.Background(), nil); err != nil || sum != wrote {
		t.Errorf("verify without a key: %v, %+v, want %+v", err, sum, wrote)
	}
	if _, err := r.Section("dump"); snap.CodeOf(err) != snap.CodeNoIdentity {
		t.Errorf("a section without a key: %v", err)
	}
	for _, word := range []string{"größe", "20260101", `"t"`, "secret@content", "tables", "2026-01-01"} {
		if bytes.Contains(file, []byte(word)) {
			t.Errorf("the file tells %q", word)
		}
	}
	if err := r.Unlock(); snap.CodeOf(err) != snap.CodeNoIdentity {
		t.Errorf("no identity: %v", err)
	}
	if err := r.Unlock(identity(t)); snap.CodeOf(err) != snap.CodeNoIdentity ||
		!strings.Contains(err.Error(), "1 recipient, and none of the identities that were tried") {
		t.Errorf("a wrong identity: %v", err)
	}
	if err := r.Unlock(id); err != nil || r.Locked() || r.Manifest().Name == "" {
		t.Errorf("the right identity: %v", err)
	}
}

// If any byte is changed, the file is refused, with the key and without.
func TestEveryChangedByteOfAnEncryptedFileIsFound(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	id := identity(t)
	file, _ := packFor(t, noise(300, 3), id.Recipient())
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x41
		if _, _, err := unseal(bad, id); !refused(err) && snap.CodeOf(err) != snap.CodeNoIdentity {
			t.Fatalf("byte %d of %d: %v", i, len(file), err)
		}
		r, err := NewReader(bytes.NewReader(bad), int64(len(bad)))
		if err == nil {
			_, err = r.Verify(context.Background(), nil)
		}
		if !refused(err) {
			t.Fatalf("byte %d of %d, without a key: %v", i, len(file), err)
		}
	}
}

func TestEveryTruncationOfAnEncryptedFileIsFound(t *testing.T) {
	t.Parallel()
	id := identity(t)
	file, _ := packFor(t, noise(200, 4), id.Recipient())
	for n := range file {
		if _, _, err := unseal(file[:n], id); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Fatalf("first %d of %d bytes: %v", n, len(file), err)
		}
	}
}

// resealed puts a body, usually an age file, into a snapshot file with correct checksums, as an
// attacker would.
func resealed(t testing.TB, body []byte, change func(*public)) []byte {
	t.Helper()
	sum := sha256.Sum256(body)
	p := public{Format: FormatEncrypted, Engine: snap.SQLite, Type: snap.TypeSnapshot,
		Encrypted: ageFile{Offset: headerSize, Stored: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}}
	if change != nil {
		change(&p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file := append(header(FormatEncrypted), body...)
	foot := footer{offset: uint64(len(file)), length: uint64(len(text)), sum: sha256.Sum256(text)}
	return append(append(file, text...), foot.bytes()...)
}

func encryptedTo(t testing.TB, id *age.X25519Identity, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := age.Encrypt(&b, id.Recipient())
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileEncryptedFiles(t *testing.T) {
	t.Parallel()
	id := identity(t)
	plain, _ := pack(t, map[string][]byte{"dump": noise(300, 5)})
	good := encryptedTo(t, id, plain)
	if _, _, err := unseal(resealed(t, good, nil), id); err != nil {
		t.Fatalf("what is right is refused: %v", err)
	}
	twice, _ := packFor(t, noise(10, 1), id.Recipient())
	// If a snapshot fills age's first chunk and the second one is gone, only age can find that.
	content := make([]byte, ageChunk)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // cannot be compressed
	chunk, _ := pack(t, map[string][]byte{"dump": content[:60_000]})
	chunk, _ = pack(t, map[string][]byte{"dump": content[:60_000+ageChunk-len(chunk)]})
	whole, more := encryptedTo(t, id, chunk), encryptedTo(t, id, append(chunk, 0))
	if _, _, err := unseal(resealed(t, whole, nil), id); err != nil || len(more) != len(whole)+17 {
		t.Fatalf("a snapshot of %d bytes: %v", len(chunk), err)
	}
	bomb := []byte("age-encryption.org/v1\n" +
		strings.Repeat("-> X25519 "+strings.Repeat("A", 43)+"\n"+strings.Repeat("A", 43)+"\n", 20_000))
	for name, file := range map[string][]byte{
		"another engine outside":  resealed(t, good, func(p *public) { p.Engine = snap.Postgres }),
		"another type outside":    resealed(t, good, func(p *public) { p.Type = snap.TypeSanitized }),
		"no engine":               resealed(t, good, func(p *public) { p.Engine = "" }),
		"plain format":            resealed(t, good, func(p *public) { p.Format = Format }),
		"before the file":         resealed(t, good, func(p *public) { p.Encrypted.Offset = -1 }),
		"longer":                  resealed(t, good, func(p *public) { p.Encrypted.Stored = 1<<63 - 1 }),
		"not age":                 resealed(t, noise(500, 2), nil),
		"nothing":                 resealed(t, nil, nil),
		"not a snapshot in it":    resealed(t, encryptedTo(t, id, noise(500, 3)), nil),
		"nothing in it":           resealed(t, encryptedTo(t, id, nil), nil),
		"encrypted twice":         resealed(t, encryptedTo(t, id, twice), nil),
		"a list without end":      resealed(t, bomb, nil),
		"a chunk short":           resealed(t, good[:len(good)-20], nil),
		"its last chunk is gone":  resealed(t, more[:len(whole)], nil),
		"a list and nothing more": resealed(t, good[:bytes.Index(good, []byte("\n---"))+48], nil),
	} {
		if _, _, err := unseal(file, id); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An identity that fails, such as a key with a wrong passphrase, is not mistaken
// for a damaged file.
func TestFailingIdentityIsDistinguished(t *testing.T) {
	t.Parallel()
	file, _ := packFor(t, noise(10, 1), identity(t).Recipient())
	wrong := snap.Usage("wrong passphrase", "")
	_, _, err := unseal(file, failingIdentity{wrong})
	if !errors.Is(err, wrong) || snap.CodeOf(err) == snap.CodeCorrupt {
		t.Errorf("got %v", err)
	}
}

type failingIdentity struct{ err error }

func (f failingIdentity) Unwrap([]*age.Stanza) ([]byte, error) { return nil, f.err }

func TestRecipientsAreBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, maxRecipients + 1} {
		if _, err := NewEncryptedWriter(io.Discard, 1, make([]age.Recipient, n)); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%d recipients: %v", n, err)
		}
	}
	id := identity(t)
	most := make([]age.Recipient, maxRecipients)
	for i := range most {
		most[i] = id.Recipient()
	}
	file, _ := packFor(t, noise(10, 1), most...)
	if got, _, err := unseal(file, id); err != nil || len(got) != 10 {
		t.Errorf("%d recipients: %v", maxRecipients, err)
	}
}

func TestFullDiskWhileEncrypting(t *testing.T) {
	t.Parallel()
	written := 0
	full := writerFunc(func(p []byte) (int, error) {
		if written += len(p); written > 3<<20 {
			return 0, syscall.ENOSPC
		}
		return len(p), nil
	})
	w, err := NewEncryptedWriter(full, 2, []age.Recipient{identity(t).Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Section("dump")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(s, io.LimitReader(rand.NewChaCha8([32]byte{}), 10*blockSize))
	if closed := s.Close(); !errors.Is(closed, syscall.ENOSPC) || err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write: %v, close: %v", err, closed)
	}
}

// A section of an encrypted file can be read several times concurrently.
func TestEncryptedSectionsAreReadInParallel(t *testing.T) {
	t.Parallel()
	id := identity(t)
	want := noise(2*blockSize, 6)
	file, _ := packFor(t, want, id.Recipient())
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err == nil {
		err = r.Unlock(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			in, err := r.Section("dump")
			if err == nil {
				var got []byte
				if got, err = io.ReadAll(in); err == nil && !bytes.Equal(got, want) {
					err = fmt.Errorf("%d bytes that differ", len(got))
				}
				in.Close()
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzSealed checks that reading ends without a panic and yields no more than was announced, with
// any bytes in place of the encrypted content, inside or outside of the encryption.
func FuzzSealed(f *testing.F) {
	id := identity(f)
	plain, _ := pack(f, map[string][]byte{"dump": noise(100, 1)})
	sealedFile, _ := packFor(f, noise(50, 2), id.Recipient())
	f.Add(plain, true)
	f.Add(plain[:60], true)
	f.Add([]byte{}, true)
	f.Add(sealedFile, true)
	f.Add(encryptedTo(f, id, plain), false)
	f.Add([]byte("age-encryption.org/v1\n-> X25519 abc\nabc\n--- abc\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, inside bool) {
		if inside {
			body = encryptedTo(t, id, body)
		}
		file := resealed(t, body, nil)
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil || r.Unlock(id) != nil {
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
	})
}
