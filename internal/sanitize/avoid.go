package sanitize

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"snap/internal/engine"
)

// drawn are the masks that draw from lists.
var drawn = []string{"name", "first_name", "last_name", "company", "city", "address"}

// remade are the masks that produce another value of the same form, which can be the original of
// another row.
var remade = []string{"phone", "format", "card"}

// redraws is the number of times that a mask draws again before it invents a word.
const redraws = 8

// avoiding wraps a mask so that its result is never one of the originals. Otherwise nobody could
// distinguish such a result from an unmasked value. The same original gets the same result.
func avoiding(mask engine.Mask, name string, key []byte, limit int, originals map[string]bool) engine.Mask {
	if mask == nil || len(originals) == 0 {
		return mask
	}
	from := newSource(key, name+" coined")
	return func(v string) (string, bool) {
		masked, null := mask(v)
		for n := 1; !null && inLower(originals, masked); n++ {
			switch {
			case slices.Contains(remade, name) && n > redraws:
				return redact(v), false
			case slices.Contains(remade, name):
				masked, null = mask(masked)
			case n > redraws: // in a short list, all entries may be originals
				return cut(coined(from, v), limit), false
			default:
				masked, null = mask(v + "\x00" + strconv.Itoa(n))
			}
		}
		return masked, null
	}
}

// inLower reports whether a set contains a text in lower case. Nearly all texts are short and ASCII:
// for them it allocates nothing.
func inLower(set map[string]bool, v string) bool {
	var room [64]byte
	if len(v) > len(room) {
		return set[strings.ToLower(v)]
	}
	for i, c := range []byte(v) {
		if c >= utf8.RuneSelf {
			return set[strings.ToLower(v)]
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		room[i] = c
	}
	return set[string(room[:len(v)])]
}

// coined invents a capitalized word of four syllables.
func coined(from *source, v string) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	d := from.digest(v)
	n := binary.BigEndian.Uint64(d[:])
	word := make([]byte, 0, 8)
	for range 4 {
		word = append(word, consonants[n%uint64(len(consonants))])
		n /= uint64(len(consonants))
		word = append(word, vowels[n%uint64(len(vowels))])
		n /= uint64(len(vowels))
	}
	return strings.ToUpper(string(word[:1])) + string(word[1:])
}

// Every returns a function that is called with every value of a column, or nil. It collects the
// originals that a mask could draw, so that the mask can avoid them (see [engine.Options]).
func (r *Rules) Every(schema, table, column string) func(string) {
	rule, _, ok := r.find(engine.Shape{Schema: schema, Name: table}, column)
	if !ok || !slices.Contains(drawn, rule.Mask) {
		return nil
	}
	if r.originals == nil {
		r.originals, r.words = map[string]map[string]bool{}, listedWords()
	}
	if r.originals[rule.Mask] == nil {
		r.originals[rule.Mask] = map[string]bool{}
	}
	of := r.originals[rule.Mask]
	return func(v string) {
		if drawable(v, r.words) {
			of[strings.ToLower(v)] = true
		}
	}
}

// maxDrawn is the maximum length of a value that is drawn from lists.
const maxDrawn = 100

// drawable reports whether a mask could draw a value, because it consists of listed words and of
// numbers. The lists therefore limit the number of collected originals.
func drawable(v string, words map[string]bool) bool {
	if len(v) > maxDrawn {
		return false
	}
	for w := range strings.FieldsSeq(v) {
		number := !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsDigit(r) }) && len(w) <= 3
		if !number && !inLower(words, w) {
			return false
		}
	}
	return true
}

// listedWords returns the words of all lists, in lower case.
func listedWords() map[string]bool {
	all := map[string]bool{}
	for _, list := range [][]string{firstNames[:], lastNames[:], cities[:], trades[:], companyForms[:],
		streetNames[:], streetKinds[:]} {
		for _, entry := range list {
			for w := range strings.FieldsSeq(strings.ToLower(entry)) {
				all[w] = true
			}
		}
	}
	return all
}
