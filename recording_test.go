package snap_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const recording = "docs/recording.txt"

// shown are the commands of the recording that the README shows, in order.
var shown = []string{
	"alice@acme$ snapcli build ",
	"alice@acme$ snapcli sanitize ",
	"alice@acme$ snapcli push ",
	"alice@acme$ snapcli cloud snapshots share .* --group",
	"alice@acme$ snapcli cloud snapshots share .* --org",
	"gary@globex$ snapcli cloud snapshots\n",
	"gary@globex$ snapcli pull ",
	"gary@globex$ snapcli targets add ",
	"gary@globex$ snapcli load ",
	"alice@acme$ snapcli cloud snapshots unshare .* --group",
	"alice@acme$ snapcli cloud snapshots unshare .* --org",
	"mia@acme$ snapcli pull ",
}

// TestRecording compares the terminal story in the README with the recording that `make recording`
// makes of the demo.
func TestRecording(t *testing.T) {
	t.Parallel()
	want := story(t, read(t, recording))
	block := regexp.MustCompile("(?s)```console\n(.*?)```")
	readme := read(t, "README.md")
	if *update {
		at := block.FindStringSubmatchIndex(readme)
		readme = readme[:at[2]] + want + readme[at[3]:]
		if err := os.WriteFile("README.md", []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := block.FindStringSubmatch(readme)
	if got == nil || got[1] != want {
		t.Errorf("the README does not show what %s has; run `make recording`", recording)
	}
}

// story selects the shown commands with their output, without the demo's own words and the names of
// phases.
func story(t *testing.T, text string) string {
	t.Helper()
	own := regexp.MustCompile(`(?m)^(✓ checked: |# |\w+ \.\.\.$).*\n`)
	var parts []string
	for _, command := range shown {
		at := regexp.MustCompile(`(?m)^` + strings.ReplaceAll(command, "$", `\$`)).FindStringIndex(text)
		if at == nil {
			t.Fatalf("%s has no %q where it belongs", recording, command)
		}
		text = text[at[0]:]
		answer, _, _ := strings.Cut(text, "\n\n")
		parts = append(parts, strings.TrimRight(own.ReplaceAllString(answer+"\n", ""), "\n")+"\n")
		text = text[len(answer):]
	}
	return strings.Join(parts, "\n")
}
