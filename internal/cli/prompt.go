package cli

import (
	"context"
	"fmt"

	"charm.land/huh/v2"

	"snap"
)

// confirm asks a person to agree, with no as the answer of a mere Enter. With
// yes, the flag, it does not ask. Where nobody can be asked it refuses and
// names the flag. A no is an error too, so that nothing goes on.
func (a *app) confirm(ctx context.Context, yes bool, question, details string) error {
	if yes {
		return nil
	}
	if !a.person() {
		return snap.Usage(question+" Nobody can be asked here", "add --yes to agree")
	}
	agreed, err := a.ask(ctx, question, details)
	if err != nil {
		return err
	}
	if !agreed {
		return &snap.Error{Code: snap.CodeInterrupted, Detail: "nothing was changed"}
	}
	return nil
}

// ask puts a yes-or-no question on the terminal.
func (a *app) ask(ctx context.Context, question, details string) (bool, error) {
	agreed := false
	field := huh.NewConfirm().Title(clean(question)).Description(clean(details)).Affirmative("Yes").Negative("No").Value(&agreed)
	form := huh.NewForm(huh.NewGroup(field)).WithInput(a.io.In).WithOutput(a.io.Err).WithShowHelp(false).
		WithTheme(huh.ThemeFunc(huh.ThemeBase16)).
		WithAccessible(a.env("ACCESSIBLE") != "" || a.env("TERM") == "dumb")
	if err := form.RunWithContext(ctx); err != nil {
		return false, fmt.Errorf("ask: %w", err)
	}
	return agreed, nil
}
