package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"snap/internal/servertest"
)

// TestPullRequestAction runs the steps of pull-request/action.yml that clone and comment: for a new
// pull request, for a push to it, and when it closes, once and twice.
func TestPullRequestAction(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	text, err := os.ReadFile("../../pull-request/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct {
			Steps []struct {
				ID, Name, Run string
				Env           map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	steps := action.Runs.Steps
	clone, comment := steps[len(steps)-2], steps[len(steps)-1]
	if clone.ID != "clone" || comment.Name != "Comment" {
		t.Fatalf("the last steps are %q and %q", clone.ID, comment.Name)
	}
	for _, step := range steps { // an expression in a script would run text of the pull request
		if strings.Contains(step.Run, "${{") {
			t.Errorf("%s has an expression in its script", step.Name)
		}
	}
	dir := t.TempDir()
	script := pullRequestScript + "-- clone.sh --\n" + clone.Run + "\n-- comment.sh --\n" +
		"set -a; . ./outputs; set +a\n" + comment.Run + pullRequestFiles
	if err := os.WriteFile(filepath.Join(dir, "action.txtar"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := jobSetup(t)
	runScripts(t, dir, func(e *testscript.Env) error {
		e.Setenv("GITHUB_API_URL", newComments(t).URL)
		return setup(e)
	})
}

// comments is the part of GitHub's API that has the comments of pull request 12.
type comments struct {
	*httptest.Server
	mu  sync.Mutex
	all []string
}

func newComments(t *testing.T) *comments {
	c := &comments{all: []string{"a comment of a person"}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *comments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer of-the-job" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	text, _ := io.ReadAll(r.Body)
	var sent struct{ Body string }
	_ = json.Unmarshal(text, &sent)
	switch r.Method + " " + r.URL.Path {
	case "GET /repos/octo/shop/issues/12/comments":
		items := []map[string]any{}
		for i, body := range c.all {
			kind := map[bool]string{true: "User", false: "Bot"}[i == 0]
			items = append(items, map[string]any{"id": i, "body": body, "user": map[string]string{"type": kind}})
		}
		_ = json.NewEncoder(w).Encode(items)
	case "POST /repos/octo/shop/issues/12/comments":
		c.all = append(c.all, sent.Body)
	case "PATCH /repos/octo/shop/issues/comments/1":
		c.all[1] = sent.Body
	case "GET /all":
		fmt.Fprintln(w, strings.Join(c.all, "\n---\n"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestMergeRequestRecipe runs the jobs of the recipe for GitLab that clone and drop.
func TestMergeRequestRecipe(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	var recipe struct {
		Database job
		Drop     job `yaml:"drop-database"`
	}
	readYAML(t, "gitlab-ci.yaml", &recipe)
	dir := t.TempDir()
	ours := strings.NewReplacer("'postgres://snap:${SHOP_DEV_PASSWORD}@dev.example/shop'", "sqlite://$WORK/dev.db")
	script := mergeRequestScript + "-- clone.sh --\n" + ours.Replace(strings.Join(recipe.Database.Script, "\n")) +
		"\n-- drop.sh --\n" + strings.Join(recipe.Drop.Script, "\n") + pullRequestFiles
	if err := os.WriteFile(filepath.Join(dir, "recipe.txtar"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := cloudSetup(t)
	runScripts(t, dir, func(e *testscript.Env) error {
		e.Setenv("CI_API_V4_URL", newNotes(t))
		return setup(e)
	})
}

// newNotes is the part of GitLab's API that accepts notes on merge request 12.
func newNotes(t *testing.T) string {
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodGet:
			fmt.Fprintln(w, strings.Join(all, "\n"))
		case r.URL.Path != "/projects/3/merge_requests/12/notes" || r.Header.Get("Private-Token") != "of-the-job":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			all = append(all, r.PostFormValue("body"))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// pullRequestScript pushes a snapshot as a person and shares it org-wide. Then a runner on another
// machine makes clones of it.
const pullRequestScript = `
[!exec:bash] skip 'needs bash: the action is shell commands'
[!exec:jq] skip 'needs jq'
[!exec:curl] skip 'needs curl'
` + pushedScript + `env SNAPCLI_CLOUD__API_KEY=
env SNAPCLI_CONFIG_DIR=$WORK/runner
env DATA=
env HOME=$WORK/home
env GITHUB_REPOSITORY=octo/shop
env GITHUB_OUTPUT=$WORK/output
env TARGET=shop
env DESTINATION=sqlite://$WORK/dev.db
env TYPE=sanitized
env TTL=7d
env NUMBER=12
env TOKEN=of-the-job
env POST=name

# opened: a clone, and a comment with its name and without its path
env EVENT=opened ON_PUSH=keep
exec bash -euo pipefail clone.sh
exec sh -c 'sed "s/^/OUT_/" output'
stdout '^OUT_name=pr-12$'
stdout '^OUT_database=snapcli_clone_pr_12_[0-9a-f]{8}.db$'
capture FILE 'OUT_url=sqlite://(.*)'
sqlite $FILE 'select group_concat(email) from customer' masked
exec bash outputs.sh
exec bash -euo pipefail comment.sh
exec curl -fsS -H 'Authorization: Bearer of-the-job' $GITHUB_API_URL/all
stdout 'The database of this pull request is .snapcli_clone_pr_12_'
! stdout sqlite://

# pushed to: the same clone, as its user left it, and the same comment
sqlite $FILE change.sql
env EVENT=synchronize
env POST=url
exec bash -euo pipefail clone.sh
sqlite $FILE 'select group_concat(email) from customer' changed
exec bash outputs.sh
exec bash -euo pipefail comment.sh
exec curl -fsS -H 'Authorization: Bearer of-the-job' $GITHUB_API_URL/all
stdout 'The URL is .sqlite://'
stdout -count=1 'The database of this pull request'
env ON_PUSH=reset
exec bash -euo pipefail clone.sh
sqlite $FILE 'select group_concat(email) from customer' masked

# closed: dropped, also if it is gone already, and the comment says so
env EVENT=closed
exec bash -euo pipefail clone.sh
! exists $FILE
exec bash -euo pipefail clone.sh
exec bash outputs.sh
exec bash -euo pipefail comment.sh
exec curl -fsS -H 'Authorization: Bearer of-the-job' $GITHUB_API_URL/all
stdout 'was dropped'
stdout 'a comment of a person'

# without the right to comment the job still succeeds
env TOKEN=another EVENT=opened
exec bash -euo pipefail clone.sh
exec bash outputs.sh
exec bash -euo pipefail comment.sh
stdout '::warning::the comment was not posted'
`

const mergeRequestScript = `
[!exec:bash] skip 'needs bash: the recipe is shell commands'
[!exec:jq] skip 'needs jq'
[!exec:curl] skip 'needs curl'
` + pushedScript + `as mia@acme.test
env SNAP_KEY=$SNAPCLI_CLOUD__API_KEY
env SNAPCLI_DATA_DIR=$WORK/runner
env CLONE=mr-12
env CI_PROJECT_ID=3
env CI_MERGE_REQUEST_IID=12
env NOTES_TOKEN=of-the-job

exec bash -euo pipefail clone.sh
exec cat clone.env
stdout '^CLONE_URL=sqlite://'
capture FILE '^CLONE_URL=sqlite://(.*)$'
sqlite $FILE 'select group_concat(email) from customer' masked
exec curl -fsS $CI_API_V4_URL
stdout -count=1 '^The database of this merge request is .snapcli_clone_mr_12_[0-9a-f]{8}.db'
! stdout sqlite://

# a push keeps it and posts nothing
sqlite $FILE change.sql
exec bash -euo pipefail clone.sh
sqlite $FILE 'select group_concat(email) from customer' changed
exec curl -fsS $CI_API_V4_URL
stdout -count=1 'The database'

exec bash -euo pipefail drop.sh
! exists $FILE
exec bash -euo pipefail drop.sh
`

const pullRequestFiles = `
-- outputs.sh --
tail -4 output | sed "s/^name=/NAME=/; s/^database=/DATABASE=/; s/^url=/URL=/; s/^expires=/EXPIRES=/" |
  sed "s/=/='/; s/$/'/" >outputs
-- mask.sql --
update customer set email = 'masked';
-- change.sql --
update customer set email = 'changed';
-- make.sql --
create table customer (id integer primary key, email text);
insert into customer values (1, 'ann@real.example');
`
