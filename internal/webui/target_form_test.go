package webui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A target is added and changed in the page; what is wrong stands next to its
// field; a secret is never sent to the browser, and stays when its field is
// left empty.
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
