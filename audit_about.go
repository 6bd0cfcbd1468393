package snap

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// About summarizes an entry's subject and details in a few words. moment and size format times and
// sizes.
func (e AuditEntry) About(moment func(time.Time) string, size func(int64) string) string {
	d := e.Detail
	var parts []string
	say := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	about := cmp.Or(d.Name, d.Target, d.User, d.URL)
	say(about != "", "%s", about)
	say(d.PublicKey != "", "%s", d.PublicKey)
	say(d.OrgWide, "org-wide")
	say(d.Group != "", "group %s", d.Group)
	say(d.Organization != "", "organization %s", d.Organization)
	if d.Expires != nil {
		say(true, "until %s", moment(*d.Expires))
	}
	say(d.Bytes > 0, "%s", size(d.Bytes))
	say(d.Code != "", "refused: %s", d.Code)
	say(d.Role != "", "role %s", d.Role)
	say(d.Disabled, "disabled")
	say(len(d.Scopes) > 0, "scopes %s", d.Scopes)
	say(d.Policy != "", "policy %s", d.Policy)
	for _, c := range d.Settings {
		say(true, "%s", c)
	}
	say(d.KeepLast > 0, "keep the last %d", d.KeepLast)
	say(d.KeepDays == 1, "keep 1 day")
	say(d.KeepDays > 1, "keep %d days", d.KeepDays)
	say(e.Action == AuditRetention && d.KeepLast == 0 && d.KeepDays == 0, "keep all")
	return strings.Join(parts, ", ")
}
