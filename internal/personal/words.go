package personal

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// split splits a name into lower-case words without accents and digits: "eMailAddr2" is e, mail,
// addr; "Straße_Nr" is strasse, nr.
func split(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	runes := []rune(strings.ReplaceAll(norm.NFD.String(name), "ß", "ss"))
	for i, r := range runes {
		switch {
		case unicode.Is(unicode.Mn, r):
		case !unicode.IsLetter(r):
			end()
			if r == '4' && len(words) > 0 && words[len(words)-1] == "last" {
				words = append(words, "four") // the last digits of a card: "last4", "last_4_digits"
			}
		case unicode.IsUpper(r):
			lower := i > 0 && unicode.IsLower(runes[i-1])
			last := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if lower || last {
				end()
			}
			word = append(word, unicode.ToLower(plain(r)))
		default:
			word = append(word, plain(r))
		}
	}
	end()
	return words
}

// plain replaces letters that do not decompose into a letter and an accent.
func plain(r rune) rune {
	switch r {
	case 'ł', 'Ł':
		return 'l'
	case 'ø', 'Ø':
		return 'o'
	case 'ı', 'İ':
		return 'i'
	}
	return r
}

// phrases returns words and sequences of words to find in a name. It parses them when it is first
// called, because most commands need none.
type phrases func() parsedPhrases

// parsedPhrases is the parsed form of phrases.
type parsedPhrases struct {
	runs map[string][][]string // by their first word
	long []string              // without spaces; to find at the beginning or the end of longer words
}

// minInside is the minimum length of a phrase to find at the beginning or the end of a longer word,
// such as "lastname" in "custlastname".
const minInside = 7

// listOf returns the phrases of a comma-separated list.
func listOf(text string) phrases { return sync.OnceValue(func() parsedPhrases { return parse(text) }) }

func parse(text string) parsedPhrases {
	p := parsedPhrases{runs: map[string][][]string{}}
	add := func(run []string) { p.runs[run[0]] = append(p.runs[run[0]], run) }
	for phrase := range strings.SplitSeq(text, ",") {
		run := split(phrase)
		if len(run) == 0 {
			continue
		}
		add(run)
		if joined := strings.Join(run, ""); len(joined) >= minInside {
			p.long = append(p.long, joined)
		} else if len(run) > 1 {
			add([]string{joined})
		}
	}
	return p
}

// in returns the number of the word, counted from one, at which the last matching phrase ends, or 0
// if none matches.
func (p phrases) in(words []string) int { return p().in(words) }

func (p parsedPhrases) in(words []string) int {
	end := 0
	for i, w := range words {
		for _, run := range p.runs[w] {
			if i+len(run) <= len(words) && slices.Equal(words[i:i+len(run)], run) {
				end = max(end, i+len(run))
			}
		}
		if p.numbered(w) {
			end = max(end, i+1)
		}
	}
	if end > 0 {
		return end
	}
	for _, long := range p.long {
		for i, w := range words {
			if strings.HasPrefix(w, long) || strings.HasSuffix(w, long) {
				return i + 1
			}
		}
	}
	return 0
}

// numbered reports whether a word is a phrase followed by a word for a number, such as
// "phoneno" and "birthmonth".
func (p parsedPhrases) numbered(word string) bool {
	for _, number := range []string{"no", "nr", "num", "number", "day", "month", "year"} {
		phrase, found := strings.CutSuffix(word, number)
		if !found || len(phrase) < 3 {
			continue
		}
		if slices.ContainsFunc(p.runs[phrase], func(run []string) bool { return len(run) == 1 }) {
			return true
		}
	}
	return false
}

// anyOf reports whether any of the phrases occurs in the words.
func anyOf(words []string, p phrases) bool { return p.in(words) > 0 }
