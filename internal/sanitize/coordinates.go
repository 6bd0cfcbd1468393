package sanitize

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync"

	"snap/internal/engine"
)

// defaultMeters is how far coordinates are moved if the rule does not set a distance.
const defaultMeters = 5000

// meterDegrees is the length of a meter in degrees of latitude.
const meterDegrees = 1 / 111_320.0

var coordinateForm = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)

// coordinateWords are the words that belong to coordinates. Other words are redacted.
var coordinateWords = regexp.MustCompile(
	`(?i)^((multi)?point(z|m|zm)?|zm|srid|type|coordinates|lat|latitude|lng|lon|long|longitude|[nsewzm])$`)

var wordForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\pL\p{Co}]+`) })

// sridForm is the reference system at the start of a point in EWKT. It is not a coordinate.
var sridForm = regexp.MustCompile(`(?i)^ *srid *= *[0-9]{1,6} *;`)

// redactOtherWords redacts the words of a value that are not part of coordinates.
func redactOtherWords(v string) string {
	return wordForm().ReplaceAllStringFunc(v, func(w string) string {
		if coordinateWords.MatchString(w) {
			return w
		}
		return redact(w)
	})
}

// coordinates moves every number of a value, except the SRID of EWKT, by up to the given number of
// meters. The value is a latitude, a longitude, or a point in text form. A value without a number
// to move becomes NULL. Words that do not belong to coordinates are redacted.
func coordinates(key []byte, c ColumnRule, limit int) engine.Mask {
	meters := cmp.Or(c.Meters, defaultMeters)
	from := newSource(key, "coordinates")
	return func(v string) (string, bool) {
		srid := sridForm.FindString(v)
		point := v[len(srid):]
		if !coordinateForm.MatchString(point) {
			return "", true
		}
		r := from.draws(v)
		return cut(srid+coordinateForm.ReplaceAllStringFunc(redactOtherWords(point), func(number string) string {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || math.IsInf(n, 0) {
				return "0"
			}
			bound := 180.0
			if math.Abs(n) <= 90 {
				bound = 90
			}
			n += (2*r.Float64() - 1) * meters * meterDegrees
			return fmt.Sprintf("%.6f", max(-bound, min(bound, n)))
		}), limit), false
	}
}
