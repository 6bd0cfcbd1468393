package snap

import "time"

// GroupShare is one group share of a snapshot (SPEC 2.2). A zero Expires means that it never ends.
type GroupShare struct {
	Group   Group
	Expires time.Time
	Created time.Time
	By      string // e-mail of the user who shared it
	Channel int64  // ID of the channel that created it; 0 when a person did
}

// OrgShare is one cross-organization share of a snapshot (SPEC 2.3). There is at most one per
// snapshot and recipient organization. A zero Expires means that it never ends.
type OrgShare struct {
	Org     OrgRef
	Expires time.Time
	Created time.Time
	By      string // e-mail of the user who shared it
	// WithSchema means that the organization sees the snapshot's card.
	WithSchema bool
	// Declined is when the recipient declined the share. A declined share gives no access. It stays
	// listed until the snapshot is shared again.
	Declined time.Time
}

// Live reports whether the share has not expired at the given time. It does not check Declined.
func (s OrgShare) Live(now time.Time) bool { return Grant{Until: s.Expires}.Live(now) }

// Shares names recipients of one snapshot: the whole organization, SSO groups by their ID, and
// other organizations by their slug.
type Shares struct {
	OrgWide bool
	Groups  []string
	Orgs    []string
	Expires time.Time // when all of the shares end; zero means never
	// WithSchema lets the other organizations see the snapshot's card. Nil keeps the setting of an
	// existing share; a new share then hides the card.
	WithSchema *bool
}

// ShareChange is one share that was created, updated or ended. Group and Org are nil for the
// org-wide share.
type ShareChange struct {
	Group   *Group
	Org     *OrgRef
	Created time.Time
	By      string    // e-mail of the user who changed the share
	Expires time.Time // zero means never
	// WithSchema means that the other organization sees the snapshot's card.
	WithSchema bool
	// Previous is the live share that this one replaced, if any.
	Previous *OrgShare
	Changed  bool // false when the call changed nothing
}

// Filter selects among the snapshots that a caller may see.
type Filter string

// The filters of a listing.
const (
	FilterAll      Filter = "all"
	FilterShared   Filter = "shared"   // the snapshots whose field Shared is set
	FilterMine     Filter = "mine"     // the snapshots that the caller pushed
	FilterReceived Filter = "received" // the snapshots that other organizations shared with the caller's
)

// Valid reports whether f is one of the filters.
func (f Filter) Valid() bool {
	return f == FilterAll || f == FilterShared || f == FilterMine || f == FilterReceived
}
