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

// Type says whether a snapshot holds the original data or a masked copy (SPEC 2.1).
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

// Snapshot is the record of a cloud snapshot. Only a store lookup for a caller returns one, so code
// that holds a Snapshot knows that the caller is allowed to see it.
type Snapshot struct {
	Key     int64  // internal; increases with the time of the push and orders every listing
	ID      string // public and random, see NewSnapshotID
	Org     OrgRef // the organization it was pushed to
	Owner   *User  // nil when an organization-level key pushed it
	Target  string
	Name    string
	Type    Type
	Engine  Engine
	Size    int64  // bytes of the file
	SHA256  string // of the file, lower-case hexadecimal
	Created time.Time

	// Description and Labels are plain text from the snapshot's owner or an admin. Only the
	// organization that owns the snapshot sees them.
	Description string
	Labels      []string

	// The fields below describe the shares that the caller may know about.

	// Shared is set when the snapshot is shared org-wide in the caller's organization, or another
	// organization shared it with the caller's.
	Shared bool
	// Received is set when another organization shared it with the caller's.
	Received bool
	// Expires is when the org-wide or received share ends; zero means never.
	Expires time.Time
	// Groups and Orgs count the live group shares and cross-org shares. They are 0 for callers who
	// may not manage such shares.
	Groups, Orgs int
	// Outside is set while the snapshot is shared with another organization. Only the snapshot's
	// owner and the owners and admins of its organization see this.
	Outside bool
	// FirstGroup is the name of one of the groups that the snapshot is shared with. NextExpiry is
	// the earliest end of the shares that the caller may manage; it is zero if none of them ends.
	FirstGroup string
	NextExpiry time.Time
	// Through is the name of one of the caller's groups. It is set only if a group share is the
	// reason why the caller sees the snapshot.
	Through string
}

// SoonExpiring is the remaining lifetime at which a share begins to count as expiring soon.
const SoonExpiring = 3 * 24 * time.Hour

// idAlphabet is Crockford's base32 in lower case: no i, l, o or u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// IDPrefix starts every public snapshot ID.
const IDPrefix = "snap_"

// NewSnapshotID returns a new public ID: snap_ and 80 random bits in Crockford base32, 16
// characters. It reveals neither time nor order.
func NewSnapshotID() string {
	var b [10]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return IDPrefix + base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// CleanIDPrefix normalizes a typed snapshot ID, or the beginning of one, to the form in which IDs
// are stored: without surrounding space, in lower case, with the prefix snap_. It returns false
// when no ID can begin with it, and also when it is empty or only snap_. A part of the prefix, such
// as sna, is read as the characters after snap_.
func CleanIDPrefix(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	s = strings.TrimPrefix(s, IDPrefix)
	inNoID := func(r rune) bool { return !strings.ContainsRune(idAlphabet, r) }
	if s == "" || len(s) > 16 || strings.ContainsFunc(s, inNoID) {
		return "", false
	}
	return IDPrefix + s, true
}

// SnapshotName returns the default name of a snapshot of target taken at t: <target>-<UTC time>
// (SPEC 2.1). Names are for people and are never parsed.
func SnapshotName(target string, t time.Time) string {
	return target + "-" + t.UTC().Format("20060102T150405Z")
}

// MaxTargetName is the maximum length of a target's name in bytes.
const MaxTargetName = 100

// CleanTarget normalizes a target's name to the form in which it is compared, stored and used as a
// folder name: Unicode NFC, without surrounding space. Letters, digits, spaces and most punctuation
// of any script are allowed. The error, of code invalid, names the problem.
func CleanTarget(name string) (string, error) { return cleanName("target", name, MaxTargetName) }

// MaxSnapshotName is the maximum length of a snapshot's name in bytes.
const MaxSnapshotName = 200

// CleanSnapshotName normalizes a snapshot's name by the rules of [CleanTarget]. Both names are
// shown to people and used in file names.
func CleanSnapshotName(name string) (string, error) {
	return cleanName("snapshot", name, MaxSnapshotName)
}

func cleanName(noun, name string, limit int) (string, error) {
	name = norm.NFC.String(strings.TrimSpace(name))
	switch {
	case name == "":
		return "", Invalid(fmt.Sprintf("a %s needs a name", noun), "")
	case len(name) > limit:
		return "", Invalid(fmt.Sprintf("the %s name is %d bytes long; at most %d are allowed", noun, len(name), limit),
			"choose a shorter name")
	case !utf8.ValidString(name):
		return "", Invalid(fmt.Sprintf("the %s name is not valid UTF-8", noun), "")
	case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-"):
		return "", Invalid(fmt.Sprintf("the %s name %q starts with %q", noun, name, name[:1]),
			"start it with a letter or a digit")
	}
	for _, r := range name {
		if !InFileName(r) {
			return "", Invalid(fmt.Sprintf("the %s name %q contains %q", noun, name, r),
				`leave out control characters and / \ : * ? " < > |`)
		}
	}
	return name, nil
}

// InFileName reports whether a character may be in the name of a target, a snapshot or a file.
func InFileName(r rune) bool { return unicode.IsPrint(r) && !strings.ContainsRune(`/\:*?"<>|`, r) }
