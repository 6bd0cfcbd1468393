package webui

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/local"
	"snap/internal/servertest"
)

// A click on Private shares at once, without loading a page (SPEC 3, 4.6).
func TestBrowserSharingControl(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	b := browse(t, openUI(t, mia, ""))
	b.run(chromedp.Evaluate[chromedp.Void]("void (window.untouched = true)"))
	state := `document.querySelector("#state-` + item.ID + `")`
	b.click("#state-" + item.ID)
	b.until(state + `.textContent === "Shared" && !` + state + `.classList.contains("waiting")`)
	b.until(`document.querySelector("#filter-Shared") && window.untouched`)
	if _, err := c.As("max@acme.test").Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a colleague: %v", err)
	}
	if focused := eval[string](b, "document.activeElement.id"); focused != "state-"+item.ID {
		t.Errorf("the focus went to %q", focused)
	}
	b.click("#state-" + item.ID)
	b.until(state + `.textContent === "Private" && !` + state + `.classList.contains("waiting")`)
	if _, err := c.As("max@acme.test").Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a colleague, after: %v", err)
	}
	// A dialog that closes does not take the focus from where the user has moved it.
	b.click("#also-" + item.ID)
	b.until(`document.querySelector("#dialog").open`)
	eval[bool](b, `(() => {
		const dialog = document.querySelector("#dialog"); // its close event comes later
		dialog.addEventListener("close", () => document.body.dataset.closed = document.activeElement.id);
		dialog.close();
		document.querySelector("#name-`+item.ID+`").focus();
		return true;
	})()`)
	b.until(`document.body.dataset.closed === "name-` + item.ID + `"`)
}

// Before it shares unmasked data, the control asks. One more click shares it, and the focus stays
// in the row (SPEC 3).
func TestBrowserUnsanitizedIsAskedAbout(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, unsanitizedShares(snap.UnsanitizedAsk))
	mia := c.As("mia@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	b := browse(t, openUI(t, mia, ""))
	state := "#state-" + item.ID
	b.click(state)
	b.until(`document.querySelector("#dialog").open && ` +
		`document.querySelector("#dialog").textContent.includes("not sanitized")`)
	b.run(chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector("#dialog").open && document.activeElement.id === "state-` + item.ID + `"`)
	if _, err := c.As("max@acme.test").Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a colleague, before: %v", err)
	}
	b.click(state)
	b.until(`document.querySelector("#dialog").open`)
	b.click("#confirm")
	b.until(`!document.querySelector("#dialog").open && ` +
		`document.querySelector("` + state + `").getAttribute("aria-pressed") === "true" && ` +
		`document.activeElement.id === "state-` + item.ID + `"`)
	if _, err := c.As("max@acme.test").Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a colleague, after: %v", err)
	}
}

// By default the click shares at once; a warning counts the people and offers
// Undo.
func TestBrowserUnsanitizedShareIsUndone(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, max := c.As("mia@acme.test"), c.As("max@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	b := browse(t, openUI(t, mia, ""))
	b.click("#state-" + item.ID)
	b.until(`document.querySelector("#change")?.textContent.includes("3 more people in your organization")`)
	if _, err := max.Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a colleague, after the click: %v", err)
	}
	b.click("#undo")
	b.until(`!document.querySelector("#change") && document.querySelector("#state-` + item.ID + `").textContent === ` +
		`"Private"`)
	if _, err := max.Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a colleague, after Undo: %v", err)
	}
}

// A change that the service refuses is undone on the page, with the reason.
func TestBrowserFailedChangeIsUndone(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	b := browse(t, openUI(t, mia, ""))
	if err := c.As("alice@acme.test").Delete(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	b.click("#state-" + item.ID)
	b.until(`document.querySelector(".toast.bad")?.textContent.includes("Not found")`)
	b.until(`document.querySelector("#state-` + item.ID + `").textContent === "Private"`)
}

func TestBrowserSharingDialog(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.Push(c.As("mia@acme.test"), "shop", []byte("one"))
	b := browse(t, openUI(t, c.As("alice@acme.test"), ""))
	b.click("#also-" + item.ID)
	b.until(`document.querySelector("#dialog").open`)
	b.click("#gs-eng")
	b.until(`document.querySelector("#gs-eng").getAttribute("aria-checked") === "true" && ` +
		`document.querySelector("#also-` + item.ID + `").textContent.includes("eng")`)
	if _, err := c.As("gus@acme.test").Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a member of the group: %v", err)
	}
	b.keys("#slug", "globex\r")
	b.until(`document.querySelector("#org-list")?.textContent.includes("ends in 7 days")`)
	b.until(`document.querySelector("dialog #change")?.textContent.includes("Shared with globex.")`)
	b.until(`document.activeElement.id === "slug"`)
	b.click("#revoke-globex")
	b.until(`!document.querySelector("#org-list")`)
	b.until(`document.querySelector("dialog #change")?.textContent.includes("No longer shared with globex.")`)
	b.until(`document.activeElement.id === "orgs-title"`)
	b.keys("#slug", "nobody\r")
	b.until(`document.querySelector("#slug-problem") && document.querySelector("#slug").value === "nobody"`)
	b.until(`document.activeElement.id === "slug"`)
	eval[string](b, `document.querySelector("#slug").value = "initech"`)
	b.click("#share-org")
	b.until(`document.querySelector("#org-list")?.textContent.includes("initech") && ` +
		`!document.querySelector("#slug-problem")`)
	b.until(`document.activeElement.id === "share-org"`)
	b.run(chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector("#dialog").open`)
	b.open("/cloud/" + item.ID + "/sharing") // the same as a page
	b.click("#gs-dba")
	b.until(`document.querySelector("#page-body li:has(#gs-dba)").textContent.includes("no end")`)
	b.click("#gs-dba")
	b.until(`!document.querySelector("#page-body li:has(#gs-dba)").textContent.includes("no end")`)
}

