package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// The OpenAPI document passes a linter without an error or a warning.
func TestOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	dir := npmTools(t)
	document := openAPIFile(t, cloudtest.Start(t, cloudtest.Options{}))
	out := runIn(t, dir, "node_modules/.bin/redocly", "lint", "--config", "redocly.yaml", "--max-problems", "20",
		"--format", "github-actions", document)
	if len(out) > 0 {
		t.Errorf("the linter says:\n%s", out)
	}
}

// A TypeScript client that is generated from the document can push, share, pull and unshare.
func TestGeneratedTypeScriptClient(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	dir := npmTools(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	work := t.TempDir()
	for _, name := range []string{"job.ts", "package.json", "tsconfig.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(work, name), data, 0o600))
	}
	must(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules")))
	runIn(t, dir, "node_modules/.bin/openapi-typescript", openAPIFile(t, c), "--output",
		filepath.Join(work, "schema.ts"))
	runIn(t, work, "node_modules/.bin/tsc")
	job := exec.CommandContext(t.Context(), "node", "job.js")
	job.Dir = work
	job.Env = append(os.Environ(), "BASE="+c.URL, "OWNER_KEY="+c.Key("alice@acme.test"),
		"MEMBER_KEY="+c.Key("mia@acme.test"), "RECIPIENT_KEY="+c.Key("gail@globex.test"))
	if out, err := job.CombinedOutput(); err != nil {
		t.Errorf("job.ts: %v\n%s", err, out)
	}
}

// A Go client that is generated from the document compiles.
func TestGeneratedGoClient(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	dir := filepath.Join(servertest.Root(t), "tools", "openapi")
	work := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(work, name), data, 0o600))
	}
	if _, err := output(t, work, "go", "tool", "oapi-codegen", "-version"); err != nil {
		t.Skip("needs oapi-codegen: run go mod download in tools/openapi")
	}
	document := openAPIFile(t, cloudtest.Start(t, cloudtest.Options{}))
	runIn(t, work, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", "client.go",
		document)
	runIn(t, work, "go", "build", ".")
}

// npmTools returns the folder of the tools from npm, or skips the test.
func npmTools(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(servertest.Root(t), "tools", "openapi")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("needs Redocly's linter and openapi-typescript: run npm ci in tools/openapi")
	}
	return dir
}

func openAPIFile(t *testing.T, c *cloudtest.Cloud) string {
	t.Helper()
	document, err := c.Service.OpenAPI()
	must(t, err)
	path := filepath.Join(t.TempDir(), "openapi.json")
	must(t, os.WriteFile(path, document, 0o600))
	return path
}

// runIn runs a program that must succeed, and returns its standard output.
func runIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := output(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return out
}

func output(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "REDOCLY_TELEMETRY=off",
		"REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := c.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		out = append(out, exit.Stderr...)
	}
	return string(out), err
}
