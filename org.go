package snap

import (
	"regexp"
	"time"
)

// Policy is what an organization's configuration limits. The zero Policy
// limits nothing.
type Policy struct {
	// ShareTypes are the snapshot types that may be shared org-wide or with
	// other organizations; empty means every type.
	ShareTypes []Type
	// MaxCrossOrgExpiry is the longest a cross-org share may last; zero means
	// any time, and shares without an end.
	MaxCrossOrgExpiry time.Duration
	// NoDeviceLogin switches login by device grant off.
	NoDeviceLogin bool
}

// AllowsType reports whether snapshots of this type may be shared org-wide or
// across organizations.
func (p Policy) AllowsType(t Type) bool {
	if len(p.ShareTypes) == 0 {
		return true
	}
	for _, allowed := range p.ShareTypes {
		if allowed == t {
			return true
		}
	}
	return false
}

var slugForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidSlug reports whether s can be an organization's slug: 1 to 63 lower-case
// letters, digits and inner hyphens.
func ValidSlug(s string) bool { return slugForm.MatchString(s) }

// Member is a user of an organization as its members see them.
type Member struct {
	User
	Role       Role
	Disabled   bool
	Groups     []Group
	GroupsAsOf time.Time
	// GroupsUnknown: see [Caller].
	GroupsUnknown bool
}