// Search and filters change the list and the address, and Back returns to the earlier list.
func TestBrowserSearchAndFilters(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	shop, billing := c.Push(mia, "shop", []byte("one")), c.Push(mia, "billing", []byte("two"))
	if _, err := mia.Share(t.Context(), billing.ID); err != nil {
		t.Fatal(err)
	}
	b := browse(t, openUI(t, mia, ""))
	b.run(chromedp.Evaluate[chromedp.Void](`void document.body.dispatchEvent(new KeyboardEvent("keydown", ` +
		`{key: "/", bubbles: true}))`))
	b.until(`document.activeElement.id === "q"`)
	b.run(chromedp.KeyEvent("sho"))
	b.until(`!document.getElementById("` + billing.ID + `") && document.getElementById("` + shop.ID + `") && ` +
		`location.search === "?q=sho"`)
	b.until(`document.activeElement.id === "q"`)
	b.click("#filter-Shared")
	b.until(`document.querySelector(".empty") && location.search.includes("show=shared")`)
	b.run(chromedp.NavigateBack())
	b.until(`document.getElementById("` + shop.ID + `") && !location.search.includes("show=shared")`)
}

// The same pages without JavaScript: every step is a form or a link.
func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, unsanitizedShares(snap.UnsanitizedAsk))
	alice := c.As("alice@acme.test")
	item := c.Push(alice, "shop", []byte("one"))
	b := browse(t, openUI(t, alice, ""))
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open("/snapshots")
	b.click("#state-" + item.ID) // the policy asks: a page of its own
	b.run(chromedp.WaitVisible(chromedp.CSS("#confirm")))
	b.click("#confirm")
	b.run(chromedp.WaitVisible(chromedp.CSS("#state-" + item.ID + `[aria-pressed="true"]`)))
	b.click("#also-" + item.ID)
	b.run(chromedp.WaitVisible(chromedp.CSS("#gs-dba")))
	b.click("#gs-dba")
	b.run(chromedp.WaitVisible(chromedp.CSS("#confirm")))
	b.click("#confirm")
	b.run(chromedp.WaitVisible(chromedp.CSS(`#gs-dba[aria-checked="true"]`)))
	b.keys("#slug", "globex\r")
	b.run(chromedp.WaitVisible(chromedp.CSS("#confirm")))
	b.click("#confirm")
	b.run(chromedp.WaitVisible(chromedp.CSS("#revoke-globex")))
	shares, err := alice.OrgShares(t.Context(), item.ID)
	if err != nil || len(shares) != 1 || shares[0].ExpiresAt == nil {
		t.Errorf("shares %v, %v", shares, err)
	}
}

