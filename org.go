package snap

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
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

// CheckType returns a refusal of code policy_refused when snapshots of this
// type may not be shared org-wide or across organizations.
func (p Policy) CheckType(t Type) error {
	if len(p.ShareTypes) == 0 || slices.Contains(p.ShareTypes, t) {
		return nil
	}
	return &Error{
		Code:   CodePolicy,
		Detail: fmt.Sprintf("the policy share_types of your organization does not let snapshots of type %q be shared org-wide or with other organizations", t),
		Hint:   "share a sanitized snapshot; the service's operator sets the policy",
	}
}

// CheckExpiry returns a refusal of code policy_refused when a cross-org share
// that ends at expires (zero: never) would outlast the policy.
func (p Policy) CheckExpiry(expires, now time.Time) error {
	longest := p.MaxCrossOrgExpiry
	if longest == 0 || !expires.IsZero() && !expires.After(now.Add(longest)) {
		return nil
	}
	return &Error{
		Code:   CodePolicy,
		Detail: fmt.Sprintf("the policy max_cross_org_expiry of your organization ends shares with other organizations after %s at most", longest),
		Hint:   "give an earlier expiry; the service's operator sets the policy",
	}
}

var slugForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`) })

// ValidSlug reports whether s can be an organization's slug: 1 to 63 lower-case
// letters, digits and inner hyphens.
func ValidSlug(s string) bool { return slugForm().MatchString(s) }

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
