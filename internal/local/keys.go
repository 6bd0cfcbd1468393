package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"golang.org/x/crypto/ssh"

	"snap"
	"snap/internal/archive"
)

// maxKeyFile limits the size of a file of recipients or identities.
const maxKeyFile = 1 << 20

// Encryption selects who can read a new snapshot. The zero value uses the target's configuration.
type Encryption struct {
	To   []string // recipients, or files of them
	None bool     // do not encrypt, whatever the configuration says
}

// recipients returns the recipients of a new snapshot of the target. Nil means that it is not
// encrypted.
func (a *Agent) recipients(e Encryption, t Target) ([]age.Recipient, error) {
	if e.None && len(e.To) > 0 {
		return nil, snap.Usage("--encrypt-to and --no-encrypt cannot be combined", "omit one of them")
	}
	given := e.To
	if e.None || len(given) == 0 && len(t.EncryptTo) == 0 {
		return nil, nil
	}
	if len(given) == 0 {
		for _, entry := range t.EncryptTo {
			if !IsRecipient(entry) {
				entry = a.relativeToConfig(entry)
			}
			given = append(given, entry)
		}
	}
	var all []age.Recipient
	seen := map[string]bool{}
	for _, entry := range given {
		lines, err := recipientLines(entry)
		if err != nil {
			return nil, err
		}
		for i, line := range lines {
			if !isKeyLine(line) || seen[line] {
				continue
			}
			seen[line] = true
			r, err := parseRecipient(line)
			if err != nil {
				return nil, badRecipient(entry, i+1, err)
			}
			all = append(all, r)
		}
	}
	return all, requireSameKind(all)
}

// IsRecipient reports whether an entry is a key rather than the path of a file. It also accepts
// private keys, so that no message repeats them as a path.
func IsRecipient(entry string) bool {
	return strings.HasPrefix(entry, "age1") || strings.HasPrefix(entry, "ssh-") || strings.HasPrefix(entry, "AGE-")
}

// recipientLines returns the lines of an entry, which is a public key or the path of a file of
// public keys. It fails if there is no key.
func recipientLines(entry string) ([]string, error) {
	text := []byte(entry)
	if !IsRecipient(entry) {
		var err error
		if text, err = readKeyFile(entry, "recipients"); err != nil {
			return nil, err
		}
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	if !slices.ContainsFunc(lines, isKeyLine) {
		return nil, snap.Usage(fmt.Sprintf("the file %s does not contain a recipient", entry),
			"write one public key on each line: age1... or ssh-ed25519 ...")
	}
	return lines, nil
}

func isKeyLine(line string) bool { return line != "" && line[0] != '#' }

// keyFileHints are the hints for a key file that does not exist.
var keyFileHints = map[string]string{
	"recipients": "give the path of a file, or a public key: age1... or ssh-ed25519 ...",
	"identities": "give the path of a file of age identities, or of an SSH private key",
}

func readKeyFile(path, what string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no %s file %s", what, path),
			Hint: keyFileHints[what]}
	}
	if err == nil && (!info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 || info.Size() > maxKeyFile) {
		return nil, snap.Usage(fmt.Sprintf("%s is not a file of %s", path, what), "")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, snap.Usage(fmt.Sprintf("the %s file %s cannot be read: %s", what, path, reason(err)),
			"check its path and permissions")
	}
	return text, nil
}

