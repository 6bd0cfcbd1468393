package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/testscript"

	"snap"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/signin"
)

// TestJobScripts runs commands as CI jobs. The test's own CI system issues their tokens. acme
// trusts the repository 74 of the owner 65.
func TestJobScripts(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	runScripts(t, "testdata/job", jobSetup(t))
}

// TestAction runs the step of action.yml that pulls and loads.
func TestAction(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	step := action.Runs.Steps[len(action.Runs.Steps)-1]
	if step.ID != "load" || step.Env["SNAPCLI_CLOUD__URL"] != "${{ inputs.cloud-url }}" {
		t.Fatalf("the last step is %q with %v", step.ID, step.Env)
	}
	for _, input := range []string{"cloud-url", "target", "destination", "type"} {
		if _, known := action.Inputs[input]; !known {
			t.Errorf("there is no input %s", input)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "action.txtar"), []byte(actionScript(step.Run,
		action.Inputs["type"].Default)), 0o600); err != nil {
		t.Fatal(err)
	}
	runScripts(t, dir, jobSetup(t))
}

// pushedScript pushes a masked snapshot as a person and shares it org-wide.
const pushedScript = `sqlite shop.db make.sql
as alice@acme.test
exec snapcli targets add shop --source sqlite://$WORK/shop.db
exec snapcli build shop
exec snapcli sanitize shop --sql mask.sql
exec snapcli push shop --cloud --type sanitized --json
capture ID '"id": "(snap_\w+)"'
exec snapcli cloud snapshots share $ID
`

// actionScript pushes a snapshot as a person and shares it org-wide. Then the action's step loads
// it.
func actionScript(step, kind string) string {
	return `
[!exec:bash] skip 'needs bash: the action is shell commands'
` + pushedScript + `env SNAPCLI_CLOUD__API_KEY=
env SNAPCLI_CONFIG_DIR=$WORK/runner
env SNAPCLI_DATA_DIR=$WORK/runner
env TARGET=shop
env DESTINATION=sqlite://$WORK/test.db
env TYPE=` + kind + `
env GITHUB_OUTPUT=$WORK/output
exec bash -euo pipefail load.sh
sqlite test.db 'select group_concat(email) from customer' masked
grep '^snapshot=shop-' output
-- load.sh --
` + step + `
-- mask.sql --
update customer set email = 'masked';
-- make.sql --
create table customer (id integer primary key, email text);
insert into customer values (1, 'ann@real.example');
`
}

// jobSetup starts a CI system and a service that trusts its jobs, and sets the variables that a job
// of GitHub Actions has. FORK is the token of a repository that nobody trusts, and TOKEN one of the
// trusted repository.
func jobSetup(t *testing.T) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		issuer := newIssuer(t)
		c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
			config.Organizations[0].Trust = []cloud.Trust{{Name: "shop", Type: signin.TrustGitHub, Issuer: issuer.URL,
				AllowPrivate: true, Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush},
				Claims: map[string]any{"repository_id": "74", "repository_owner_id": "65"}}}
		}})
		e.Values[cloudKey{}] = c
		e.Setenv("CLOUD", c.URL)
		e.Setenv("SNAPCLI_CLOUD__URL", c.URL)
		e.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", issuer.URL+"/token?api-version=2")
		e.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-runner")
		e.Setenv("TOKEN", issuer.token("74", c.URL))
		e.Setenv("FORK", issuer.token("75", c.URL))
		return nil
	}
}

// issuer is a CI system with one key. Its /token works like that of GitHub Actions.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch r.URL.Path {
	case "/jwks":
		answer = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "one", Algorithm: "ES256",
			Use: "sig"}}}
	case "/token":
		if r.Header.Get("Authorization") != "Bearer of-the-runner" || r.URL.Query().Get("api-version") != "2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer = map[string]string{"value": i.token("74", r.URL.Query().Get("audience"))}
	default:
		answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/jwks", "authorization_endpoint": i.URL,
			"token_endpoint": i.URL, "id_token_signing_alg_values_supported": []string{"ES256"}}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		i.t.Error(err)
	}
}

// token returns the token of a job on the branch main of a repository of the owner 65.
func (i *issuer) token(repository, audience string) string {
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "one"}}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	now := time.Now()
	token, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": i.URL, "aud": audience, "sub": "repo:octo/shop:ref:refs/heads/main", "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "repository_id": repository,
		"repository_owner_id": "65", "ref": "refs/heads/main", "event_name": "push",
	}).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
