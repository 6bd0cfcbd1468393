package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"snap"
)

// result prints a line of the result to standard output.
func (a *app) result(format string, args ...any) {
	fmt.Fprintf(a.io.Out, format+"\n", cleanArgs(args)...)
}

// done prints what a command changed, as its result: one line, or with --quiet
// only the word that a script wants, and nothing when there is none.
func (a *app) done(word, format string, args ...any) {
	if a.flags.quiet {
		if word != "" {
			a.result("%s", word)
		}
		return
	}
	if a.colour(a.io.OutTerminal) {
		format = green.Render("✓") + " " + format
	}
	a.result(format, args...)
}

// note tells something useful next to the result. --quiet leaves it out.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintf(a.io.Err, format+"\n", cleanArgs(args)...)
	}
}

// noteMore says that there are more than the rows that were shown.
func (a *app) noteMore(shown int) {
	newest := "one is"
	if shown > 1 {
		newest = fmt.Sprintf("%d are", shown)
	}
	a.note("the newest %s shown; see the rest with --all", newest)
}

// next tells a person on a terminal what to do after this.
func (a *app) next(format string, args ...any) {
	if a.io.ErrTerminal && a.io.OutTerminal && !a.flags.quiet && !a.flags.json {
		a.note(a.paintErr(faint, "next: ")+format, args...)
	}
}

// warn tells something that matters even to a script.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.io.Err, a.paintErr(yellow, "warning: ")+format+"\n", cleanArgs(args)...)
}

// printJSON writes v as the result.
func (a *app) printJSON(v any) error { return writeJSON(a.io.Out, v) }

func writeJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printEvent writes v as one line of the result, for what reads it line by line.
func (a *app) printEvent(v any) error { return encodeJSON(a.io.Out, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, escapeControls(b.String()))
	return err
}

// escapeControls writes the characters that snap.CleanText would remove, and that JSON
// allows unescaped, as JSON escapes. Nothing is lost by it.
func escapeControls(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= ' ' && snap.CleanText(string(r)) == "" {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// jsonFlag gives a command the flag --json.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "write the result as JSON")
}

// The few colours and what they mean. Sixteen-colour names follow the
// terminal's own theme.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)  // done, shared
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow) // look here
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)    // failed
)

// colour reports whether a stream that is a terminal, or not, gets colour.
func (a *app) colour(terminal bool) bool {
	return terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

func (a *app) paintErr(s lipgloss.Style, text string) string {
	if a.colour(a.io.ErrTerminal) {
		return s.Render(text)
	}
	return text
}

// person reports whether there is somebody to ask: a terminal on both ends.
func (a *app) person() bool { return a.io.InTerminal && a.io.ErrTerminal && a.env("CI") == "" }

// size writes bytes for people.
func size(bytes int64) string {
	if bytes < 0 {
		bytes = 0
	}
	return humanize.Bytes(uint64(bytes))
}

// exactSize writes bytes for people, and their number where that rounds.
func exactSize(bytes int64) string {
	if bytes < 1000 {
		return size(bytes)
	}
	return fmt.Sprintf("%s (%d bytes)", size(bytes), bytes)
}

// moment writes a time for people with its zone: theirs, or UTC with --utc.
func (a *app) moment(t time.Time) string {
	if a.flags.utc {
		t = t.UTC()
	} else {
		t = t.Local()
	}
	return t.Format("2006-01-02 15:04 MST")
}

// when writes a time, and how far it is from now.
func (a *app) when(t time.Time) string {
	return a.moment(t) + " (" + snap.Distance(a.now(), t) + ")"
}

// until writes when something ends.
func (a *app) until(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "never"
	}
	return a.when(*t)
}

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// say prints a line to standard error whatever the flags are.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.io.Err, format+"\n", cleanArgs(args)...)
}

// write puts text of our own on standard error as it is.
func (a *app) write(text string) { fmt.Fprint(a.io.Err, text) }

var plainWord = regexp.MustCompile(`^[0-9A-Za-z._/@%+=:-]+$`)

// word writes a name as a person types it to a shell: quoted when it must be.
func word(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
