package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHelpAhead: what cmd/snapcli/ahead prints for --help is what cobra prints.
func TestHelpAhead(t *testing.T) {
	t.Parallel()
	root := referenceApp().root()
	var help bytes.Buffer
	root.SetOut(&help)
	root.SetArgs([]string{"--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	compare(t, "../../cmd/snapcli/ahead/help.txt", help.Bytes())
}

// aheadOf are the command lines that are answered before the program is
// initialised, each beside one that means the same and is not.
var aheadOf = map[string]string{
	"":        "--debug=false",
	"--help":  "--help --debug=false",
	"-h":      "-h --quiet=false",
	"help":    "help --debug=false",
	"version": "version --debug=false",
}

// TestAhead: an answer ahead of time is the whole program's, and is there before
// the packages are initialised; what is not exactly one of these command lines
// is none of its business.
func TestAhead(t *testing.T) {
	t.Parallel()
	program := buildReleased(t, "../../cmd/snapcli")
	for ahead, usual := range aheadOf {
		early, earlyPackages := inProgram(t, program, ahead)
		late, latePackages := inProgram(t, program, usual)
		if early != late || early == "" {
			t.Errorf("%q says %q, and %q says %q", ahead, early, usual, late)
		}
		if strings.Contains(earlyPackages, lastPackage) {
			t.Errorf("%q waits until all is initialised", ahead)
		}
		if !strings.Contains(latePackages, lastPackage) {
			t.Errorf("%q is answered ahead of time too, so nothing was compared", usual)
		}
	}
	for _, line := range []string{"version --json", "version --quiet", "version --help", "help version", "--help --json", "versions", "-v", "--", "--version"} {
		if _, packages := inProgram(t, program, line); !strings.Contains(packages, lastPackage) {
			t.Errorf("%q was answered ahead of time", line)
		}
	}
}

// lastPackage is said of a package that only the whole program initialises.
const lastPackage = "init net/http "

// inProgram runs snapcli and returns what it printed, and the packages that
// were initialised for it.
func inProgram(t *testing.T, program, line string) (out, packages string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // a usage error is an answer too
	return stdout.String(), stderr.String()
}

// buildReleased builds a program with the flags of the Makefile. Its version is
// git's, where there is a clone.
func buildReleased(tb testing.TB, source string) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "program")
	build := exec.CommandContext(tb.Context(), "go", "build", "-buildvcs=auto", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, said)
	}
	return program
}
