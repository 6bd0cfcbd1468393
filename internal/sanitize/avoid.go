package sanitize

import (
	"strconv"
	"strings"

	"snap/internal/engine"
)

// avoiding wraps a mask that draws from a list, so that its result is never one of the originals:
// it draws again. Otherwise nobody could tell such a result from an unmasked value.
func avoiding(mask engine.Mask, originals map[string]bool) engine.Mask {
	if len(originals) == 0 {
		return mask
	}
	return func(v string) (string, bool) {
		masked, null := mask(v)
		for n := 1; !null && originals[strings.ToLower(masked)]; n++ {
			if n == 100 { // in a short list, all entries may be originals
				return redact(v), false
			}
			masked, null = mask(v + "\x00" + strconv.Itoa(n))
		}
		return masked, null
	}
}

// drawn are the masks that draw from lists.
var drawn = []string{"name", "first_name", "last_name", "company", "city", "address"}
