package sanitize

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"snap/internal/engine"
)

// Undecided is the placeholder mask in an initial rules file for a column that a person must decide
// on. Sanitizing rejects it.
const Undecided = "decide"

// maker creates the mask of a rule. The mask's results have at most limit characters; 0 means no
// limit.
type maker func(key []byte, c ColumnRule, limit int) engine.Mask

// makers returns the makers of all masks by the masks' names. Every mask is deterministic: with the
// same key, a mask gives equal results for equal values in every table and snapshot, so that joins
// still work. The exception is a result that is an original value of the snapshot; see [avoided].
func makers() map[string]maker {
	return map[string]maker{
		"keep": func([]byte, ColumnRule, int) engine.Mask { return nil },
		"null": func([]byte, ColumnRule, int) engine.Mask { return func(string) (string, bool) { return "", true } },
		"constant": func(_ []byte, c ColumnRule, _ int) engine.Mask {
			return func(string) (string, bool) { return c.Value, false }
		},
		"redact": func(_ []byte, _ ColumnRule, limit int) engine.Mask {
			return neverNull(func(v string) string { return cut(redactAny(v), limit) })
		},
		"hash":  hashed,
		"email": invented("email", email),
		"name": invented("name", func(r *rand.Rand) string {
			return pick(r, firstNames[:]) + " " + pick(r, lastNames[:])
		}),
		"first_name": invented("first_name", func(r *rand.Rand) string { return pick(r, firstNames[:]) }),
		"last_name":  invented("last_name", func(r *rand.Rand) string { return pick(r, lastNames[:]) }),
		"company":    invented("company", company),
		"address":    invented("address", address),
		"city":       invented("city", func(r *rand.Rand) string { return pick(r, cities[:]) }),
		"phone":      formatted("phone", false),
		"format":     formatted("format", true),
		"noise":      noise,
		"shift":      shift,

		"integer":       drawnBy("integer", integerWithin),
		"number":        drawnBy("number", numberWithin),
		"date":          drawnBy("date", dateWithin),
		"boolean":       drawnBy("boolean", boolean),
		"uuid":          drawnBy("uuid", uuidOfVersion4),
		"word":          invented("word", plainWord),
		"sentence":      invented("sentence", sentence),
		"paragraph":     invented("paragraph", paragraph),
		"url":           invented("url", webAddress),
		"domain":        invented("domain", domain),
		"password":      invented("password", password),
		"password_hash": invented("password_hash", passwordHash),
		"time_zone":     invented("time_zone", func(r *rand.Rand) string { return pick(r, timeZones[:]) }),
		"currency":      invented("currency", func(r *rand.Rand) string { return pick(r, currencies[:]) }),
		"dictionary":    dictionary,
		"replace":       replaced,
		"json":          byPath,
		"xml":           xmlByPath,
		"composite": func([]byte, ColumnRule, int) engine.Mask { // never used; maskOf uses compositeMask instead
			return func(string) (string, bool) { return "", true }
		},
		"template": func([]byte, ColumnRule, int) engine.Mask { // replaced by rowMasks, which fills the template
			return neverNull(redactAny)
		},

		"key":         keyed,
		"ip":          ipAddress,
		"mac":         macAddress,
		"coordinates": coordinates,
		"card":        card,
		"iban":        iban,
		"choice":      choice,
		"user_name": invented("user_name", func(r *rand.Rand) string {
			return fmt.Sprintf("%s_%010x", strings.ToLower(pick(r, firstNames[:])), r.Uint64N(1<<40))
		}),
	}
}

// Example returns the result of a mask without settings for a value, under a fixed key that is not
// secret. It shows the kind of values that the mask produces, for documentation and tests.
func Example(mask, value string) string {
	newMask, ok := makers()[mask]
	if !ok {
		return ""
	}
	if m := newMask(proposalKey, ColumnRule{Mask: mask}, 0); m != nil {
		value, _ = m(value)
	}
	return value
}

