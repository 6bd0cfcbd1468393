package local

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/certificate"
	"snap/internal/cloudtest"
)

// certified returns a masked copy with a certificate that this machine's key signed.
func (s shop) certified(t *testing.T) Snapshot {
	t.Helper()
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewSigningKey("own"); err != nil {
		t.Fatal(err)
	}
	return s.sanitizeAsSuggested(t, shopTarget)
}

// A key whose entry in the list could not be written, for example because the disk was full, is not
// lost: the next attempt to create a key adds it to the list.
func TestNewSigningKeyAfterAFailure(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first, err := s.NewSigningKey("own")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.signingKeysPath()); err != nil {
		t.Fatal(err)
	}
	second, err := s.NewSigningKey("own")
	if err != nil || second.Public != first.Public {
		t.Fatalf("%+v, %v", second, err)
	}
	if _, err := s.NewSigningKey("own"); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("a third attempt: %v", err)
	}
	if all, err := s.SigningKeys(); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Invalid certificates are refused: those of another file, with other rules, by a revoked or an
// unknown key, and on a relabelled snapshot.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	made := s.certified(t)
	v, err := s.Verify(t.Context(), made.Name, nil)
	if err != nil || v.Certificate == nil || v.Certificate.KeyName != "own" ||
		v.Certificate.Predicate.Masked != v.Sanitized.Masked || v.Certificate.Predicate.Scan == nil {
		t.Fatalf("%+v, %v", v.Certificate, err)
	}
	original, err := s.Snapshot(v.Sanitized.From)
	if err != nil || v.Certificate.Predicate.Source.Digest.SHA256 != original.SHA256 {
		t.Errorf("the source is %+v, %v", v.Certificate.Predicate.Source, err)
	}
	second := s.sanitizeAsDecided(t, shopTarget, `"null"`)
	key, _, err := s.signer()
	if err != nil {
		t.Fatal(err)
	}
	sign := func(key certificate.Private, sum, rules string) json.RawMessage {
		t.Helper()
		text, err := certificate.Make(key, certificate.Subject{Name: made.Name,
			Digest: certificate.Digest{SHA256: sum}}, certificate.Sanitization{Rules: rules, Made: time.Unix(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for want, of := range map[string]Snapshot{"": original, "none": {Type: snap.TypeSanitized},
		"valid, signed by the key " + v.Certificate.Key + " (own)": made} {
		if got := s.Certificate(of); got != want {
			t.Errorf("the certificate is %q, want %q", got, want)
		}
	}
	relabelled := original
	relabelled.Type = snap.TypeSanitized
	for name, c := range map[string]struct {
		of   Snapshot
		text json.RawMessage
		want string
	}{
		"another file's certificate": {made, second.Certificate, "belongs to another file"},
		"other rules":                {made, sign(key, made.SHA256, "other"), "names other rules or SQL than the file"},
		"an unknown key": {made, sign(certificate.New(), made.SHA256, v.Sanitized.Rules),
			"not known here"},
		"an original":       {original, sign(key, original.SHA256, ""), "it is not a sanitized snapshot"},
		"a relabelled file": {relabelled, sign(key, original.SHA256, ""), "its record says sanitized"},
		"a valid one":       {made, sign(key, made.SHA256, v.Sanitized.Rules), ""},
		"not a certificate": {made, json.RawMessage(`{"payload": 1}`), "cannot be read"},
	} {
		c.of.Certificate = c.text
		if err := s.writeRecord(c.of); err != nil {
			t.Fatal(err)
		}
		_, err := s.Verify(t.Context(), c.of.Name, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		original.Certificate = nil
		if err := s.writeRecord(original); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.writeRecord(made); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeSigningKey("own"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), made.Name, nil); snap.CodeOf(err) != snap.CodePolicy ||
		!strings.Contains(err.Error(), "is revoked") {
		t.Errorf("a revoked key: %v", err)
	}
	if _, ok, err := s.signer(); ok || err != nil {
		t.Errorf("the private key is still there: %v", err)
	}
}

// A key in the environment signs without a key on the machine.
func TestSigningKeyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s, key := newShop(t), certificate.New()
	var err error
	s.Agent, err = Open(Options{ConfigFile: filepath.Join(s.dir, "config.yaml"), DataDir: filepath.Join(s.dir, "data"),
		Env: func(name string) string {
			if name == signingKeyEnv {
				return key.String()
			}
			return ""
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	made := s.sanitizeAsSuggested(t, shopTarget)
	v, err := s.Verify(t.Context(), made.Name, nil)
	if err != nil || v.Certificate == nil || v.Certificate.Key != key.PublicKey().ID() {
		t.Errorf("%+v, %v", v.Certificate, err)
	}
}

// A push and a pull carry the certificate, and the other machine checks it against the keys that it
// knows.
func TestCertificatesTravel(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, there := newShop(t), machine(t)
	made := s.certified(t)
	mia := cloudtest.Start(t, cloudtest.Options{}).As("mia@acme.test")
	if _, err := s.Push(ctx, mia, shopTarget, PushOptions{Snapshot: made.Name}, nil); err != nil {
		t.Fatal(err)
	}
	pulled, err := there.Pull(ctx, mia, shopTarget, PullOptions{}, nil)
	if err != nil || !bytes.Equal(pulled.Snapshot.Certificate, made.Certificate) || len(made.Certificate) == 0 {
		t.Fatalf("pulled the certificate %s, %v", pulled.Snapshot.Certificate, err)
	}
	if _, err := there.Verify(ctx, pulled.Snapshot.Name, nil); err == nil ||
		!strings.Contains(err.Error(), "not known here") {
		t.Errorf("before its key is known: %v", err)
	}
	own, err := s.SigningKey("own")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.TrustSigningKey(own.Public, "laptop"); err != nil {
		t.Fatal(err)
	}
	v, err := there.Verify(ctx, pulled.Snapshot.Name, nil)
	if err != nil || v.Certificate == nil || v.Certificate.KeyName != "laptop" {
		t.Errorf("%+v, %v", v.Certificate, err)
	}
}

// Of several keys with one name, the one in use is revoked.
func TestRevokeTheKeyThatIsInUse(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 3 {
		k, err := s.NewSigningKey("ci")
		if err != nil {
			t.Fatal(err)
		}
		if gone, err := s.RevokeSigningKey("ci"); err != nil || gone.Public != k.Public {
			t.Errorf("revoked %s, want %s; %v", gone.ID(), k.ID(), err)
		}
	}
}
