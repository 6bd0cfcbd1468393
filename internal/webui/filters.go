package webui

import (
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
)

// onlyKind says which snapshots a list contains.
type onlyKind string

const (
	onlyAny      onlyKind = ""
	onlyMine     onlyKind = "mine"     // pushed by the caller, or built on this machine
	onlyReceived onlyKind = "received" // from another organization
	onlyEnding   onlyKind = "ending"   // with a share that ends soon
)

// onlyChoice is an entry of the menu that chooses which snapshots are listed.
type onlyChoice struct {
	Only onlyKind
	Text string
}

// filters restrict a list in addition to the words, target and type of a search.
type filters struct {
	Only     onlyKind
	Owner    string // the beginning of the owner's e-mail address or of the organization's slug
	From, To string // first and last day, in the zone of the clock, as 2026-11-22; may be empty
}

func (f filters) empty() bool { return f == filters{} }

// days returns the first moment of the first day and the first moment after the last day. Zero
// means no limit.
func (f filters) days(zone *time.Location) (from, until time.Time) {
	if day, err := time.ParseInLocation(time.DateOnly, f.From, zone); err == nil {
		from = day
	}
	if day, err := time.ParseInLocation(time.DateOnly, f.To, zone); err == nil && day.Year() < 9999 {
		until = day.AddDate(0, 0, 1)
	}
	return from, until
}

func (f filters) within(t, now time.Time) bool {
	from, until := f.days(now.Location())
	return !t.Before(from) && (until.IsZero() || t.Before(until))
}

// hasLocal reports whether a local snapshot is in the list, regardless of its cloud copy.
func (f filters) hasLocal(s local.Snapshot, me api.Me, now time.Time) bool {
	mine, received := s.From.Origin == local.Mine, s.From.Organization != "" && s.From.Organization != me.Organization
	owner := s.From.Person
	switch {
	case mine:
		owner = me.Email
	case received:
		owner = s.From.Organization
	}
	if !startsWith(owner, f.Owner) || !f.within(s.Created, now) {
		return false
	}
	switch f.Only {
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
		o.Owner = ""
		if q.Show == showShared {
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
