package local

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"snap"
	"snap/internal/servertest"
)

// sshKey creates an SSH key pair. It returns the line of its public key and the
// path of the private key, which is encrypted if a passphrase is given.
func sshKey(t *testing.T, key any, passphrase string) (public, path string) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), path
}

// Snapshots can be encrypted to SSH keys of both kinds. The user is asked for a
// passphrase only when its key is needed, and a wrong passphrase is reported as
// such.
func TestSSHKeys(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	_, one, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	two, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, three, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plainPublic, plain := sshKey(t, one, "")
	rsaPublic, rsaFile := sshKey(t, two, "")
	lockedPublic, locked := sshKey(t, three, "open sesame")

	s := newShop(t)
	asked, phrase := 0, "wrong"
	s.passphrase = func(path string) ([]byte, error) {
		if path != locked {
			t.Errorf("the passphrase of %s was asked for", path)
		}
		asked++
		return []byte(phrase), nil
	}
	built, err := s.Build(t.Context(), shopTarget,
		BuildOptions{Encrypt: Encryption{To: []string{plainPublic, rsaPublic, lockedPublic, plainPublic}}}, nil)
	if err != nil || built.Encrypted != 3 {
		t.Fatalf("%v, encrypted to %d", err, built.Encrypted)
	}
	verify := func(files ...string) (Verified, error) { return s.Verify(t.Context(), built.Name, nil, files...) }
	for _, file := range []string{plain, rsaFile} {
		if v, err := verify(locked, file); err != nil || !v.Inside || len(v.Tables) != 2 {
			t.Errorf("%s: %v, %+v", file, err, v)
		}
	}
	if asked != 0 {
		t.Errorf("asked %d times for a passphrase that was not needed", asked)
	}
	if _, err := verify(locked); snap.CodeOf(err) != snap.CodeUsage ||
		!strings.Contains(err.Error(), "could not be opened") {
		t.Errorf("a wrong passphrase: %v", err)
	}
	phrase = "open sesame"
	if v, err := verify(locked); err != nil || !v.Inside {
		t.Errorf("the right passphrase: %v", err)
	}
	s.passphrase = nil
	if _, err := verify(locked); snap.CodeOf(err) != snap.CodeUsage ||
		!strings.Contains(err.Error(), "this is not a terminal") {
		t.Errorf("nobody to ask: %v", err)
	}
	s.passphrase = func(string) ([]byte, error) { return nil, &snap.Error{Code: snap.CodeInterrupted} }
	if _, err := verify(locked); snap.CodeOf(err) != snap.CodeInterrupted {
		t.Errorf("a question that was not answered: %v", err)
	}
}

// The error for a wrong recipient never repeats it: it may be a private key.
func TestWrongRecipients(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(s.dir, "empty")
	if err := os.WriteFile(empty, []byte("# nobody\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to   []string
		want snap.Code
	}{
		"a private key":           {[]string{id.String()}, snap.CodeUsage},
		"half a key":              {[]string{id.Recipient().String()[:20]}, snap.CodeUsage},
		"an unknown kind of key":  {[]string{"ssh-dss AAAA"}, snap.CodeUsage},
		"a missing file":          {[]string{filepath.Join(s.dir, "none")}, snap.CodeNotFound},
		"a folder":                {[]string{s.dir}, snap.CodeUsage},
		"a file of nobody":        {[]string{empty}, snap.CodeUsage},
		"post-quantum and others": {[]string{id.Recipient().String(), hybrid.Recipient().String()}, snap.CodeUsage},
	} {
		_, err := s.Build(t.Context(), shopTarget, BuildOptions{Encrypt: Encryption{To: c.to}}, nil)
		var told *snap.Error
		if snap.CodeOf(err) != c.want || !errors.As(err, &told) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(told.Detail+told.Hint, id.String()) {
			t.Errorf("%s: the error contains the private key: %s", name, told.Detail)
		}
	}
	if all, err := s.Snapshots(""); err != nil || len(all) != 0 {
		t.Errorf("%v, %d snapshots were made", err, len(all))
	}
}

// The record of an encrypted snapshot is an unencrypted file next to it, so it does
// not name the tables. The build's own result still does.
func TestEncryptedRecordNamesNoTables(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	built, err := s.Build(t.Context(), shopTarget,
		BuildOptions{Encrypt: Encryption{To: []string{id.Recipient().String()}}}, nil)
	if err != nil || len(built.Tables) != 2 {
		t.Fatalf("%v, %d tables", err, len(built.Tables))
	}
	record, err := os.ReadFile(recordPath(built.Path))
	if err != nil || strings.Contains(string(record), "customer") ||
		!strings.Contains(string(record), `"encrypted": 1`) {
		t.Errorf("%v: %s", err, record)
	}
	file, err := os.ReadFile(built.Path)
	if err != nil || strings.Contains(string(file), "customer") {
		t.Errorf("%v: the file names a table", err)
	}
	listed, err := s.Snapshot(built.Name)
	if err != nil || listed.Encrypted != 1 || listed.Tables != nil {
		t.Errorf("%v: %+v", err, listed)
	}
	if err := s.Describe(&listed, nil); err != nil || listed.Tables != nil {
		t.Errorf("without an identity: %v, %+v", err, listed.Tables)
	}
	if _, err := s.Preflight(t.Context(), shopTarget, LoadOptions{}); snap.CodeOf(err) != snap.CodeNoIdentity {
		t.Errorf("a preflight without an identity: %v", err)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil); snap.CodeOf(err) != snap.CodeNoIdentity {
		t.Errorf("a load without an identity: %v", err)
	}
	s.untouched(t)
}
