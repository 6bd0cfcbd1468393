package webui

import (
	"database/sql"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap/internal/clone"
	"snap/internal/cloudtest"
	"snap/internal/engine"
	"snap/internal/local"
	"snap/internal/servertest"
)

// cloneStates are clones in every state that the page shows.
func cloneStates(now time.Time) []cloneView {
	c := func(name string, kind clone.Kind, state clone.State) clone.Listed {
		return clone.Listed{Clone: clone.Clone{Name: name, Kind: kind, State: state, Created: now,
			Expires: now.Add(time.Hour), Source: clone.Source{Snapshot: "shop-20261121T011600Z"}},
			URL: "postgres://me@localhost/snapcli_clone_x"}
	}
	used := c("feature/x", clone.Named, clone.Ready)
	used.From = "pr-1"
	used.DatabaseState = engine.DatabaseState{Exists: true, Size: 1000, Connections: []string{"a", "b"}}
	away := c("away", clone.Named, clone.Making)
	away.Err = errors.New("no answer")
	warm := c("", clone.Warm, clone.Ready)
	warm.ID = "warm_1"
	return []cloneView{{used}, {away}, {warm}}
}

// A clone is made, reset and dropped in the browser as on the command line.
func TestClonesPage(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	source := filepath.Join(t.TempDir(), "shop.db")
	sqliteFile(t, source)
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite://"+source+"\", clones: {ttl: 36h}}\n")
	u.must(u.get("/clones"), http.StatusOK, "No clones")
	agent := u.Server.o.Agent
	if _, err := agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	u.must(u.get("/clones"), http.StatusOK, "<option>shop", `placeholder="36h"`)
	u.must(u.post("/clones", url.Values{"target": {"nope"}}), http.StatusNotFound, "no target")
	all, err := agent.Clone(t.Context(), "shop", local.CloneOptions{Name: "feature/x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.must(u.get("/clones"), http.StatusOK, "feature/x", all[0].URL, `href="/clones/feature%2Fx/drop"`)
	u.must(u.get("/clones/feature%2Fx/reset"), http.StatusOK, "Reset feature/x?")
	u.must(u.post("/clones/feature%2Fx/reset", nil), http.StatusOK)
	u.must(u.get("/clones/feature%2Fx/branch"), http.StatusOK, "Branch feature/x?", `name="terminate"`)
	u.must(u.post("/clones/feature%2Fx/branch", url.Values{"name": {"other"}}), http.StatusOK)
	u.must(u.get("/clones"), http.StatusOK, "branched from feature/x")
	for field, text := range map[string]string{"ttl": "never", "count": "0", "type": "raw"} {
		for _, action := range []string{"/clones", "/clones/warm"} {
			u.must(u.post(action, url.Values{"target": {"shop"}, field: {text}}), http.StatusBadRequest, text)
		}
	}
	events := u.listen()
	u.post("/clones", url.Values{"target": {"shop"}, "name": {"many"}, "count": {"3"}, "ttl": {"2h"}, "type": {""}})
	events.ended()
	u.must(u.get("/clones"), http.StatusOK, "many-3")
	u.post("/clones/warm", url.Values{"target": {"shop"}, "count": {"2"}})
	events.ended()
	u.must(u.get("/clones"), http.StatusOK, "Ready for snapcli run")
	listed, err := agent.Clones(t.Context())
	if err != nil || len(listed) != 7 || listed[2].Expires.Sub(listed[2].Created) > 3*time.Hour {
		t.Errorf("%+v, %v", listed, err)
	}
	warm := listed[5].Label()
	u.must(u.get("/clones/"+warm+"/drop"), http.StatusOK, "Drop "+warm+"?")
	for _, name := range []string{"other", "many-1", "many-2", "many-3", warm, listed[6].Label()} {
		u.must(u.post("/clones/"+name+"/drop", nil), http.StatusOK)
	}
	u.must(u.get("/clones/feature%2Fx/drop"), http.StatusOK, "Drop feature/x?")
	u.must(u.post("/clones/feature%2Fx/drop", nil), http.StatusOK)
	u.must(u.get("/clones"), http.StatusOK, "No clones")
	u.must(u.post("/clones/feature%2Fx/drop", nil), http.StatusNotFound, "no clone")
}

// TestFailedClonesAreTriedAgain: the button of a job that failed to make clones sends the job's
// form again, with the same target and options.
func TestFailedClonesAreTriedAgain(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "targets:\n  a&b: {source: \"sqlite:///nowhere.db\"}\n")
	events := u.listen()
	for _, action := range []string{"/clones", "/clones/warm"} {
		u.must(u.post(action, url.Values{"target": {"a&b"}, "ttl": {"2h"}, "back": {"/clones"}}), http.StatusOK)
		events.ended()
		again := action + "?target=a%26b&ttl=2h"
		for range 2 {
			u.must(u.get("/jobs"), http.StatusOK, `action="`+html.EscapeString(again)+`"`)
			u.must(u.post(again, url.Values{"back": {"/jobs"}}), http.StatusOK)
			events.ended()
		}
	}
}

// The web UI shows where a snapshot is from and which of its programs are left out. No form of the
// web UI can load those programs.
func TestForeignSnapshotsInTheWebUI(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	source, to := filepath.Join(t.TempDir(), "shop.db"), filepath.Join(t.TempDir(), "dev.db")
	sqliteFile(t, source,
		"CREATE TRIGGER spy AFTER INSERT ON customer BEGIN SELECT 1; END; CREATE VIEW \"<b>v\" AS SELECT 1")
	gail, alice := c.As("gail@globex.test"), c.As("alice@acme.test")
	author := openUI(t, gail, "targets:\n  shop: {source: \"sqlite://"+source+"\"}\n").Agent
	if _, err := author.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	pushed, err := author.Push(t.Context(), gail, "shop", local.PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gail.ShareOrg(t.Context(), pushed.ID, "acme", nil); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, alice, "targets:\n  shop: {destination: \"sqlite://"+to+"\"}\n")
	pulled, err := u.Agent.Pull(t.Context(), alice, "shop", local.PullOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.must(u.get("/snapshots"), http.StatusOK, "theirs (globex)")
	load := "/local/" + pulled.Snapshot.Name + "/load"
	u.must(u.get(load), http.StatusOK, "<dd>theirs (globex)</dd>", "Left out: 1 trigger, 1 view",
		"triggers: spy on customer",
		"views: &lt;b&gt;v")
	events := u.listen()
	for path, form := range map[string]url.Values{
		load: {"database": {"dev.db"}, "with_programs": {"true"}, "WithPrograms": {"true"},
			"trust": {"org:globex"}},
		"/clones": {"target": {"shop"}, "name": {"c"}, "with_programs": {"true"}, "with-programs": {"true"}},
	} {
		u.must(u.post(path, form, "Fragment", "1"), http.StatusAccepted)
		if sent := events.ended(); !strings.Contains(sent, "left out: 1 trigger, 1 view") {
			t.Errorf("%s: %s", path, sent)
		}
	}
	all, err := u.Agent.Clone(t.Context(), "shop", local.CloneOptions{Name: "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"sqlite://" + to, all[0].Secret} {
		if n := programsIn(t, file); n != 0 {
			t.Errorf("%s has %d programs", file, n)
		}
	}
	if trusted, err := u.Agent.Trusts(); err != nil || len(trusted) != 0 {
		t.Errorf("trusted: %v, %v", trusted, err)
	}
}

func programsIn(t *testing.T, raw string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(raw, "sqlite://"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
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
func sqliteFile(t *testing.T, path string, more ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY); INSERT INTO customer VALUES (1);" +
		strings.Join(more, ";"))
	if err != nil {
		t.Fatal(err)
	}
}

// The Clones page and its questions keep the rules of axe-core in light and dark and at three
// widths, in every state, and are never wider than the window.
func TestBrowserClonesPage(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	rules := axe(t)
	source := filepath.Join(t.TempDir(), "shop.db")
	sqliteFile(t, source)
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite://"+source+"\"}\n")
	agent, b := u.Server.o.Agent, browse(t, u)
	each := func(state, script string, paths ...string) {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 768, 1440} {
				b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
				b.run(chromedp.EmulateViewport(width, 900))
				for _, path := range paths {
					b.open(path)
					b.run(chromedp.Evaluate[chromedp.Void](script))
					what := fmt.Sprintf("%s, %s %s %d", path, state, scheme, width)
					b.check(rules, what)
					if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > width {
						t.Errorf("%s is %d wide", what, wide)
					}
				}
			}
		}
	}
	each("empty", "0", "/clones")
	if _, err := agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	o := local.CloneOptions{Name: "feature/" + strings.Repeat("long-", 10)}
	if _, err := agent.Clone(t.Context(), "shop", o, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Branch(t.Context(), o.Name, local.CloneOptions{Name: "branch"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.WarmClones(t.Context(), "shop", 1, local.CloneOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	each("clones", `void document.querySelectorAll("#clones details").forEach((d) => { d.open = true })`, "/clones")
	each("questions", "0", "/clones/branch/reset", "/clones/branch/branch", "/clones/branch/drop")
	all, err := agent.Clones(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(filepath.Dir(strings.TrimPrefix(all[0].URL, "sqlite://")))
	if err := os.WriteFile(filepath.Join(folder, "clones.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	each("a problem", "0", "/clones")
}
