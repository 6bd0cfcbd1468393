package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
)

// A service that lost its database does not start on its old object store. The
// error says how to take it over, which requires naming the previous owner.
func TestClaimAfterALostDatabase(t *testing.T) {
	t.Parallel()
	const before = "http://127.0.0.1:8080"
	dir := t.TempDir()
	config := filepath.Join(dir, "snapcloud.yaml")
	if err := os.WriteFile(config, []byte("listen: 127.0.0.1:0\npublic_url: "+before+"\ndata_dir: "+dir+"/data\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, config)()
	if code, _, stderr := run(t, config, "claim", "--from", before); code != snap.ExitUsage ||
		!strings.Contains(stderr, "no other service") {
		t.Errorf("its own storage: exit code %d, %s", code, stderr)
	}
	databases, err := filepath.Glob(filepath.Join(dir, "data", "snapcloud.db*"))
	if err != nil || len(databases) == 0 {
		t.Fatalf("no database to lose: %v", err)
	}
	for _, file := range databases {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	code, _, stderr := run(t, config, "serve")
	if code != snap.ExitUsage || !strings.Contains(stderr, "snapcloud claim --from "+before) {
		t.Fatalf("exit code %d, want a hint that names claim:\n%s", code, stderr)
	}
	if code, stdout, _ := run(t, config, "check"); code != snap.ExitUnreachable ||
		!strings.Contains(stdout, "FAIL  storage        the object store belongs to an earlier service at "+before) {
		t.Errorf("exit code %d of the check:\n%s", code, stdout)
	}
	if code, _, stderr := run(t, config, "claim", "--from", "https://elsewhere.example"); code != snap.ExitUsage ||
		!strings.Contains(stderr, before) {
		t.Errorf("another's storage: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := run(t, config, "claim", "--from", before); code != 0 {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	serve(t, config)()
}
