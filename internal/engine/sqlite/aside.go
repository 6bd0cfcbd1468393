package sqlite

import (
	"bytes"
	"database/sql/driver"
	"math/rand/v2"
	"strconv"
	"strings"
)

// aside is a reversible change of values, for permuted columns, which are masked in two steps. SQLite
// checks unique constraints row by row, and the new value of a row can be the old value of another.
// The first step therefore stores the new values in another form, and the second restores them.
// Integers are changed by XOR with this number, because a column may be unable to store anything
// except integers.
type aside int64

// newAside returns a number with which XOR turns every integer between -2^62 and 2^62 into one
// outside these limits. The rest of it is random, so that a larger integer becomes the value of
// another row only with negligible probability.
func newAside() aside {
	return 1<<62 | aside(rand.Int64N(1<<62)) //nolint:gosec // it only has to differ from the data
}

// The prefixes of values in the other form.
const (
	textAside = "\x01" // a string or a blob
	realAside = "\x02" // a real number, as a string
)

// put returns the form of a value that the first step stores.
func (a aside) put(value driver.Value) driver.Value {
	switch v := value.(type) {
	case int64:
		return v ^ int64(a)
	case float64:
		return realAside + textOf(v)
	case string:
		return textAside + v
	case []byte:
		return append([]byte(textAside), v...)
	}
	return value
}

// back reverses put.
func (a aside) back(value driver.Value) driver.Value {
	switch v := value.(type) {
	case int64:
		return v ^ int64(a)
	case string:
		number, isReal := strings.CutPrefix(v, realAside)
		if f, err := strconv.ParseFloat(number, 64); isReal && err == nil {
			return f
		}
		return strings.TrimPrefix(v, textAside)
	case []byte:
		return bytes.TrimPrefix(v, []byte(textAside))
	}
	return value
}
