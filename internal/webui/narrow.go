package webui

import (
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
)

// only says which snapshots a list contains.
type only string

const (
	onlyAny      only = ""
	onlyMine     only = "mine"     // pushed by the caller, or built on this machine
	onlyReceived only = "received" // from another organization
	onlyEnding   only = "ending"   // with a share that ends soon
)

// onlyChoice is an entry of the menu that chooses which snapshots are listed.
type onlyChoice struct {
	Only only
	Text string
}

// narrow restricts a list beyond the words, target and type of a search.
type narrow struct {
	Only     only
	Owner    string // the beginning of the owner's e-mail address or of the organization's slug
	From, To string // first and last day, in the zone of the clock, as 2026-11-22; may be empty
}

func (n narrow) empty() bool { return n == narrow{} }

// days returns the first moment of the first day and the first moment after the last day. Zero
// means no limit.
func (n narrow) days(zone *time.Location) (from, until time.Time) {
	if day, err := time.ParseInLocation(time.DateOnly, n.From, zone); err == nil {
		from = day
	}
	if day, err := time.ParseInLocation(time.DateOnly, n.To, zone); err == nil && day.Year() < 9999 {
		until = day.AddDate(0, 0, 1)
	}
	return from, until
}

func (n narrow) within(t, now time.Time) bool {
	from, until := n.days(now.Location())
	return !t.Before(from) && (until.IsZero() || t.Before(until))
}

// hasLocal reports whether a local snapshot is in the list, regardless of its cloud copy.
func (n narrow) hasLocal(s local.Snapshot, me api.Me, now time.Time) bool {
	mine, received := s.From.Origin == local.Mine, s.From.Organization != "" && s.From.Organization != me.Organization
	owner := s.From.Person
	switch {
	case mine:
		owner = me.Email
	case received:
		owner = s.From.Organization
	}
	if !startsWith(owner, n.Owner) || !n.within(s.Created, now) {
		return false
	}
	switch n.Only {
	case onlyMine:
		return mine
	case onlyReceived:
		return received
	case onlyEnding:
		return false
	}
	return true
}

// nextEnd returns when the next share of the snapshot ends, among the shares that the caller may
// know about. It returns nil if none of them has an end.
func nextEnd(s api.Snapshot) *time.Time {
	if s.ExpiresAt == nil || s.NextExpiry != nil && s.NextExpiry.Before(*s.ExpiresAt) {
		return s.NextExpiry
	}
	return s.ExpiresAt
}

// options returns the service's filters for the list. It returns false if no cloud snapshot can
// match.
func (q query) options(me api.Me, now time.Time) (o api.ListOptions, ok bool) {
	o = api.ListOptions{Q: q.Q, Target: q.Target, Type: q.Type, Owner: q.Owner, ExpiresSoon: q.Only == onlyEnding,
		Cursor: q.Cursor, Limit: pageSize}
	o.Since, o.Until = q.days(now.Location())
	switch {
	case q.Only == onlyMine:
		o.Filter, ok = snap.FilterMine, startsWith(me.Email, q.Owner)
		if o.Owner = ""; q.Show == showShared {
			o.Filter, o.Owner = snap.FilterShared, me.Email
		}
		return o, ok && me.Email != ""
	case q.Only == onlyReceived: // every received snapshot is in the filter Shared too
		o.Filter = snap.FilterReceived
	case q.Show == showShared:
		o.Filter = snap.FilterShared
	}
	return o, true
}

// startsWith reports whether a text begins with start, ignoring case.
func startsWith(text, start string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(start))
}