// Build, push and load from the page, with live progress and the typed name.
func TestBrowserJobs(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	config, source, destination := shopConfig(t)
	u := openUI(t, c.As("mia@acme.test"), config)
	b := browse(t, u)
	b.open("/targets")
	b.run(chromedp.Evaluate[chromedp.Void](`{
		const send = window.fetch;
		window.sent = 0;
		window.fetch = (...a) => { window.sent++; return send(...a); };
	}`))
	b.click(".cards button")
	b.input(chromedp.DoubleClick(chromedp.CSS(".cards button"))) // sends only the second click
	if sent := eval[int](b, "window.sent"); sent != 1 {
		t.Errorf("a double click sent the form %d times", sent)
	}
	b.until(`document.querySelector("#job-1.done")`)
	b.open("/snapshots")
	b.click("#dismiss-1")
	b.until(`!document.querySelector("#job-1")`)
	b.click("details.menu summary")
	b.click(`details.menu form[action$="/push"] button`)
	b.until(`document.querySelector("#job-2.done") && document.querySelector(".where").textContent === "synced"`)
	b.click(`.do a[href$="/load"]`)
	b.until(`document.querySelector("#dialog").open && document.activeElement.id === "database"`)
	b.keys("#database", "wrong\r")
	b.until(`!document.querySelector("#database").checkValidity() && document.querySelector("#dialog").open`)
	b.run(chromedp.Evaluate[chromedp.Void](`void (document.querySelector("#database").value = "")`))
	b.keys("#database", "shop_dev.db\r")
	b.until(`document.querySelector("#job-3.done") && !document.querySelector("#dialog").open`)
	sameData(t, source, destination)
}

// The Jobs page keeps the log of a job, and keeps it open, while the job runs and when it ends.
func TestBrowserJobsKeepTheirLog(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	u := openUI(t, nil, "")
	b := browse(t, u)
	b.open("/jobs")
	phases := make(chan string)
	if _, err := u.Server.jobs.start(task{kind: "build", title: "Build a snapshot of shop",
		run: func(ctx context.Context, progress local.Progress) (outcome, error) {
			for {
				select {
				case phase, ok := <-phases:
					if !ok {
						return outcome{}, nil
					}
					progress(local.Event{Phase: phase})
				case <-ctx.Done():
					return outcome{}, ctx.Err()
				}
			}
		}}); err != nil {
		t.Fatal(err)
	}
	b.click("#job-1 summary")
	phases <- "dumping tables"
	b.until(`document.querySelector("#job-1.running details[open]").textContent.includes("dumping tables")`)
	close(phases)
	b.until(`document.querySelector("#job-1.done details[open]") && ` +
		`document.querySelector("#job-1").textContent.includes("took")`)
}

// Two tabs of one browser: a job begun in one shows in the other.
func TestBrowserTwoTabs(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	one, two := browse(t, u), browse(t, u)
	two.open("/snapshots")
	one.open("/targets")
	one.click(".cards button")
	two.until(`document.querySelector("#job-1.done") && document.querySelector("table.snapshots .where").textContent ` +
		`=== "local"`)
}

