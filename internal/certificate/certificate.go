// Package certificate makes and checks the statements that sanitized snapshots carry: an in-toto
// statement (https://github.com/in-toto/attestation, version 1) in a DSSE envelope
// (https://github.com/secure-systems-lab/dsse), signed with an Ed25519 key.
//
// A certificate states who made a file, from which original, by which rules, and the result of the
// leak scan. It does not state that the rules were good enough.
package certificate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"snap"
)

// The types of the envelope's payload, of the statement and of its predicate.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "urn:snapcli:sanitized:v1"
)

// MaxSize is the maximum size of an envelope in bytes.
const MaxSize = 32 << 10

// Statement is the content of a certificate.
type Statement struct {
	Type          string       `json:"_type"`
	Subject       []Subject    `json:"subject"` // the snapshot's file
	PredicateType string       `json:"predicateType"`
	Predicate     Sanitization `json:"predicate"`
}

// Subject is a file.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Digest is the SHA-256 of a file in lower-case hexadecimal.
type Digest struct {
	SHA256 string `json:"sha256"`
}

// Sanitization describes how a masked file was made.
type Sanitization struct {
	Source  Subject   `json:"source"`              // the original's file
	Rules   string    `json:"rules,omitempty"`     // SHA-256 of the rules file
	SQL     string    `json:"sql,omitempty"`       // SHA-256 of the SQL file
	Masked  int       `json:"masked"`              // number of masked columns
	Kept    int       `json:"kept"`                // number of columns that a rule left unmasked
	Dropped int       `json:"dropped"`             // number of tables whose rows were dropped
	Scan    *LeakScan `json:"leak_scan,omitempty"` // nil if there was none
	Tool    string    `json:"tool"`                // version of snapcli
	Made    time.Time `json:"made"`
}

// LeakScan is the result of the search for original values in a masked file. A file with findings
// gets no certificate.
type LeakScan struct {
	Values int `json:"values"`         // number of original values searched for
	Schema int `json:"schema_objects"` // number of schema objects in which original values were kept or redacted
}

// Make signs a statement about a file.
func Make(key Private, file Subject, how Sanitization) (json.RawMessage, error) {
	payload, err := json.Marshal(Statement{statementType, []Subject{file}, predicateType, how})
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	envelope, err := signer.SignPayload(context.Background(), payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	return json.Marshal(envelope)
}

// Errors of [Check] for a certificate that can be read.
var (
	ErrUnknownKey = errors.New("the key of the certificate is not known")
	ErrRevokedKey = errors.New("the key is revoked")
)

// Check returns the statement of a certificate about the file with this SHA-256, and the key that
// signed it. It fails if the certificate is damaged, altered or about another file, and with
// [ErrUnknownKey] or [ErrRevokedKey]. All errors have the code policy_refused. If the key is
// unknown, Check cannot say whether the certificate was altered.
func Check(envelope []byte, sha256 string, known []KnownKey) (Statement, KnownKey, error) {
	e, s, err := read(envelope)
	if err != nil {
		return s, KnownKey{}, err
	}
	if s.Subject[0].Digest.SHA256 != sha256 {
		return s, KnownKey{}, refused("the certificate belongs to another file, or the file has changed since",
			sanitizeAgain)
	}
	by, err := signerOf(&e, known)
	return s, by, err
}

const sanitizeAgain = "sanitize again, or ask the person who made the snapshot"

// read parses an envelope and its statement without checking the signature.
func read(envelope []byte) (e dsse.Envelope, s Statement, err error) {
	if len(envelope) > MaxSize || !utf8.Valid(envelope) || json.Unmarshal(envelope, &e) != nil ||
		e.PayloadType != payloadType || len(e.Signatures) != 1 || !isID(e.Signatures[0].KeyID) {
		return e, s, refused("the certificate cannot be read", sanitizeAgain)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return e, s, refused("the certificate cannot be read", sanitizeAgain)
	}
	if json.Unmarshal(payload, &s) != nil || s.Type != statementType || s.PredicateType != predicateType ||
		len(s.Subject) != 1 {
		return e, s, refused("the certificate has a format that this version does not support",
			"update snapcli and the service")
	}
	return e, s, nil
}

// NamedKey returns the ID of the key that an envelope names, or "" if the envelope cannot be read.
// It does not check that the key signed the envelope.
func NamedKey(envelope []byte) string {
	e, _, err := read(envelope)
	if err != nil {
		return ""
	}
	return e.Signatures[0].KeyID
}

// signerOf returns the known key that signed an envelope.
func signerOf(e *dsse.Envelope, known []KnownKey) (KnownKey, error) {
	id := e.Signatures[0].KeyID
	i := slices.IndexFunc(known, func(k KnownKey) bool { return k.Public.ID() == id })
	if i < 0 {
		return KnownKey{}, &snap.Error{Code: snap.CodePolicy, Cause: ErrUnknownKey,
			Detail: "the certificate names the key " + id + ", which is not known here",
			Hint:   "if you trust the key, add it with `snapcli keys trust`"}
	}
	k := known[i]
	v, err := dsse.NewEnvelopeVerifier(k.Public)
	if err != nil {
		return KnownKey{}, fmt.Errorf("check the certificate: %w", err)
	}
	if _, err := v.Verify(context.Background(), e); err != nil {
		return KnownKey{}, refused("the certificate was altered after the key "+id+" signed it", sanitizeAgain)
	}
	if k.Revoked {
		return k, &snap.Error{Code: snap.CodePolicy, Cause: ErrRevokedKey,
			Detail: fmt.Sprintf("the key %s that made the certificate is revoked", id),
			Hint:   "sanitize again with another key"}
	}
	return k, nil
}

// refused returns an error of code policy_refused.
func refused(detail, hint string) error {
	return &snap.Error{Code: snap.CodePolicy, Detail: detail, Hint: hint}
}
