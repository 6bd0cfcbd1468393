package webui

import (
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
)

// only says whose snapshots a list contains.
type only string

const (
	onlyAny      only = ""
	onlyMine     only = "mine"     // pushed by the caller, or built on this machine
	onlyReceived only = "received" // from another organization
	onlyEnding   only = "ending"   // whose share with the caller's organization ends soon
)

// onlyChoice is an entry of the choice of whose snapshots are listed.
type onlyChoice struct {
	Only only
	Text string
}

// narrow restricts a list beyond the words, target and type of a search. The service does not
// support all of these filters, so the list is put together here from the newest collectLimit
// snapshots that it finds.
type narrow struct {
	Only     only
	Owner    string // words at the beginning of the owner's e-mail or organization
	From, To string // first and last day, in the zone of the clock, as 2026-11-22; may be empty
}

func (n narrow) empty() bool { return n == narrow{} }

// days returns the first moment of the first day and the first moment after the last day. Zero means
// no limit.
func (n narrow) days(zone *time.Location) (from, until time.Time) {
	if day, err := time.ParseInLocation(time.DateOnly, n.From, zone); err == nil {
		from = day
	}
	if day, err := time.ParseInLocation(time.DateOnly, n.To, zone); err == nil {
		until = day.AddDate(0, 0, 1)
	}
	return from, until
}

func (n narrow) within(t, now time.Time) bool {
	from, until := n.days(now.Location())
	return !t.Before(from) && (until.IsZero() || t.Before(until))
}

// has reports whether a cloud snapshot is in the list.
func (n narrow) has(s api.Snapshot, me api.Me, now time.Time) bool {
	owner := s.Owner
	if s.Received {
		owner = s.Organization
	}
	if !strings.HasPrefix(strings.ToLower(owner), strings.ToLower(n.Owner)) || !n.within(s.Created, now) {
		return false
	}
	switch n.Only {
	case onlyMine:
		return s.Owner != "" && s.Owner == me.Email && !s.Received
	case onlyReceived:
		return s.Received
	case onlyEnding:
		end := nextEnd(s)
		return end != nil && end.Sub(now) <= snap.SoonExpiring
	}
	return true
}

// hasLocal reports whether a snapshot that is only on this machine is in the list.
func (n narrow) hasLocal(s local.Snapshot, me api.Me, now time.Time) bool {
	mine := s.From.Origin == local.Mine
	owner := s.From.Person
	if mine {
		owner = me.Email
	}
	if n.Owner != "" && !strings.HasPrefix(strings.ToLower(owner), strings.ToLower(n.Owner)) ||
		!n.within(s.Created, now) {
		return false
	}
	switch n.Only {
	case onlyMine:
		return mine
	case onlyReceived:
		return s.From.Organization != "" && s.From.Organization != me.Organization
	case onlyEnding:
		return false
	}
	return true
}

// nextEnd returns the end of the snapshot's share that ends next, among those the caller may know
// about, or nil.
func nextEnd(s api.Snapshot) *time.Time {
	if s.ExpiresAt == nil || s.NextExpiry != nil && s.NextExpiry.Before(*s.ExpiresAt) {
		return s.NextExpiry
	}
	return s.ExpiresAt
}

// filter returns the service's filter for the same list, or for a longer one.
func (q query) filter() snap.Filter {
	switch {
	case q.Show == showShared:
		return snap.FilterShared
	case q.Only == onlyMine:
		return snap.FilterMine
	case q.Only == onlyReceived:
		return snap.FilterReceived
	}
	return snap.FilterAll
}
