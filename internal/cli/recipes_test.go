package cli

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"snap/internal/servertest"
)

// job is the common part of the recipes for GitHub and GitLab.
type job struct {
	Script []string
	Steps  []struct {
		Run string
		Env map[string]string
	}
}

// TestRecipes runs the recipes of docs/recipes with a cloud service and databases: a pipeline's key
// pushes the masked shop, a user's key pulls it, and the loaded data is masked.
func TestRecipes(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	github := struct{ Jobs map[string]job }{}
	readYAML(t, "github-actions.yaml", &github)
	gitlab := struct{ Push, Test job }{}
	readYAML(t, "gitlab-ci.yaml", &gitlab)
	if names := slices.Sorted(maps.Keys(github.Jobs)); !slices.Equal(names, []string{"push", "test"}) {
		t.Fatalf("the jobs for GitHub are %v", names)
	}
	dir := t.TempDir()
	ours := strings.NewReplacer(
		"'postgres://snap:${SHOP_PASSWORD}@db.example/shop'", "$SHOP_URL",
		"postgres://postgres@localhost/shop", "$TEST_URL", "postgres://postgres@postgres/shop", "$TEST_URL",
	)
	nightly := strings.ReplaceAll(cronLines(t), "\n", "\n\n")
	for name, lines := range map[string][2]string{
		"github": {steps(github.Jobs["push"]), steps(github.Jobs["test"])},
		"gitlab": {strings.Join(gitlab.Push.Script, "\n"), strings.Join(gitlab.Test.Script, "\n")},
		"cron": {"snapcli targets add shop --source $SHOP_URL --sanitize-sql $PWD/shop.mask.sql\n" + nightly,
			strings.Join(gitlab.Test.Script, "\n")},
		"make": {strings.Join(gitlab.Push.Script, "\n"), "make -f shop.mk db-list db SHOP_DEV=$TEST_URL"},
	} {
		script := recipeScript + "-- push.sh --\n" + ours.Replace(lines[0]) + "\n-- test.sh --\n" +
			ours.Replace(lines[1]) +
			"\n-- shop.mk --\n" + recipe(t, "shop.mk") + pageFiles
		if name == "make" {
			script = "[!exec:make] skip 'needs make'\n" + script
		}
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setup := cloudSetup(t)
	runScripts(t, dir, func(e *testscript.Env) error {
		e.Setenv("SHOP_URL", "sqlite://"+filepath.Join(e.WorkDir, "shop.db"))
		e.Setenv("TEST_URL", "sqlite://"+filepath.Join(e.WorkDir, "test.db"))
		return setup(e)
	})
}

// The secrets are those of the recipe. A channel shares the snapshot with the user whose key pulls
// it.
const recipeScript = `
[!exec:bash] skip 'needs bash: the recipes are shell commands'
sqlite shop.db make.sql
exec cp mask.sql shop.mask.sql
as alice@acme.test
exec snapcli cloud channels add shop
as acme clt push
env SNAP_KEY=$SNAPCLI_CLOUD__API_KEY
exec bash -euo pipefail push.sh
as mia@acme.test
env SNAP_KEY=$SNAPCLI_CLOUD__API_KEY
exec bash -euo pipefail test.sh
sqlite test.db 'select count(*) from customers where email like ''%@masked.test''' 2
sqlite test.db 'select count(*) from customers' 2
`

// steps returns the shell lines of those steps of a job that get their key from the secret
// SNAP_KEY.
func steps(j job) string {
	var lines []string
	for _, step := range j.Steps {
		if step.Run != "" && step.Env["SNAPCLI_CLOUD__API_KEY"] == "${{ secrets.SNAP_KEY }}" {
			lines = append(lines, step.Run)
		}
	}
	return strings.Join(lines, "\n")
}

// cronLines are the commands of the crontab.
func cronLines(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, entry := range regexp.MustCompile(`(?m)^\d+ \d+ \S+ \S+ \S+ `+
		`(.+)$`).FindAllStringSubmatch(recipe(t, "crontab"), -1) {
		lines = append(lines, entry[1])
	}
	if len(lines) != 2 {
		t.Fatalf("the crontab has %d entries", len(lines))
	}
	return strings.Join(lines, "\n")
}

func recipe(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/recipes", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(recipe(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
