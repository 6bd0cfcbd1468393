package cli

import (
	"github.com/spf13/cobra"

	"snap"
)

// typeFlag gives a command the flag --type.
func typeFlag(cmd *cobra.Command, typ *string, usage string) {
	cmd.Flags().StringVar(typ, "type", "", usage+": snapshot or sanitized")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(
		[]cobra.Completion{string(snap.TypeSnapshot), string(snap.TypeSanitized)}, cobra.ShellCompDirectiveNoFileComp))
}
