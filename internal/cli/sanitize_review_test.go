package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/local"
)

const drafted = `tables:
  a:
    columns:
      id: keep       # the number of a row
      note: decide   # free text
      bio: decide    # free text
      kind: decide   # text of unknown meaning; format would work
`

// Groups of columns are decided with one key each, and every decision is saved at once, even when
// the review is left or the terminal goes away.
func TestReviewOfRules(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]struct {
		rules string // of note, bio, kind and id
		code  snap.Code
		said  string
	}{
		"nmk":    {"null null format keep", "", ""},
		"mmk":    {"redact redact format keep", "", ""},
		"ekmkm":  {"keep redact keep redact", "", ""},
		"xnq":    {"null null decide keep", "", "1 column still to decide"},
		"n":      {"null null decide keep", snap.CodeInterrupted, ""},
		"n\x03":  {"null null decide keep", snap.CodeInterrupted, ""},
		"ssd":    {"decide decide decide decide", "", "4 columns still to decide"},
		"q":      {"decide decide decide keep", "", "3 columns still to decide"},
		"ekqnnn": {"keep decide decide keep", "", "2 columns still to decide"},
	} {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, []byte(drafted), 0o600); err != nil {
			t.Fatal(err)
		}
		a, said := asking(strings.NewReader(keys))
		v, err := local.ReviewRules(path)
		if err != nil {
			t.Fatal(err)
		}
		err = a.review(t.Context(), path, v)
		if snap.CodeOf(err) != want.code && (err != nil || want.code != "") {
			t.Errorf("%q: %v", keys, err)
		}
		if !strings.Contains(said.String(), want.said) || !strings.Contains(said.String(), "2 columns: free text") {
			t.Errorf("%q: said %q", keys, said)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		masks := map[string]string{}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 {
				masks[f[0]] = strings.Trim(f[1], `"`)
			}
		}
		got := strings.Join([]string{masks["note:"], masks["bio:"], masks["kind:"], masks["id:"]}, " ")
		if got != want.rules {
			t.Errorf("%q: %s, want %s", keys, got, want.rules)
		}
	}
}

// Without a terminal there is nobody to ask.
func TestReviewNeedsATerminal(t *testing.T) {
	t.Parallel()
	a, _ := asking(strings.NewReader(""))
	a.io.InTerminal = false
	if err := a.reviewRules(t.Context(), nil, "shop", ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("%v", err)
	}
}
