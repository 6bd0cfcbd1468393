package webui

import (
	"database/sql"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"snap/internal/clone"
	"snap/internal/engine"
	"snap/internal/local"
)

// cloneStates are clones in every state that the page shows.
func cloneStates(now time.Time) []cloneView {
	c := func(name string, kind clone.Kind, state clone.State) clone.Listed {
		return clone.Listed{Clone: clone.Clone{Name: name, Kind: kind, State: state, Created: now,
			Expires: now.Add(time.Hour), Source: clone.Source{Snapshot: "shop-20261121T011600Z"}},
			URL: "postgres://me@localhost/snapcli_clone_x"}
	}
	used := c("feature/x", clone.Named, clone.Ready)
	used.From, used.Look = "pr-1", engine.Look{Exists: true, Size: 1000, Connections: []string{"a", "b"}}
	away := c("away", clone.Named, clone.Making)
	away.Err = errors.New("no answer")
	return []cloneView{{used}, {away}, {c("", clone.Warm, clone.Ready)}}
}

// A clone is made, reset and dropped in the browser as on the command line.
func TestClonesPage(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "shop.db")
	sqliteFile(t, source)
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite://"+source+"\"}\n")
	u.must(u.get("/clones"), http.StatusOK, "No clones")
	agent := u.Server.o.Agent
	if _, err := agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	u.must(u.get("/clones"), http.StatusOK, "<option>shop")
	u.must(u.post("/clones", url.Values{"target": {"nope"}}), http.StatusNotFound, "no target")
	all, err := agent.Clone(t.Context(), "shop", local.CloneOptions{Name: "feature/x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.must(u.get("/clones"), http.StatusOK, "feature/x", all[0].URL, `href="/clones/feature%2Fx/drop"`)
	u.must(u.get("/clones/feature%2Fx/reset"), http.StatusOK, "Reset feature/x?")
	u.must(u.post("/clones/feature%2Fx/reset", nil), http.StatusOK)
	u.must(u.get("/clones/feature%2Fx/drop"), http.StatusOK, "Drop feature/x?")
	u.must(u.post("/clones/feature%2Fx/drop", nil), http.StatusOK)
	u.must(u.get("/clones"), http.StatusOK, "No clones")
	u.must(u.post("/clones/feature%2Fx/drop", nil), http.StatusNotFound, "no clone")
}

// A running web UI drops clones that have expired.
func TestTheWebUIDropsExpiredClones(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "shop.db")
	sqliteFile(t, source)
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite://"+source+"\"}\n")
	agent := u.Server.o.Agent
	if _, err := agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := agent.Clone(t.Context(), "shop", local.CloneOptions{Name: "one", TTL: time.Nanosecond}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.Server.tidyOnce(t.Context())
	if left, err := agent.Clones(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

// sqliteFile makes a SQLite database with one table.
func sqliteFile(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY); INSERT INTO customer VALUES (1)")
	if err != nil {
		t.Fatal(err)
	}
}