func parseRecipient(line string) (age.Recipient, error) {
	if strings.HasPrefix(line, "ssh-") {
		return agessh.ParseRecipient(line)
	}
	all, err := age.ParseRecipients(strings.NewReader(line))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// badRecipient returns the error for an invalid recipient. It never repeats the input, which may be
// a private key.
func badRecipient(entry string, line int, cause error) error {
	where := fmt.Sprintf("line %d of %s", line, entry)
	if IsRecipient(entry) {
		where = "the given key"
	}
	return &snap.Error{Code: snap.CodeUsage, Cause: cause, Detail: where + " is not a known kind of recipient",
		Hint: "use a public key: age1..., ssh-ed25519 ... or ssh-rsa ...; age-keygen prints one"}
}

// requireSameKind rejects a mix of post-quantum and classic recipients, as age does: the file would
// be only as secure as the weaker kind.
func requireSameKind(all []age.Recipient) error {
	hybrid := 0
	for _, r := range all {
		if _, ok := r.(*age.HybridRecipient); ok {
			hybrid++
		}
	}
	if hybrid > 0 && hybrid < len(all) {
		return snap.Usage("post-quantum recipients (age1pq...) and others cannot be mixed",
			"use only one kind of recipient for a snapshot")
	}
	return nil
}

// identities returns the private keys for decryption: those of the given files, otherwise those of
// the configuration.
func (a *Agent) identities(given []string) ([]age.Identity, error) {
	ids, asking, err := a.allIdentities(given)
	return append(ids, asking...), err // keys that need no passphrase are tried first
}

// readyIdentities returns the private keys of the configuration that need no passphrase. It returns
// none if the keys cannot be read.
func (a *Agent) readyIdentities() []age.Identity {
	ids, _, err := a.allIdentities(nil)
	if err != nil {
		a.log.Debug("cannot read the identities", "error", err)
		return nil
	}
	return ids
}

// allIdentities is like identities, but returns the keys that ask for a passphrase separately.
func (a *Agent) allIdentities(given []string) (ids, asking []age.Identity, err error) {
	fromConfig := len(given) == 0
	if fromConfig {
		given = a.Config().Identities
	}
	for _, entry := range given {
		where := entry
		var text []byte
		if fromConfig {
			if entry, err = expand(entry, a.env); err != nil {
				return nil, nil, err
			}
			where = "an entry of identities in the configuration"
		}
		switch {
		case strings.HasPrefix(entry, "AGE-SECRET-KEY-") && fromConfig:
			text = []byte(entry)
		case strings.HasPrefix(entry, "AGE-SECRET-KEY-"):
			return nil, nil, snap.Usage("everybody on this machine can read a private key on the command line",
				"put it into a file, and give its path: --identity FILE")
		default:
			if fromConfig {
				entry = a.relativeToConfig(entry)
			}
			where = entry
			if text, err = readKeyFile(entry, "identities"); err != nil {
				return nil, nil, err
			}
		}
		some, asks, err := a.parseIdentities(where, text)
		if err != nil {
			return nil, nil, err
		}
		if asks {
			asking = append(asking, some...)
		} else {
			ids = append(ids, some...)
		}
	}
	return ids, asking, nil
}

// parseIdentities reads a file of age identities, or one SSH private key. asks is true if a
// passphrase will be needed. where names the file in messages.
func (a *Agent) parseIdentities(where string, text []byte) (ids []age.Identity, asks bool, err error) {
	if !bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		ids, err = age.ParseIdentities(bytes.NewReader(text))
		if err != nil {
			return nil, false, &snap.Error{Code: snap.CodeUsage, Cause: err,
				Detail: fmt.Sprintf("%s does not contain a known kind of identity", where),
				Hint:   "it must hold AGE-SECRET-KEY-... lines, as age-keygen writes them, or be an SSH private key"}
		}
		return ids, false, nil
	}
	id, err := agessh.ParseIdentity(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && locked.PublicKey != nil {
		if id, err = a.lockedSSH(where, locked.PublicKey, text); err == nil {
			return []age.Identity{id}, true, nil
		}
	}
	if err != nil {
		return nil, false, &snap.Error{Code: snap.CodeUsage, Cause: err,
			Detail: fmt.Sprintf("the SSH key %s cannot be used", where),
			Hint:   "use an Ed25519 or RSA key in OpenSSH's format, or an age identity"}
	}
	return []age.Identity{id}, false, nil
}

// lockedSSH returns an identity for an SSH key with a passphrase. The identity asks for the
// passphrase when it is used.
func (a *Agent) lockedSSH(where string, public ssh.PublicKey, text []byte) (age.Identity, error) {
	var why error
	inner, err := agessh.NewEncryptedSSHIdentity(public, text, func() (phrase []byte, err error) {
		if a.passphrase == nil {
			why = snap.Usage(fmt.Sprintf("the SSH key %s has a passphrase, and this is not a terminal where you "+
				"could enter it", where),
				"use a key without a passphrase, or run the command in a terminal")
			return nil, why
		}
		phrase, why = a.passphrase(where)
		return phrase, why
	})
	return &lockedIdentity{inner, where, &why}, err
}

// lockedIdentity is an identity that records why its key could not be used.
type lockedIdentity struct {
	*agessh.EncryptedSSHIdentity
	where string
	why   *error
}

// Unwrap implements age.Identity.
func (l *lockedIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	*l.why = nil
	key, err := l.EncryptedSSHIdentity.Unwrap(stanzas)
	switch {
	case err == nil || errors.Is(err, age.ErrIncorrectIdentity):
		return key, err
	case *l.why != nil:
		return nil, *l.why
	}
	return nil, &snap.Error{Code: snap.CodeUsage, Cause: err,
		Detail: fmt.Sprintf("the SSH key %s could not be opened", l.where), Hint: "check the passphrase and try again"}
}

// unlock decrypts a file with the given identities, or with those of the configuration.
func (a *Agent) unlock(r *archive.Reader, given []string) error {
	if !r.Locked() {
		return nil
	}
	ids, err := a.identities(given)
	if err != nil {
		return err
	}
	return r.Unlock(ids...)
}
