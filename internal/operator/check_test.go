package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// TestCheckTriesEverything: check tests the database, schema, clock and object store without
// changing them, before and after the first start.
func TestCheckTriesEverything(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"sqlite":   func(testing.TB) string { return "" },
		"postgres": servertest.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, dir := database(t), t.TempDir()
			config := filepath.Join(dir, "snapcloud.yaml")
			text := fmt.Sprintf("data_dir: %s/data\ndatabase: {url: %q}\ntracing: {endpoint: "+
				"\"http://127.0.0.1:1\"}\n", dir,
				url)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			before := map[bool]string{true: "does not exist yet", false: "the schema is at 0"}[url == ""]
			for _, want := range []string{before, "is up to date"} {
				code, stdout, _ := run(t, config, "check")
				if code != 0 || !strings.Contains(stdout, want) ||
					!strings.Contains(stdout, "ok    storage        written, read and removed") ||
					!strings.Contains(stdout, "ok    clock") || !strings.Contains(stdout, "warn  tracing") {
					t.Errorf("exit code %d, want %q in\n%s", code, want, stdout)
				}
				if code, stdout, stderr := run(t, config, "migrate"); code != 0 {
					t.Fatalf("%s%s", stdout, stderr)
				}
			}
			if code, stdout, _ := run(t, config, "check", "--deep"); code != 0 ||
				!strings.Contains(stdout, "ok    snapshots") || !strings.Contains(stdout, "ok    objects") {
				t.Errorf("exit code %d of a deep check\n%s", code, stdout)
			}
			left, err := filepath.Glob(filepath.Join(dir, "data", "blobs", "*", "check.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("check left %v behind, %v", left, err)
			}
		})
	}
}

// TestCheckOffline reads only the configuration; --json is for programs.
func TestCheckOffline(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "snapcloud.yaml")
	text := "database: {url: postgres://nobody@127.0.0.1:1/none}\nblob: {url: s3://none?endpoint=http://127.0.0.1:1}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, config, "check", "--offline", "--json")
	var findings []struct {
		What string
		OK   bool
	}
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil || code != 0 || len(findings) != 1 ||
		!findings[0].OK {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code, stdout, _ := run(t, config, "check", "--json"); code != snap.ExitUnreachable ||
		!strings.Contains(stdout, `"what": "database",
    "ok": false`) {
		t.Errorf("exit code %d with a database that is down: %s", code, stdout)
	}
}