// MaskNames returns the names of all masks.
func MaskNames() []string {
	return sortedKeys(makers())
}

// source is the source of a mask's random numbers. They depend only on the key, the mask and the
// value. It is safe for concurrent use.
type source struct {
	mask string
	idle sync.Pool // of *hashing, reused because setting up a key costs as much as masking a value
}

type hashing struct {
	keyed hash.Hash
	in    []byte
	out   [sha256.Size]byte
}

func newSource(key []byte, mask string) *source {
	return &source{mask: mask, idle: sync.Pool{New: func() any { return &hashing{keyed: hmac.New(sha256.New, key)} }}}
}

func (s *source) digest(value string) [sha256.Size]byte {
	h := s.idle.Get().(*hashing)
	defer s.idle.Put(h)
	h.in = append(append(append(h.in[:0], s.mask...), 0), value...)
	h.keyed.Reset()
	h.keyed.Write(h.in)
	h.keyed.Sum(h.out[:0])
	return h.out
}

// draws returns the random numbers for a value. They cannot be predicted without the key.
func (s *source) draws(value string) *rand.Rand {
	d := s.digest(value)
	seed := rand.NewPCG(binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:]))
	return rand.New(seed) //nolint:gosec // seeded by an HMAC of a secret key, on purpose
}

// neverNull returns a mask that applies f and never returns NULL.
func neverNull(f func(string) string) engine.Mask {
	return func(v string) (string, bool) { return f(v), false }
}

// redactAny redacts a value. A JSON document, and XML that redactXML accepts, keep their structure
// and stay valid.
func redactAny(v string) string {
	if isDocument(v) {
		return redactDocument(v)
	}
	if out, ok := redactXML(v); ok {
		return out
	}
	return redact(v)
}

// redactJSON redacts a value of a JSON column, which can also be a number, a boolean or null.
func redactJSON(v string) string {
	if json.Valid([]byte(v)) {
		return redactDocument(v)
	}
	return redactAny(v)
}

// redact replaces letters and digits. Length, spaces and punctuation remain.
func redact(v string) string {
	out := []byte(v)
	for i, c := range out {
		switch {
		case c >= utf8.RuneSelf:
			return strings.Map(redactRune, v)
		case '0' <= c && c <= '9':
			out[i] = '0'
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			out[i] = 'x'
		}
	}
	return string(out)
}

func redactRune(r rune) rune {
	switch {
	case unicode.IsDigit(r):
		return '0'
	case isLetter(r):
		return 'x'
	}
	return r
}

// isLetter reports whether r is a letter or could be one: a private-use character, as in some
// names, or an invalid byte.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.Is(unicode.Co, r) || r == utf8.RuneError
}

// hashed replaces a value with 32 hexadecimal digits, or with as many as fit.
func hashed(key []byte, _ ColumnRule, limit int) engine.Mask {
	from := newSource(key, "hash")
	return neverNull(func(v string) string {
		d := from.digest(v)
		return cut(hex.EncodeToString(d[:16]), limit)
	})
}

// invented replaces a value with an invented one of the same kind.
func invented(mask string, invent func(*rand.Rand) string) maker {
	return drawnBy(mask, func(r *rand.Rand, _ ColumnRule, _ string) string { return invent(r) })
}

// choice replaces values with one of the rule's values. Equal originals get equal values.
func choice(key []byte, c ColumnRule, limit int) engine.Mask {
	from := newSource(key, "choice")
	return neverNull(func(v string) string {
		if len(c.Values) == 0 {
			return ""
		}
		return cut(pick(from.draws(v), c.Values), limit)
	})
}

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

// email invents an address that is practically unique and belongs to nobody, because its domain is
// reserved (RFC 2606).
func email(r *rand.Rand) string {
	return fmt.Sprintf("%s.%010x@example.com", strings.ToLower(pick(r, firstNames[:])), r.Uint64N(1<<40))
}

