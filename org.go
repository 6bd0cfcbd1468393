package snap

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Policy holds the limits that an organization's configuration sets. The zero Policy limits
// nothing.
type Policy struct {
	// ShareTypes are the snapshot types that may be shared org-wide or with other organizations;
	// empty means every type.
	ShareTypes []Type
	// Unsanitized is the rule for sharing a snapshot that is not sanitized; empty means
	// [UnsanitizedAllow].
	Unsanitized UnsanitizedShares
	// Requires is the proof that a snapshot needs before it can be shared with anyone; empty means
	// none.
	Requires ShareRequirement `json:",omitempty"`
	// MaxCrossOrgExpiry is the longest time a cross-org share may last. Zero sets no limit and
	// allows shares that never expire.
	MaxCrossOrgExpiry time.Duration
	// NoDeviceLogin disables login by device grant.
	NoDeviceLogin bool
	// MaxKeyAge is the maximum lifetime of an API key after its creation. A key with a later expiry
	// still ends at this age. Zero sets no limit.
	MaxKeyAge time.Duration `json:",omitempty"`
}

// UnsanitizedShares is the rule for sharing an unsanitized snapshot with anyone.
type UnsanitizedShares string

// The values of [UnsanitizedShares].
const (
	UnsanitizedAllow  UnsanitizedShares = "allow"  // share it, with a warning
	UnsanitizedAsk    UnsanitizedShares = "ask"    // share it when the caller confirms
	UnsanitizedRefuse UnsanitizedShares = "refuse" // never share it
)

// Valid reports whether u is one of these values or empty.
func (u UnsanitizedShares) Valid() bool {
	return u == "" || u == UnsanitizedAllow || u == UnsanitizedAsk || u == UnsanitizedRefuse
}

// ShareRequirement is the proof that a snapshot needs before it is shared.
type ShareRequirement string

// RequireCertificate requires a valid certificate, signed with a key that the organization
// registered.
const RequireCertificate ShareRequirement = "certificate"

// Valid reports whether r is a requirement or empty.
func (r ShareRequirement) Valid() bool { return r == "" || r == RequireCertificate }

// CheckShares returns an error if the policy forbids sharing a snapshot of this type with these
// recipients. The code is policy_refused, or confirmation_required if the caller must confirm the
// share first. A snapshot that is not sanitized counts as one without a certificate. For a
// sanitized snapshot, the caller must also call [Policy.CheckCertificate].
func (p Policy) CheckShares(t Type, with Shares, confirmed bool, now time.Time) error {
	if with.OrgWide || len(with.Orgs) > 0 {
		if err := p.checkType(t); err != nil {
			return err
		}
	}
	if len(with.Orgs) > 0 {
		err := checkLifetime("max_cross_org_expiry", "shares with other organizations", p.MaxCrossOrgExpiry,
			with.Expires, now)
		if err != nil {
			return err
		}
	}
	if t == TypeSanitized {
		return nil
	}
	if err := p.CheckCertificate(Certificate{State: CertificateMissing}); err != nil {
		return err
	}
	return p.checkUnsanitized(confirmed)
}

func (p Policy) checkType(t Type) error {
	if len(p.ShareTypes) == 0 || slices.Contains(p.ShareTypes, t) {
		return nil
	}
	return &Error{
		Code: CodePolicy,
		Detail: fmt.Sprintf("the policy share_types of your organization does not allow sharing snapshots of type %q "+
			"org-wide or with other organizations", t),
		Hint: "share a sanitized snapshot; the service's operator sets the policy",
	}
}

// CheckKeyExpiry returns an error of code policy_refused if the policy forbids a new key that lasts
// until expires. A zero expires means that the key never expires.
func (p Policy) CheckKeyExpiry(expires, now time.Time) error {
	return checkLifetime("max_key_age", "keys", p.MaxKeyAge, expires, now)
}

// checkLifetime returns an error if expires is later than the policy with this name allows. The
// parameter things names what the policy limits, and longest is the maximum lifetime. A zero
// longest sets no limit, and a zero expires means never.
func checkLifetime(policy, things string, longest time.Duration, expires, now time.Time) error {
	if longest == 0 || !expires.IsZero() && !expires.After(now.Add(longest)) {
		return nil
	}
	return &Error{
		Code:   CodePolicy,
		Detail: fmt.Sprintf("the policy %s of your organization limits %s to %s", policy, things, Span(longest)),
		Hint: "use an earlier expiry, such as --expires-in " + flagDuration(longest) +
			"; the service's operator sets the policy",
	}
}

// flagDuration formats a duration in the syntax of [ParseDuration].
func flagDuration(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return d.String()
}

// checkUnsanitized returns an error if the policy forbids sharing a snapshot that is not sanitized.
func (p Policy) checkUnsanitized(confirmed bool) error {
	switch {
	case p.Unsanitized == UnsanitizedRefuse:
		return &Error{
			Code: CodePolicy,
			Detail: "the policy unsanitized_shares of your organization refuses to share snapshots that are not " +
				"sanitized",
			Hint: "sanitize it with `snapcli sanitize`, and push and share the sanitized copy; the service's " +
				"operator sets the policy",
		}
	case p.Unsanitized == UnsanitizedAsk && !confirmed:
		return &Error{
			Code: CodeConfirm,
			Detail: "this snapshot is not sanitized: sharing it shows the original, unmasked data, and your " +
				"organization asks you to confirm that",
			Hint: "add --yes to confirm; over the API, add ?confirm_unsanitized=true",
		}
	}
	return nil
}

var slugForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

// ValidSlug reports whether s can be an organization's slug: 1 to 63 lower-case letters, digits and
// inner hyphens.
func ValidSlug(s string) bool { return slugForm.MatchString(s) }

// Member is a user of an organization as other members see them.
type Member struct {
	User
	Role       Role
	Disabled   bool
	Groups     []Group
	GroupsAsOf time.Time
	// GroupsUnknown means the same as in [Caller].
	GroupsUnknown bool
}
