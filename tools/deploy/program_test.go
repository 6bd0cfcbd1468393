package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

func exists(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// snapcloud builds the program once and returns its path.
var snapcloud = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lint-deploy-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "snapcloud")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", program, "./cmd/snapcloud")
	// with the Makefile's flags, so most packages are compiled already
	build.Dir, build.Stderr, build.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	return program, build.Run()
})

// checkConfig checks a configuration with the program itself, in this environment.
func checkConfig(t *testing.T, config string, environment []string) {
	t.Helper()
	program, err := snapcloud()
	if err != nil {
		t.Fatalf("build snapcloud: %v", err)
	}
	file := filepath.Join(t.TempDir(), "snapcloud.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), program, "check", "--offline", "--config", file)
	check.Env = append([]string{"HOME=" + t.TempDir()}, environment...)
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("the program does not accept this configuration: %s%s", said, config)
	}
}

// TestMain removes the built program after the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := snapcloud(); err == nil {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}
