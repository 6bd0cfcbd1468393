package snap

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file explains the access rule of access.go to people. It makes no decision of its own:
// [Visible] decides which grants let someone see a snapshot.

// Access is one grant on a snapshot, with the names that describe the grant to a person.
type Access struct {
	Grant
	Owner *User  // for KindUser
	Group *Group // for KindGroup
	Org   OrgRef // the organization of the audience
	Since time.Time
	By    string // e-mail of the user who shared it; empty for the grants of a push
	// People is the number of users who can see the snapshot now because of this grant. It is 0 for
	// another organization, whose size is not disclosed.
	People int
}

// String describes the relation through which the grant lets someone see the snapshot, such as
// "member of the group eng".
func (a Access) String() string {
	switch a.Audience.Kind() {
	case KindUser:
		return "owner of the snapshot"
	case KindAdmins:
		return "owner or admin of the organization"
	case KindKeys:
		return "organization-level key, because such a key pushed the snapshot"
	case KindMembers:
		return "shared org-wide" + a.until()
	case KindGroup:
		return "member of the group " + a.Group.Name + a.until()
	case KindRecipients:
		if a.Org.Slug == "" {
			return "shared outside the organization; owners and admins know with whom"
		}
		return "shared with the organization " + a.Org.Slug + a.until()
	}
	return "unknown"
}

// until describes the end of the grant, or returns "" if it never ends.
func (g Grant) until() string {
	if g.Until.IsZero() {
		return ""
	}
	return " until " + UTC(g.Until)
}

// Verdict explains why one user can or cannot see a snapshot.
type Verdict struct {
	Visible bool
	Ways    []Access // the grants that let the user see it; empty when not visible
	Why     string   // in one sentence
}

// Judge explains whether and why a user can see a snapshot. grants are all grants on it, live or
// ended. A disabled user sees nothing, because none of their credentials is accepted.
func Judge(c Caller, disabled bool, grants []Access, now time.Time) Verdict {
	if disabled {
		return Verdict{Why: "the account is disabled"}
	}
	var ways []Access
	var reasons []string
	for _, a := range grants {
		if Visible(c, []Grant{a.Grant}, now) {
			ways = append(ways, a)
			reasons = append(reasons, a.String())
		}
	}
	if len(ways) == 0 {
		return Verdict{Why: whyNot(c, grants, now)}
	}
	return Verdict{Visible: true, Ways: ways, Why: strings.Join(reasons, "; ")}
}

// whyNot explains why the caller cannot see the snapshot.
func whyNot(c Caller, grants []Access, now time.Time) string {
	var groups []string
	for _, a := range grants {
		switch {
		case a.Audience == AudienceOf(KindRecipients, c.Org.ID) && !a.Live(now):
			return "the share with the organization ended at " + UTC(a.Until)
		case a.Audience.Kind() == KindGroup && a.Org.ID == c.Org.ID && a.Live(now):
			groups = append(groups, a.Group.Name)
		}
	}
	if !slices.ContainsFunc(grants, func(a Access) bool { return a.Audience == AudienceOf(KindAdmins, c.Org.ID) }) {
		return "it belongs to another organization, which does not share it with " + c.Org.Slug
	}
	why := fmt.Sprintf("%s is neither the owner of the snapshot nor an owner or admin of its organization, and it is "+
		"not shared org-wide", callerName(c))
	switch {
	case len(groups) == 0:
		return why
	case c.GroupsUnknown:
		return why + "; it is shared with " + strings.Join(groups, ", ") +
			", but the identity provider sent no groups at the last sign-in"
	}
	return why + "; it is shared with " + strings.Join(groups, ", ") + ", of which they are not a member"
}

// callerName returns the name of a caller for an explanation.
func callerName(c Caller) string {
	if c.User == nil {
		return "the organization " + c.Org.Slug
	}
	return c.User.Email
}
