package delta

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"pgregory.net/rapid"

	"snap"
	"snap/internal/archive"
)

// encrypted creates an encrypted snapshot file with one section.
func encrypted(t testing.TB, name string, content []byte, to ...age.Recipient) packed {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewEncryptedWriter(&b, 2, to)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Section("dumpa")
	if err == nil {
		_, err = s.Write(content)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	sum, err := w.Close(archive.Manifest{Engine: snap.Postgres, Target: "shop", Name: name, Type: snap.TypeSnapshot,
		Created: time.Date(2026, 1, 1, 0, 0, 0, len(name), time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return packed{b.Bytes(), File{sum.Size, sum.SHA256}}
}

func (p packed) unlocked(ids ...age.Identity) (*archive.Reader, error) {
	r, err := archive.NewReader(bytes.NewReader(p.bytes), int64(len(p.bytes)))
	if err == nil {
		err = r.Unlock(ids...)
	}
	return r, err
}

// unseal applies an encrypted delta.
func unseal(ctx context.Context, base *archive.Reader, d []byte, ids ...age.Identity) ([]byte, error) {
	in := bytes.NewReader(d)
	h, err := ReadHeader(in)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if h.Sealed != nil {
		envelope, content, err := archive.OpenSealed(*h.Sealed, in, ids...)
		if err != nil {
			return nil, err
		}
		if h, err = h.Unseal(envelope, content); err != nil {
			return nil, err
		}
		err = Apply(ctx, &b, h, base, content)
		return b.Bytes(), err
	}
	err = Apply(ctx, &b, h, base, in)
	return b.Bytes(), err
}

func newIdentity(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestEncryptedDeltas checks that a recipient gets the same file from a small delta, between
// encrypted snapshots and from an unencrypted base. Nobody else can read the delta, and no row is
// visible in it.
func TestEncryptedDeltas(t *testing.T) {
	t.Parallel()
	ann, ben, eve := newIdentity(t), newIdentity(t), newIdentity(t)
	old := rows(9000, 1)
	now := changed(old)
	result := encrypted(t, "result", joined(now), ann.Recipient(), ben.Recipient())
	for name, base := range map[string]packed{"plain": pack(t, snap.Postgres, "base", joined(old)),
		"encrypted": encrypted(t, "base", joined(old), ann.Recipient(), ben.Recipient())} {
		opened, err := base.unlocked(ann)
		if err != nil {
			t.Fatal(err)
		}
		unlocked, err := result.unlocked(ann)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		written, err := Write(t.Context(), &b, opened, unlocked, base.File, result.File, result.Size/5)
		if err != nil || written.Size != int64(b.Len()) || written.Same {
			t.Fatalf("%s: %+v, %d bytes, error %v", name, written, b.Len(), err)
		}
		d := b.Bytes()
		for _, row := range now[len(now)-3:] {
			if bytes.Contains(d, []byte(strings.TrimSpace(row))) {
				t.Errorf("%s: the delta contains %q", name, row)
			}
		}
		for _, id := range []age.Identity{ann, ben} {
			reader, err := base.unlocked(id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := unseal(t.Context(), reader, d, id)
			if err != nil || !bytes.Equal(got, result.bytes) {
				t.Errorf("%s: %d bytes, error %v", name, len(got), err)
			}
		}
		if got, err := unseal(t.Context(), opened, d, eve); snap.CodeOf(err) != snap.CodeNoIdentity || len(got) > 0 {
			t.Errorf("%s: somebody else gets %d bytes: %v", name, len(got), err)
		}
		if _, err := apply(t.Context(), opened, d); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%s: it is applied without decryption: %v", name, err)
		}
		rapid.Check(t, func(r *rapid.T) {
			broken := bytes.Clone(d)
			broken[rapid.IntRange(0, len(d)-1).Draw(r, "at")] ^= byte(rapid.IntRange(1, 255).Draw(r, "bits"))
			got, err := unseal(t.Context(), opened, broken, ann)
			if err == nil && !bytes.Equal(got, result.bytes) {
				r.Fatal("wrong bytes were accepted")
			}
		})
	}
}

// TestNoDeltaOfALockedFile checks that there is no delta from or to a locked file. For a delta to
// an unencrypted file, the caller must choose a base that the service can read.
func TestNoDeltaOfALockedFile(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	plain := pack(t, snap.Postgres, "base", joined(rows(900, 1)))
	locked := encrypted(t, "result", joined(rows(900, 1)), id.Recipient())
	for _, pair := range [][2]packed{{plain, locked}, {locked, plain}, {locked, locked}} {
		var b bytes.Buffer
		_, err := Write(t.Context(), &b, pair[0].open(t), pair[1].open(t), pair[0].File, pair[1].File, 1<<40)
		if snap.CodeOf(err) != snap.CodeInvalid || b.Len() > 0 {
			t.Errorf("%d bytes, error %v", b.Len(), err)
		}
	}
}

// TestUnsealHoldsTheHeader checks that the delta inside an encrypted one must be between the same
// two files and must not be encrypted again.
func TestUnsealHoldsTheHeader(t *testing.T) {
	t.Parallel()
	id := newIdentity(t)
	file := encrypted(t, "result", joined(rows(900, 1)), id.Recipient())
	reader, err := file.unlocked(id)
	if err != nil {
		t.Fatal(err)
	}
	other := File{Size: 9, SHA256: strings.Repeat("0", 64)}
	good := Header{Base: file.File, Result: file.File, Encoder: archive.Encoder}
	outside := good
	envelope, err := reader.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	outside.Sealed = &envelope.Sealing
	for i, inside := range []Header{{Base: other, Result: good.Result, Encoder: good.Encoder},
		{Base: good.Base, Result: other, Encoder: good.Encoder}, outside} {
		var b bytes.Buffer
		if err := writeHeader(&b, inside); err != nil {
			t.Fatal(err)
		}
		if _, err := outside.Unseal(envelope, &b); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i, wrong := range []archive.Sealing{{}, {Engine: snap.Postgres, Type: snap.TypeSnapshot, Nonce: "0"}} {
		var b bytes.Buffer
		h := Header{Base: good.Base, Result: good.Result, Encoder: good.Encoder, Sealed: &wrong}
		if err := writeHeader(&b, h); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadHeader(&b); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// FuzzUnseal checks that applying any encrypted content ends, and that the result is right or
// refused.
func FuzzUnseal(f *testing.F) {
	id := newIdentity(f)
	old := rows(300, 1)
	base := encrypted(f, "base", joined(old), id.Recipient())
	result := encrypted(f, "result", joined(changed(old)), id.Recipient())
	opened, err := base.unlocked(id)
	if err != nil {
		f.Fatal(err)
	}
	unlocked, err := result.unlocked(id)
	if err != nil {
		f.Fatal(err)
	}
	envelope, err := unlocked.Envelope()
	if err != nil {
		f.Fatal(err)
	}
	inside := func(now, from packed) []byte {
		r, err := from.unlocked(id)
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if _, err = Write(f.Context(), &b, opened, r, base.File, now.File, 1<<40); err != nil {
			f.Fatal(err)
		}
		d := bytes.NewReader(b.Bytes())
		h, err := ReadHeader(d)
		if err != nil {
			f.Fatal(err)
		}
		_, content, err := archive.OpenSealed(*h.Sealed, d, id)
		if err != nil {
			f.Fatal(err)
		}
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(content); err != nil {
			f.Fatal(err)
		}
		return plain.Bytes()
	}
	f.Add(inside(result, result))
	f.Add(inside(base, base))
	h := Header{Base: base.File, Result: result.File, Encoder: archive.Encoder, Sealed: &envelope.Sealing}
	f.Fuzz(func(t *testing.T, d []byte) {
		r := bytes.NewReader(d)
		inner, err := h.Unseal(envelope, r)
		if err != nil {
			return
		}
		var b bytes.Buffer
		err = Apply(t.Context(), &b, inner, opened, r)
		if err == nil && !bytes.Equal(b.Bytes(), result.bytes) || int64(b.Len()) > result.Size {
			t.Errorf("%d bytes of %d, error %v", b.Len(), result.Size, err)
		}
	})
}
