package look

import (
	"fmt"
	"slices"
	"time"

	"snap"
	"snap/api"
)

// Choice is an entry of a list to choose from. Value is what the form sends.
type Choice struct{ Value, Text string }

// Ends returns the choices for how long a share within the organization lasts. The first choice is
// the default.
func Ends() []Choice {
	offered := []Choice{{"", "indefinitely"}}
	for _, days := range []int{1, 7, 30, 90} {
		offered = append(offered, Choice{fmt.Sprintf("%dd", days), "for " + Plural(days, "day", "days")})
	}
	return append(offered, Choice{"date", "until a date…"})
}

// EndsOutside returns the choices for when a share with another organization ends. The first choice
// is the default. longest is the maximum lifetime that the policy allows; zero means no limit.
func EndsOutside(longest time.Duration) (offered []Choice) {
	const day = 24 * time.Hour
	usual := []time.Duration{7 * day, day, 30 * day, 90 * day}
	for _, long := range usual {
		if longest == 0 || long <= longest {
			offered = append(offered, Choice{fmt.Sprintf("%dd", int(long/day)), "in " + snap.Span(long)})
		}
	}
	if longest == 0 {
		return append(offered, Choice{"date", "on a date…"}, Choice{"", "never"})
	}
	if !slices.Contains(usual, longest) {
		offered = append(offered, Choice{longest.String(), "in " + snap.Span(longest)})
	}
	if longest > day {
		offered = append(offered, Choice{"date", "on a date…"})
	}
	return offered
}

// EndOf parses the chosen end of a share. The choice "" means never. The choice "date" means the
// end in the argument date: a moment in UTC, or the end of a day. A choice can also be a moment as
// an RFC 3339 time. Any other choice is a duration from now, by the service's clock.
func EndOf(choice, date string) (with api.SharesRequest, err error) {
	if choice == "" {
		return with, nil
	}
	if choice == "date" {
		end, err := endOn(date)
		if err != nil {
			return with, snap.Invalid("choose the date on which the share ends", "")
		}
		with.ExpiresAt = &end
		return with, nil
	}
	if end, err := time.Parse(time.RFC3339Nano, choice); err == nil {
		with.ExpiresAt = &end
		return with, nil
	}
	d, err := snap.ParseDuration(choice)
	with.ExpiresIn = max(1, int64(d/time.Second)) // 0 would mean never
	return with, err
}

// The formats of a moment in a form field.
const (
	minutes = "2006-01-02T15:04"
	seconds = "2006-01-02T15:04:05"
)

// endOn parses a moment in UTC. For a day it returns the day's last second.
func endOn(date string) (time.Time, error) {
	for _, format := range []string{minutes, seconds} {
		if end, err := time.Parse(format, date); err == nil {
			return end, nil
		}
	}
	end, err := time.Parse(time.DateOnly, date)
	return end.Add(24*time.Hour - time.Second), err
}

// ShareRefusal returns why the organization's policy forbids sharing a snapshot org-wide and with
// other organizations. It is empty if the policy allows it. The certificate of a masked copy counts
// only if the snapshot was requested alone, because listings do not contain certificates.
func ShareRefusal(p api.Policy, s api.Snapshot) string {
	t := s.Type
	switch {
	case lacksCertificate(p, s):
		return "Your organization's policy lets only snapshots with a valid certificate be shared. Make a sanitized " +
			"copy with a registered signing key, and share that."
	case p.UnsanitizedShares == snap.UnsanitizedRefuse && t != snap.TypeSanitized:
		return "Your organization's policy refuses to share snapshots that are not sanitized. Make a sanitized copy, " +
			"and share that."
	case len(p.ShareTypes) > 0 && !slices.Contains(p.ShareTypes, t):
		return "Your organization's policy does not let snapshots of the type " + string(t) +
			" be shared with everyone or with other organizations."
	}
	return ""
}

// lacksCertificate reports whether the policy requires a valid certificate and the snapshot is known
// to have none.
func lacksCertificate(p api.Policy, s api.Snapshot) bool {
	if p.ShareRequires != snap.RequireCertificate || s.Type == snap.TypeSanitized && s.Can == nil {
		return false
	}
	return s.Certificate == nil || s.Certificate.State != snap.CertificateValid
}

// Shared announces a share. people is the number of people who can see the snapshot only because of
// that share, or -1 if that is not known.
func Shared(audience string, people int) string {
	switch {
	case people < 0:
		return "Shared with " + audience + "."
	case people == 0:
		return "Shared with " + audience + ". All of these people could already see it."
	}
	return fmt.Sprintf("Shared with %s. %s can see it.", audience, Plural(people, "more person", "more people"))
}

// Unshared announces the end of a share. people is the number of people who can no longer see the
// snapshot, or -1 if that is not known.
func Unshared(audience string, people int) string {
	switch {
	case people < 0:
		return "No longer shared with " + audience + "."
	case people == 0:
		return "No longer shared with " + audience + ". All of these people can still see it in another way."
	}
	return fmt.Sprintf("No longer shared with %s. %s can no longer see it.", audience, People(people))
}

// EndChanged announces that a share which existed before has a new end.
func EndChanged(audience string) string {
	return "The end of the share with " + audience + " was changed."
}

// Unchanged announces that a share existed before exactly as requested.
const Unchanged = "Nothing changed: the snapshot was already shared like this."
