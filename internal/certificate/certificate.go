// Package certificate makes and checks the statements that sanitized snapshots carry: an in-toto
// statement (https://github.com/in-toto/attestation, version 1) in a DSSE envelope
// (https://github.com/secure-systems-lab/dsse), signed with an Ed25519 key.
//
// A certificate states who made which file from which, by which rules, and the result of the leak
// scan. It does not state that the rules were wise.
package certificate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"snap"
)

// The types of the envelope's payload, of the statement and of its predicate.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "urn:snapcli:sanitized:v1"
)

// MaxSize is the largest envelope in bytes that is read.
const MaxSize = 32 << 10

// Statement is the content of a certificate.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"` // the snapshot's file
	PredicateType string    `json:"predicateType"`
	Predicate     Sanitized `json:"predicate"`
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

// Sanitized describes how a file was made.
type Sanitized struct {
	Source  Subject   `json:"source"`          // the original's file
	Rules   string    `json:"rules,omitempty"` // SHA-256 of the rules file
	SQL     string    `json:"sql,omitempty"`   // SHA-256 of the SQL file
	Masked  int       `json:"masked"`          // number of columns
	Kept    int       `json:"kept"`
	Dropped int       `json:"dropped"`             // number of tables whose rows were dropped
	Scan    *LeakScan `json:"leak_scan,omitempty"` // nil if there was none
	Tool    string    `json:"tool"`                // version of snapcli
	Made    time.Time `json:"made"`
}

// LeakScan is the result of the search for originals. A file with findings gets no certificate.
type LeakScan struct {
	Values int `json:"values"`         // number of originals searched for
	Schema int `json:"schema_objects"` // objects of the schema in which originals were kept or redacted
}

// Make signs a statement about a file.
func Make(key Private, file Subject, how Sanitized) (json.RawMessage, error) {
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

// Check returns the statement of a certificate about the file with this SHA-256, and the key that
// signed it.
// It fails if no known key signed it, if the key is revoked, or if it is about another file.
func Check(envelope []byte, sha256 string, known []Known) (Statement, Known, error) {
	var s Statement
	var e dsse.Envelope
	if len(envelope) > MaxSize || json.Unmarshal(envelope, &e) != nil || e.PayloadType != payloadType {
		return s, Known{}, refused("the certificate cannot be read", "sanitize again, or ask who made it")
	}
	by, err := signerOf(&e, known)
	if err != nil {
		return s, by, err
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return s, by, refused("the certificate cannot be read", "sanitize again, or ask who made it")
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	if d.Decode(&s) != nil || s.Type != statementType || s.PredicateType != predicateType || len(s.Subject) != 1 {
		return s, by, refused("the certificate states something that this version of snapcli does not know",
			"update snapcli")
	}
	if s.Subject[0].Digest.SHA256 != sha256 {
		return s, by, refused("the certificate is that of another file, or the file has changed since",
			"sanitize again, or ask who made it")
	}
	return s, by, nil
}

// signerOf returns the known key that signed an envelope.
func signerOf(e *dsse.Envelope, known []Known) (Known, error) {
	for _, k := range known {
		v, err := dsse.NewEnvelopeVerifier(k.Public)
		if err != nil {
			return Known{}, fmt.Errorf("check the certificate: %w", err)
		}
		if _, err := v.Verify(context.Background(), e); err != nil {
			continue
		}
		if k.Revoked {
			return k, refused(fmt.Sprintf("the key %s that made the certificate is revoked", k.Public.ID()),
				"sanitize again with another key")
		}
		return k, nil
	}
	name := "which it does not name"
	if len(e.Signatures) == 1 && len(e.Signatures[0].KeyID) == idLength {
		name = fmt.Sprintf("%.16q", e.Signatures[0].KeyID)
	}
	return Known{}, refused("the certificate was not made by a known key; its own is "+name,
		"make the key known if you trust it: `snapcli keys trust KEY` on this machine")
}

func refused(detail, hint string) error {
	return &snap.Error{Code: snap.CodePolicy, Detail: detail, Hint: hint}
}
