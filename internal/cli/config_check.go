package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"snap/api"
)

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the config file",
		Long: `Check reads the configuration and says what is wrong with it, with line and
column. It connects to nothing.`,
		Example: examples("check it", "snapcli config check"),
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.checkConfig() },
	}
}

func (a *app) checkConfig() error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	if url := agent.Config().Cloud.URL; url != "" {
		if _, err := api.CheckBaseURL(url); err != nil {
			return fmt.Errorf("cloud.url: %w", err)
		}
	}
	for _, t := range agent.Targets() {
		if t.Source == "" && t.Destination == "" {
			a.warn("the target %s has neither a source nor a destination", t.Name)
		}
	}
	a.done("", "%s is fine: %s", agent.ConfigPath(), plural(len(agent.Targets()), "target", "targets"))
	return nil
}
