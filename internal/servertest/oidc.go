package servertest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OIDC configures [OIDCProvider].
type OIDC struct {
	Redirect  string                    // redirect URI of the client snapcloud
	Audience  string                    // of the access tokens of the public client snapcli
	Claims    map[string]map[string]any // by account; any name signs in, with any password
	InIDToken bool                      // the claims are in the ID token too, not only at userinfo
}

// OIDCProvider runs oidc-provider, an independent and certified OpenID Connect provider, until the
// test ends, and returns its issuer. It knows the clients snapcloud (secret OIDCSecret) and snapcli
// (public, device grant). The test is skipped if Node.js or the package is missing.
func OIDCProvider(t testing.TB, o OIDC) (issuer string) {
	t.Helper()
	return Node(t, "provider.js", o.environment(t)...).Line()
}

// Dex runs Dex, as [OIDCProvider] runs its provider. The only claim that it supports is groups, as
// a list, which it sends only for the scope groups. It has no device grant.
func Dex(t testing.TB, o OIDC) (issuer string) { return startProvider(t, "dex", o) }

// Zitadel runs the provider of zitadel/oidc, as [OIDCProvider] runs its provider. The accounts are
// those in the claims; the password of each is its name.
func Zitadel(t testing.TB, o OIDC) (issuer string) { return startProvider(t, "zitadel", o) }

// startProvider runs a program of tools/providers until the test ends, and returns its issuer. If
// the program is missing, the test is skipped.
func startProvider(t testing.TB, name string, o OIDC) (issuer string) {
	t.Helper()
	RequireServers(t, "an identity provider")
	program := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(program); err != nil {
		t.Skipf("needs the identity provider %s: run make bin/%s", name, name)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), o.environment(t)...)
	return startProgram(t, cmd).Line()
}

// environment returns the configuration of a provider's program.
func (o OIDC) environment(t testing.TB) []string {
	t.Helper()
	claims, err := json.Marshal(o.Claims)
	if err != nil {
		t.Fatal(err)
	}
	in := map[bool]string{true: "yes", false: "no"}[o.InIDToken]
	return []string{"REDIRECT=" + o.Redirect, "AUDIENCE=" + o.Audience, "CLAIMS=" + string(claims), "IN_ID_TOKEN=" + in,
		"SECRET=" + OIDCSecret}
}

// OIDCSecret is the secret of the client snapcloud at every provider.
const OIDCSecret = "a-secret-that-is-only-for-tests"

// Program is a running program of tools/oidc or tools/providers.
type Program struct {
	t     testing.TB
	out   *bufio.Scanner
	stdin io.Writer
}

// Node runs a program of tools/oidc with additional environment variables until the test ends.
func Node(t testing.TB, name string, env ...string) *Program {
	t.Helper()
	RequireServers(t, "Node.js")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js: not installed")
	}
	dir := filepath.Join(Root(t), "tools", "oidc")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("needs oidc-provider and openid-client: run npm ci in tools/oidc")
	}
	cmd := exec.CommandContext(t.Context(), node, name)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return startProgram(t, cmd)
}

// startProgram runs a program until the test ends.
func startProgram(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", cmd.Path, log.String())
		}
	})
	return &Program{t, bufio.NewScanner(stdout), stdin}
}

// Line waits for the program's next line.
func (p *Program) Line() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatal("the program ended")
	}
	return p.out.Text()
}

// Say writes a line to the program.
func (p *Program) Say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}