func company(r *rand.Rand) string {
	return pick(r, lastNames[:]) + " " + pick(r, trades[:]) + " " + pick(r, companyForms[:])
}

func address(r *rand.Rand) string {
	return strconv.Itoa(1+r.IntN(299)) + " " + pick(r, streetNames[:]) + " " + pick(r, streetKinds[:])
}

// formatted replaces every digit with a digit. If letters is set, it replaces every letter with a
// letter of the same case, otherwise with x. Other characters remain.
func formatted(mask string, letters bool) maker {
	return func(key []byte, _ ColumnRule, limit int) engine.Mask {
		from := newSource(key, mask)
		return neverNull(func(v string) string {
			r := from.draws(v)
			first := true
			return cut(strings.Map(func(c rune) rune {
				lead := first && unicode.IsDigit(c) && c != '0'
				first = first && !unicode.IsDigit(c)
				switch {
				case lead: // keeps the number of digits
					return '1' + rune(r.IntN(9))
				case unicode.IsDigit(c):
					return '0' + rune(r.IntN(10))
				case letters && unicode.IsUpper(c):
					return 'A' + rune(r.IntN(26))
				case letters && isLetter(c):
					return 'a' + rune(r.IntN(26))
				case !letters && isLetter(c):
					return 'x'
				}
				return c
			}, v), limit)
		})
	}
}

// noise changes a number by up to a percentage of it. Non-numeric values become NULL, so that no
// original survives.
func noise(key []byte, c ColumnRule, _ int) engine.Mask {
	percent := cmp.Or(c.Percent, 10)
	from := newSource(key, "noise")
	return func(v string) (string, bool) {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return "", true
		}
		r := from.draws(v)
		moved := n * (1 + percent/100*(2*r.Float64()-1))
		mantissa, _, exponent := strings.Cut(strings.ToLower(v), "e")
		_, after, _ := strings.Cut(mantissa, ".")
		if exponent {
			return strconv.FormatFloat(moved, 'e', min(max(2, len(after)), 18), 64), false
		}
		return strconv.FormatFloat(moved, 'f', min(len(after), 18), 64), false
	}
}

// timeOfDay matches what can follow a date: a time of day and a zone.
var timeOfDay = regexp.MustCompile(`^([T ]\d?\d:\d\d(:\d\d([.,]\d{1,9})?)?)?` +
	`( ?(Z|UTC|[+-]\d\d(:?\d\d(:\d\d)?)?))?( BC)? *$`)

// shift moves a date, with or without a time of day, by up to a number of days in either direction.
// It keeps the time of day and the zone. It moves a value that is only a year by at least one year.
// Other values, such as a date with a name after it, become NULL, so that no original survives.
func shift(key []byte, c ColumnRule, _ int) engine.Mask {
	days := cmp.Or(c.Days, 30)
	from := newSource(key, "shift")
	return func(v string) (string, bool) {
		for _, length := range []int{10, 4} {
			layout := "2006-01-02"[:length]
			if len(v) < length || length == 4 && len(v) != 4 || !timeOfDay.MatchString(v[length:]) {
				continue
			}
			t, err := time.Parse(layout, v[:length])
			if err != nil {
				continue
			}
			r, most := from.draws(v), days
			if length == 4 {
				most = max(1, days/365) // years
			}
			by := 1 + r.IntN(most)
			if r.IntN(2) == 0 {
				by = -by
			}
			for _, by := range []int{by, -by} {
				moved := t.AddDate(0, 0, by)
				if length == 4 {
					moved = t.AddDate(by, 0, 0)
				}
				if year := moved.Year(); year >= 1 && year <= 9999 {
					return moved.Format(layout) + v[length:], false
				}
			}
		}
		return "", true
	}
}

// cut truncates a value to limit characters; 0 means no limit.
func cut(v string, limit int) string {
	if limit <= 0 || len(v) <= limit {
		return v
	}
	if r := []rune(v); len(r) > limit {
		return string(r[:limit])
	}
	return v
}
