package cli

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/nightly"
	"snap/internal/servertest"
)

// TestSecondRunInAMinute: the refusal of a run gives the time with its zone.
func TestSecondRunInAMinute(t *testing.T) {
	t.Parallel()
	a := &app{flags: globals{utc: true}}
	err := a.cannotRun(nightly.TooSoonError{After: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, "shop")
	if snap.CodeOf(err) != snap.CodeConflict || !strings.HasSuffix(err.Error(), "after 2026-03-01 12:00 UTC") {
		t.Error(err)
	}
}

// TestAgent runs the agent as a service manager does: it catches up on the nights that were missed,
// pushes to the cloud, reports each event as a line, reports a target whose schedule is not valid,
// and ends without an error when it is stopped.
func TestAgent(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	dir := t.TempDir()
	source := filepath.Join(dir, "shop.db")
	db, err := sql.Open("sqlite", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT); " +
		"INSERT INTO customer VALUES (1, 'ann@example.test')"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.yaml": "targets:\n  shop:\n    source: sqlite://" + source + "\n" +
			"    sanitize: {rules: shop.rules.yaml}\n" +
			"    schedule: 17 3 * * *\n    checks:\n      - {sql: SELECT count(*) FROM customer, expect: 1}\n" +
			"  broken:\n    source: sqlite://" + source + "\n    schedule: soon\n",
		"shop.rules.yaml":      "keep: ['*']\ntables:\n  customer: {columns: {email: email}}\n",
		"data/agent/shop.json": `{"after": "2026-01-01T03:17", "runs": []}`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"SNAPCLI_CLOUD__URL": c.URL, apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": dir, "SNAPCLI_DATA_DIR": filepath.Join(dir, "data")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var said strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- patientMain(ctx, []string{"agent", "--json"}, IO{Out: in, Err: &said},
			func(name string) string { return env[name] })
		in.Close()
	}()
	seen := map[string]agentEvent{}
	for lines := bufio.NewScanner(out); seen["shop ended"].Run == nil || seen["broken trouble"].Event == ""; {
		if !lines.Scan() {
			t.Fatalf("the agent ended after %+v: %s", seen, said.String())
		}
		var e agentEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		seen[e.Target+" "+e.Event] = e
	}
	cancel()
	go io.Copy(io.Discard, out)
	if code := <-ended; code != snap.ExitOK {
		t.Errorf("code %d: %s", code, said.String())
	}
	done := seen["shop ended"].Run
	if done == nil || done.State != "done" || done.Missed == 0 || !strings.HasPrefix(done.Pushed, snap.IDPrefix) {
		t.Fatalf("%+v, %s", seen, said.String())
	}
	if e := seen["broken trouble"]; !strings.Contains(e.Detail, `"soon" is not a schedule`) {
		t.Errorf("%+v", seen)
	}
	s, err := c.As("alice@acme.test").Snapshot(t.Context(), done.Pushed)
	if err != nil || s.Type != snap.TypeSanitized {
		t.Errorf("%+v, %v", s, err)
	}
}
