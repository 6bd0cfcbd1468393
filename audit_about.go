package snap

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// About summarizes an entry's subject and details in a few words. The functions moment and size
// format times and sizes.
func (e AuditEntry) About(moment func(time.Time) string, size func(int64) string) string {
	d := e.Detail
	var parts []string
	add := func(when bool, format string, args ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	about := cmp.Or(d.Name, d.Target, d.User, d.URL)
	add(about != "", "%s", about)
	add(d.PublicKey != "", "%s", d.PublicKey)
	add(d.OrgWide, "org-wide")
	add(d.Group != "", "group %s", d.Group)
	add(d.Organization != "", "organization %s", d.Organization)
	if d.Expires != nil {
		add(true, "until %s", moment(*d.Expires))
	}
	add(d.Bytes > 0, "%s", size(d.Bytes))
	add(d.Code != "", "refused: %s", d.Code)
	add(d.Role != "", "role %s", d.Role)
	add(d.Disabled, "disabled")
	add(len(d.Scopes) > 0, "scopes %s", d.Scopes)
	add(d.Policy != "", "policy %s", d.Policy)
	for _, c := range d.Settings {
		add(true, "%s", c)
	}
	add(d.KeepLast > 0, "keep the last %d", d.KeepLast)
	add(d.KeepDays == 1, "keep 1 day")
	add(d.KeepDays > 1, "keep %d days", d.KeepDays)
	add(e.Action == AuditRetention && d.KeepLast == 0 && d.KeepDays == 0, "keep all")
	return strings.Join(parts, ", ")
}
