package operator

import (
	"context"
	"errors"
	"io"
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

// The operator's way: back up while the service runs, restore elsewhere, and move to another place
// with the service stopped. Every mistake on the way has an error that says what to do.
func TestBackUpRestoreAndTransferByCommand(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	config := configure(t, servertest.Address(t))
	_, secret, _ := run(t, config, "key", "create", "--org", "acme", "--kind", "user", "--user", "alice@acme.test")
	backups := filepath.Join(t.TempDir(), "backups")
	expect := func(config string, code int, says, args string) {
		t.Helper()
		got, stdout, stderr := run(t, config, strings.Fields(args)...)
		if got != code || !strings.Contains(stdout+stderr, says) {
			t.Errorf("snapcloud %s: exit code %d\n%s%s\nwant %d and %q", args, got, stdout, stderr, code, says)
		}
	}
	moved, restored := elsewhere(t, config), elsewhere(t, config)

	stop := serve(t, config)
	expect(config, snap.ExitNotFound, "no backup", "backup verify --from "+t.TempDir())
	expect(config, 0, ": 0 objects of 0 B in total, 0 of them new (0 B); ", "backup --to "+backups)
	expect(config, 0, "backed up as", "backup --keep 1 --to "+backups)
	expect(config, 0, "VERSION", "backup list --from "+backups)
	expect(config, 0, `"objects": 0`, "backup list --json --from "+backups)
	expect(config, 0, "is intact", "backup verify --from "+backups)
	damaged := filepath.Join(backups, "20260102T030405.000Z")
	if err := errors.Join(os.Mkdir(damaged, 0o700),
		os.WriteFile(filepath.Join(damaged, "manifest"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"v1.2.3\n", "20260102T030405.000Z is damaged"} {
		expect(config, snap.CodeCorrupt.Info().Exit, says, "backup list --from "+backups)
	}
	if err := os.RemoveAll(damaged); err != nil {
		t.Fatal(err)
	}
	expect(config, snap.ExitConflict, "not empty", "restore --from "+backups)
	expect(config, snap.ExitConflict, "is running", "transfer --to "+moved)
	expect(config, snap.ExitUsage, "transfer needs --to", "transfer")
	expect(config, snap.ExitUsage, "backup needs --to", "backup")
	expect(config, snap.ExitUsage, "--keep", "backup --keep -1 --to "+backups)
	stop()

	expect(config, 0, "would copy", "transfer --dry-run --to "+moved)
	expect(config, 0, "copied", "transfer --to "+moved)
	expect(config, snap.ExitUsage, "not empty", "transfer --to "+moved)
	expect(config, snap.ExitUsage, "same database", "transfer --to "+config)
	for _, args := range []string{"serve", "user disable --org acme alice@acme.test",
		"backup --keep 1 --to " + backups} {
		expect(config, snap.ExitUsage, "this service was moved to ", args)
	}
	expect(config, snap.ExitUnreachable, "FAIL  database       this service was moved to ", "check")
	serve(t, config, "--again")()
	serve(t, config)()                                        // --again removed the mark of the transfer
	expect(restored, 0, "does not exist yet", "check --deep") // must leave data_dir empty for the restore
	if err := os.Mkdir(filepath.Join(dataDir(t, restored), store.RestoringDir), 0o700); err != nil {
		t.Fatal(err)
	}
	expect(restored, snap.ExitUnreachable, "FAIL  database       a restore into ", "check")
	if err := os.Remove(filepath.Join(dataDir(t, restored), store.RestoringDir)); err != nil {
		t.Fatal(err)
	}
	expect(restored, 0, "restored", "restore --from "+backups)
	for _, config := range []string{moved, restored} {
		stop := serve(t, config)
		client, err := api.New(api.Options{BaseURL: "http://" + addressOf(t, config), Mount: api.MountAgent,
			Token: api.StaticToken(strings.TrimSpace(secret))})
		if err != nil {
			t.Fatal(err)
		}
		if me, err := client.Me(t.Context()); err != nil || me.Email != "alice@acme.test" {
			t.Errorf("the key of before: %+v, %v", me, err)
		}
		stop()
	}

	replicas := elsewhere(t, config)
	text, err := os.ReadFile(replicas)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(replicas, append(text, "database: {url: postgres://127.0.0.1:1/none}\n"...),
		0o600); err != nil {
		t.Fatal(err)
	}
	expect(replicas, snap.ExitUsage, "with their own tools", "backup --to "+backups)
	expect(replicas, snap.ExitUsage, "with their own tools", "restore --from "+backups)
}

// elsewhere is a configuration with another data_dir and address.
func elsewhere(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^data_dir: .*$`).ReplaceAll(text, []byte("data_dir: "+t.TempDir()))
	text = regexp.MustCompile(`(?m)^listen: .*$`).ReplaceAll(text, []byte("listen: "+servertest.Address(t)))
	file := filepath.Join(t.TempDir(), "elsewhere.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func addressOf(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(regexp.MustCompile(`(?m)^listen: (.*)$`).FindSubmatch(text)[1])
}

// serve runs the service until stop.
func serve(t *testing.T, config string, flags ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	serving, ready := io.Pipe()
	done := make(chan int, 1)
	go func() {
		args := append([]string{"--config", config, "serve"}, flags...)
		code := Main(ctx, args, io.Discard, &firstLine{w: ready}, nil, "test")
		ready.Close()
		done <- code
	}()
	if _, err := serving.Read(make([]byte, 1)); err != nil {
		t.Fatal("the service did not start")
	}
	return func() {
		t.Helper()
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("the service ended with exit code %d", code)
		}
	}
}
