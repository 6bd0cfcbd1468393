package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"

	"snap"
)

// confirm asks for confirmation; Enter alone means no. It does not ask if yes, the value of the
// flag --yes, is true. If nobody can be asked, it returns an error that names the flag. It also
// returns an error for the answer no and for Ctrl-C, so that the caller does nothing.
func (a *app) confirm(ctx context.Context, yes bool, question, details string) error {
	if yes {
		return nil
	}
	if !a.canAsk() {
		return snap.Usage(fmt.Sprintf("this needs a confirmation, and there is no terminal to ask on: %s", question),
			"add --yes to confirm")
	}
	agreed, err := a.askYesNo(ctx, question, details)
	switch {
	case err == nil && agreed:
		return nil
	case err == nil || ctx.Err() != nil || errors.Is(err, huh.ErrUserAborted):
		return &snap.Error{Code: snap.CodeInterrupted, Detail: "nothing was changed", Cause: err}
	}
	return err
}

// askYesNo asks a yes-or-no question on the terminal.
func (a *app) askYesNo(ctx context.Context, question, details string) (bool, error) {
	agreed := false
	field := huh.NewConfirm().Title(snap.CleanText(question)).Description(snap.CleanText(details)).
		Affirmative("Yes").Negative("No").Value(&agreed)
	return agreed, a.ask(ctx, field, details)
}

// askText asks for a line of text on the terminal. It shows the text in proposed until something is
// typed, and returns that text if only Enter is pressed.
func (a *app) askText(ctx context.Context, question, details, proposed string) (string, error) {
	answer := ""
	field := huh.NewInput().Title(snap.CleanText(question)).Description(snap.CleanText(details)).
		Placeholder(snap.CleanText(proposed)).Value(&answer)
	err := a.ask(ctx, field, details)
	return strings.TrimSpace(cmp.Or(answer, proposed)), err
}

// ask shows one question on the terminal.
func (a *app) ask(ctx context.Context, field huh.Field, details string) error {
	form := huh.NewForm(huh.NewGroup(field)).WithInput(a.io.In).WithOutput(a.io.Err).WithShowHelp(false).
		WithTheme(huh.ThemeFunc(defaultColors))
	run := form.RunWithContext
	if a.env("ACCESSIBLE") != "" || a.env("TERM") == "dumb" {
		if details != "" {
			a.say("%s", details)
		}
		run = a.interruptible(form.WithAccessible(true).RunWithContext)
	}
	if err := run(ctx); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// interruptible wraps a question that would wait for input regardless of its context, so that it
// returns when the context ends.
func (a *app) interruptible(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		answered := make(chan error, 1)
		go func() { answered <- run(ctx) }()
		select {
		case err := <-answered:
			return err
		case <-ctx.Done():
			a.write("\n")
			return ctx.Err()
		}
	}
}

// defaultColors styles questions in the terminal's default colors, which are always readable.
func defaultColors(dark bool) *huh.Styles {
	t := huh.ThemeBase(dark)
	t.Focused.Title = t.Focused.Title.Bold(true)
	t.Focused.BlurredButton = t.Focused.BlurredButton.UnsetForeground().UnsetBackground()
	t.Focused.FocusedButton = t.Focused.FocusedButton.UnsetForeground().UnsetBackground().Reverse(true)
	return t
}
