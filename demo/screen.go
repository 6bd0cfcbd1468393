package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"snap"
)

// screen prints the demo's story. It uses no colors when it is not a terminal or NO_COLOR is set.
type screen struct {
	file     *os.File
	began    time.Time
	chapters int
}

func newScreen(f *os.File) *screen { return &screen{file: f, began: time.Now()} }

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	title = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
)

// chapter begins a part of the story.
func (s *screen) chapter(name string) {
	s.chapters++
	lipgloss.Fprintf(s.file, "\n%s\n", title.Render(fmt.Sprintf("%d. %s", s.chapters, name)))
}

// line prints a remark.
func (s *screen) line(format string, args ...any) {
	lipgloss.Fprintf(s.file, format+"\n", args...)
}

// aside prints a less important remark.
func (s *screen) aside(format string, args ...any) {
	lipgloss.Fprintln(s.file, faint.Render("# "+fmt.Sprintf(format, args...)))
}

// checked prints a promise that was checked and holds.
func (s *screen) checked(format string, args ...any) {
	lipgloss.Fprintln(s.file, good.Render("✓ checked: "+fmt.Sprintf(format, args...)))
}

// command shows a command as a person types it.
func (s *screen) command(who person, program string, args []string) {
	words := make([]string, 0, len(args)+1)
	for _, arg := range append([]string{program}, args...) {
		words = append(words, snap.ShellWord(arg))
	}
	prompt := lipgloss.NewStyle().Bold(true).Foreground(who.color).Render(who.prompt() + "$")
	lipgloss.Fprintf(s.file, "\n%s %s\n", prompt, bold.Render(strings.Join(words, " ")))
}

// fail reports an error.
func (s *screen) fail(err error) {
	lipgloss.Fprintf(s.file, "\n%s %v\n", bad.Render("the demo failed:"), err)
}
