package sanitize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/brianvoe/gofakeit/v7"

	"snap/internal/engine"
)

// Undecided is the mask that a first rules file has where a person must decide.
// Sanitizing refuses it.
const Undecided = "decide"

// maker makes a mask of a rule, for a column whose values may have at most
// limit characters (0: any number).
type maker func(key []byte, c ColumnRule, limit int) engine.Mask

// makers is the table of masks. Each is deterministic: with one key, equal
// values of one mask get equal values, in every table and every snapshot, so
// that joins still work.
func makers() map[string]maker {
	return map[string]maker{
		"keep": func([]byte, ColumnRule, int) engine.Mask { return nil },
		"null": func([]byte, ColumnRule, int) engine.Mask { return func(string) (string, bool) { return "", true } },
		"constant": func(_ []byte, c ColumnRule, _ int) engine.Mask {
			return func(string) (string, bool) { return c.Value, false }
		},
		"redact":     func([]byte, ColumnRule, int) engine.Mask { return text(redact) },
		"hash":       hashed,
		"email":      fake("email", email),
		"name":       fake("name", func(f *gofakeit.Faker, _ string) string { return f.Name() }),
		"first_name": fake("first_name", func(f *gofakeit.Faker, _ string) string { return f.FirstName() }),
		"last_name":  fake("last_name", func(f *gofakeit.Faker, _ string) string { return f.LastName() }),
		"company":    fake("company", func(f *gofakeit.Faker, _ string) string { return f.Company() }),
		"address":    fake("address", func(f *gofakeit.Faker, _ string) string { return f.Street() }),
		"city":       fake("city", func(f *gofakeit.Faker, _ string) string { return f.City() }),
		"phone":      formatted("phone", false),
		"format":     formatted("format", true),
		"noise":      noise,
		"shift":      shift,
	}
}

// MaskNames lists the masks.
func MaskNames() []string {
	var names []string
	for name := range makers() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// digest is what a mask draws from: it depends on the key, the mask and the
// value, and nothing else.
func digest(key []byte, mask, value string) [sha256.Size]byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(mask))
	h.Write([]byte{0})
	h.Write([]byte(value))
	return [sha256.Size]byte(h.Sum(nil))
}

func source(d [sha256.Size]byte) *rand.PCG {
	return rand.NewPCG(binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:]))
}

// draws returns the random numbers that belong to a value: nobody who has not
// the key can tell them.
func draws(key []byte, mask, value string) *rand.Rand {
	return rand.New(source(digest(key, mask, value))) //nolint:gosec // seeded by an HMAC of a secret key, on purpose
}

func text(f func(string) string) engine.Mask {
	return func(v string) (string, bool) { return f(v), false }
}

// redact keeps only the shape: length, space and punctuation.
func redact(v string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '0'
		case unicode.IsLetter(r):
			return 'x'
		}
		return r
	}, v)
}

// hashed gives up to 32 hexadecimal digits, or as many as fit.
func hashed(key []byte, _ ColumnRule, limit int) engine.Mask {
	return text(func(v string) string {
		d := digest(key, "hash", v)
		return cut(hex.EncodeToString(d[:16]), limit)
	})
}

// fake gives something of the same kind that is made up.
func fake(mask string, invent func(f *gofakeit.Faker, seed string) string) maker {
	return func(key []byte, _ ColumnRule, limit int) engine.Mask {
		return text(func(v string) string {
			if v == "" {
				return ""
			}
			d := digest(key, mask, v)
			return cut(invent(gofakeit.NewFaker(source(d), false), hex.EncodeToString(d[16:21])), limit)
		})
	}
}

// email makes an address that is unique and can belong to nobody: the domain
// is reserved (RFC 2606).
func email(f *gofakeit.Faker, seed string) string {
	name := strings.ToLower(f.FirstName())
	return name + "." + seed + "@example.com"
}

// formatted replaces every digit by a digit and, with letters, every letter by
// a letter of its case; all else stays.
func formatted(mask string, letters bool) maker {
	return func(key []byte, _ ColumnRule, _ int) engine.Mask {
		return text(func(v string) string {
			r := draws(key, mask, v)
			first := true
			return strings.Map(func(c rune) rune {
				lead := first && unicode.IsDigit(c) && c != '0'
				first = first && !unicode.IsDigit(c)
				switch {
				case lead: // a number stays as long as it was
					return '1' + rune(r.IntN(9))
				case unicode.IsDigit(c):
					return '0' + rune(r.IntN(10))
				case letters && unicode.IsUpper(c):
					return 'A' + rune(r.IntN(26))
				case letters && unicode.IsLetter(c):
					return 'a' + rune(r.IntN(26))
				case !letters && unicode.IsLetter(c):
					return 'x'
				}
				return c
			}, v)
		})
	}
}

// noise moves a number by up to so many percent. What is no number becomes
// NULL: it must not stay.
func noise(key []byte, c ColumnRule, _ int) engine.Mask {
	percent := c.Percent
	if percent == 0 {
		percent = 10
	}
	return func(v string) (string, bool) {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return "", true
		}
		r := draws(key, "noise", v)
		moved := n * (1 + percent/100*(2*r.Float64()-1))
		decimals := 0
		if _, after, ok := strings.Cut(v, "."); ok {
			decimals = len(after)
		}
		return strconv.FormatFloat(moved, 'f', min(decimals, 18), 64), false
	}
}

// shift moves a date or time by up to so many days either way; the time of day
// stays. What is no date becomes NULL: it must not stay.
func shift(key []byte, c ColumnRule, _ int) engine.Mask {
	days := c.Days
	if days == 0 {
		days = 30
	}
	return func(v string) (string, bool) {
		for _, length := range []int{10, 4} {
			layout := "2006-01-02"[:length]
			if len(v) < length || length == 4 && len(v) != 4 {
				continue
			}
			t, err := time.Parse(layout, v[:length])
			if err != nil {
				continue
			}
			r := draws(key, "shift", v)
			by := 1 + r.IntN(days)
			if r.IntN(2) == 0 {
				by = -by
			}
			return t.AddDate(0, 0, by).Format(layout) + v[length:], false
		}
		return "", true
	}
}

// cut shortens a value to so many characters.
func cut(v string, limit int) string {
	if limit <= 0 || len(v) <= limit {
		return v
	}
	if r := []rune(v); len(r) > limit {
		return string(r[:limit])
	}
	return v
}
