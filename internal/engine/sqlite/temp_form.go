package sqlite

import (
	"bytes"
	"database/sql/driver"
	"math/rand/v2"
	"strconv"
	"strings"
)

// tempForm encodes the new values of permuted columns, which are masked in two steps. SQLite checks
// unique constraints row by row, and the new value of a row can be the old value of another. The
// first step therefore stores encoded values, and the second decodes them. Integers are encoded by
// XOR with this number, because a column may be unable to store anything except integers.
type tempForm int64

// newTempForm returns a number with which XOR turns every integer between -2^62 and 2^62 into one
// outside these limits. Its other bits are random, so that a larger integer becomes the value of
// another row only with negligible probability.
func newTempForm() tempForm {
	return 1<<62 | tempForm(rand.Int64N(1<<62)) //nolint:gosec // it only has to differ from the data
}

// The prefixes of encoded values.
const (
	textPrefix = "\x01" // a string or a blob
	realPrefix = "\x02" // a real number, as a string
)

// encode returns the value that the first step stores.
func (f tempForm) encode(value driver.Value) driver.Value {
	switch v := value.(type) {
	case int64:
		return v ^ int64(f)
	case float64:
		return realPrefix + textOf(v)
	case string:
		return textPrefix + v
	case []byte:
		return append([]byte(textPrefix), v...)
	}
	return value
}

// decode reverses encode.
func (f tempForm) decode(value driver.Value) driver.Value {
	switch v := value.(type) {
	case int64:
		return v ^ int64(f)
	case string:
		number, isReal := strings.CutPrefix(v, realPrefix)
		if r, err := strconv.ParseFloat(number, 64); isReal && err == nil {
			return r
		}
		return strings.TrimPrefix(v, textPrefix)
	case []byte:
		return bytes.TrimPrefix(v, []byte(textPrefix))
	}
	return value
}
