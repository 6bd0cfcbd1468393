package webui

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/local"
	"snap/internal/look"
)

// TestSnapshotPages follows a snapshot from its build to the cloud: each state has a page with the
// card, and its name in the list leads there.
func TestSnapshotPages(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	config, _, _ := shopConfig(t)
	u := openUI(t, c.As("mia@acme.test"), config)
	events := u.listen()
	u.post("/targets/shop/build", nil)
	events.ended()
	here, err := u.Agent.Snapshots("")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	own := "/local/" + here[0].Name
	u.must(u.get("/snapshots"), http.StatusOK, `href="`+own+`"`)
	page := u.get(own)
	u.must(page, http.StatusOK, "On this machine", "customers", "snapcli load shop", here[0].SHA256, here[0].Name,
		"Push to the cloud", here[0].Path)
	u.mustNot(page, "Who can see it", "--snapshot-id")
	u.must(u.get(own+"?q=email", "Fragment", "1"), http.StatusOK, `<div id="snapshot"`, "email")

	u.post("/targets/shop/build", nil)
	events.ended()
	again, err := u.Agent.Snapshots("")
	if err != nil || len(again) != 2 {
		t.Fatalf("%d snapshots, %v", len(again), err)
	}
	u.must(u.get("/local/"+again[0].Name), http.StatusOK, "What changed", `href="`+own+`"`,
		"No tables, columns or row counts changed.", "Size over time", "<th scope=\"col\">Built</th>")

	u.post(own+"/push", nil)
	events.ended()
	pushed, err := c.As("mia@acme.test").Snapshots(t.Context(), api.ListOptions{})
	if err != nil || len(pushed.Items) != 1 {
		t.Fatalf("%d in the cloud, %v", len(pushed.Items), err)
	}
	cloud := "/cloud/" + pushed.Items[0].ID
	u.must(u.get("/snapshots"), http.StatusOK, `href="`+cloud+`"`)
	for _, path := range []string{own, cloud} {
		u.must(u.get(path), http.StatusOK, ">synced</span>", "On this machine", here[0].Path, "Who can see it",
			"because you pushed it", "Nobody has pulled it yet", "--snapshot-id "+pushed.Items[0].ID,
			c.URL+"/snapshots/"+pushed.Items[0].ID, "customers")
	}
	// The same file of another target is another snapshot.
	file, err := os.ReadFile(here[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	other := c.PushAs(c.As("mia@acme.test"), "copy", here[0].Type, file)
	u.must(u.get("/cloud/"+other.ID), http.StatusOK, ">cloud</span>", "/cloud/"+other.ID+"/pull")

	onPage := url.Values{"shared": {"true"}, "back": {cloud}}
	u.must(u.post(cloud+"/share", onPage, "Fragment", "1"), http.StatusOK, `<div id="snapshot"`, `aria-pressed="true"`,
		"everyone in acme", ">Undo<")
	u.post(own+"/delete", url.Values{})
	u.must(u.get(cloud), http.StatusOK, ">cloud</span>", "/pull")
	u.must(u.get(own), http.StatusNotFound)
	u.must(u.get(own, "Fragment", "1"), http.StatusOK, "no longer here")
}

// TestCertificateOfLocalCopy checks that the page of a masked copy that is only on this machine
// shows the state of its certificate according to the keys of this machine.
func TestCertificateOfLocalCopy(t *testing.T) {
	t.Parallel()
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("keep: ['*']"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	sanitize := func() string {
		t.Helper()
		made, err := u.Agent.Sanitize(t.Context(), "shop", local.SanitizeOptions{Rules: rules}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return "/local/" + made.Name
	}
	u.must(u.get(sanitize()), http.StatusOK, "<dt>Certificate</dt><dd><bdi>none</bdi></dd>")
	key, err := u.Agent.NewSigningKey("laptop")
	if err != nil {
		t.Fatal(err)
	}
	page := sanitize()
	u.must(u.get(page), http.StatusOK, "<bdi>valid, signed by the key "+key.ID()+" (laptop)</bdi>")
	if _, err := u.Agent.RevokeSigningKey(key.ID()); err != nil {
		t.Fatal(err)
	}
	u.must(u.get(page), http.StatusOK, "<bdi>not valid: ", "revoked")
}

// TestHiddenSnapshotPage checks that the page of a snapshot that the caller is not allowed to see
// is the page of one that does not exist, and that a colleague who may see a snapshot does not
// learn who else can see it or pulled it.
func TestHiddenSnapshotPage(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	item := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, c.As("mia@acme.test"), "")
	hidden, absent := u.get("/cloud/"+item.ID), u.get("/cloud/snap_aaaaaaaaaaaaaaaa")
	u.must(hidden, http.StatusNotFound)
	if clean := strings.ReplaceAll(hidden.Body, item.ID, "snap_aaaaaaaaaaaaaaaa"); clean != absent.Body {
		t.Errorf("the pages differ:\n%s\n%s", clean, absent.Body)
	}
	if _, err := alice.ShareGroup(t.Context(), item.ID, "eng"); err != nil {
		t.Fatal(err)
	}
	gus := openUI(t, c.As("gus@acme.test"), "")
	page := gus.get("/cloud/" + item.ID)
	gus.must(page, http.StatusOK, "You can see it <bdi>through the group eng</bdi>", "Nobody published what is inside")
	gus.mustNot(page, "Who can see it", "Pulled by")
}

// TestHome checks that the overview names what needs attention.
func TestHome(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	config, _, _ := shopConfig(t)
	u := openUI(t, mia, config+"  a#b: {source: \"sqlite:///tmp/x.db\"}\n")
	zone := time.FixedZone("CET", 3600)
	u.Server.o.Now = func() time.Time { return time.Now().In(zone) }
	u.must(u.get("/"), http.StatusOK, "shop", `action="/targets/shop/build"`, "never")
	record(t, u, local.Snapshot{Target: "a#b", Name: "a#b-1", Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 1,
		SHA256: strings.Repeat("a", 64), Created: time.Now(), From: local.Provenance{Origin: local.Mine}})
	if _, err := u.Server.jobs.start(task{kind: "pull", title: "Pull a#b-1",
		run: func(context.Context, local.Progress) (outcome, error) {
			return outcome{snapshot: "a#b-1"}, nil
		}}); err != nil {
		t.Fatal(err)
	}
	u.Server.jobs.wait.Wait()
	open := c.Push(mia, "billing", []byte("original"))
	soon, late := time.Now().Add(30*time.Hour), time.Now().Add(30*24*time.Hour)
	ending := c.PushAs(mia, "orders", snap.TypeSanitized, []byte("one"))
	lasting := c.PushAs(mia, "orders", snap.TypeSanitized, []byte("three"))
	for id, end := range map[string]*time.Time{open.ID: nil, ending.ID: &soon, lasting.ID: &late} {
		with := api.SharesRequest{OrgWide: true, ExpiresAt: end}
		if _, err := mia.ShareWith(t.Context(), id, with, true); err != nil {
			t.Fatal(err)
		}
	}
	u.Server.cloud.forget()
	page := u.get("/")
	u.must(page, http.StatusOK, "Sharing ends soon", `href="/cloud/`+ending.ID+`"`, "ends in 1 day",
		"Originals that are shared", `href="/cloud/`+open.ID+`"`, "everyone in acme", "Size of orders over time",
		"<th scope=\"col\">Built or pushed</th>", "<td>"+look.Exact(lasting.Created.In(zone))+"</td>",
		`<dt>Built here</dt><dd><a href="/local/a%23b-1">`, `href="/local/a%23b-1/load"`)
	alerts, _, _ := strings.Cut(page.Body, `class="plots targets"`)
	if strings.Contains(alerts, lasting.ID) {
		t.Error("a share that ends in a month counts as one that ends soon")
	}
	gone := openUI(t, unreachable(t), config)
	gone.must(gone.get("/"), http.StatusOK, "does not answer", "shop")
}

// TestFind checks what the window for finding anything offers.
func TestFind(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	config, _, _ := shopConfig(t)
	u := openUI(t, mia, config)
	item := c.PushAs(mia, "billing", snap.TypeSanitized, []byte("one"))
	hidden := c.Push(c.As("alice@acme.test"), "billing", []byte("two"))
	u.must(u.get("/find"), http.StatusOK, "Build a snapshot of shop", `href="/cloud/`+item.ID+`"`, `id="open-find"`)
	found := u.get("/find?find=bil", "Fragment", "1")
	u.must(found, http.StatusOK, `id="dialog-body"`, `href="/cloud/`+item.ID+`"`,
		`href="/snapshots?sort=target&amp;target=billing"`)
	u.mustNot(found, hidden.ID, "Build a snapshot")
	u.must(u.get("/find?find=buil+sho"), http.StatusOK, `action="/targets/shop/build"`)
	u.must(u.get("/find?find=%3Cimg+src%3E"), http.StatusOK, "Nothing matches “&lt;img src&gt;”")
}
