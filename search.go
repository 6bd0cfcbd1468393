package snap

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A search finds a snapshot if each search word is the beginning of the snapshot's ID, or of a word
// in its name, target, description, labels, owner's name or owner's e-mail address. Case is
// ignored.

// momentForm is a date and time in a name, such as 20261122T211134Z, or the beginning of one.
var momentForm = regexp.MustCompile(`^([0-9]{8})t([0-9]{0,6})z?$`)

// Words splits a text into its distinct words: runs of letters and digits, in lower case. A date
// and time such as 20261122T211134Z counts as two words.
func Words(text string) (all []string) {
	isSeparator := func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }
	for _, run := range strings.FieldsFunc(FoldCase(text), isSeparator) {
		parts := []string{run}
		if m := momentForm.FindStringSubmatch(run); m != nil {
			parts = m[1:]
		}
		for _, w := range parts {
			if w != "" && !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// FoldCase returns the form of a name or an e-mail address that is used for comparing.
func FoldCase(s string) string { return strings.ToLower(norm.NFC.String(strings.TrimSpace(s))) }

// SearchWords returns the distinct words of a search, sorted. An ID that begins with snap_ is one
// word.
func SearchWords(q string) (all []string) {
	for _, part := range strings.Fields(FoldCase(q)) {
		if _, ok := CleanIDPrefix(part); ok && strings.HasPrefix(part, IDPrefix) {
			all = append(all, part)
			continue
		}
		all = append(all, Words(part)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// minIDLength is the minimum number of characters that a search word without the prefix snap_ must
// have to count as the beginning of an ID.
const minIDLength = 5

// SearchID interprets a word of a search as the beginning of an ID. ok is false if no ID can begin
// with it, or if it is shorter than minIDLength and has no prefix snap_.
func SearchID(word string) (prefix string, ok bool) {
	prefix, ok = CleanIDPrefix(word)
	return prefix, ok && (strings.HasPrefix(word, IDPrefix) || len(word) >= minIDLength)
}

// Finds reports whether the search q finds a snapshot. id is the snapshot's ID, which may be empty.
// texts are the other searched texts, such as its name and its owner's e-mail address. A blank q
// finds every snapshot; any other q without words finds none.
func Finds(q, id string, texts ...string) bool {
	words := Words(strings.Join(texts, " "))
	asked := SearchWords(q)
	for _, w := range asked {
		prefix, isID := SearchID(w)
		if !slices.ContainsFunc(words, func(have string) bool { return strings.HasPrefix(have, w) }) &&
			!(isID && strings.HasPrefix(id, prefix)) {
			return false
		}
	}
	return len(asked) > 0 || strings.TrimSpace(q) == ""
}
