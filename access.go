package snap

import (
	"slices"
	"time"
)

// This file is the access rule.
//
// In words (SPEC 5.3):
//
//	The owner of a snapshot, the user who pushed it, always sees it.
//	Users with the role owner or admin in its organization see, pull and delete
//	it, shared or not.
//	Members and viewers see and pull it only if they own it, or it is shared
//	org-wide, or it is shared with an SSO group they belong to, or another
//	organization shared it with theirs.
//	The recipient organization of a cross-org share can see and pull, never
//	modify or delete, until the share expires.
//	An organization-level key sees snapshots that are shared org-wide, snapshots
//	that another organization shared with its own, and snapshots that an
//	organization-level key of its organization pushed.
//	A key with the scope private sees every snapshot of its organization.
//	A snapshot that the caller is not allowed to see is reported as not existing.
//
// In one sentence: a snapshot is visible to a caller when a live grant on it names one of the
// caller's audiences.
//
// A push adds two grants: one for the organization's admins, and one for the owner. If an
// organization-level key pushed, the second one is for the organization's keys instead. Each of the
// three kinds of share adds one grant; unsharing deletes it. The store keeps audiences and grants
// as rows and applies the rule in SQL. A property test checks that the SQL and this file agree.

// AudienceKind is the kind of an [Audience].
type AudienceKind int64

// The audience kinds. The database stores these numbers, so they must never change.
const (
	KindUser       AudienceKind = 0 // one user, for their own pushes
	KindAdmins     AudienceKind = 1 // the owners and admins of an organization, and its keys with the scope private
	KindMembers    AudienceKind = 2 // everyone in an organization, for org-wide shares
	KindGroup      AudienceKind = 3 // one SSO group, for group shares
	KindRecipients AudienceKind = 4 // everyone in an organization, for snapshots that other organizations share with it
	KindKeys       AudienceKind = 5 // the organization-level keys of an organization, for their pushes
)

// Audience is a set of callers, encoded as one number: the subject's identifier (of a user, group
// or organization) times eight, plus the kind. It is the leading column of the store's index of
// grants.
type Audience int64

// AudienceOf returns the audience of one kind for the subject with this identifier.
func AudienceOf(kind AudienceKind, subject int64) Audience {
	return Audience(subject<<3 | int64(kind))
}

// Kind returns the audience's kind.
func (a Audience) Kind() AudienceKind { return AudienceKind(a & 7) }

// Subject returns the identifier of the user, group or organization.
func (a Audience) Subject() int64 { return int64(a >> 3) }

// Grant lets an audience see a snapshot. A zero Until means that the grant never ends.
type Grant struct {
	Audience Audience
	Until    time.Time
}

// Live reports whether the grant holds at the given time. It holds before Until, but not at Until
// itself (SPEC 2.3).
func (g Grant) Live(now time.Time) bool { return g.Until.IsZero() || now.Before(g.Until) }

// Audiences returns the audiences a caller belongs to. The anonymous caller belongs to none.
func (c Caller) Audiences() []Audience {
	if c.Principal() == 0 {
		return nil
	}
	all := []Audience{
		AudienceOf(KindMembers, c.Org.ID),
		AudienceOf(KindRecipients, c.Org.ID),
	}
	if c.private() || c.IsAdmin() {
		all = append(all, AudienceOf(KindAdmins, c.Org.ID))
	}
	if c.User == nil {
		return append(all, AudienceOf(KindKeys, c.Org.ID))
	}
	all = append(all, AudienceOf(KindUser, c.User.ID))
	if c.GroupsUnknown {
		return all
	}
	for _, g := range c.Groups {
		all = append(all, AudienceOf(KindGroup, g.ID))
	}
	return all
}

// Visible is the access rule: it reports whether the caller may see a snapshot with these grants at
// this time. A caller who may see it may also pull it, except a key without the scope pull; see
// [Allowed].
func Visible(c Caller, grants []Grant, now time.Time) bool {
	audiences := c.Audiences()
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return g.Live(now) && slices.Contains(audiences, g.Audience)
	})
}
