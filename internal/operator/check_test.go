package operator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/blob"
	"snap/internal/servertest"
	"snap/internal/store"
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
				"\"http://127.0.0.1:1\"}\n", dir, url)
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
			removeUnused(t, config, dir)
			text += "limits: {disk_reserve: 1000000000000000}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, stdout, _ := run(t, config, "check"); code != 0 ||
				!strings.Contains(stdout, "free in data_dir, and uploads stop below 1.0 PB (limits.disk_reserve)") {
				t.Errorf("exit code %d with a disk that is nearly full\n%s", code, stdout)
			}
			if url == "" {
				removalFails(t, config, dir)
			}
			left, err := filepath.Glob(filepath.Join(dir, "data", "blobs", "objects", "??", "check.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("check left %v behind, %v", left, err)
			}
		})
	}
}

// TestCheckReadsTheKeys: check fails if key_encryption_key is not the key that encrypted the keys
// of the service. The service would not start with it.
func TestCheckReadsTheKeys(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "snapcloud.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\npublic_url: http://127.0.0.1:8080\ndata_dir: %s\n", t.TempDir())
	with := func(key string) {
		t.Helper()
		auth := fmt.Sprintf("auth: {key_encryption_key: %q}\n", base64.StdEncoding.EncodeToString([]byte(key)))
		if err := os.WriteFile(config, []byte(text+auth), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with(strings.Repeat("a", 32))
	serve(t, config)()
	if code, stdout, _ := run(t, config, "check"); code != 0 || !strings.Contains(stdout, "ok    keys") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	with(strings.Repeat("b", 32))
	if code, stdout, _ := run(t, config, "check"); code != snap.ExitUnreachable ||
		!strings.Contains(stdout, "FAIL  keys           the key that signs the audit log is encrypted with another") {
		t.Errorf("exit code %d with another key\n%s", code, stdout)
	}
}

// removeUnused checks that an object without a row is named, and that it can be removed.
func removeUnused(t *testing.T, config, dir string) {
	t.Helper()
	unused := snap.NewSnapshotID()
	writeObjects(t, dir, unused, store.ArchivePrefix+"being-written")
	if code, _, stderr := run(t, config, "check", "--remove-unused"); code != snap.ExitUsage {
		t.Errorf("without --deep: exit code %d, %s", code, stderr)
	}
	code, stdout, stderr := run(t, config, "check", "--deep", "--remove-unused")
	if code != 0 || !strings.Contains(stdout, "2 without a row: ") || !strings.Contains(stdout, unused) ||
		!strings.Contains(stderr, "unused objects that the service will remove: 1\n") {
		t.Errorf("exit code %d of the removal\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ := run(t, config, "check", "--deep"); strings.Contains(stdout, unused) ||
		!strings.Contains(stdout, "1 without a row: "+store.ArchivePrefix) {
		t.Errorf("after the removal was requested:\n%s", stdout)
	}
}

func writeObjects(t *testing.T, dir string, keys ...string) {
	t.Helper()
	blobs, err := blob.OpenFolder(filepath.Join(dir, "data", "blobs"), "http://snap.test", make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := blobs.Write(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

// removalFails checks that the results are printed although the disk has no room to record that an
// unused object will be removed.
func removalFails(t *testing.T, config, dir string) {
	t.Helper()
	unused := snap.NewSnapshotID()
	writeObjects(t, dir, unused)
	code, stdout, stderr := run(t, config, "check", "--deep", "--remove-unused")
	if code != snap.CodeStorageFull.Info().Exit || !strings.Contains(stdout, unused) ||
		!strings.Contains(stdout, "ok    clock") ||
		!strings.Contains(stderr, "the disk of the service's database is full") {
		t.Errorf("exit code %d of a removal that fails\n%s%s", code, stdout, stderr)
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
    "ok": false`) || !strings.Contains(stdout, "the object store does not answer: ") ||
		strings.Count(stdout, "connection refused") != 2 {
		t.Errorf("exit code %d with a database that is down: %s", code, stdout)
	}
}
