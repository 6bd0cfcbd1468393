package sanitize

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"snap/internal/personal"
)

// The leak scan ignores a value without letters that has fewer than minDigits digits, and a value of
// digits alone that has fewer than minNumber. Such short values occur by chance.
const (
	minDigits = 7
	minNumber = 11
)

// maxWatched is the length in bytes up to which an original is searched for as a whole.
const maxWatched = 4 << 10

// watchedPart returns the part of an original to search for: all of it, or the beginning of a long
// one. The part ends neither inside a character nor inside a number: a finder skips a match that is
// part of a longer number.
func watchedPart(v string) string {
	if len(v) <= maxWatched {
		return v
	}
	end := maxWatched
	for end > 0 && !utf8.RuneStart(v[end]) {
		end--
	}
	return strings.TrimRight(v[:end], "0123456789")
}

var dateForm = regexp.MustCompile(`^([0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4})`)

// worthWatching reports whether an original value is too distinctive to occur elsewhere by chance.
// It must be long enough, and its type must have many possible values. Without letters, it must also
// have enough digits and not be a date.
func worthWatching(v string, t personal.Type) bool {
	if len(v) < minWatched || dateForm.MatchString(v) && strings.Trim(v, "0123456789-./: TZ+") == "" {
		return false
	}
	digits := 0
	for i := range len(v) {
		if v[i] >= '0' && v[i] <= '9' {
			digits++
		}
	}
	switch {
	case digits == len(v):
		return digits >= minNumber && !t.Class.Common()
	case t.Class.Common():
		return false
	case hasLetters(v):
		return true
	}
	return digits >= minDigits
}

// watchedRule reports whether the leak scan searches for the original v of a rule. Single words
// from lists of common names occur in other values by chance, so it does not search for those.
func watchedRule(rule ColumnRule, v string) bool {
	switch {
	case rule.Shared:
		return false
	case slices.Contains([]string{"first_name", "last_name", "city"}, rule.Mask):
		return false
	case rule.Mask == "name" || rule.Mask == "company":
		return len(strings.Fields(v)) > 1
	case rule.Mask == "ip":
		return !strings.HasPrefix(v, "10.") // masked addresses begin with it
	case rule.Mask == "key":
		return hasLetters(v) || len(v) >= minNumber
	}
	return true
}

// hasLetters reports whether v has a letter, or a character after the digits in ASCII, such as @.
func hasLetters(v string) bool {
	return strings.ContainsFunc(v, func(r rune) bool { return r > '9' })
}