// If the service stops, the page says so and no longer lists its snapshots. It lists them again
// when the service is back.
func TestBrowserServiceAwayAndBack(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	front := newDoor(t, c.URL)
	b := browse(t, openUI(t, front.client(c.Key("mia@acme.test")), ""))
	row := `document.getElementById("` + item.ID + `")`
	b.until(row)
	front.shut(true)
	b.click("#state-" + item.ID)
	b.until(`document.querySelector(".toast.bad")?.textContent.includes("does not answer")`)
	b.run(chromedp.Evaluate[chromedp.Void](`void document.dispatchEvent(new Event("visibilitychange"))`))
	b.until(`document.querySelector("#listing .notice") && !` + row)
	front.shut(false)
	b.run(chromedp.Evaluate[chromedp.Void](`void document.dispatchEvent(new Event("visibilitychange"))`))
	b.until(row + ` && !document.querySelector("#listing .notice")`)
}

// A snapshot that was unshared elsewhere disappears when somebody looks at the page again. They
// keep their place and the text that they typed. A page in the background makes no requests.
func TestBrowserUnsharedElsewhere(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	if _, err := mia.Share(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	b := browse(t, openUI(t, c.As("max@acme.test"), ""))
	row := `document.getElementById("` + item.ID + `")`
	b.until(row)
	b.click("#also-" + item.ID)
	b.until(`document.querySelector("#dialog").open`)
	b.run(chromedp.Evaluate[chromedp.Void](`{
		const ask = window.fetch;
		window.asked = 0;
		window.fetch = (...a) => { window.asked++; return ask(...a); };
		document.querySelector("#q").value = "typed";
		void Object.defineProperty(document, "hidden", { value: true, configurable: true });
	}`))
	if err := mia.Unshare(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	afterFocus := func() int {
		b.run(chromedp.Evaluate[chromedp.Void](`{
			window.later = false;
			window.dispatchEvent(new Event("focus"));
			void setTimeout(() => { window.later = true }, 1000); // less than the page waits before it asks by itself
		}`))
		b.until("window.later")
		return eval[int](b, "window.asked")
	}
	if asked := afterFocus(); asked != 0 {
		t.Errorf("a hidden page asked %d times", asked)
	}
	b.run(chromedp.Evaluate[chromedp.Void]("void (delete document.hidden)"))
	if asked := afterFocus(); asked == 0 {
		t.Error("the page asked nothing when its window got the focus")
	}
	b.until(`!` + row)
	if !eval[bool](b, `document.querySelector("#dialog").open && document.querySelector("#q").value === "typed"`) {
		t.Error("the dialog was closed, or what was typed is gone")
	}
}

// A name that contains markup or script stays text, in the page and in the fragments of the event
// stream.
func TestBrowserHostileName(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.Push(mia,
		`x' autofocus onfocus=window.hacked=1 y='&lt;img src=x onerror=window.hacked=1&gt;`, []byte("one"))
	b := browse(t, openUI(t, mia, ""))
	b.click("#pull-" + item.ID)
	b.until(`document.querySelector("#job-1:not(.running)")`)
	b.click("#dismiss-1")
	b.click("#also-" + item.ID)
	b.until(`document.querySelector("#dialog").open`)
	if eval[bool](b, "Boolean(window.hacked) || Boolean(document.querySelector('main img, dialog img'))") {
		t.Error("the name became markup")
	}
}

// No page violates the rules of axe-core for WCAG 2.2 AA in light and dark, each at one of three
// widths, or at all of them with SNAP_AXE_WIDTHS. The open dialog, a menu with selected rows and
// the finder are checked only in dark and at the widest.
func TestBrowserAccessibility(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	rules := axe(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	_, dialog := populate(t, c)
	config, _, _ := shopConfig(t)
	u := openUI(t, c.As("alice@acme.test"), config)
	events := u.listen()
	u.post("/targets/shop/build", nil)
	events.ended()
	here, err := u.Agent.Snapshots("")
	if err != nil || len(here) == 0 {
		t.Fatal(err)
	}
	b := browse(t, u)
	widths := []int64{360, 768, 1440}
	everywhere := os.Getenv("SNAP_AXE_WIDTHS") != ""
	for i, path := range []string{"/", "/snapshots", "/snapshots?sort=target", "/snapshots?q=zzz",
		"/snapshots?only=ending",
		"/cloud/" + dialog.ID, "/local/" + here[0].Name, "/find?find=sho", "/cloud/" + dialog.ID + "/sharing",
		"/local/" + here[0].Name + "/load", "/local/" + here[0].Name + "/delete", "/targets", "/targets/new",
		"/targets/shop/edit", "/cloud/" + dialog.ID + "/share", "/jobs", "/activity", "/account", "/clones",
		"/nothing"} {
		for j, scheme := range []string{"light", "dark"} {
			b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
			for k, width := range widths {
				if everywhere || (i+j)%len(widths) == k {
					b.run(chromedp.EmulateViewport(width, 900))
					b.open(path)
					b.check(rules, fmt.Sprintf("%s %s at %d", path, scheme, width))
					b.fits(fmt.Sprintf("%s at %d", path, width))
				}
			}
		}
	}
	b.open("/snapshots")
	b.click("#also-" + dialog.ID)
	b.until(`document.querySelector("#dialog").open`)
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#dialog ` +
		`details").forEach((d) => { d.open = true })`))
	b.check(rules, "the dialog, with everything open")
	b.run(chromedp.KeyEvent("\u001b"))
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#more-` + dialog.ID + `").click(); ` +
		`document.querySelectorAll(".pick").forEach((p) => { p.checked = true })`))
	b.check(rules, "a menu and selected rows")
	b.press("k", chromedp.ModifierCtrl)
	b.until(`document.querySelector("#dialog").open && document.activeElement.id === "find"`)
	b.check(rules, "the finder")
}

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "..", "tools", "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("needs axe-core: npm ci --prefix tools/axe")
	}
	return string(script)
}

