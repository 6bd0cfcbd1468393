package card

import (
	"strings"
	"time"

	"snap"
	"snap/api"
)

// Partial describes the shares of a snapshot in addition to its state Shared or Private, such as
// "eng +2 groups" or "2 organizations, next expires in 3 days". If the user sees the snapshot
// through a group, Partial names that group. It is empty if there is nothing to add.
func Partial(s api.Snapshot, now time.Time) string {
	var parts []string
	if s.Groups > 0 && s.FirstGroup != "" {
		first := s.FirstGroup
		if s.Groups > 1 {
			first += " +" + counted(int64(s.Groups-1), "group")
		}
		parts = append(parts, first)
	} else if s.Groups > 0 {
		parts = append(parts, counted(int64(s.Groups), "group"))
	}
	if s.Orgs > 0 {
		parts = append(parts, counted(int64(s.Orgs), "organization"))
	} else if s.Outside {
		parts = append(parts, "shared outside")
	}
	if s.Through != "" {
		parts = append(parts, "through "+s.Through)
	}
	if s.NextExpiry != nil {
		which := "expires "
		if s.Groups+s.Orgs > 1 {
			which = "next expires "
		}
		parts = append(parts, which+snap.Distance(now, *s.NextExpiry))
	}
	return strings.Join(parts, ", ")
}
