package sanitize

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"snap/internal/engine"
)

// listMasks lists the masks that pick their results from word lists.
var listMasks = []string{"name", "first_name", "last_name", "company", "city", "address"}

// formMasks lists the masks whose results have the same form as the original. By chance, a result
// can equal the original of another row.
var formMasks = []string{"phone", "format", "card"}

// redraws is the number of times that a mask draws again before it invents a word or redacts.
const redraws = 8

// avoided holds, for each mask, the originals that it must not produce, in lower case. All columns
// with the same mask share its originals, so that equal values get equal results.
type avoided map[string]map[string]bool

// wrap wraps the mask called name so that its result is never one of the originals. Otherwise
// nobody could tell whether a value was masked. Equal originals still get equal results.
func (a avoided) wrap(mask engine.Mask, name string, key []byte, limit int) engine.Mask {
	originals := a[name]
	if mask == nil || len(originals) == 0 {
		return mask
	}
	from := newSource(key, name+" coined")
	return func(v string) (string, bool) {
		masked, null := mask(v)
		for n := 1; !null && inLower(originals, masked); n++ {
			switch {
			case n > redraws: // in a short list, all entries may be originals
				word := cut(inventWord(from, v), limit)
				if slices.Contains(formMasks, name) || inLower(originals, word) {
					word = redact(v)
				}
				return word, false
			case slices.Contains(formMasks, name):
				masked, null = mask(masked)
			default:
				masked, null = mask(v + "\x00" + strconv.Itoa(n))
			}
		}
		return masked, null
	}
}

// inLower reports whether a set contains v in lower case. It allocates nothing if v is short and
// ASCII, as nearly all values are.
func inLower(set map[string]bool, v string) bool {
	var lower [64]byte
	if len(v) > len(lower) {
		return set[strings.ToLower(v)]
	}
	for i, c := range []byte(v) {
		if c >= utf8.RuneSelf {
			return set[strings.ToLower(v)]
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return set[string(lower[:len(v)])]
}

// inventWord invents a capitalized word of four syllables.
func inventWord(from *source, v string) string {
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

// Every returns a function that the caller must call with every value of a column. The function
// collects the originals that a mask could draw, so that the mask can avoid them (see
// [engine.Options]). Every returns nil if no mask of the column draws from lists.
func (r *Rules) Every(schema, table, column string) func(string) {
	rule, _, _ := r.find(engine.Shape{Schema: schema, Name: table}, column)
	var into []map[string]bool
	for _, mask := range rule.masks() {
		if !slices.Contains(listMasks, mask) {
			continue
		}
		if r.originals == nil {
			r.originals, r.words = avoided{}, listedWords()
		}
		if r.originals[mask] == nil {
			r.originals[mask] = map[string]bool{}
		}
		into = append(into, r.originals[mask])
	}
	if into == nil {
		return nil
	}
	return func(v string) {
		leaves(v, 0, func(text string) {
			if drawable(text, r.words) {
				for _, originals := range into {
					originals[strings.ToLower(text)] = true
				}
			}
		})
	}
}

// masks returns the names of all masks that a rule can apply: its own, and those for other rows and
// for parts of values.
func (c ColumnRule) masks() []string {
	all := []string{c.Mask, c.Else, c.Otherwise}
	for _, at := range c.Paths {
		all = append(all, at.masks()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leaves calls the function see with a value and with every part of the value that a mask can be
// applied to: strings in JSON documents and XML, elements of arrays and fields of composite values.
// It descends at most maxNested levels.
func leaves(v string, depth int, see func(string)) {
	see(v)
	part := func(text string) (string, bool) {
		if depth < maxNested {
			leaves(text, depth+1, see)
		}
		return text, false
	}
	switch bare := strings.TrimSpace(v); {
	case bare == "":
	case isDocument(v):
		var tree any
		if json.Unmarshal([]byte(v), &tree) == nil {
			documentMask{rest: part}.masked(tree, nil)
		}
	case bare[0] == '<':
		_, _ = documentMask{rest: part}.maskedXML(v, true) // see has been called with the parts before an error
	case bare[0] == '(':
		fields, _ := parseRow(bare)
		for _, f := range fields {
			if f != nil {
				_, _ = part(*f)
			}
		}
	case bare[0] == '{', bare[0] == '[':
		_, _ = elements(part)(bare)
	}
}

// maxDrawn is the maximum length of a value that is drawn from lists.
const maxDrawn = 100

// drawable reports whether a mask could draw a value: whether the value consists only of listed
// words and short numbers. This limits how many originals are collected.
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
