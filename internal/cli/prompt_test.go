package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"snap"
)

// asking is a person at a terminal that cannot move its cursor, or with a
// screen reader.
func asking(in io.Reader) (*app, *bytes.Buffer) {
	var said bytes.Buffer
	a := &app{io: IO{In: in, Out: io.Discard, Err: &said, InTerminal: true, OutTerminal: true, ErrTerminal: true}}
	a.env = func(name string) string { return map[string]string{"TERM": "dumb"}[name] }
	return a, &said
}

// TestPlainQuestion: a plain question tells the details first, as the other one
// does, and takes a line for the answer.
func TestPlainQuestion(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]snap.Code{"y\n": "", "n\n": snap.CodeInterrupted, "\n": snap.CodeInterrupted} {
		a, said := asking(strings.NewReader(answer))
		err := a.confirm(t.Context(), false, "Replace the database shop?", "It has 3 tables.")
		if code := snap.CodeOf(err); (err != nil || want != "") && code != want {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.HasPrefix(said.String(), "It has 3 tables.\n") ||
			!strings.Contains(said.String(), "Replace the database shop? [y/N]") {
			t.Errorf("%q: said %q", answer, said)
		}
	}
}

// TestPlainQuestionIsLeft: Ctrl-C ends a plain question that nobody answers.
func TestPlainQuestionIsLeft(t *testing.T) {
	t.Parallel()
	nobody, end := io.Pipe()
	t.Cleanup(func() { end.Close() })
	a, _ := asking(nobody)
	ctx, cancel := context.WithCancel(t.Context())
	a.io.Err = asked(cancel)
	err := a.confirm(ctx, false, "Replace the database shop?", "")
	if snap.CodeOf(err) != snap.CodeInterrupted || err.Error() != "nothing was changed" {
		t.Errorf("%v", err)
	}
}

// asked is a terminal at which something happens once a question is there. Who
// asks may write to it for as long as nobody answers.
type asked func()

// Write implements io.Writer.
func (a asked) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		a()
	}
	return len(p), nil
}

// TestQuestionHasTheTerminalsColours: buttons and text name no colour, which
// would be unreadable on some background.
func TestQuestionHasTheTerminalsColours(t *testing.T) {
	t.Parallel()
	for _, dark := range []bool{false, true} {
		f := ownColours(dark).Focused
		for _, text := range []string{f.Title.Render("x"), f.Description.Render("x"), f.FocusedButton.Render("x"),
			f.BlurredButton.Render("x")} {
			if strings.Contains(text, "[3") || strings.Contains(text, "[4") || strings.Contains(text, ";3") ||
				strings.Contains(text, ";4") {
				t.Errorf("%q has a colour", text)
			}
		}
	}
}
