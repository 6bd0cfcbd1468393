package webui

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/local"
)

// TestTargetsFollowTheFile checks that targets that another program adds or removes appear and
// disappear without a restart, that an invalid file is reported while the last valid one is used,
// and that targets can be removed in the page.
func TestTargetsFollowTheFile(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "targets:\n  old: {source: \"sqlite:///tmp/old.db\"}\n")
	u.must(u.get("/targets"), http.StatusOK, `id="target-old"`)
	write := func(text string) {
		if err := os.WriteFile(u.Agent.ConfigPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("targets:\n  old: {source: \"sqlite:///tmp/old.db\"}\n  more: {source: \"sqlite:///tmp/more.db\"}\n")
	u.must(u.get("/targets"), http.StatusOK, `id="target-old"`, `id="target-more"`)
	write("targets: [")
	u.must(u.get("/targets"), http.StatusOK, `id="target-more"`, filepath.Base(u.Agent.ConfigPath())+":1:")
	write("targets:\n  more: {source: \"sqlite:///tmp/more.db\"}\n")
	page := u.get("/targets")
	u.must(page, http.StatusOK, `id="target-more"`)
	u.mustNot(page, `id="target-old"`, "config.yaml:1:")

	u.must(u.get("/targets/more/remove"), http.StatusOK, "Remove the target more?")
	u.must(u.post("/targets/more/remove", nil, "Fragment", "1"), http.StatusOK, "Removed.")
	u.must(u.get("/targets"), http.StatusOK, "No targets yet")
	u.must(u.get("/targets/more/remove"), http.StatusNotFound)
	if text, err := os.ReadFile(u.Agent.ConfigPath()); err != nil || strings.Contains(string(text), "more") {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// A target is added and changed in the page. Errors are next to their fields. A secret is never
// sent to the browser, and is kept when its field is left empty.
func TestTargetForm(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "# mine\ntargets:\n  old: {source: \"postgres://reader:secret@db.acme.test/old\", jobs: 3}\n")
	u.must(u.get("/targets"), http.StatusOK, `href="/targets/new"`, `href="/targets/old/edit"`, "reader:xxxxx@")

	wrong := u.post("/targets/new", url.Values{"name": {"a/b"}, "source": {"nonsense"},
		"destination": {"oracle://x:hidden@y/z"}})
	u.must(wrong, http.StatusUnprocessableEntity,
		`id="name-hint"`, "contains", "no scheme", "is not a supported kind of database", `value="nonsense"`)
	u.mustNot(wrong, "hidden@")
	u.must(u.post("/targets/new", url.Values{"name": {"old"}}), http.StatusUnprocessableEntity,
		" target with this name already exists")
	u.must(u.post("/targets/new", url.Values{"name": {"empty"}}), http.StatusUnprocessableEntity,
		"A target needs a source, a destination or both")
	u.must(u.post("/targets/new", url.Values{"name": {"new"}, "source": {"sqlite:///tmp/new.db"}}), http.StatusOK,
		"new",
		"sqlite:///tmp/new.db")

	form := u.get("/targets/old/edit")
	u.must(form, http.StatusOK, "Leave it empty", "reader:xxxxx@")
	u.mustNot(form, "secret")
	u.must(u.post("/targets/old/edit", url.Values{"source": {""}, "destination": {"sqlite:///tmp/here.db"}}),
		http.StatusOK, "sqlite:///tmp/here.db")
	got, err := u.Agent.Target("old")
	if err != nil || !strings.Contains(got.Source, "secret") || got.Destination != "sqlite:///tmp/here.db" ||
		got.Jobs != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	u.must(u.get("/targets/none/edit"), http.StatusNotFound, "no target")
}

// TestTargetFormKeepsOtherSettings: a form writes only the URLs that the user changed. It does not
// revert what another program wrote after the form was opened.
func TestTargetFormKeepsOtherSettings(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite:///a.db\", destination: \"sqlite:///env.db\"}\n")
	form := url.Values{"source": {"sqlite:///a.db"}, "source-was": {"sqlite:///a.db"},
		"destination": {"sqlite:///b.db"}, "destination-was": {"sqlite:///env.db"}}
	page := u.get("/targets/shop/edit")
	u.must(page, http.StatusOK, `name="source-was" value="sqlite:///a.db"`)
	write := func(text string) {
		if err := os.WriteFile(u.Agent.ConfigPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("targets:\n  shop: {source: \"sqlite:///new.db\", destination: \"sqlite:///env.db\", production: true}\n")
	u.must(u.post("/targets/shop/edit", form), http.StatusOK, "sqlite:///new.db", "sqlite:///b.db")
	if got, err := u.Agent.Target("shop"); err != nil || got.Source != "sqlite:///new.db" || !got.Production {
		t.Errorf("%+v, %v", got, err)
	}

	form.Set("source", "sqlite:///mine.db")
	refused := u.post("/targets/shop/edit", form)
	u.must(refused, http.StatusUnprocessableEntity,
		"Another program has changed this URL; it is now sqlite:///new.db.",
		`name="source-was" value="sqlite:///new.db"`, `value="sqlite:///mine.db"`)
	if got, err := u.Agent.Target("shop"); err != nil || got.Source != "sqlite:///new.db" {
		t.Errorf("%+v, %v", got, err)
	}
	form.Set("source-was", "sqlite:///new.db")
	form.Set("destination-was", "sqlite:///b.db")
	u.must(u.post("/targets/shop/edit", form), http.StatusOK, "sqlite:///mine.db")
}

// TestActionsFollowTheFile: every action follows the present configuration file. If the file is not
// valid, an action is refused and the error is shown, but jobs can still be dismissed.
func TestActionsFollowTheFile(t *testing.T) {
	t.Parallel()
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	made, err := u.Agent.Build(t.Context(), "shop", local.BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	load := "/local/" + made.Name + "/load"
	u.must(u.get(load), http.StatusOK, "shop_dev.db")
	write := func(text string) {
		if err := os.WriteFile(u.Agent.ConfigPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config + "    production: true\n")
	u.must(u.get(load), http.StatusOK, "production")
	write(config)
	u.must(u.get(load), http.StatusOK, "shop_dev.db")
	write(config + "    production: true\n")
	refused := u.post(load, url.Values{"database": {"shop_dev.db"}})
	u.mustNot(refused, "Jobs keep running")
	if refused.Status < 400 || !strings.Contains(refused.Body, "production") {
		t.Errorf("a production destination: %d %s", refused.Status, refused.Body)
	}
	write("targets: [")
	u.must(u.post("/targets/shop/build", nil), http.StatusBadRequest, "config.yaml:1:", "snapcli config edit")
	u.must(u.get("/snapshots"), http.StatusOK, made.Name)
	u.must(u.post("/jobs/1/dismiss", nil, "Fragment", "1"), http.StatusOK)
}

// TestConnectionIsTested: the button Test connection connects to the databases in the form, shows
// the result at each field, and saves nothing. No response contains a secret that was typed.
func TestConnectionIsTested(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "targets: {}\n")
	dir := t.TempDir()
	sqliteFile(t, filepath.Join(dir, "shop.db"))
	form := url.Values{"name": {"shop"}, "test": {"yes"}, "source": {"sqlite://" + dir + "/shop.db"},
		"destination": {"sqlite://" + dir + "/dev.db"}}
	u.must(u.post("/targets/new", form), http.StatusOK, "The database can be reached: 1 table",
		"The server can be reached. The first load creates the database.", `value="sqlite://`+dir+`/shop.db"`)
	form.Set("source", "sqlite://"+dir+"/missing.db")
	u.must(u.post("/targets/new", form), http.StatusOK, "There is no database", `id="source-hint"`)
	form.Set("source", "postgres://me:s3cr3t@127.0.0.1:1/shop")
	answer := u.post("/targets/new", form)
	u.must(answer, http.StatusOK, `aria-invalid="true"`, `name="source-lost" value="yes"`)
	u.mustNot(answer, "s3cr3t")
	again := url.Values{"name": {"shop"}, "source": {""}, "source-lost": {"yes"}, "destination": form["destination"]}
	u.must(u.post("/targets/new", again), http.StatusUnprocessableEntity, "did not keep it. Enter it again.",
		`name="source-lost" value="yes"`)
	form.Set("source", "postgres://me:${PW}@${HOST}:1/shop?b=1&a=2")
	u.must(u.post("/targets/new", form), http.StatusOK, `value="postgres://me:${PW}@${HOST}:1/shop?b=1&amp;a=2"`)
	u.must(u.get("/targets"), http.StatusOK, "No targets yet")
}
