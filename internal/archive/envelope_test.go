package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"snap"
)

// TestEncryptedFilesCanBeRebuilt checks that an encrypted file can be written again byte for
// byte from its envelope and the content inside, for all sizes of chunks and blocks.
func TestEncryptedFilesCanBeRebuilt(t *testing.T) {
	t.Parallel()
	id := identity(t)
	for _, size := range []int{1, 1000, ageChunk - 600, ageChunk, 3*ageChunk + 7, 3 << 20} {
		content := bytes.Repeat([]byte("some rows\n"), size/10+1)[:size]
		file, sum := packFor(t, content, identity(t).Recipient(), id.Recipient())
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Envelope(); err == nil {
			t.Error("a locked file has an envelope")
		}
		if _, err := r.Content(t.Context()); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("the content of a locked file: %v", err)
		}
		if err := r.Unlock(id); err != nil {
			t.Fatal(err)
		}
		envelope, err := r.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		inside, err := r.Content(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		got, err := envelope.Rebuild(&again, inside.Outline, bytes.NewReader(contentOf(t, inside)))
		if err != nil || got != sum || !bytes.Equal(again.Bytes(), file) {
			t.Errorf("%d bytes: rebuilt as %+v, want %+v, error %v", size, got, sum, err)
		}
		inside.Close()
	}
}

// TestSealed checks that a file sealed by an envelope is a valid age file that only the
// recipients of the snapshot can open. Changed bytes are refused.
func TestSealed(t *testing.T) {
	t.Parallel()
	id := identity(t)
	file, _ := packFor(t, []byte("rows"), id.Recipient())
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err == nil {
		err = r.Unlock(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := r.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, ageChunk, 2*ageChunk + 1} {
		content := bytes.Repeat([]byte{7}, size)
		var sealed bytes.Buffer
		w, err := envelope.Seal(&sealed)
		if err == nil {
			_, err = w.Write(content)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		by, err := age.Decrypt(bytes.NewReader(sealed.Bytes()), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(by); err != nil || !bytes.Equal(got, content) {
			t.Errorf("age reads %d bytes of %d: %v", len(got), size, err)
		}
		open := func(b []byte, id age.Identity) ([]byte, error) {
			same, plain, err := OpenSealed(envelope.Sealing, bytes.NewReader(b), id)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(same.key, envelope.key) || !bytes.Equal(same.header, envelope.header) {
				t.Error("another envelope")
			}
			return io.ReadAll(plain)
		}
		if got, err := open(sealed.Bytes(), id); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes of %d: %v", len(got), size, err)
		}
		for _, ids := range [][]age.Identity{{}, {identity(t)}} {
			_, _, err := OpenSealed(envelope.Sealing, bytes.NewReader(sealed.Bytes()), ids...)
			if snap.CodeOf(err) != snap.CodeNoIdentity || !strings.Contains(err.Error(), "to 1 recipient,") {
				t.Errorf("with %d identities of others: %v", len(ids), err)
			}
		}
		for _, at := range []int{10, envelope.Header - 5, envelope.Header + 3, sealed.Len() - 1} {
			broken := bytes.Clone(sealed.Bytes())
			broken[at] ^= 1
			if _, err := open(broken, id); err == nil {
				t.Errorf("byte %d of %d is changed and nobody notices", at, sealed.Len())
			}
		}
		if _, err := open(sealed.Bytes()[:sealed.Len()-1], id); err == nil {
			t.Error("a part is taken for the whole")
		}
	}
	for _, wrong := range []Sealing{{}, {Engine: snap.SQLite, Type: snap.TypeSnapshot, Nonce: "00", Header: 9},
		{Engine: snap.SQLite, Type: snap.TypeSnapshot, Nonce: envelope.Nonce, Header: maxAgeHeader + 1},
		{Engine: "x", Type: snap.TypeSnapshot, Nonce: envelope.Nonce, Header: 9}} {
		if _, _, err := OpenSealed(wrong, bytes.NewReader(nil), id); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestEnvelopesDiffer checks that the same content, sealed twice by one envelope, differs after the
// header.
func TestEnvelopesDiffer(t *testing.T) {
	t.Parallel()
	id := identity(t)
	file, _ := packFor(t, []byte("rows"), id.Recipient())
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err == nil {
		err = r.Unlock(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Verify(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	envelope, err := r.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	var all [2]bytes.Buffer
	for i := range all {
		w, err := envelope.Seal(&all[i])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("the same"))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Equal(all[0].Bytes()[envelope.Header:], all[1].Bytes()[envelope.Header:]) {
		t.Error("a key stream is used twice")
	}
}
