package snap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// units are the systemd units, by the program that each of them runs.
var units = map[string]string{"snapcloud": "snapcloud.service", "snapcli": "snapcli-agent.service"}

// TestUnit lets systemd read the units, with an existing program instead of the installed one.
func TestUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, of the package systemd")
	}
	for program, name := range units {
		unit := filepath.Join(t.TempDir(), name)
		text := strings.ReplaceAll(read(t, "deploy/"+name), "/usr/local/bin/"+program, "/bin/true")
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
		if err != nil || strings.Contains(string(said), name) {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// TestUnitIsHardened: systemd rates the exposure of each unit, from 0 (none) to 10, without running
// it. The threshold 20 stands for the rating 2.0.
func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze, of the package systemd")
	}
	for _, name := range units {
		said, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=20",
			"--no-pager", "deploy/"+name).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// TestReleases checks that .goreleaser.yaml builds both programs, without cgo.
func TestReleases(t *testing.T) {
	t.Parallel()
	var releases struct {
		Builds []struct {
			Main   string   `yaml:"main"`
			Binary string   `yaml:"binary"`
			Env    []string `yaml:"env"`
		} `yaml:"builds"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &releases); err != nil {
		t.Fatal(err)
	}
	if len(releases.Builds) != 2 {
		t.Fatalf("%d builds, want snapcli and snapcloud", len(releases.Builds))
	}
	for _, b := range releases.Builds {
		if !strings.Contains(read(t, filepath.Join(b.Main, "main.go")), "// Command "+b.Binary+" ") {
			t.Errorf("%s is not the program %s", b.Main, b.Binary)
		}
		if len(b.Env) != 1 || b.Env[0] != "CGO_ENABLED=0" {
			t.Errorf("%s is not built without cgo", b.Binary)
		}
	}
}

// TestImage checks that the image is built with the module's version of Go.
func TestImage(t *testing.T) {
	t.Parallel()
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	has := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)-`).FindStringSubmatch(read(t, "deploy/Dockerfile"))
	if wants == nil || has == nil || wants[1] != has[1] {
		t.Errorf("the image is built with Go %v, the module wants %v", has, wants)
	}
}

// TestVersionStamp checks that nothing replaces or prevents the stamp that [snap.Version] reads. Go
// adds the stamp when it builds from a clone with its .git. It needs no linker flag.
func TestVersionStamp(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"Makefile", ".goreleaser.yaml", "deploy/Dockerfile"} {
		if strings.Contains(read(t, file), "main.version") {
			t.Errorf("%s sets the version by the linker", file)
		}
	}
	if strings.Contains("\n"+read(t, ".dockerignore"), "\n.git\n") {
		t.Error("the image is built without .git, so its program would not know its version")
	}
}
