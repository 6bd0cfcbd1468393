package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
)

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the config file",
		Long: `Check reads the configuration and the files it names. It reports errors with
their line and column, and every setting that would fail when it is used. It
makes no connections; use ` + "`snapcli doctor`" + ` for that.`,
		Example: examples("check it", "snapcli config check"),
		Args:    command.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.checkConfig() },
	}
}

func (a *app) checkConfig() error {
	agent, err := a.configuration()
	if err != nil {
		return err
	}
	var broken []error
	for _, f := range agent.Flaws() {
		err := fmt.Errorf("%s: %w", f.Key, f.Err)
		if at := agent.Position(f.Key); at != "" {
			err = fmt.Errorf("%s: %w", at, err)
		}
		if f.Doubt {
			a.warn("%s", err)
			continue
		}
		broken = append(broken, err)
	}
	if len(broken) > 0 {
		return errors.Join(broken...)
	}
	if !agent.ConfigExists() {
		a.done("", "%s does not exist yet, so nothing is configured", agent.ConfigPath())
		return nil
	}
	a.done("", "%s is valid: %s", agent.ConfigPath(), snap.Plural(len(agent.Targets()), "target", "targets"))
	return nil
}
