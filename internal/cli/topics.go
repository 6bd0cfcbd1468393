package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
)

// topics returns the help pages that are not commands, such as `snapcli help exit-codes`.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "The exit codes", Long: exitCodesHelp()},
		{Use: "environment", Short: "The environment variables that snapcli reads", Long: environmentHelp},
		{Use: "scripts", Short: "How to use snapcli in scripts and pipelines", Long: scriptsHelp},
	}
}

// exitCodesHelp is generated from the error table.
func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Every failure has a code, which --json shows, and an exit code:\n\n    0  success\n")
	codes := snap.Codes()
	slices.SortStableFunc(codes, func(x, y snap.CodeInfo) int { return cmp.Compare(x.Exit, y.Exit) })
	for _, c := range codes {
		fmt.Fprintf(&b, "  %3d  %-28s %s\n", c.Exit, c.Code, c.Title)
	}
	return strings.TrimRight(b.String(), "\n")
}

const environmentHelp = `Every setting except "checks" of a target can be a variable: SNAPCLI_ and its
key in capitals, with __ for each dot. Variables override the config file:

  SNAPCLI_CLOUD__URL             the cloud service
  SNAPCLI_CLOUD__API_KEY         an API key; only --org overrides it
  SNAPCLI_TARGETS__SHOP__SOURCE  a setting of the target shop

Accounts, keys and folders:

  SNAPCLI_ACCOUNT      which of your accounts to use: a name, an organization or
                       an e-mail address
  SNAPCLI_ID_TOKEN     the token of a CI job; SNAPCLI_ID_TOKEN_FILE names its file
  SNAPCLI_SIGNING_KEY  the private key that signs certificates
  SNAPCLI_CONFIG_DIR   folder of config.yaml and credentials.json
  SNAPCLI_DATA_DIR     folder of the snapshots on this machine

How snapcli behaves:

  NO_COLOR             any value: no color
  TERM=dumb            no color, no progress bars
  ACCESSIBLE           any value: questions as plain lines, for screen readers
  CI                   any value: no questions
  VISUAL, EDITOR       the editor of "snapcli config edit"
  BROWSER              the browser of "snapcli login"
  TZ                   time zone of displayed times

In a database URL of the config file, ${NAME} is replaced with the value of that
variable when the URL is used. Only "snapcli clone --with-password" prints a
password.`

const scriptsHelp = `Results go to standard output, everything else to standard error. Colors and
progress bars appear only on a terminal, and snapcli asks questions only if
standard input and standard error are terminals.

  --quiet   prints only the one word that a script needs, such as a name or ID
  --json    prints the result as JSON, and an error as one object on standard
            error: {"error": {"code", "detail", "hint", "exit"}}
  --yes     confirms without asking, on the commands that have this flag; it never
            confirms loading programs

Check the exit code or the error's code, never the text:

  snapcli help exit-codes

Sign in with an API key in the environment; create a key for pipelines with
"snapcli cloud keys create NAME --kind clt --scopes pull,push". You can safely
repeat pushes, pulls and shares: pushes and pulls resume where they stopped, and
sharing again sets the new expiry.`
