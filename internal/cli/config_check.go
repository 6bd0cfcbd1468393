package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap/internal/command"
)

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the config file",
		Long: `Check reads the configuration and the files it names and says what is wrong:
what is mistyped, with line and column, and every setting that would fail when
it is used. It connects to nothing; doctor does that too.`,
		Example: examples("check it", "snapcli config check"),
		Args:    command.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.checkConfig() },
	}
}

func (a *app) checkConfig() error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	var broken []error
	for _, f := range agent.Flaws() {
		err := fmt.Errorf("%s: %w", f.Key, f.Err)
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
		a.done("", "%s does not exist yet: nothing is configured in it", agent.ConfigPath())
		return nil
	}
	a.done("", "%s is fine: %s", agent.ConfigPath(), plural(len(agent.Targets()), "target", "targets"))
	return nil
}
