package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// needsAPerson gives the reasons why some blocks of the pages are not run here, by the beginning of
// the block.
var needsAPerson = map[string]string{
	"snapcloud serve --config snapcloud.yaml": "runs until it is stopped: TestServeStopsGracefullyAndComesBack, and " +
		"the demo",
	"snapcli build shop --exclude-table 'log_*'": "needs schemas of PostgreSQL: TestChoice",
	"openssl pkeyutl -verify":                    "needs an image: TestImage",
	"make build     # bin/snapcli":               "this is what runs this test",
	"snapcli cloud snapshots receipt snap_7h2k9m --json > receipt.json": "a recipient organization asks for it: " +
		"cloud/audit.txtar",
	"curl -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange": "needs the token of a CI job: job/job.txtar",
	"snapcloud key create --org acme --kind scim":                        "needs a provider: TestSCIMKeysRotate",
	"snapcli cloud audit export --from 1 --follow | collector":           "runs until it is stopped: TestExportFollows",
	"snapcli login                      # becomes the account in use, named after its organization": "two people " +
		"sign in: cloud/accounts.txtar",
}

// elsewhere names the pages whose commands another test runs.
var elsewhere = map[string]string{
	"docs/cli.md": "the examples of the help: TestExamples",
}

// actors names the person who acts from a page's n-th block on, counted from 0. Before that block,
// Alice acts.
var actors = map[string]map[int]string{
	"docs/getting-started.md": {5: "mia@acme.test"},
}

// TestPagesRun runs every command block of the pages unchanged and in order. Each page has its own
// configuration, and a cloud service and SQLite databases that have the things that the page names.
func TestPagesRun(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	dir, ran := t.TempDir(), 0
	for _, page := range writtenPages(t) {
		blocks := shellBlocks(t, page)
		if len(blocks) == 0 || elsewhere[page] != "" {
			continue
		}
		var script strings.Builder
		script.WriteString(pageSetup)
		for i, block := range blocks {
			if reason := notRun(block); reason != "" {
				fmt.Fprintf(&script, "# block %d is not run: %s\n", i, reason)
				continue
			}
			ran++
			if who := actors[page][i]; who != "" {
				fmt.Fprintf(&script, "as %s\n", who)
			}
			fmt.Fprintf(&script, "block %d\n", i)
		}
		script.WriteString(pageFiles)
		for i, block := range blocks {
			fmt.Fprintf(&script, "-- block%d.sh --\n%s", i, block)
		}
		name := strings.NewReplacer("/", "_", ".md", ".txtar").Replace(page)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if ran < 9 {
		t.Errorf("only %d blocks found; is the test looking in the right place?", ran)
	}
	runScripts(t, dir, cloudSetup(t))
}

// cloudSetup gives each script its own service, and a configuration file with which snapcloud's
// commands work on that service's database.
func cloudSetup(t *testing.T) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		data := t.TempDir()
		c := cloudtest.Start(t, cloudtest.Options{DataDir: data})
		e.Values[cloudKey{}] = c
		e.Setenv("CLOUD", c.URL)
		e.Setenv("SNAPCLI_CLOUD__URL", c.URL)
		config := fmt.Sprintf("listen: %s\npublic_url: %s\ndata_dir: %s\norganizations: []\n", c.Config.Listen, c.URL,
			data)
		return os.WriteFile(filepath.Join(e.WorkDir, "FILE"), []byte(config), 0o600)
	}
}

func writtenPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/recipes/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
		}
	}
	return pages
}

func shellBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, found := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

func notRun(block string) string {
	for start, reason := range needsAPerson {
		if strings.HasPrefix(block, start) {
			return reason
		}
	}
	return ""
}

// blockCommand runs a block of a page in a shell. It replaces the URLs, IDs and days of the page
// with those of the test. A few commands are replaced as well: the person is already signed in (see
// [asCommand]), the programs are built, and nobody can answer load's question.
func blockCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: block N")
	}
	work := ts.Getenv("WORK")
	replace := strings.NewReplacer(
		"postgres://me@db.example/shop", "sqlite://"+work+"/shop.db",
		"postgres://me@localhost/shop_dev", "sqlite://"+work+"/dev.db",
		"postgres://me@localhost/shop", "sqlite://"+work+"/shop.db",
		"/mnt/backups", work+"/backups",
		"http://127.0.0.1:8080", ts.Getenv("CLOUD"), "https://cloud.example", ts.Getenv("CLOUD"),
		"--from https://snap.example.com", "--from "+ts.Getenv("CLOUD"), "--from URL", "--from "+ts.Getenv("CLOUD"),
		"shop-20261121T011600Z", ts.Getenv("BUILT"), "shop-20261122T011600Z", ts.Getenv("BUILT"),
		"--rows orders", "--rows customers",
		"/ID/", "/"+ts.Getenv("ID")+"/", " ID", " "+ts.Getenv("ID"), "2026-11-21",
		time.Now().UTC().Format(time.RFC3339Nano),
	)
	if err := ts.Exec("bash", "-euo", "pipefail", "-c",
		pagePrelude+replace.Replace(ts.ReadFile("block"+args[0]+".sh"))); err != nil {
		ts.Fatalf("%v", err)
	}
}

const pagePrelude = `
snapcli() {
	case $1 in
	login) command snapcli whoami ;;
	load) command snapcli "$@" --yes ;;
	*) command snapcli "$@" ;;
	esac
}
snapcloud() {
	if [[ "$1 $2" == "key revoke" ]]; then set -- "${@:1:$#-1}` +
	`" "$(command snapcloud key list --config FILE --org acme | awk '/nightly/ {print $1}')"; fi
	case $1 in # data_dir is in use, so a backup is restored to another folder, and transfer copies from there
	restore|transfer) SNAPCLOUD_DATA_DIR=$WORK/restored command snapcloud "$@" ;;
	claim) # takes over a copy of the storage, without the database
		mkdir -p "$WORK/lost" && cp -r "$(awk '/^data_dir:/ {print $2}' FILE)/blobs" "$WORK/lost"
		SNAPCLOUD_DATA_DIR=$WORK/lost command snapcloud "$@" ;;
	*) command snapcloud "$@" ;;
	esac
}
export SNAP_KEY=$SNAPCLI_CLOUD__API_KEY
make() { :; }
git() { mkdir -p "$3"; }
`

const pageSetup = `
[!exec:bash] skip 'needs bash: the blocks are shell commands'
[!exec:curl] skip 'needs curl: docs/api.md shows it'
sqlite shop.db make.sql
as mia@acme.test
prepare targets add shop --destination sqlite://$WORK/mia.db
as alice@acme.test
prepare targets add shop --source sqlite://$WORK/shop.db --sanitize-sql $WORK/mask.sql
prepare build shop --quiet
capture BUILT '^(.+)$'
prepare sanitize shop --quiet
prepare push shop --cloud --type sanitized --quiet
capture ID '^(.+)$'
prepare cloud snapshots share $ID
`

const pageFiles = `
-- replicas.yaml --
data_dir: moved
organizations: []
-- make.sql --
create table customers (id integer primary key, name text, email text, country integer);
insert into customers values (1, 'Ann', 'ann@real.example', 17), (2, 'Bob', 'bob@real.example', 3);
create table audit (id integer primary key, line text);
-- mask.sql --
update customers set name = 'Customer ' || id, email = 'c' || id || '@masked.test';
-- dbsnapper.yml --
targets:
  crm: {snapshot: {src_url: "postgres://me@localhost/crm"}}
-- greenmask.yml --
dump: {pg_dump_options: {dbname: crm}}
`