// check runs axe-core on the page.
func (b *tab) check(rules, what string) {
	b.t.Helper()
	if !eval[bool](b, `"axe" in window`) {
		b.run(chromedp.Evaluate[chromedp.Void](rules))
	}
	found, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[[]string](`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", `+
			`"best-practice"]}`+
			`).then((r) => r.violations.map((v) => v.id + ": " + `+
			`v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n")))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		b.t.Errorf("%s: %s", what, f)
	}
}

// The first page with a full list is under 50 KB on the wire, all files
// included.
func TestFirstPageIsSmall(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	for i := range pageSize {
		c.Push(mia, "target-"+string(rune('a'+i%26)), []byte{byte(i)})
	}
	u := openUI(t, mia, "")
	page := u.get("/snapshots", "Accept-Encoding", "gzip")
	sum := len(page.Body)
	if page.Header.Get("Content-Encoding") != "gzip" {
		t.Error("the page is not compressed")
	}
	for _, name := range []string{"look.css", "snapshots.css", "share.css", "app.css", "icon.svg", "app.js", "copy.js",
		"forms.js", "fragments.js", "keys.js", "live.js"} {
		a := u.get(u.Server.assets.URL(name), "Accept-Encoding", "gzip")
		if a.Status != http.StatusOK {
			t.Errorf("%s answered %d", name, a.Status)
		}
		sum += len(a.Body)
	}
	if sum > 50_000 {
		t.Errorf("the first page needs %d bytes", sum)
	}
	t.Logf("%d bytes, of which the page is %d", sum, len(page.Body))
	if strings.Contains(u.get("/snapshots").Body, "http://") {
		t.Error("something is fetched from elsewhere")
	}
}

// TestBrowserHiddenTabs: only a visible page holds an event stream, because browsers open only six
// connections to a server. When a page becomes visible again, it shows the jobs that changed
// meanwhile.
func TestBrowserHiddenTabs(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite:///nowhere.db\"}\n")
	b := browse(t, u)
	events := u.listen()
	b.run(chromedp.Evaluate[chromedp.Void](`{
		const close = EventSource.prototype.close;
		EventSource.prototype.close = function () { window.streamClosed = true; close.call(this); };
	}`))
	b.show(false)
	b.until("window.streamClosed")
	u.must(u.post("/targets/shop/build", nil), http.StatusOK)
	events.ended()
	b.show(true)
	b.until(`document.querySelector("#dock .job.failed")`)
}
