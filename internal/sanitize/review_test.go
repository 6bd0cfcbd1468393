package sanitize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A review replaces only the mask names that are decided, and removes their suggestions from the
// comments.
func TestReview(t *testing.T) {
	t.Parallel()
	const text = `# äöü: mine
tables:
  a:
    columns:
      id: keep                                 # the ID of a row
      "x y": decide                            # free text
      note: decide                             # free text
      kind: decide                             # text of unknown meaning; format would work
      sum: {mask: noise, percent: 5}           # mine
  "ß*": {columns: {c: decide}} # short
`
	v, err := parseReview("r.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	groups := v.Groups(Undecided)
	if len(groups) != 3 || strings.Join(groups[0].Columns, " ") != "a.x y a.note" || groups[0].Reason != "free text" ||
		v.Counts()["keep"] != 1 || v.Counts()[Undecided] != 4 {
		t.Fatalf("%+v", groups)
	}
	for _, g := range groups {
		switch g.Reason {
		case "free text":
			v.Decide(g.One(0), `"null"`)
			v.Decide(g.One(1), "redact")
		case "text of unknown meaning":
			v.Decide(g, g.Suggestion)
		default:
			v.Decide(g, "keep")
		}
	}
	got, err := v.Text()
	want := strings.NewReplacer(`"x y": decide`, `"x y": "null"`, "note: decide", "note: redact", "kind: decide",
		"kind: format", "c: decide}", "c: keep  }", "; format would work", "").Replace(text)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// Every proposal of a draft is in the review.
func TestReviewOfDraft(t *testing.T) {
	t.Parallel()
	c, _ := shopSchema()
	text, err := Suggest(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := ReadReview(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, count := range v.Counts() {
		n += count
	}
	if n != 10 {
		t.Errorf("%d of 10 columns: %v", n, v.Counts())
	}
	for _, g := range v.Groups(Undecided) {
		v.Decide(g, "keep")
	}
	if _, err := v.Text(); err != nil || v.Counts()[Undecided] != 0 {
		t.Errorf("%v, %v", err, v.Counts())
	}
}
