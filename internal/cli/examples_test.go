package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// TestExamples runs every example of every command's help unchanged, with a cloud service and a
// database that have the things that the examples name. It adds --yes where an example would ask,
// because nobody can answer.
func TestExamples(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	dir := t.TempDir()
	for name, script := range exampleScripts() {
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runScripts(t, dir, func(e *testscript.Env) error {
		e.Setenv("VISUAL", "cat")
		e.Setenv("EDITOR", "cat")
		script, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")+".txtar"))
		if err != nil || !strings.Contains(string(script), examplePushed) {
			return err
		}
		c := cloudtest.Start(t, cloudtest.Options{Config: func(c *cloud.Config) {
			c.Mail = cloud.Mail{Server: "mail.example", From: "snapcloud@example.com", Domains: []string{"example.com"}}
		}})
		e.Values[cloudKey{}] = c
		e.Setenv("CLOUD", c.URL)
		e.Setenv("SNAPCLI_CLOUD__URL", c.URL)
		return nil
	})
}

// exampleScripts returns the scripts by name. The commands of a group that need a cloud service run
// in one script, because starting a service and pushing to it takes longer than most examples.
func exampleScripts() map[string]string {
	scripts := map[string]string{}
	for _, c := range commands(referenceApp().root()) {
		if c.Example == "" || needsMore[c.CommandPath()] != "" {
			continue
		}
		before, setup, group := exampleBefore[c.CommandPath()], exampleSetup, c.CommandPath()
		if asksService(c) {
			setup = "as alice@acme.test\n" + exampleSetup + examplePushed
			if before == "" && c.Name() != "delete" { // the other examples name the snapshots that delete deletes
				group = c.Parent().CommandPath() + " and a service"
			}
		}
		name := strings.ReplaceAll(group, " ", "_")
		if scripts[name] == "" {
			scripts[name] = setup
		}
		scripts[name] += before + exampleLines(c)
	}
	for name := range scripts {
		scripts[name] += exampleFiles
	}
	return scripts
}

// asksService reports whether the examples of a command need a cloud service.
func asksService(c *cobra.Command) bool {
	return slices.ContainsFunc(
		[]string{"cloud", "snap_", "push", "pull", "whoami", "logout", "doctor", "trust", "agent run"},
		func(word string) bool { return strings.Contains(c.Example, word) })
}

// needsMore names the commands whose examples cannot run here, with the reason and, if there is
// one, the script or test that runs the command instead.
var needsMore = map[string]string{
	"snapcli login":                     "wants an approval: cloud/login.txtar",
	"snapcli switch":                    "wants login sessions: cloud/accounts.txtar",
	"snapcli init":                      "asks a person: TestInit",
	"snapcli cloud requests ask":        "wants a snapshot that is hidden: cloud/requests.txtar",
	"snapcli cloud requests withdraw":   "wants a request: cloud/requests.txtar",
	"snapcli cloud requests refuse":     "wants a request: cloud/requests.txtar",
	"snapcli serve":                     "runs until it is stopped",
	"snapcli agent":                     "runs until it is stopped: TestAgent",
	"snapcli run":                       "runs programs of a project: script/clones.txtar",
	"snapcli cloud keys":                "wants a login session: cloud/login.txtar",
	"snapcli cloud keys list":           "wants a login session: cloud/login.txtar",
	"snapcli cloud keys create":         "wants a login session: cloud/login.txtar",
	"snapcli cloud keys revoke":         "wants a login session: cloud/login.txtar",
	"snapcli cloud sessions":            "wants a login session: cloud/login.txtar",
	"snapcli cloud sessions list":       "wants a login session: cloud/login.txtar",
	"snapcli cloud sessions end":        "wants a login session: cloud/login.txtar",
	"snapcli cloud webhooks remove":     "wants a webhook: rules.txtar",
	"snapcli cloud webhooks deliveries": "wants a webhook: rules.txtar",
	"snapcli cloud webhooks test":       "wants a webhook: rules.txtar",
	"snapcli cloud webhooks replay":     "wants a webhook: rules.txtar",
	"snapcli cloud webhooks rotate":     "wants a webhook: rules.txtar",
	"snapcli cloud webhooks enable":     "wants a webhook: rules.txtar",
	"snapcli config set":                "writes an address of its own: script/config.txtar",
	"snapcli cloud snapshots receipt":   "wants a snapshot of another organization: audit.txtar",
	"snapcli cloud audit export":        "runs until it is stopped: TestExportFollows",
	"snapcli cloud uploads abort":       "wants an unfinished upload: uploads.txtar",
	"snapcli cloud snapshots access":    "asks for a day before the test: cloud/audit.txtar",
}

// exampleLines turns each example into one line of the script.
func exampleLines(c *cobra.Command) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.ReplaceAll(c.Example, "\\\n", " "), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.Contains(line, " --review") {
			continue // a review asks a person: TestReviewOfRules
		}
		if c.Flags().Lookup("yes") != nil && !strings.Contains(line, "--yes") {
			line += " --yes"
		}
		fmt.Fprintf(&b, "example %s\n", "'"+strings.ReplaceAll(line, "'", "''")+"'")
	}
	return b.String()
}

