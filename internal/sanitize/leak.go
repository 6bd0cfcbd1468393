package sanitize

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"snap"
)

// minWatched is the minimum length of a value to search for. Shorter values occur elsewhere by
// chance.
const minWatched = 8

// finder searches bytes for values, ignoring case.
type finder struct {
	watched []Watched
	starts  map[uint64][]int // indexes of values by their first eight bytes; see startsOf
	filter  [1 << 16]bool    // hashes of those bytes, to skip most positions quickly
	longest int
	doubled bool // in the searched bytes, every literal backslash is doubled
}

func newFinder(watched []Watched) *finder {
	f := &finder{watched: watched, starts: map[uint64][]int{}}
	for i, v := range watched {
		for _, start := range startsOf(v.Value) {
			f.starts[start] = append(f.starts[start], i)
			f.filter[mix(start)] = true
		}
		f.longest = max(f.longest, len(v.Value))
	}
	return f
}

// startsOf returns startOf for a value in all mixtures of upper and lower case, each once.
func startsOf(v string) []uint64 {
	if !utf8.ValidString(v) { // only the case of ASCII letters is ignored
		return []uint64{startOf([]byte(v))}
	}
	texts := [][]byte{nil}
	for _, r := range v {
		if len(texts[0]) >= 8 {
			break
		}
		var longer [][]byte
		for _, text := range texts {
			for _, form := range caseForms(r) {
				longer = append(longer, utf8.AppendRune(slices.Clone(text), form))
			}
		}
		texts = longer
	}
	var all []uint64
	for _, text := range texts {
		all = append(all, startOf(text))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// caseForms returns the forms of a letter in upper and lower case that differ in startOf and have
// the same number of bytes.
func caseForms(r rune) []rune {
	all := []rune{r}
	if r < utf8.RuneSelf {
		return all
	}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if utf8.RuneLen(other) == utf8.RuneLen(r) {
			all = append(all, other)
		}
	}
	return all
}

// startOf returns the first eight bytes, and sets bit 0x20 in each of them. Lower and upper case of
// an ASCII letter differ only in that bit.
func startOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b) | 0x2020202020202020 }

func mix(start uint64) uint16 { return uint16((start * 0x9e3779b97f4a7c15) >> 48) }

// find calls hit with the index and the position of every value in b that starts before the given
// position. It skips a value if the match is part of a longer number, or begins with the second
// backslash of a pair. prior holds the bytes before b.
func (f *finder) find(b []byte, before int, prior []byte, hit func(watched, at int)) {
	for i := 0; i+8 <= len(b) && i < before; i++ {
		start := startOf(b[i:])
		if !f.filter[mix(start)] {
			continue
		}
		last := lastOf(b[:i])
		if i == 0 {
			last = lastOf(prior)
		}
		if f.doubled && b[i] == '\\' && last == '\\' && secondOfPair(prior, b[:i]) {
			continue
		}
		for _, index := range f.starts[start] {
			v := f.watched[index].Value
			if len(b)-i < len(v) || isDigit(last) && isDigit(v[0]) || !equalFold(b[i:i+len(v)], []byte(v)) {
				continue
			}
			if end := i + len(v); end < len(b) && isDigit(b[end]) && isDigit(v[len(v)-1]) {
				continue
			}
			hit(index, i)
		}
	}
}

// equalFold reports whether a and b are equal, ignoring case. If either is not UTF-8, it ignores
// only the case of ASCII letters.
func equalFold(a, b []byte) bool {
	if !bytes.EqualFold(a, b) || utf8.Valid(a) && utf8.Valid(b) {
		return bytes.EqualFold(a, b)
	}
	for i := range a { // bytes.EqualFold treats all invalid bytes as the same character
		if a[i] != b[i] && (a[i] >= utf8.RuneSelf || a[i]^b[i] != 0x20) {
			return false
		}
	}
	return true
}

// lastOf returns the last byte, or 0.
func lastOf(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1]
}

