package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write the completion script for bash, zsh, fish or powershell",
		Long: `Completion writes a script that lets your shell complete commands and flags, as
well as targets, snapshot IDs, groups and local snapshots.

  bash:        snapcli completion bash > ~/.local/share/bash-completion/completions/snapcli
  zsh:         snapcli completion zsh > "${fpath[1]}/_snapcli"
  fish:        snapcli completion fish > ~/.config/fish/completions/snapcli.fish
  PowerShell:  snapcli completion powershell | Out-String | Invoke-Expression`,
		Example:           examples("try it in this shell", "source <(snapcli completion bash)"),
		Args:              command.ExactArgs("shell"),
		ValidArgsFunction: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.io.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.io.Out)
			case "fish":
				return root.GenFishCompletion(a.io.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.io.Out)
			}
			return snap.Usage(fmt.Sprintf("there is no completion script for %q", args[0]),
				"use bash, zsh, fish or powershell")
		},
	}
}

// The completers offer current values for the word being typed. They print no errors.

// completeTargets offers the configured targets as the first argument.
func (a *app) completeTargets(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	agent, err := a.agent()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, t := range agent.Targets() {
		out = append(out, snap.CleanText(t.Name))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeLocal offers the snapshots on this machine.
func (a *app) completeLocal(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	agent, err := a.agent()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := agent.Snapshots("") // after an error, nothing is offered
	var out []cobra.Completion
	for _, s := range list {
		out = append(out, cobra.CompletionWithDesc(snap.CleanText(s.Name), fmt.Sprintf("%s, %s", s.Type, size(s.Size))))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeIDs offers the IDs of the cloud snapshots that the user can see.
func (a *app) completeIDs(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	prefix, ok := idPrefix(typed)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	a.queryService(cmd, a.connect, func(ctx context.Context, c *connection) error {
		page, err := c.Snapshots(ctx, api.ListOptions{IDPrefix: prefix, Limit: api.DefaultLimit})
		for _, s := range page.Items {
			out = append(out, cobra.CompletionWithDesc(snap.CleanText(s.ID),
				snap.CleanText(fmt.Sprintf("%s, %s, %s", s.Name, s.Type, a.moment(s.Created)))))
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// idPrefix returns the prefix that selects the IDs to offer for a typed text. It is "", which
// selects every ID, if the text is only the beginning of snap_. ok is false if no ID begins with
// the text.
func idPrefix(typed string) (prefix string, ok bool) {
	if _, isPart := strings.CutPrefix(snap.IDPrefix, typed); isPart {
		return "", true
	}
	return snap.CleanIDPrefix(typed)
}

func (a *app) completeGroups() cobra.CompletionFunc {
	return completeEntries(a, a.connect, (*api.Client).Groups,
		func(g api.Group) (string, string) { return g.Name, g.GroupID })
}

// completeOrgs offers the organizations that a snapshot is shared with. The caller's organization
// is not allowed to know any other slugs.
func (a *app) completeOrgs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	a.queryService(cmd, a.connect, func(ctx context.Context, c *connection) error {
		seen := map[string]bool{}
		for _, id := range args {
			s, err := c.Resolve(ctx, id)
			if err != nil {
				return err
			}
			shares, err := c.OrgShares(ctx, s.ID)
			if err != nil {
				return err
			}
			for _, share := range shares {
				if !seen[share.OrgSlug] {
					seen[share.OrgSlug] = true
					out = append(out, cobra.CompletionWithDesc(snap.CleanText(share.OrgSlug),
						snap.CleanText(share.Name)))
				}
			}
		}
		return nil
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeEntries returns a completion function that offers the entries of one of the service's
// lists, each with a description.
func completeEntries[T any](a *app, connect func() (*connection, error),
	list func(*api.Client, context.Context) ([]T, error),
	entry func(T) (value, description string)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		a.queryService(cmd, connect, func(ctx context.Context, c *connection) error {
			entries, err := list(c.Client, ctx)
			for _, e := range entries {
				value, description := entry(e)
				out = append(out, cobra.CompletionWithDesc(snap.CleanText(value), snap.CleanText(description)))
			}
			return err
		})
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// queryService calls ask with a connection to the cloud service and a short timeout, because the
// shell waits for the result.
func (a *app) queryService(cmd *cobra.Command, connect func() (*connection, error),
	ask func(context.Context, *connection) error) {
	conn, err := connect()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeouts.complete)
	defer cancel()
	if err := ask(ctx, conn); err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
}

// completeProfiles offers the configured storage profiles.
func (a *app) completeProfiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	agent, err := a.agent()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for name := range agent.Config().StorageProfiles {
		out = append(out, snap.CleanText(name))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
