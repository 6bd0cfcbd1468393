package webui

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/local"
)

// TestScreenshots renders every state of the pages, in light and dark and at
// three widths, into the folder SNAP_SCREENSHOTS: `make screenshots`.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SNAP_SCREENSHOTS")
	if dir == "" {
		t.Skip("needs SNAP_SCREENSHOTS, a folder: make screenshots")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := cloudtest.Start(t, cloudtest.Options{})
	mixed, dialog := populate(t, c)
	config, _, _ := shopConfig(t)
	config += "  billing: {source: \"postgres://reader:secret@db.acme.test/billing\", production: true}\n"
	ui := openUI(t, c.As("adam@acme.test"), config)
	workAWhile(t, ui, mixed)
	here, err := ui.Agent.Snapshots("")
	if err != nil {
		t.Fatal(err)
	}
	admin := browse(t, ui)
	shoot(admin, dir, "targets", "/targets", "")
	shoot(admin, dir, "target-new", "/targets/new", "")
	shoot(admin, dir, "target-tested", "/targets/new", `document.getElementById("name").value = "shop",
		document.getElementById("source").value = "sqlite:///nothing.db",
		document.getElementById("destination").value = "sqlite:///tmp/new.db", document.getElementById("test").click()`)
	shoot(admin, dir, "target-edit", "/targets/billing/edit", "")
	shoot(admin, dir, "share-unsanitized", "/cloud/"+mixed.ID+"/share", "")
	shoot(admin, dir, "load-dialog", "/snapshots", `document.querySelector(".do a[href$='/load']").click()`)
	shoot(admin, dir, "load-page", "/local/"+here[0].Name+"/load", "")
	shoot(admin, dir, "jobs", "/jobs", `document.querySelector("details").open = true`)
	shoot(admin, dir, "snapshots-jobs", "/snapshots", "")
	for _, j := range ui.Server.dock() {
		ui.Server.jobs.dismiss(j.ID)
	}
	shoot(admin, dir, "snapshots-admin", "/snapshots", "")
	shoot(admin, dir, "snapshots-menu", "/snapshots", `document.querySelector("details.menu").open = true`)
	shoot(admin, dir, "sharing-dialog", "/snapshots", `document.getElementById("also-`+dialog.ID+`").click()`)
	shoot(admin, dir, "sharing-page", "/cloud/"+dialog.ID+"/sharing", "")
	shoot(admin, dir, "delete-dialog", "/cloud/"+mixed.ID+"/delete", "")
	shoot(admin, dir, "clones-empty", "/clones", `document.querySelector("#clones details").open = true`)
	if _, err := ui.Agent.Clone(t.Context(), "shop", local.CloneOptions{Name: "pr-12", Count: 2}, nil); err != nil {
		t.Fatal(err)
	}
	shoot(admin, dir, "clones", "/clones", "")
	shoot(admin, dir, "clone-branch", "/clones/pr-12-1/branch", "")
	events := ui.listen()
	ui.propose(events)
	shoot(admin, dir, "rules", shopRules, "")
	shoot(admin, dir, "rules-keys", shopRules, `document.querySelector(".review-columns details.menu").open = true,
		document.querySelector(".review-head details").open = true`)
	shoot(admin, dir, "nothing-matches", "/snapshots?q=nothing", "")
	shoot(admin, dir, "account", "/account", "")
	shoot(admin, dir, "activity", "/activity", "")
	shoot(admin, dir, "sharing-why", "/cloud/"+dialog.ID+"/sharing?user=vic@acme.test",
		`document.querySelector("#verdict").scrollIntoView({block: "end"})`)
	shoot(admin, dir, "snapshots-sorted", "/snapshots?sort=size", "")
	shoot(admin, dir, "error", "/nothing", "")
	shoot(admin, dir, "home", "/", "")
	shoot(admin, dir, "snapshot", "/cloud/"+dialog.ID, "")
	shoot(admin, dir, "snapshot-local", "/local/"+here[0].Name,
		`document.querySelector(".who-list, .columns")?.parentElement?.setAttribute("open", "")`)
	shoot(admin, dir, "snapshots-grouped", "/snapshots?sort=target",
		`document.querySelectorAll(".pick").forEach((p, i) => { p.checked = i < 3 })`)
	shoot(admin, dir, "snapshots-filters", "/snapshots?only=mine", "")
	shoot(admin, dir, "find", "/snapshots", `document.getElementById("open-find").click()`)
	shoot(admin, dir, "sharing-open", "/cloud/"+dialog.ID+"/sharing",
		`document.querySelectorAll("details").forEach((d) => { d.open = true })`)
	admin.run(chromedp.EmulateViewport(3840, 2160))
	admin.media("prefers-color-scheme", "light")
	admin.open("/snapshots")
	admin.save(dir, "snapshots-light-3840")
	owner := browse(t, openUI(t, c.As("mia@acme.test"), ""))
	shoot(owner, dir, "sharing-owner", "/snapshots", `document.getElementById("also-`+dialog.ID+`").click()`)
	recipient := browse(t, openUI(t, c.As("gail@globex.test"), ""))
	shoot(recipient, dir, "snapshots-recipient", "/snapshots?show=shared", "")
	out := openUI(t, nil, "cloud: {url: \""+c.URL+"\"}\n")
	tab := browse(t, out)
	shoot(tab, dir, "signed-out", "/account", "")
	out.post("/account/sign-in", url.Values{})
	shoot(tab, dir, "sign-in", "/account", "")
	shoot(admin, dir, "toast", "/cloud/"+dialog.ID+"/sharing",
		`document.querySelector("#gs-dba").click()`, `document.querySelector("#toasts .toast #undo")`)
	shoot(browse(t, openUI(t, unreachable(t), "")), dir, "unreachable", "/snapshots", "")
	idle := browse(t, openUI(t, nil, ""))
	shoot(idle, dir, "empty", "/snapshots", "")
	shoot(idle, dir, "jobs-empty", "/jobs", "", `document.getElementById("no-jobs")`)
}

