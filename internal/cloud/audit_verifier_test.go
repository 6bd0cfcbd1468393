package cloud_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// The verifier in docs/audit.md, which shares no code with ours, accepts an intact log and refuses
// an altered one. It has at most 100 lines.
func TestVerifierOfTheDocuments(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	page, err := os.ReadFile("../../docs/audit.md")
	must(t, err)
	_, program, _ := strings.Cut(string(page), "```go\n")
	program, _, _ = strings.Cut(program, "```\n")
	if lines := strings.Count(program, "\n"); lines < 50 || lines > 100 {
		t.Errorf("the program has %d lines", lines)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "verify.go"), []byte(program), 0o600))
	binary := filepath.Join(dir, "verify")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, filepath.Join(dir, "verify.go")).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := watch(t, cloudtest.Options{})
	kept := filepath.Join(dir, "kept.txt")
	verify := func() (string, error) {
		args := []string{w.URL}
		if _, err := os.Stat(kept); err == nil {
			args = append(args, kept)
		}
		command := exec.CommandContext(t.Context(), binary, args...)
		command.Env = append(os.Environ(), "SNAP_KEY="+w.Key("alice@acme.test"))
		var said strings.Builder
		command.Stderr = &said
		checkpoint, err := command.Output()
		if err == nil {
			must(t, os.WriteFile(kept, checkpoint, 0o600))
		}
		return said.String(), err
	}
	for range 2 { // without a kept checkpoint, then after the log grew
		if said, err := verify(); err != nil || !strings.Contains(said, "lines are sound") {
			t.Fatalf("%v: %s", err, said)
		}
		w.Push(w.As("mia@acme.test"), "more", []byte(t.Name()))
	}
	w.exec(`UPDATE audit SET body = replace(body, 'mia@', 'max@'), actor = 'max@acme.test'
		WHERE actor = 'mia@acme.test' AND org_id = ` + acme)
	if said, err := verify(); err == nil || !strings.Contains(said, "do not match the signed checkpoint") {
		t.Errorf("an altered line: %v, %s", err, said)
	}
	w.exec(`DELETE FROM audit_tree WHERE org_id = ` + acme)
	w.exec(`UPDATE audit_heads SET size = 0, checkpoint = '' WHERE org_id = ` + acme)
	if said, err := verify(); err == nil || !strings.Contains(said, "changed since the kept checkpoint") {
		t.Errorf("a log that was written again: %v, %s", err, said)
	}
}
