package cli

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// A person at a terminal is asked before a snapshot that is not on this machine is pulled. After
// "no", and without a terminal, the error says how to get the snapshot, and no clone is made.
func TestCloneAsksToPull(t *testing.T) {
	t.Parallel()
	c, dir := cloudtest.Start(t, cloudtest.Options{}), t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	do := func(who, answer string, terminal bool, args ...string) (code int, out, said string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		env := map[string]string{"TERM": "dumb", "HOME": dir, "SNAPCLI_CONFIG_DIR": filepath.Join(dir, who),
			"SNAPCLI_DATA_DIR": filepath.Join(dir, who), "SNAPCLI_CLOUD__URL": c.URL,
			"SNAPCLI_CLOUD__API_KEY": c.Key(who + "@acme.test")}
		stdio := IO{In: strings.NewReader(answer), Out: &stdout, Err: &stderr, InTerminal: terminal,
			ErrTerminal: terminal, Width: func() int { return 100 }}
		code = Main(context.WithoutCancel(t.Context()), args, stdio, func(name string) string { return env[name] })
		return code, stdout.String(), stderr.String()
	}
	for _, args := range [][]string{{"targets", "add", "shop", "--source", "sqlite://" + filepath.Join(dir, "shop.db")},
		{"build", "shop"}, {"push", "shop", "--cloud"}} {
		if code, _, said := do("alice", "", false, args...); code != 0 {
			t.Fatalf("%v: %s", args, said)
		}
	}
	list, err := c.As("alice@acme.test").Snapshots(t.Context(), api.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d snapshots, %v", len(list.Items), err)
	}
	if _, err := c.As("alice@acme.test").Share(t.Context(), list.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	if code, _, said := do("mia", "", false, "targets", "add", "shop", "--destination",
		"sqlite://"+filepath.Join(dir, "dev.db")); code != 0 {
		t.Fatal(said)
	}
	missing := snap.CodeNotFound.Info().Exit
	for _, at := range []struct {
		terminal bool
		answer   string
		asks     int
	}{{false, "y\n", 0}, {true, "n\n", 1}, {true, "\n", 1}} {
		code, out, said := do("mia", at.answer, at.terminal, "clone", "shop")
		if code != missing || out != "" || strings.Count(said, "Pull it?") != at.asks ||
			!strings.Contains(said, `there is no snapshot of target "shop" on this machine`) {
			t.Errorf("%+v: %d, %q, %s", at, code, out, said)
		}
	}
	// Names are not resolved in the cloud, so a pull by name could not succeed.
	code, out, said := do("mia", "y\n", true, "clone", "shop", "--snapshot", list.Items[0].Name)
	if code != missing || strings.Contains(said, "Pull it?") {
		t.Errorf("by name: %d, %q, %s", code, out, said)
	}
	code, out, said = do("mia", "y\n", true, "clone", "shop")
	if code != 0 || !strings.HasPrefix(out, "sqlite://") || !strings.Contains(said, "every byte verified") {
		t.Errorf("%d, %q, %s", code, out, said)
	}
	// Before a local snapshot is deleted, the question does not claim that its copy in the cloud
	// still exists.
	_, _, said = do("mia", "n\n", true, "snapshots", "delete", list.Items[0].Name)
	if !strings.Contains(said, "It was in the cloud when it was last pushed or pulled.") {
		t.Errorf("delete said %s", said)
	}
}