// TestScreenshotsForReadme makes the pictures in README.md, in the same folder.
func TestScreenshotsForReadme(t *testing.T) {
	dir := os.Getenv("SNAP_SCREENSHOTS")
	if dir == "" {
		t.Skip("needs SNAP_SCREENSHOTS, a folder: make screenshots")
	}
	c := cloudtest.Start(t, cloudtest.Options{})
	populate(t, c)
	b := browse(t, openUI(t, c.As("adam@acme.test"), ""))
	for _, scheme := range []string{"light", "dark"} {
		b.run(chromedp.EmulateViewport(1190, 600))
		b.media("prefers-color-scheme", scheme)
		b.open("/snapshots")
		b.save(dir, "web-"+scheme)
	}
}

// populate pushes a believable listing and returns one plain snapshot and one that is shared with a
// group and with two organizations.
func populate(t *testing.T, c *cloudtest.Cloud) (plain, dialog api.Snapshot) {
	t.Helper()
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	bytes := func(n int) []byte {
		b := make([]byte, n)
		rand.Read(b)
		return b
	}
	plain = c.Push(alice, "warehouse", bytes(9_400_000))
	c.PushAs(c.As("gus@acme.test"), "billing", snap.TypeSanitized, bytes(3_100_000))
	wide := c.PushAs(mia, "shop", snap.TypeSanitized, bytes(24_600_000))
	original := c.Push(mia, "shop", bytes(31_800_000))
	c.Push(c.As("max@acme.test"), "customer support desk", bytes(640_000))
	dialog = c.PushAs(mia, "orders", snap.TypeSanitized, bytes(12_000_000))
	mine := c.PushAs(c.As("adam@acme.test"), "catalogue", snap.TypeSanitized, bytes(1_200_000))
	c.Push(c.Client(c.OrgKey("acme", snap.PipelineKey, snap.ScopePush)), "nightly", bytes(5_500_000))
	end, later := time.Now().Add(75*time.Hour), time.Now().Add(400*24*time.Hour)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	soon := time.Now().Add(50 * time.Hour)
	_, err := mia.ShareWith(t.Context(), wide.ID, api.SharesRequest{OrgWide: true, ExpiresAt: &soon}, false)
	must(err)
	_, err = mia.ShareGroup(t.Context(), original.ID, "dba")
	must(err)
	_, err = alice.ShareGroup(t.Context(), dialog.ID, "eng")
	must(err)
	_, err = alice.ShareOrg(t.Context(), dialog.ID, "globex", &end)
	must(err)
	_, err = alice.ShareOrg(t.Context(), dialog.ID, "initech", nil)
	must(err)
	_, err = alice.ShareOrg(t.Context(), mine.ID, "globex", &later)
	must(err)
	received := c.PushAs(c.As("gail@globex.test"), "fleet", snap.TypeSanitized, bytes(7_700_000))
	_, err = c.As("gail@globex.test").ShareOrg(t.Context(), received.ID, "acme", &end)
	must(err)
	return plain, dialog
}

// workAWhile makes local snapshots, and jobs that are done, failed and running.
func workAWhile(t *testing.T, u *ui, item api.Snapshot) {
	t.Helper()
	events := u.listen()
	post := func(path string) {
		u.post(path, url.Values{}, "Fragment", "1")
		events.ended()
	}
	post("/targets/shop/build")
	here, err := u.Agent.Snapshots("")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	post("/local/" + here[0].Name + "/push")
	post("/targets/shop/build")
	post("/cloud/" + item.ID + "/pull") // fails: not a snapshot file
	if _, err := u.Server.jobs.start(task{kind: "pull", target: "orders", title: "Pull orders-20261118T061502Z",
		run: func(ctx context.Context, p local.Progress) (outcome, error) {
			p(local.Event{Phase: "download", Done: 734_000_000, Total: 1_900_000_000})
			<-ctx.Done()
			return outcome{}, ctx.Err()
		}}); err != nil {
		t.Fatal(err)
	}
	// The loaded database is there already, so that a load would replace it.
	if _, err := u.Agent.Load(t.Context(), "shop", local.LoadOptions{}, nil); err != nil {
		t.Fatal(err)
	}
}

// shoot renders one state six times, each time when the conditions hold.
func shoot(b *tab, dir, name, path, script string, shows ...string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 768, 1440} {
			height := map[int64]int64{360: 780, 768: 1024, 1440: 900}[width]
			b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
			b.run(chromedp.EmulateViewport(width, height))
			b.open(path)
			if script != "" {
				b.run(chromedp.Evaluate[chromedp.Void]("void ("+script+")"), chromedp.Sleep(400*time.Millisecond))
			}
			for _, condition := range shows {
				b.until(condition)
			}
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
				b.t.Errorf("%s is %d wide at %d", name, wide, width)
			}
			b.save(dir, fmt.Sprintf("%s-%s-%d", name, scheme, width))
		}
	}
}

// save writes what the tab shows.
func (b *tab) save(dir, name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
