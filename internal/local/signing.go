package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/internal/certificate"
	"snap/internal/disk"
)

// signingKeyEnv is the environment variable of the private key that signs certificates. It takes
// precedence over the key that [Agent.NewSigningKey] created.
const signingKeyEnv = "SNAPCLI_SIGNING_KEY"

// SigningKey is a public key whose certificates this machine accepts, unless it is revoked.
type SigningKey struct {
	Public  string    `json:"public"`
	Name    string    `json:"name"`
	Own     bool      `json:"own,omitempty"` // its private key was created here
	Since   time.Time `json:"since"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// ID returns the short name of the key.
func (k SigningKey) ID() string {
	public, err := certificate.ParsePublic(k.Public)
	if err != nil {
		return "damaged"
	}
	return public.ID()
}

// The list of keys and the private key are in the data directory, like the list of trusted people.
func (a *Agent) signingKeysPath() string { return filepath.Join(a.data, "signing-keys.json") }
func (a *Agent) signingKeyPath() string  { return filepath.Join(a.data, "signing.key") }

// SigningKeys lists the known keys in the order they were added.
func (a *Agent) SigningKeys() ([]SigningKey, error) {
	var all []SigningKey
	if err := disk.ReadJSON(a.signingKeysPath(), &all); err != nil {
		return nil, snap.Usage(fmt.Sprintf("the list of keys %s cannot be read: %s", a.signingKeysPath(), reason(err)),
			"restore it from a backup; if you delete it, add the keys of others again with `snapcli keys trust`")
	}
	return all, nil
}

// NewSigningKey creates the key that signs this machine's certificates. There can be only one at a
// time. If an earlier call wrote the private key but failed to add it to the list, NewSigningKey
// adds that key.
func (a *Agent) NewSigningKey(name string) (k SigningKey, err error) {
	err = a.changeSigningKeys(func(all []SigningKey) ([]SigningKey, error) {
		key, exists, err := a.storedSigningKey()
		if err != nil {
			return nil, err
		}
		if !exists {
			key = certificate.New()
			if err := disk.Replace(a.signingKeyPath(), []byte(key.String()+"\n"), 0o600); err != nil {
				return nil, err
			}
		}
		k = SigningKey{Public: key.PublicKey().String(), Name: name, Own: true, Since: a.now().UTC()}
		if slices.ContainsFunc(all, func(old SigningKey) bool { return old.Public == k.Public }) {
			return nil, &snap.Error{Code: snap.CodeConflict, Detail: "this machine already has a signing key",
				Hint: "show it with `snapcli keys list`, or revoke it with `snapcli keys revoke`"}
		}
		return append(all, k), nil
	})
	return k, err
}

// TrustSigningKey adds somebody else's public key.
func (a *Agent) TrustSigningKey(public, name string) (k SigningKey, err error) {
	key, err := certificate.ParsePublic(public)
	if err != nil {
		return k, err
	}
	k = SigningKey{Public: key.String(), Name: name, Since: a.now().UTC()}
	err = a.changeSigningKeys(func(all []SigningKey) ([]SigningKey, error) {
		if slices.ContainsFunc(all, func(old SigningKey) bool { return old.Public == k.Public }) {
			return nil, &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("the key %s is already known", k.ID()),
				Hint: "list the keys with `snapcli keys list`; a revoked key stays revoked"}
		}
		return append(all, k), nil
	})
	return k, err
}

// RevokeSigningKey makes this machine refuse all certificates that a key signed. If it is this
// machine's own key, the private key is deleted.
func (a *Agent) RevokeSigningKey(id string) (k SigningKey, err error) {
	err = a.changeSigningKeys(func(all []SigningKey) ([]SigningKey, error) {
		at, err := findSigningKey(all, id)
		if err != nil {
			return nil, err
		}
		if k = all[at]; !k.Revoked.IsZero() {
			return all, nil
		}
		all[at].Revoked = a.now().UTC()
		k = all[at]
		if !k.Own {
			return all, nil
		}
		if err := os.Remove(a.signingKeyPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return all, nil
	})
	return k, err
}

// SigningKey returns the known key with this ID or name; "" is this machine's own key.
func (a *Agent) SigningKey(id string) (SigningKey, error) {
	all, err := a.SigningKeys()
	if err != nil {
		return SigningKey{}, err
	}
	at, err := findSigningKey(all, id)
	if err != nil {
		return SigningKey{}, err
	}
	return all[at], nil
}

// findSigningKey returns the index of the key with this ID or name; "" is this machine's own key.
// Of several keys with one name, it returns the newest that is not revoked, or else the newest.
func findSigningKey(all []SigningKey, id string) (int, error) {
	at := slices.IndexFunc(all, func(k SigningKey) bool { return k.ID() == id })
	if at < 0 {
		for i, k := range all {
			isMatch := k.Name == id && id != "" || id == "" && k.Own && k.Revoked.IsZero()
			if isMatch && (at < 0 || k.Revoked.IsZero() || !all[at].Revoked.IsZero()) {
				at = i
			}
		}
	}
	switch {
	case at >= 0:
		return at, nil
	case id == "":
		return 0, &snap.Error{Code: snap.CodeNotFound, Detail: "this machine has no signing key",
			Hint: "create one with `snapcli keys new`"}
	}
	return 0, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no key %q", id),
		Hint: "list the keys with `snapcli keys list`"}
}

// changeSigningKeys changes the list of keys under a lock, so that no other process changes it at
// the same time.
func (a *Agent) changeSigningKeys(change func([]SigningKey) ([]SigningKey, error)) error {
	return a.rewrite(a.signingKeysPath(), "the list of keys", func() (any, error) {
		all, err := a.SigningKeys()
		if err != nil {
			return nil, err
		}
		all, err = change(all)
		return all, diskError(err, "write the key")
	})
}

// signer returns the private key in the environment, or else this machine's own. ok is false if
// there is none.
func (a *Agent) signer() (key certificate.Private, ok bool, err error) {
	if text := a.env(signingKeyEnv); text != "" {
		key, err = certificate.ParsePrivate(text)
		return key, err == nil, err
	}
	return a.storedSigningKey()
}

// storedSigningKey returns this machine's own private key. ok is false if there is none.
func (a *Agent) storedSigningKey() (key certificate.Private, ok bool, err error) {
	text, err := os.ReadFile(a.signingKeyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return key, false, nil
	}
	if err != nil {
		return key, false, fmt.Errorf("read the signing key: %w", err)
	}
	key, err = certificate.ParsePrivate(string(text))
	return key, err == nil, err
}

// certify signs the certificate of a masked copy, if there is a key.
func (a *Agent) certify(s Snapshot, d draft) (json.RawMessage, error) {
	if d.Sanitized == nil || d.source.SHA256 == "" {
		return nil, nil
	}
	key, ok, err := a.signer()
	if err != nil || !ok {
		return nil, err
	}
	how := certificate.Sanitization{
		Source: certificate.Subject{Name: d.source.Name, Digest: certificate.Digest{SHA256: d.source.SHA256}},
		Rules:  d.Sanitized.Rules, SQL: d.Sanitized.SQL, Masked: d.Sanitized.Masked, Kept: d.Sanitized.Kept,
		Dropped: d.Sanitized.Dropped, Tool: snap.Version(), Made: s.Created,
	}
	if scan := d.Sanitized.LeakScan; scan != nil {
		how.Scan = &certificate.LeakScan{Values: scan.Values, Schema: scan.Schema}
	}
	return certificate.Make(key, certificate.Subject{Name: s.Name, Digest: certificate.Digest{SHA256: s.SHA256}}, how)
}

// Certified is a valid certificate.
type Certified struct {
	certificate.Statement
	Key     string // ID of the key that signed it
	KeyName string
}

// Certificate describes the certificate of a sanitized snapshot in a few words. It checks the
// certificate against the recorded checksum, without reading the file. The description of an
// original, which has no certificate, is "".
func (a *Agent) Certificate(s Snapshot) string {
	if s.Type != snap.TypeSanitized {
		return ""
	}
	found, err := a.checkCertificate(s, Verified{})
	switch {
	case err != nil:
		return "not valid: " + err.Error()
	case found == nil:
		return snap.Certificate{State: snap.CertificateMissing}.String()
	}
	return snap.Certificate{State: snap.CertificateValid, Key: found.Key, KeyName: found.KeyName}.String()
}

// checkCertificate checks the certificate of a snapshot, if it has one. The rules and SQL that the
// certificate states must be those in the file's manifest, if the manifest can be read.
func (a *Agent) checkCertificate(s Snapshot, v Verified) (*Certified, error) {
	if len(s.Certificate) == 0 {
		return nil, nil
	}
	keys, err := a.SigningKeys()
	if err != nil {
		return nil, err
	}
	var known []certificate.KnownKey
	for _, k := range keys {
		if public, err := certificate.ParsePublic(k.Public); err == nil {
			known = append(known, certificate.KnownKey{Public: public, Name: k.Name, Revoked: !k.Revoked.IsZero()})
		}
	}
	if key, ok, err := a.signer(); err == nil && ok {
		known = append(known, certificate.KnownKey{Public: key.PublicKey(), Name: "own"})
	}
	stated, by, err := certificate.Check(s.Certificate, s.SHA256, known)
	if err != nil {
		return nil, err
	}
	var wrong string
	switch how := v.Sanitized; {
	case s.Type != snap.TypeSanitized:
		wrong = fmt.Sprintf("%s has a certificate, but it is not a sanitized snapshot", s.Name)
	case v.Inside && (how == nil || how.Rules != stated.Predicate.Rules || how.SQL != stated.Predicate.SQL):
		wrong = fmt.Sprintf("the certificate of %s names other rules or SQL than the file records", s.Name)
	}
	if wrong != "" {
		return nil, &snap.Error{Code: snap.CodePolicy, Detail: wrong,
			Hint: "sanitize again, or ask the person who made the snapshot"}
	}
	return &Certified{stated, by.Public.ID(), strings.TrimSpace(by.Name)}, nil
}
