package sanitize

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"snap/internal/engine"
)

// drawnBy returns a maker of masks that replace a value with a pseudorandom one. The result depends
// only on the key, the mask with its settings, and the value. An empty value stays empty.
func drawnBy(mask string, draw func(r *rand.Rand, c ColumnRule, v string) string) maker {
	return func(key []byte, c ColumnRule, limit int) engine.Mask {
		from := newSource(key, mask)
		return neverNull(func(v string) string {
			if v == "" {
				return ""
			}
			return cut(draw(from.draws(v), c, v), limit)
		})
	}
}

// integerWithin draws an integer from min to max.
func integerWithin(r *rand.Rand, c ColumnRule, _ string) string {
	low, high := wholeBounds(c)
	return strconv.FormatInt(low+r.Int64N(high-low+1), 10)
}

// wholeBounds returns the bounds of the mask integer, which are 0 and 1,000,000 by default. If only
// min is given and is not less than 1,000,000, the range has its default width.
func wholeBounds(c ColumnRule) (low, high int64) {
	low, err := strconv.ParseInt(string(c.Min), 10, 64)
	if err != nil {
		low = 0
	}
	if high, err = strconv.ParseInt(string(c.Max), 10, 64); err != nil {
		high = 1_000_000
		if low >= high {
			high = low + min(high, math.MaxInt64-low)
		}
	}
	return low, high
}

// numberWithin draws a number from min to max, with the given number of decimals.
func numberWithin(r *rand.Rand, c ColumnRule, _ string) string {
	low, high := numberBounds(c)
	decimals := 2
	if c.Decimals != nil {
		decimals = *c.Decimals
	}
	unit := math.Pow10(-decimals)
	n := max(low, min(high, math.Floor((low+r.Float64()*(high-low))/unit)*unit))
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// numberBounds returns the bounds of the mask number, which are 0 and 1,000 by default. If only min
// is given and is not less than 1,000, the range has its default width.
func numberBounds(c ColumnRule) (low, high float64) {
	low, err := strconv.ParseFloat(string(c.Min), 64)
	if err != nil {
		low = 0
	}
	if high, err = strconv.ParseFloat(string(c.Max), 64); err != nil {
		high = 1000
		if low >= high {
			high += low
		}
	}
	return low, high
}

// timeLayouts are the layouts of the bounds of the mask date.
var timeLayouts = []string{time.DateOnly, time.DateTime, time.RFC3339}

func parseTime(text string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// dateBounds returns the bounds of the mask date, which are 1970-01-01 and 2019-12-31 by default. If
// only min is given and is not before 2019-12-31, the range spans 50 years.
func dateBounds(c ColumnRule) (low, high time.Time) {
	low, ok := parseTime(string(c.Min))
	if !ok {
		low = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if high, ok = parseTime(string(c.Max)); !ok {
		high = time.Date(2019, 12, 31, 0, 0, 0, 0, time.UTC)
		if !low.Before(high) {
			high = low.AddDate(50, 0, 0)
		}
	}
	return low, high
}

// dateWithin draws a day from min to max. A value with a time of day gets another time of day.
func dateWithin(r *rand.Rand, c ColumnRule, v string) string {
	low, high := dateBounds(c)
	t := time.Unix(low.Unix()+r.Int64N(high.Unix()-low.Unix()+1), 0).In(low.Location())
	switch {
	case len(v) <= len(time.DateOnly):
		return t.Format(time.DateOnly)
	case v[10] == 'T':
		return t.Format("2006-01-02T15:04:05")
	}
	return t.Format(time.DateTime)
}

// booleans lists the forms in which databases write true and false.
var booleans = [][2]string{{"t", "f"}, {"true", "false"}, {"1", "0"}}

// boolean draws true or false, written in the form of the original.
func boolean(r *rand.Rand, _ ColumnRule, v string) string {
	for _, pair := range booleans {
		if strings.EqualFold(v, pair[0]) || strings.EqualFold(v, pair[1]) {
			return pair[r.IntN(2)]
		}
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil {
		return booleans[2][r.IntN(2)] // MySQL's tinyint(1) can hold any small number
	}
	return booleans[0][r.IntN(2)]
}

// uuidOfVersion4 draws a random UUID (RFC 9562, section 5.4).
func uuidOfVersion4(r *rand.Rand, _ ColumnRule, _ string) string {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return uuidText(hex.EncodeToString(b[:]))
}

// checkBounds returns the reason why a rule's min, max or decimals are wrong, or "". A mask that
// does not draw from a range cannot have them.
func checkBounds(c ColumnRule) string {
	switch {
	case c.Mask == "number":
		return checkNumber(c)
	case c.Decimals != nil && (c.Mask == "integer" || c.Mask == "date"):
		return "cannot have decimals"
	case c.Mask == "integer":
		return checkWhole(c)
	case c.Mask == "date":
		_, ok := parseTime(string(c.Min))
		_, ok2 := parseTime(string(c.Max))
		if low, high := dateBounds(c); c.Min.invalid(ok) || c.Max.invalid(ok2) || low.After(high) {
			return "needs dates such as 2001-12-31 as min and max, and min must not be after max"
		}
		return ""
	}
	if c.Min != "" || c.Max != "" || c.Decimals != nil {
		return "cannot have min, max or decimals"
	}
	return ""
}

// invalid reports whether a bound is given but could not be parsed.
func (b bound) invalid(parsed bool) bool { return b != "" && !parsed }

const tooWide = "has a range that is too wide; bring min and max closer together"

func checkWhole(c ColumnRule) string {
	_, err := strconv.ParseInt(string(c.Min), 10, 64)
	_, err2 := strconv.ParseInt(string(c.Max), 10, 64)
	low, high := wholeBounds(c)
	wide := high-low < 0 || high-low == math.MaxInt64
	switch {
	case low <= high && wide:
		return tooWide
	case c.Min.invalid(err == nil) || c.Max.invalid(err2 == nil) || low > high:
		return "needs whole numbers as min and max, and min must not be more than max"
	}
	return ""
}

func checkNumber(c ColumnRule) string {
	_, err := strconv.ParseFloat(string(c.Min), 64)
	_, err2 := strconv.ParseFloat(string(c.Max), 64)
	low, high := numberBounds(c)
	switch {
	case low <= high && math.IsInf(high-low, 0):
		return tooWide
	case c.Min.invalid(err == nil) || c.Max.invalid(err2 == nil) || !(low <= high):
		return "needs numbers as min and max, and min must not be more than max"
	}
	if c.Decimals != nil && (*c.Decimals < 0 || *c.Decimals > 15) {
		return "needs decimals from 0 to 15"
	}
	return ""
}
