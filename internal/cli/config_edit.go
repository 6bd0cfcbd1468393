package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
)

func (a *app) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit the config file in your editor and check it",
		Long: `Edit opens the config file in $VISUAL or $EDITOR, and checks the file when you
close the editor. A new file begins with commented examples.`,
		Example: examples("edit it", "snapcli config edit"),
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.editConfig(cmd.Context()) },
	}
}

const configTemplate = `# The configuration of snapcli.

cloud:
  url: ""        # such as https://cloud.example; then run: snapcli login
  # api_key: ""  # for automation; better in the environment as SNAPCLI_CLOUD__API_KEY

targets: {}
#  shop:
#    source: postgres://me@db.example/shop
#    destination: postgres://me@localhost/shop_dev
#    sanitize: {sql: ./shop.sql}
`

func (a *app) editConfig(ctx context.Context) error {
	path, err := a.configPath()
	if err != nil {
		return err
	}
	editor := strings.Fields(cmp.Or(strings.TrimSpace(a.env("VISUAL")), strings.TrimSpace(a.env("EDITOR")),
		defaultEditor()))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the configuration folder: %w", err)
	}
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if err := os.WriteFile(path, []byte(configTemplate), 0o600); err != nil {
			return fmt.Errorf("create the config file: %w", err)
		}
	}
	run := exec.CommandContext(context.WithoutCancel(ctx), editor[0], append(editor[1:], path)...)
	run.Stdin, run.Stdout, run.Stderr = a.io.In, a.io.Err, a.io.Err
	if err := run.Run(); err != nil {
		return &snap.Error{Code: snap.CodeUsage, Detail: fmt.Sprintf("the editor %s failed: %v", editor[0], err),
			Hint: "set EDITOR to your editor", Cause: err}
	}
	return a.checkConfig()
}

func defaultEditor() string {
	if runtime.GOOS == "windows" {
		return "notepad"
	}
	return "vi"
}