// exampleCommand runs an example in a shell, with the IDs and names in it replaced by existing
// ones:
//
//	example 'snapcli cloud snapshots show snap_7h2k9m'
func exampleCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: example LINE")
	}
	line := strings.NewReplacer(
		"snap_7h2k9m", ts.Getenv("A_SHORT"), "snap_p3v8xw", ts.Getenv("B_SHORT"),
		"shop-20261121T011600Z", ts.Getenv("NAME"), "shop-20261122T011600Z", ts.Getenv("NAME"),
		"Engineering", "eng",
	).Replace(args[0])
	ts.Logf("%s", line)
	if err := ts.Exec("bash", "-euo", "pipefail", "-c", line); err != nil {
		ts.Fatalf("%v", err)
	}
	// The next example names the snapshot that this one deletes.
	if strings.Contains(line, "snapshots delete") && !strings.Contains(line, "cloud") {
		ts.Check(ts.Exec("snapcli", "build", "shop", "--quiet"))
		ts.Setenv("NAME", strings.TrimSpace(ts.ReadFile("stdout")))
	}
	if strings.Contains(line, "cloud snapshots delete") {
		ts.Check(ts.Exec("snapcli", "push", "shop", "--cloud", "--quiet"))
		ts.Setenv("A_SHORT", strings.TrimSpace(ts.ReadFile("stdout")))
	}
}

const exampleSetup = `
[!exec:bash] skip 'needs bash: the examples are shell commands'
[!exec:jq] skip 'needs jq: an example hands its JSON to it'
sqlite shop.db make.sql
env TO=sqlite://$WORK/dev.db
prepare targets add shop --source sqlite://$WORK/shop.db --destination $TO --sanitize-sql $WORK/mask.sql
prepare build shop --quiet
capture NAME '^(.+)$'
prepare sanitize shop --quiet
`

// examplePushed follows [exampleSetup] if a script needs a cloud service.
const examplePushed = `
prepare push shop --cloud --type snapshot --quiet
capture A_SHORT '^(.+)$'
prepare push shop --cloud --type sanitized --quiet
capture B_SHORT '^(.+)$'
`

// exampleBefore lists the commands that must run before the examples of some commands.
var exampleBefore = map[string]string{
	"snapcli cloud snapshots decline": "prepare cloud snapshots share $A_SHORT --org globex\nas " +
		"gail@globex.test\n",
	"snapcli cloud channels remove": "prepare cloud channels add one\nprepare cloud channels add two\n" +
		"prepare cloud channels add three\n",
	"snapcli cloud certificate-keys add": "prepare keys new --name laptop\n",
	"snapcli cloud certificate-keys revoke": "prepare cloud certificate-keys add " +
		"snapkey-11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\n",
	"snapcli reset":                  "prepare clone shop --name pr-12\n",
	"snapcli clones drop":            "prepare clone shop --name pr-12\n",
	"snapcli keys export":            "prepare keys new --name ci\n",
	"snapcli keys revoke":            "prepare keys new --name ci\n",
	"snapcli trust remove":           "prepare trust add org:globex\n",
	"snapcli cloud retention remove": "prepare cloud retention set shop --keep-last 5\n",
}

const exampleFiles = `
-- make.sql --
create table customers (id integer primary key, email text);
insert into customers values (1, 'ann@real.example'), (2, 'bob@real.example');
create table orders (id integer primary key, customer references customers);
create table log_visits (id integer primary key);
create table sessions (id integer primary key);
-- mask.sql --
update customers set email = 'c' || id || '@masked.test';
-- colleague.pub --
age16ucprvw29aaaj357gdl8y7t8ykq0v5y5k95pvkq68wqvqjxwmuxq2mhgu9
-- dbsnapper.yml --
targets:
  crm: {snapshot: {src_url: "postgres://me@localhost/crm"}}
-- greenmask.yml --
dump: {pg_dump_options: {dbname: crm}}
`
