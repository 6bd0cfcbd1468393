package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/servertest"
	"snap/internal/store"
)

// run runs snapcloud in the test's process.
func run(t *testing.T, config string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), append([]string{"--config", config}, args...), &out, &errs, nil, "v1.2.3")
	return code, out.String(), errs.String()
}

func configure(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapcloud.yaml")
	text := fmt.Sprintf(`# jvic@acme.test is not a user
listen: %s
data_dir: %s
organizations:
  - slug: acme
    name: Acme Inc
    sign_in: {type: local}
    users:
      - {email: alice@acme.test, name: Alice, password: secret, role: owner, groups: [eng, dba]}
      - {email: vic@acme.test, password: secret, role: viewer}
`, address, t.TempDir())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestResultThatCannotBeWritten: a command whose result cannot be written fails.
func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	defer full.Close()
	config := configure(t, "127.0.0.1:8080")
	for _, line := range []string{"version", "version --json", "--help", "migrate", "openapi", "check --offline",
		"check --offline --json", "org list"} {
		var errs bytes.Buffer
		code := Main(t.Context(), append([]string{"--config", config}, strings.Fields(line)...), full, &errs, nil,
			"v1.2.3")
		if code == 0 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: exit code %d, said %q", line, code, errs.String())
		}
	}
}

// TestMistypedCommands: a mistyped subcommand fails below every command. A command that only groups
// others prints its help.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	config := configure(t, "127.0.0.1:8080")
	for line, hint := range map[string]string{
		"serv":                                  "did you mean `snapcloud serve`?",
		"user disabel --org acme vic@acme.test": "did you mean `snapcloud user disable`?",
		"key nothing-like-it":                   "see `snapcloud key --help`",
		"org lst":                               "did you mean `snapcloud org list`?",
	} {
		code, _, stderr := run(t, config, strings.Fields(line)...)
		if code != snap.ExitUsage || !strings.Contains(stderr, "there is no command") ||
			!strings.Contains(stderr, "hint: "+hint) {
			t.Errorf("%s: exit code %d, said %q", line, code, stderr)
		}
	}
	for _, line := range []string{"user", "key", "org"} {
		if code, stdout, stderr := run(t, config, line); code != snap.ExitOK || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%s: exit code %d, said %q", line, code, stderr)
		}
	}
}

// TestListenIsChecked: the address of --listen has the same rules as the setting listen, so a
// service with local users is not open to other machines by mistake.
func TestListenIsChecked(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{"0.0.0.0:0": "allow_local", "nowhere": `listen "nowhere"`} {
		for _, args := range [][]string{{configure(t, "127.0.0.1:0"), "serve", "--listen", listen},
			{configure(t, listen), "serve"}} {
			code, _, stderr := run(t, args[0], args[1:]...)
			if code != snap.ExitUsage || !strings.Contains(stderr, want) {
				t.Errorf("%q: exit code %d, said %q, want %q", args[1:], code, stderr, want)
			}
		}
	}
}

// TestTablesAreClean: names from identity providers and configurations cannot control the
// operator's terminal, add rows to a table or reverse the text.
func TestTablesAreClean(t *testing.T) {
	t.Parallel()
	config := configure(t, "127.0.0.1:0")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	hostile := `"X\e]0;title\a\e[2J\nfake  row\u202eY"`
	changed := strings.NewReplacer("Acme Inc", hostile, "name: Alice", "name: "+hostile).Replace(string(text))
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, config, "key", "create", "--org", "acme", "--kind", "agent", "--name",
		"X\x1b[2J\nfake\u202eY"); code != 0 {
		t.Fatal(stderr)
	}
	for line, rows := range map[string]int{"org list": 1, "user list --org acme": 2, "key list --org acme": 1} {
		code, stdout, stderr := run(t, config, strings.Fields(line)...)
		if code != 0 || !strings.Contains(stdout, "X") || strings.ContainsAny(stdout, "\x1b\a\u202e") ||
			strings.Count(stdout, "\n") != rows+1 {
			t.Errorf("%s: exit code %d, printed %q, said %q", line, code, stdout, stderr)
		}
	}
}

