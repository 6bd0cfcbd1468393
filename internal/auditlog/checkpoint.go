// Package auditlog makes an organization's audit log a transparency log: the lines are the leaves
// of a Merkle tree (RFC 9162, section 2.1), and the service signs checkpoints of the tree. With an
// earlier checkpoint, anyone can prove that the log still holds every line that it held when that
// checkpoint was signed. A line can be proven to be in the log without revealing the other lines.
//
// The tree, the proofs and the signed notes are those of Go's checksum database
// (golang.org/x/mod/sumdb). The service builds trees with this package, and snapcli verifies them.
package auditlog

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint states the content of an organization's log at some time: the log has Size lines, and
// their tree has the root Root.
type Checkpoint struct {
	Organization string // slug
	Size         int64
	Root         tlog.Hash
}

// Errors of [Open]. Both mean that the note proves nothing.
var (
	ErrNotCheckpoint = errors.New("this is not a checkpoint of the organization's audit log")
	ErrSignature     = errors.New("the checkpoint is not signed with this key")
)

// origin returns the first line of an organization's checkpoints, which is also the name of the key
// that signs them, so that no checkpoint can pass for another organization's.
func origin(slug string) string { return "snapcloud/" + slug }

// text returns the signed part: origin, size and root, each on a line of its own, as in
// https://c2sp.org/tlog-checkpoint.
func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin(c.Organization), c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// parse parses the result of [Checkpoint.text]. It fails with ErrNotCheckpoint.
func parse(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return c, ErrNotCheckpoint
	}
	slug, ours := strings.CutPrefix(lines[0], origin(""))
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if !ours || err != nil || size < 1 || strconv.FormatInt(size, 10) != lines[1] {
		return c, ErrNotCheckpoint
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return c, ErrNotCheckpoint
	}
	return Checkpoint{slug, size, root}, nil
}

// Key signs the checkpoints of every organization of a service.
type Key struct{ private ed25519.PrivateKey }

// NewKey returns the key with this Ed25519 private key.
func NewKey(private ed25519.PrivateKey) Key { return Key{private} }

// Verifier returns the public key that verifies an organization's checkpoints, in the text form of
// Go's signed notes: name, short hash and key.
func (k Key) Verifier(slug string) string {
	text, err := note.NewEd25519VerifierKey(origin(slug), k.private.Public().(ed25519.PublicKey))
	if err != nil {
		panic(err) // the key has the right length
	}
	return text
}

// Sign returns the checkpoint as a signed note.
func (k Key) Sign(c Checkpoint) (string, error) {
	verifier := k.Verifier(c.Organization)
	hash := strings.Split(strings.TrimPrefix(verifier, origin(c.Organization)+"+"), "+")[0]
	const ed25519Key = 1 // the algorithm's number in a note's key
	secret := append([]byte{ed25519Key}, k.private.Seed()...)
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin(c.Organization) + "+" + hash + "+" +
		base64.StdEncoding.EncodeToString(secret))
	if err != nil {
		return "", err
	}
	signed, err := note.Sign(&note.Note{Text: c.text()}, signer)
	return string(signed), err
}

// Open returns the checkpoint in a signed note. It fails with [ErrSignature] unless verifier is a
// key of the organization with this slug and that key signed the note. It fails with
// [ErrNotCheckpoint] unless the note is a checkpoint of the organization's log.
func Open(signed, slug, verifier string) (Checkpoint, error) {
	v, err := note.NewVerifier(verifier)
	if err != nil || v.Name() != origin(slug) {
		return Checkpoint{}, ErrSignature
	}
	opened, err := note.Open([]byte(signed), note.VerifierList(v))
	if err != nil {
		return Checkpoint{}, ErrSignature
	}
	c, err := parse(opened.Text)
	if err == nil && c.Organization != slug {
		err = ErrNotCheckpoint
	}
	return c, err
}

// Read returns the checkpoint in a note without verifying the signature. It is for callers that
// have no key, such as the verification of a backup.
func Read(signed string) (Checkpoint, error) {
	text, _, found := strings.Cut(signed, "\n\n")
	if !found {
		return Checkpoint{}, ErrNotCheckpoint
	}
	return parse(text + "\n")
}

// ParseProof reads the hashes of a proof, each in base64.
func ParseProof(texts []string) ([]tlog.Hash, error) {
	proof := make([]tlog.Hash, len(texts))
	for i, text := range texts {
		h, err := tlog.ParseHash(text)
		if err != nil {
			return nil, err
		}
		proof[i] = h
	}
	return proof, nil
}
