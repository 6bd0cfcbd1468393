package cli

import (
	"encoding/json"
	"fmt"
	"io"
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

// done prints the result of a command that changed something. With --quiet it prints only word, or
// nothing if word is empty.
func (a *app) done(word, format string, args ...any) {
	if a.flags.quiet {
		if word != "" {
			a.result("%s", word)
		}
		return
	}
	if a.color(a.io.OutTerminal) {
		format = green.Render("✓") + " " + format
	}
	a.result(format, args...)
}

// note prints useful information next to the result. --quiet suppresses it.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet {
		a.say(format, args...)
	}
}

// noteMore notes that there are more rows than those shown.
func (a *app) noteMore(shown int) {
	newest := "one is"
	if shown > 1 {
		newest = fmt.Sprintf("%d are", shown)
	}
	a.note("the newest %s shown; see the rest with --all", newest)
}

// next suggests the next step to a person on a terminal.
func (a *app) next(format string, args ...any) {
	if a.io.ErrTerminal && a.io.OutTerminal && !a.flags.quiet && !a.flags.json {
		a.note(a.paintErr(faint, "next: ")+format, args...)
	}
}

// warn prints a warning, even with --quiet.
func (a *app) warn(format string, args ...any) {
	a.say(a.paintErr(yellow, "warning: ")+format, args...)
}

// printJSON writes v to standard output as indented JSON.
func (a *app) printJSON(v any) error { return encodeJSON(a.io.Out, v, "  ") }

// printEvent writes v to standard output as one line of JSON, for programs that read line by line.
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

// escapeControls escapes the characters that JSON allows unescaped and snap.CleanText would remove.
// No information is lost.
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

// jsonFlag adds the flag --json to a command.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "write the result as JSON")
}

// The colors and their meanings. They are among the 16 standard colors, which follow the terminal's
// own theme.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)  // success, shared
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow) // needs attention
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)    // failed
)

// color reports whether the output to a stream is colored. The argument terminal is true if the
// stream is a terminal.
func (a *app) color(terminal bool) bool {
	return terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

func (a *app) paintErr(s lipgloss.Style, text string) string {
	if a.color(a.io.ErrTerminal) {
		return s.Render(text)
	}
	return text
}

// canAsk reports whether the program can ask a question: both input and standard error are
// terminals, outside CI.
func (a *app) canAsk() bool { return a.io.InTerminal && a.io.ErrTerminal && a.env("CI") == "" }

// size formats a number of bytes.
func size(bytes int64) string {
	return humanize.Bytes(uint64(max(bytes, 0)))
}

// exactSize formats a number of bytes, followed by the exact number if the format rounds it.
func exactSize(bytes int64) string {
	if bytes < 1000 {
		return size(bytes)
	}
	return fmt.Sprintf("%s (%d bytes)", size(bytes), bytes)
}

// moment formats a time with its zone: the local one, or UTC with --utc.
func (a *app) moment(t time.Time) string {
	t = t.Local()
	if a.flags.utc {
		t = t.UTC()
	}
	return t.Format("2006-01-02 15:04 MST")
}

// when formats a time and its distance from now.
func (a *app) when(t time.Time) string {
	return a.moment(t) + " (" + snap.Distance(a.now(), t) + ")"
}

// until formats the end of something, such as a share, or returns "never".
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

// withPrefix returns prefix followed by text, or "" if text is empty.
func withPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// say prints a line to standard error, even with --quiet.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.io.Err, format+"\n", cleanArgs(args)...)
}

// cleanArgs applies snap.CleanText to every string and every error among the arguments of a format.
func cleanArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			out[i] = snap.CleanText(v)
		case error:
			out[i] = snap.CleanText(v.Error())
		default:
			out[i] = arg
		}
	}
	return out
}

// raw is the program's own text, which may contain color codes: cleanArgs does not change it.
type raw string

// write prints the program's own text to standard error unchanged.
func (a *app) write(text string) { fmt.Fprint(a.io.Err, text) }
