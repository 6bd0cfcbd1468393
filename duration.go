package snap

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

var longUnits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+(?:\.\d+)?)([wd])`) })

// ParseDuration parses a duration as --expires-in takes it: the syntax of [time.ParseDuration],
// with optional days (d, 24 hours) and weeks (w) before it, such as "36h", "7d", "2w3d12h". It must
// be more than zero. The error has the code usage.
func ParseDuration(s string) (time.Duration, error) {
	rest := strings.TrimSpace(s)
	bad := Usage(fmt.Sprintf("%q is not a duration", s), "use a number with a unit, such as 36h, 7d or 2w")
	var total float64
	for {
		m := longUnits().FindStringSubmatch(rest)
		if m == nil {
			break
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, bad
		}
		days := n
		if m[2] == "w" {
			days = 7 * n
		}
		total += days * float64(24*time.Hour)
		rest = rest[len(m[0]):]
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return 0, bad
		}
		if d <= 0 && total > 0 {
			return 0, bad
		}
		total += float64(d)
	} else if total == 0 && longUnits().FindString(strings.TrimSpace(s)) == "" {
		return 0, bad
	}
	if total <= 0 {
		return 0, Usage(fmt.Sprintf("the duration %q is not greater than zero", s), "use one like 36h, 7d or 2w")
	}
	if total > float64(100*365*24*time.Hour) {
		return 0, Usage(fmt.Sprintf("the duration %q is longer than a hundred years", s), "use at most 36500d")
	}
	return time.Duration(total), nil
}