// secondOfPair reports whether prior followed by b ends with an odd number of backslashes.
func secondOfPair(prior, b []byte) bool {
	n := 0
	for _, part := range [][]byte{b, prior} {
		rest := len(bytes.TrimRight(part, `\`))
		if n += len(part) - rest; rest > 0 {
			break
		}
	}
	return n%2 == 1
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// Scanner copies a stream to a writer and searches it for original values. It finds a value in any
// column, in upper or lower case, and across calls of Write.
type Scanner struct {
	w     io.Writer
	f     *finder
	tail  []byte // the end of the previous write, for values that span two writes
	found map[Watched]bool
}

// NewScanner returns a scanner that writes to w.
func NewScanner(w io.Writer, watched []Watched) *Scanner {
	f := newFinder(watched)
	f.doubled = true // the second backslash of a pair does not start an escape such as \n
	return &Scanner{w: w, f: f, found: map[Watched]bool{}}
}

// lookback is the number of bytes to keep before a possible value. Digits and backslashes there can
// show that the match is not the value; see find.
const lookback = 16

// Write implements io.Writer.
func (s *Scanner) Write(p []byte) (int, error) {
	if len(s.f.watched) > 0 {
		// First search for values that span the previous write and this one, and then search this
		// write alone.
		border := len(s.tail)
		joined := slices.Concat(s.tail, p[:min(len(p), s.f.longest)])
		note := func(watched, at int) {
			if v := s.f.watched[watched]; at+len(v.Value) > border {
				s.found[v] = true
			}
		}
		s.f.find(joined, border, nil, note)
		border = 0 // in this write, note accepts every match
		s.f.find(p, len(p), s.tail, note)
		s.keep(p)
	}
	return s.w.Write(p)
}

// keep saves the last bytes of the stream.
func (s *Scanner) keep(p []byte) {
	size := s.f.longest + lookback
	if len(p) >= size {
		s.tail = append(s.tail[:0], p[len(p)-size:]...)
		return
	}
	s.tail = append(s.tail, p...)
	s.tail = append([]byte(nil), s.tail[max(0, len(s.tail)-size):]...)
}

// Leaked reports whether a value was found.
func (s *Scanner) Leaked() bool { return len(s.found) > 0 }

// Ignore removes from the findings the values that are in the stream by coincidence.
func (s *Scanner) Ignore(values []Watched) {
	for _, v := range values {
		delete(s.found, v)
	}
}

// columns returns the columns whose values were found, each once.
func (s *Scanner) columns() []string {
	all := map[string]bool{}
	for v := range s.found {
		all[v.Column] = true
	}
	return sortedKeys(all)
}

// Result returns nil if no value was found, otherwise an error that names the columns.
func (s *Scanner) Result() error {
	if len(s.found) == 0 {
		return nil
	}
	return snap.Invalid(
		fmt.Sprintf("original values of %s are still in the masked copy, but not in its rows: look for them in "+
			"defaults, comments, views and other parts of the schema", upToTen(s.columns())),
		"remove the values there, in the database; if they are not secret, add shared: true to the column's rule")
}

// formsOf returns the forms in which a dump can contain a value: unchanged, in XML, inside a JSON
// document with and without escaped non-ASCII characters, and each of these with doubled
// backslashes, as in COPY and in MySQL literals.
func formsOf(v string) []string {
	forms := []string{v}
	add := func(form string) {
		for _, f := range []string{form, strings.ReplaceAll(form, `\`, `\\`)} {
			if !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
	}
	add(v)
	add(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(v))
	add(strings.Trim(string(quotedJSON(v)), `"`))
	for _, cased := range []string{v, strings.ToUpper(v), strings.ToLower(v)} { // their escapes differ
		ascii := strconv.QuoteToASCII(cased)
		escaped := strings.Contains(ascii, `\u`)
		if (escaped || cased == v) && !strings.Contains(ascii, `\x`) && !strings.Contains(ascii, `\U`) {
			add(strings.Trim(ascii, `"`))
		}
	}
	for _, form := range slices.Clone(forms) { // in JSON, PHP escapes /, and Go and Rails escape &, < and >
		add(strings.ReplaceAll(form, "/", `\/`))
		add(strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(form))
	}
	return forms
}
