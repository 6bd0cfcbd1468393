package snap

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var longUnit = regexp.MustCompile(`^(\d+(?:\.\d+)?)([wd])`)

// ParseDuration parses a duration such as the value of --expires-in. The syntax is that of
// [time.ParseDuration], optionally preceded by weeks (w) and days (d, 24 hours), such as "36h",
// "7d", "2w3d12h". The duration must be greater than zero and at most 36500 days. The error has the
// code usage.
func ParseDuration(s string) (time.Duration, error) {
	bad := Usage(fmt.Sprintf("%q is not a duration", s), "use a number with a unit, such as 36h, 7d or 2w")
	rest := strings.TrimSpace(s)
	if rest == "" {
		return 0, bad
	}
	var total float64
	for m := longUnit.FindStringSubmatch(rest); m != nil; m = longUnit.FindStringSubmatch(rest) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, bad
		}
		if m[2] == "w" {
			n *= 7
		}
		total += n * float64(24*time.Hour)
		rest = rest[len(m[0]):]
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 && total > 0 {
			return 0, bad
		}
		total += float64(d)
	}
	if total <= 0 {
		return 0, Usage(fmt.Sprintf("the duration %q is not greater than zero", s), "use one like 36h, 7d or 2w")
	}
	if total > float64(100*365*24*time.Hour) {
		return 0, Usage(fmt.Sprintf("the duration %q is longer than a hundred years", s), "use at most 36500d")
	}
	return time.Duration(total), nil
}
