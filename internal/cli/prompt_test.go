package cli

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/internal/local"
	"snap/internal/schema"
)

// asking is a person at a terminal that cannot move its cursor, or with a
// screen reader.
func asking(in io.Reader) (*app, *bytes.Buffer) {
	var said bytes.Buffer
	a := &app{io: IO{In: in, Out: io.Discard, Err: &said, InTerminal: true, OutTerminal: true, ErrTerminal: true}}
	a.env = func(name string) string { return map[string]string{"TERM": "dumb"}[name] }
	return a, &said
}

// TestPlainQuestion checks that a plain question shows the details first, as a drawn question does,
// and reads a line as the answer.
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

// TestImportAsksForEachVariable: a person is asked for every variable that an imported URL would
// send to a host, each by its name, and may refuse it.
func TestImportAsksForEachVariable(t *testing.T) {
	t.Parallel()
	i := local.Import{Targets: []local.Target{{Source: "postgres://me:${PASSWORD}@db.example/shop",
		Destination: "postgres://x:${AWS_SECRET_ACCESS_KEY}@evil.example/shop?x=${HOME}"}}}
	for _, c := range []struct {
		answers, refused string
		allowed          []string
	}{
		{answers: "yyy"}, {answers: "yn", refused: "AWS_SECRET_ACCESS_KEY"}, {answers: "n", refused: "PASSWORD"},
		{answers: "yyn", refused: "HOME"}, {allowed: []string{"HOME", "PASSWORD", "AWS_SECRET_ACCESS_KEY"}},
		{answers: "n", allowed: []string{"PASSWORD"}, refused: "AWS_SECRET_ACCESS_KEY"},
	} {
		answers, in := strings.Split(c.answers, ""), &lines{}
		for _, answer := range answers {
			*in = append(*in, answer+"\n")
		}
		a, said := asking(in)
		err := a.allowVariables(t.Context(), i, c.allowed)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), " "+c.refused+" ") {
			t.Errorf("%+v: %v", c, err)
		}
		if n := strings.Count(said.String(), "[y/N]"); n != len(answers) {
			t.Errorf("%+v: asked %d times: %s", c, n, said)
		}
	}
}

// lines returns one line at a time, as a terminal does.
type lines []string

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	if len(*l) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*l)[0])
	*l = (*l)[1:]
	return n, nil
}

// TestTrustIsAskedFor: a person sees the programs of somebody else's snapshot before the question
// whether to load them. Nobody is asked without a terminal.
func TestTrustIsAskedFor(t *testing.T) {
	t.Parallel()
	p := local.Preflight{Snapshot: local.Snapshot{Name: "shop-1",
		From: local.Provenance{Origin: local.Theirs, Organization: "globex"}},
		Programs: []schema.Program{{Kind: "trigger", Name: schema.Name{Name: "spy"}, On: "customer"}}}
	for answer, want := range map[string]snap.Code{"y\n": "", "n\n": snap.CodeInterrupted, "\n": snap.CodeInterrupted} {
		a, said := asking(strings.NewReader(answer))
		if err := a.confirmTrust(t.Context(), p); (err != nil || want != "") && snap.CodeOf(err) != want {
			t.Errorf("%q: %v", answer, err)
		}
		list := strings.Index(said.String(), "triggers: spy on customer")
		if question := strings.Index(said.String(), "[y/N]"); list < 0 || question < list {
			t.Errorf("%q: said %q", answer, said)
		}
	}
	a, said := asking(strings.NewReader("y\n"))
	a.io.InTerminal = false
	if err := a.confirmTrust(t.Context(), p); snap.CodeOf(err) != snap.CodeUsage || said.Len() > 0 {
		t.Errorf("without a terminal: %v, said %q", err, said)
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

// asked is a terminal on which something happens once a question is shown. An interrupted question
// may write to the terminal even after the command has returned.
type asked func()

// Write implements io.Writer.
func (a asked) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		a()
	}
	return len(p), nil
}

// TestQuestionHasTheTerminalsColors: buttons and text set no color, because any color is
// unreadable on some background.
func TestQuestionHasTheTerminalsColors(t *testing.T) {
	t.Parallel()
	color := regexp.MustCompile(`[[;]([349]|10)\d`)
	for _, dark := range []bool{false, true} {
		f := defaultColors(dark).Focused
		for _, text := range []string{f.Title.Render("x"), f.Description.Render("x"), f.FocusedButton.Render("x"),
			f.BlurredButton.Render("x")} {
			if color.MatchString(text) {
				t.Errorf("%q has a color", text)
			}
		}
	}
}
