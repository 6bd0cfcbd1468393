package snap_test

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// idioms are phrases that a native reader stumbles over, each with words to
// use instead.
var idioms = []struct{ phrases, instead string }{
	{"stand in|stands in", "is in, is stored, has, replaces"},
	{"anew", "again, from the beginning"},
	{"is told|are told|was told|were told", "is reported, gets, learns of"},
	{"go on|goes on", "continue, resume, keep running"},
	{"all the same", "still, anyway"},
	{"as it was", "unchanged, the original"},
	{"so many", "n, a number of"},
	{"it is none", "it is not one"},
	{"what is no", `a noun, such as "text that is not a number"`},
	{"nobody of", "none of its members"},
	{"at hand", "available, current"},
	{"has it that", "says"},
	{"who runs the service", "the service's operator"},
	{"to have it chosen", "omit it to use the default"},
}

// phrase is an idiom to look for.
type phrase struct {
	text, instead string
	pattern       *regexp.Regexp // the text, which may be broken over lines, including those of a comment
}

var phrases = sync.OnceValue(func() (all []phrase) {
	const between = `\s+(?:(?://|#|--)\s+)?`
	for _, idiom := range idioms {
		for text := range strings.SplitSeq(idiom.phrases, "|") {
			pattern := regexp.MustCompile(strings.ReplaceAll(text, " ", between))
			all = append(all, phrase{text, idiom.instead, pattern})
		}
	}
	return all
})

// bareSubject matches the beginning of a sentence, within one line, whose subject begins with What
// or Who, such as "Who may see it". Such a sentence should begin with a noun.
var bareSubject = regexp.MustCompile(
	`(?:^|[.:;] |// |\* )(What|Who|Whoever|Whatever) (is|was|has|cannot|may|does|a|the)\b`)

// TestPlainWords rejects idioms and bare subjects in every text file that trackedFiles returns.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	files := 0
	for _, name := range trackedFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // deleted and not committed yet, or not text
		}
		files++
		for _, complaint := range idiomsOf(text) {
			t.Errorf("%s:%s", name, complaint)
		}
	}
	if files < 100 {
		t.Errorf("only %d files found; is the test looking in the right place?", files)
	}
}

// TestIdiomsAreFound checks that the test above finds phrases, even when they are broken over
// lines.
func TestIdiomsAreFound(t *testing.T) {
	t.Parallel()
	got := idiomsOf([]byte("the line stands in a file\nand the banew goes\n\t// on.\n// Who may see it\n"))
	want := []string{
		`1: "stands in": write is in, is stored, has, replaces`,
		"2: \"goes\\n\\t// on\": write continue, resume, keep running",
		`4: "// Who may": begin with a noun`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// idiomsOf returns a complaint for each idiom in a text, with its line. Regular expressions are
// slow under the race detector, so they only see texts and lines that simpler functions have
// chosen.
func idiomsOf(text []byte) (complaints []string) {
	complain := func(line int, found []byte, instead string) {
		complaints = append(complaints, fmt.Sprintf("%d: %q: %s", line, found, instead))
	}
	words := inOneLine(text)
	for _, p := range phrases() {
		if !bytes.Contains(words, []byte(p.text)) {
			continue
		}
		for start, end := range occurrences(text, p.pattern) {
			complain(1+bytes.Count(text[:start], []byte("\n")), text[start:end], "write "+p.instead)
		}
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if !bytes.Contains(line, []byte("Wh")) {
			continue
		}
		for _, at := range bareSubject.FindAllIndex(line, -1) {
			complain(number, line[at[0]:at[1]], "begin with a noun")
		}
	}
	return complaints
}

// inOneLine returns the words of a text with a space between them, without the marks of comments.
func inOneLine(text []byte) []byte {
	words := slices.DeleteFunc(bytes.Fields(text), func(word []byte) bool {
		return string(word) == "//" || string(word) == "#" || string(word) == "--"
	})
	return bytes.Join(words, []byte(" "))
}

// occurrences yields the positions of a phrase that are not part of longer words.
func occurrences(text []byte, pattern *regexp.Regexp) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for _, at := range pattern.FindAllIndex(text, -1) {
			start, end := at[0], at[1]
			inWord := start > 0 && isLetter(text[start-1]) || end < len(text) && isLetter(text[end])
			if !inWord && !yield(start, end) {
				return
			}
		}
	}
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// trackedFiles returns the tracked files, without licenses, inputs that fuzzing found, and this
// file.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("needs git and a clone of the repository")
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		base := filepath.Base(name)
		if base != "LICENSE" && name != "words_test.go" && !strings.Contains(name, "/testdata/fuzz/") {
			names = append(names, name)
		}
	}
	return names
}
