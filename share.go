package snap

import "time"

// GroupShare is one group share of a snapshot (SPEC 2.2).
type GroupShare struct {
	Group   Group
	Created time.Time
	By      string // e-mail of who shared it
	Channel int64  // the channel that made it; 0 when a person did
}

// OrgShare is one cross-organization share of a snapshot (SPEC 2.3). There is
// at most one per snapshot and recipient organization. A zero Expires never
// ends.
type OrgShare struct {
	Org     OrgRef
	Expires time.Time
	Created time.Time
	By      string // e-mail of who shared it
	// Declined is when the recipient sent it back. It then no longer counts,
	// and stays listed until the snapshot is shared again.
	Declined time.Time
}

// Live reports whether the share holds at the given time.
func (s OrgShare) Live(now time.Time) bool { return Grant{Until: s.Expires}.Live(now) }

// Shares names recipients of one snapshot: the organization as a whole, SSO
// groups by their ID, other organizations by their slug.
type Shares struct {
	OrgWide bool
	Groups  []string
	Orgs    []string
	Expires time.Time // of the shares with other organizations; zero never ends
}

// ShareChange is one share that was made, updated or ended. Group and Org are
// nil for the org-wide share.
type ShareChange struct {
	Group   *Group
	Org     *OrgRef
	Created time.Time
	By      string    // e-mail of the user who made the share
	Expires time.Time // zero never ends
	// Previous is the live share that this one replaced, if any.
	Previous *OrgShare
	Changed  bool // false when nothing was different before
}

// Filter chooses among the snapshots a caller may see.
type Filter string

// The filters of a listing.
const (
	FilterAll      Filter = "all"
	FilterShared   Filter = "shared"   // exactly those whose Shared column says Yes
	FilterMine     Filter = "mine"     // those the caller pushed
	FilterReceived Filter = "received" // those other organizations shared with the caller's
)

// Valid reports whether f is one of the filters.
func (f Filter) Valid() bool {
	switch f {
	case FilterAll, FilterShared, FilterMine, FilterReceived:
		return true
	}
	return false
}