// TestEmptyFlags: if a script forgets to set a variable, no key without an expiry is created, and
// the newest backup is not restored by mistake.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	config := configure(t, "127.0.0.1:8080")
	for flag, args := range map[string][]string{
		"expires-in": {"key", "create", "--org", "acme", "--kind", "pipeline", "--expires-in", ""},
		"scopes":     {"key", "create", "--org", "acme", "--kind", "pipeline", "--scopes", ""},
		"at":         {"restore", "--from", "backups", "--at", ""},
	} {
		code, _, stderr := run(t, config, args...)
		if code != snap.ExitUsage || !strings.Contains(stderr, "--"+flag+" is empty") {
			t.Errorf("%q: exit code %d, said %q", args, code, stderr)
		}
	}
}

// DESIGN 5: keys, users and organizations, before the service ever ran.
func TestOperatorCommands(t *testing.T) {
	t.Parallel()
	config := configure(t, "127.0.0.1:8080")
	secret := regexp.MustCompile(`^(cak|clt|sak)_[0-9A-Za-z]{38}\n$`)
	for _, tt := range []struct {
		args   string
		code   int
		stdout string // a part of the standard output
		stderr string
	}{
		{"version", 0, "snapcloud v1.2.3", ""},
		{"migrate", 0, "up to date", ""},
		{"check", 0, "ok    storage", ""},
		{"key create --org acme --kind user --user alice@acme.test --name laptop", 0, "cak_",
			"this is the only time it is shown"},
		{"key create --org acme --kind pipeline --scopes pull --expires-in 90d", 0, "clt_", ""},
		{"key create --org acme --kind agent", 0, "sak_", ""},
		{"key list --org acme", 0, "alice@acme.test", ""},
		{"org list", 0, "acme  Acme Inc  open", ""},
		{"user list --org acme", 0, "dba, eng", ""},
		{"user role --org acme vic@acme.test member", snap.ExitUsage, "", "`role: member`, in line 10 of"},
		{"user disable --org acme vic@acme.test", 0, "", "disabled"},
		{"user enable --org acme vic@acme.test", 0, "", "enabled"},
		{"key revoke --org acme 1", 0, "", "revoked key 1"},
		{"key revoke --org acme 1", snap.ExitNotFound, "", "no valid key 1"},
		{"key create --org nowhere --kind agent", snap.ExitNotFound, "",
			"no organization has the slug \"nowhere\"\n  hint: list the organizations with `snapcloud org list`"},
		{"key create --org acme --kind user", snap.ExitUsage, "", "--user"},
		{"key create --org acme --kind user --user nobody@acme.test", snap.ExitNotFound, "", "nobody@acme.test"},
		{"key create --org acme --kind king", snap.ExitUsage, "", "not a kind"},
		{"key create --org acme --kind pipeline --scopes fly", snap.ExitUsage, "", "not a scope"},
		{"key create --org acme --kind pipeline --expires-in -1h", snap.ExitUsage, "", "-1h"},
		{"key create --kind agent", snap.ExitUsage, "", "org"},
		{"user role --org acme vic@acme.test king", snap.ExitUsage, "", "not a role"},
		{"user disable --org acme nobody@acme.test", snap.ExitNotFound, "", "nobody@acme.test"},
		{"user disable --org acme", snap.ExitUsage, "", "use it as: snapcloud user disable --org SLUG EMAIL"},
		{"fly", snap.ExitUsage, "", "there is no command"},
		{"serve --config /nowhere.yaml", snap.ExitUsage, "", "/nowhere.yaml"},
	} {
		code, stdout, stderr := run(t, config, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("snapcloud %s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
		if strings.HasPrefix(tt.args, "key create") && code == 0 && !secret.MatchString(stdout) {
			t.Errorf("snapcloud %s prints %q", tt.args, stdout)
		}
	}
	if _, _, stderr := run(t, configure(t, "127.0.0.1:8080"), "user", "list", "--org",
		"acme"); !strings.Contains(stderr,
		"there was no database in ") {
		t.Errorf("a new database is made without a word: %q", stderr)
	}
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte(fmt.Sprintf(`
data_dir: %s
organizations:
  - {slug: acme, sign_in: {type: oidc, issuer: "http://127.0.0.1:1", client_id: x, allow_private: true}}
`, t.TempDir())), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := run(t, broken, "check"); code != snap.ExitOK ||
		!strings.Contains(stdout, "warn  sign-in acme") || !strings.Contains(stdout, "ok    storage") {
		t.Errorf("check with a provider that is down: exit code %d\n%s", code, stdout)
	}
	code, stdout, _ := run(t, config, "openapi")
	var doc struct {
		OpenAPI string `json:"openapi"`
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("openapi: exit code %d, %v, version %q", code, err, doc.OpenAPI)
	}
}

// TestUserDisableDisablesAllAccounts: after a change of identity provider, a person has two accounts
// with one e-mail.
func TestUserDisableDisablesAllAccounts(t *testing.T) {
	t.Parallel()
	config := configure(t, "127.0.0.1:8080")
	run(t, config, "user", "list", "--org", "acme") // applies the configuration
	s, err := store.Open(t.Context(), store.Options{DataDir: dataDir(t, config)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	acme, err := s.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, issuer := range []string{"https://old-idp.test", "https://new-idp.test"} {
		if _, err := s.ApplySignIn(t.Context(), store.SignIn{OrgID: acme.ID, Issuer: issuer, Subject: "1",
			Email: "mia@acme.test", Role: snap.RoleMember}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, stderr string }{
		{"user role --org acme mia@acme.test viewer", "mia@acme.test is now viewer"},
		{"user disable --org acme mia@acme.test", "disabled 2 accounts of mia@acme.test"},
	} {
		code, _, stderr := run(t, config, strings.Fields(tt.args)...)
		if code != 0 || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("snapcloud %s: exit code %d, said %q", tt.args, code, stderr)
		}
	}
	accounts, err := s.UsersByEmail(t.Context(), acme.ID, "mia@acme.test")
	if err != nil || len(accounts) != 2 || !accounts[0].Disabled || !accounts[1].Disabled {
		t.Errorf("the accounts are %+v, %v", accounts, err)
	}
}

// dataDir returns the data_dir of a configuration.
func dataDir(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(regexp.MustCompile(`(?m)^data_dir: (.*)$`).FindSubmatch(text)[1])
}

// A service that is stopped ends with exit code 0. After a restart, it responds as before.
func TestServeStopsGracefullyAndComesBack(t *testing.T) {
	t.Parallel()
	address := servertest.Address(t)
	config := configure(t, address)
	_, secret, _ := run(t, config, "key", "create", "--org", "acme", "--kind", "user", "--user", "alice@acme.test")
	client, err := api.New(api.Options{BaseURL: "http://" + address, Mount: api.MountAgent,
		Token: api.StaticToken(strings.TrimSpace(secret))})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		serving, ready := io.Pipe()
		done := make(chan int, 1)
		go func() {
			code := Main(ctx, []string{"--config", config, "serve"}, io.Discard, &firstLine{w: ready}, nil, "test")
			ready.Close()
			done <- code
		}()
		if _, err := serving.Read(make([]byte, 1)); err != nil {
			t.Fatalf("round %d: the service did not start", round)
		}
		if me, err := client.Me(t.Context()); err != nil || me.Email != "alice@acme.test" {
			t.Errorf("round %d: %+v, %v", round, me, err)
		}
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatalf("round %d: readyz %v", round, err)
		}
		if res.StatusCode != http.StatusOK {
			t.Errorf("round %d: readyz %s", round, res.Status)
		}
		res.Body.Close()
		if round == 0 {
			if code, _, stderr := run(t, config, "serve"); code != snap.ExitUsage ||
				!strings.Contains(stderr, address) {
				t.Errorf("a second service on the same address: exit code %d, %s", code, stderr)
			}
		}
		stop()
		if code := <-done; code != 0 {
			t.Errorf("round %d: exit code %d", round, code)
		}
	}
}

// firstLine writes a newline to w when the service says that it is serving, and drops all output.
type firstLine struct {
	w    io.Writer
	done bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if !f.done && bytes.Contains(p, []byte("is serving")) {
		f.done = true
		f.w.Write([]byte("\n"))
	}
	return len(p), nil
}
