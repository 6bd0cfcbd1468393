package snap

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Type says whether a snapshot holds the original data or a masked copy (SPEC
// 2.1).
type Type string

// The two types.
const (
	TypeSnapshot  Type = "snapshot"
	TypeSanitized Type = "sanitized"
)

// Valid reports whether t is one of the two types.
func (t Type) Valid() bool { return t == TypeSnapshot || t == TypeSanitized }

// Engine is the kind of database a snapshot was taken from.
type Engine string

// The engines.
const (
	Postgres Engine = "postgres"
	MySQL    Engine = "mysql" // MySQL and MariaDB
	SQLite   Engine = "sqlite"
)

// Valid reports whether e is a known engine.
func (e Engine) Valid() bool { return e == Postgres || e == MySQL || e == SQLite }

// Snapshot is the record of a cloud snapshot. Only a store look-up made for a
// caller returns one, so holding it means that the caller may see it.
type Snapshot struct {
	Key     int64  // internal; rises with the time of the push and orders every listing
	ID      string // public, random, see NewSnapshotID
	Org     OrgRef // where it was pushed
	Owner   *User  // nil when an organization-level key pushed it
	Target  string
	Name    string
	Type    Type
	Engine  Engine
	Size    int64  // bytes of the file
	SHA256  string // of the file, lower-case hexadecimal
	Created time.Time

	// The part of its shares that the caller may see.

	// Shared is set when the snapshot is shared org-wide in the caller's
	// organization, or shared to the caller's whole organization by another.
	Shared bool
	// Received is set when another organization shared it to the caller's.
	Received bool
	// Expires is when what was received ends; zero is never.
	Expires time.Time
	// Groups and Orgs count the live group shares and cross-org shares. They
	// are 0 for callers who may not manage such shares.
	Groups, Orgs int
	// Outside is set when it is shared with another organization now. Its owner
	// and the organization's owners and admins see that.
	Outside bool
}

// idAlphabet is Crockford's base32 in lower case: no i, l, o or u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// IDPrefix starts every public snapshot ID.
const IDPrefix = "snap_"

// NewSnapshotID returns a fresh public ID: snap_ and 80 random bits in
// Crockford base32, 16 characters. It tells nothing about time or order.
func NewSnapshotID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return IDPrefix + base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// CleanIDPrefix brings what a person typed as a snapshot ID into the form in
// which IDs are stored: without surrounding space, lower case, with snap_ in
// front. It reports false when no ID can begin with it.
func CleanIDPrefix(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	s = strings.TrimPrefix(s, IDPrefix)
	if s == "" || len(s) > 16 {
		return "", false
	}
	for _, r := range s {
		if !strings.ContainsRune(idAlphabet, r) {
			return "", false
		}
	}
	return IDPrefix + s, true
}

// SnapshotName returns the name a snapshot of target taken at t gets:
// <target>-<UTC time> (SPEC 2.1). Names are for people and are never parsed.
func SnapshotName(target string, t time.Time) string {
	return target + "-" + t.UTC().Format("20060102T150405Z")
}

// MaxTargetName is the most bytes a target's name may have.
const MaxTargetName = 100

// CleanTarget brings a target's name into the one form in which it is
// compared, stored and used as a folder name: Unicode NFC, without
// surrounding space. Letters, digits, spaces and most punctuation of any
// script are fine. The error, of code invalid, says what is not.
func CleanTarget(name string) (string, error) { return cleanName("target", name, MaxTargetName) }

// MaxSnapshotName is the most bytes a snapshot's name may have.
const MaxSnapshotName = 200

// CleanSnapshotName does for a snapshot's name what [CleanTarget] does for its
// target's: both are shown to people and name files.
func CleanSnapshotName(name string) (string, error) {
	return cleanName("snapshot", name, MaxSnapshotName)
}

func cleanName(of, name string, most int) (string, error) {
	name = norm.NFC.String(strings.TrimSpace(name))
	switch {
	case name == "":
		return "", Invalid(fmt.Sprintf("a %s needs a name", of), "")
	case len(name) > most:
		return "", Invalid(fmt.Sprintf("the %s name is %d bytes long; at most %d are allowed", of, len(name), most),
			"choose a shorter name")
	case !utf8.ValidString(name):
		return "", Invalid(fmt.Sprintf("the %s name is not valid UTF-8", of), "")
	case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-"):
		return "", Invalid(fmt.Sprintf("the %s name %q starts with %q", of, name, name[:1]),
			"start it with a letter or a digit")
	}
	for _, r := range name {
		if strings.ContainsRune(`/\:*?"<>|`, r) || !unicode.IsPrint(r) {
			return "", Invalid(fmt.Sprintf("the %s name %q contains %q", of, name, r),
				`leave out control characters and / \ : * ? " < > |`)
		}
	}
	return name, nil
}
