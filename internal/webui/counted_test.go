package webui

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// journey counts what a person does with the mouse and the keyboard.
type journey struct {
	*tab
	clicks, keys int
}

func (j *journey) click(selector string) {
	j.t.Helper()
	j.clicks++
	j.tab.click(selector)
}

func (j *journey) key(key string) {
	j.t.Helper()
	j.keys++
	j.press(key)
}

// tabTo presses Tab until an element has the focus.
func (j *journey) tabTo(id string) {
	j.t.Helper()
	var passed []string
	for range 40 {
		at := eval[string](j.tab, "document.activeElement.id || document.activeElement.tagName")
		if at == id {
			return
		}
		passed = append(passed, at)
		j.key(kb.Tab)
	}
	j.t.Fatalf("Tab never reaches %s, but %v", id, passed)
}

// atMost ends a journey and compares its counts with the limits.
func (j *journey) atMost(what string, clicks, keys int) {
	j.t.Helper()
	j.t.Logf("%s: %d clicks, %d keys", what, j.clicks, j.keys)
	if j.clicks > clicks || j.keys > keys {
		j.t.Errorf("%s takes %d clicks and %d keys, more than %d and %d", what, j.clicks, j.keys, clicks, keys)
	}
	j.clicks, j.keys = 0, 0
}

// TestBrowserJourneysAreShort counts the clicks and keys of the commonest journeys.
func TestBrowserJourneysAreShort(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	older := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("of last week"))
	item := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("one"))
	c.Push(alice, "shop", []byte("two"))
	other := c.PushAs(alice, "orders", snap.TypeSanitized, []byte("three"))
	c.Push(alice, "zoo", []byte("four"))
	j := &journey{tab: browse(t, openUI(t, alice, ""))}
	shared := func(group string) string {
		return `document.querySelector("#gs-` + group + `").getAttribute("aria-checked") === "true"`
	}

	j.click("#also-" + item.ID)
	j.until(`document.querySelector("#dialog").open`)
	j.click("#gs-eng")
	j.until(shared("eng"))
	j.atMost("share with a group, by mouse", 2, 0)
	j.press(kb.Escape)
	j.until(`!document.querySelector("#dialog").open && document.activeElement.id === "also-` + item.ID + `"`)

	j.run(chromedp.Focus(chromedp.CSS("#name-" + other.ID)))
	j.tabTo("also-" + other.ID)
	j.key(kb.Enter)
	j.until(`document.querySelector("#dialog").open`)
	j.tabTo("gs-eng")
	j.key(" ")
	j.until(shared("eng"))
	j.atMost("share with a group, by keyboard", 0, 12)
	j.press(kb.Escape)
	j.until(`!document.querySelector("#dialog").open`)

	j.click("#also-" + item.ID)
	j.until(`document.querySelector("#dialog").open`)
	j.click("#slug")
	j.run(chromedp.KeyEvent("globex"))
	j.click(`.chips input[value="30d"]`)
	j.click("#share-org")
	j.until(`document.querySelector("#org-list")?.textContent.includes("ends in 30 days")`)
	j.atMost("share with an organization for 30 days", 4, 0)

	j.open("/")
	j.click(`.targets a[href*="target=shop"]`)
	j.until(`document.querySelector("#listing tbody tr:not(.group)")?.id === "` + item.ID + `"`)
	j.click("#name-" + item.ID)
	j.until(`document.querySelector("#snapshot h1")`)
	j.atMost("the newest sanitized snapshot of a target", 2, 0)

	j.open("/")
	j.click(`.targets a[href*="target=shop"]`)
	j.until(`document.querySelector("#listing #name-` + older.ID + `")`)
	j.click("#name-" + older.ID)
	j.until(`document.querySelector("#snapshot h1") && location.pathname.includes("` + older.ID + `")`)
	j.atMost("an older sanitized snapshot of a target", 2, 0)

	j.open("/snapshots")
	j.click("#name-" + item.ID)
	j.until(`document.querySelector("#snapshot")?.textContent.includes("the group eng")`)
	j.atMost("who can see it and why", 1, 0)
}

// TestBrowserKeyboardOnly finds a snapshot, shares it, undoes that, builds one, filters the list,
// selects rows and acts on them, all without the mouse.
func TestBrowserKeyboardOnly(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "orders", snap.TypeSanitized, []byte("one"))
	other := c.PushAs(mia, "billing", snap.TypeSanitized, []byte("two"))
	config, _, _ := shopConfig(t)
	j := &journey{tab: browse(t, openUI(t, mia, config))}
	open := func(open string) { j.until(`document.querySelector("#dialog").open === ` + open) }
	focus := func(id string) { j.until(`document.activeElement.id === "` + id + `"`) }

	j.press("k", chromedp.ModifierCtrl)
	focus("find")
	j.run(chromedp.KeyEvent("orders"))
	j.key(kb.Enter)
	j.until(`location.pathname === "/cloud/` + item.ID + `" && document.readyState === "complete"`)
	j.tabTo("state-" + item.ID)
	j.key(" ")
	j.until(`document.querySelector("#snapshot #state-` + item.ID + `").getAttribute("aria-pressed") === "true"`)
	j.until(`document.querySelector("#change").textContent.includes("Shared with everyone in acme")`)
	focus("state-" + item.ID)
	j.tabTo("undo")
	j.key(kb.Enter)
	j.until(`document.querySelector("#snapshot #state-` + item.ID + `").getAttribute("aria-pressed") === "false"`)

	j.press("k", chromedp.ModifierCtrl)
	focus("find")
	j.run(chromedp.KeyEvent("build shop"))
	j.until(`[...document.querySelectorAll("#found a, #found button")].map((e) => e.textContent).join() === ` +
		`"Build a snapshot of shop"`)
	j.key(kb.ArrowDown)
	j.until(`document.activeElement.matches("#found button")`)
	j.key(kb.ArrowUp)
	focus("find")
	j.key(kb.Enter)
	j.until(`document.querySelector("#job-1.done")`)
	open("false")

	j.open("/snapshots")
	j.key("/")
	focus("q")
	j.key(kb.Backspace) // the driver types the slash although the page prevents that
	j.run(chromedp.KeyEvent("ord"))
	j.until(`!document.getElementById("` + other.ID + `")`)
	j.run(chromedp.KeyEvent(strings.Repeat(kb.Backspace, 3)))
	j.until(`document.getElementById("` + other.ID + `")`)
	menu := eval[string](j.tab, `document.querySelector("summary[id^=more-local-]").id`)
	j.tabTo(menu)
	j.key(kb.ArrowDown)
	j.until(`document.activeElement.closest(".items") && document.querySelector("details.menu[open]")`)
	first := eval[string](j.tab, "document.activeElement.textContent")
	j.key(kb.ArrowUp)
	j.key(kb.ArrowDown)
	if now := eval[string](j.tab, "document.activeElement.textContent"); now != first {
		t.Errorf("the arrows lead from %q to %q", first, now)
	}
	j.key(kb.Escape)
	focus(menu)

	j.run(chromedp.Focus(chromedp.CSS("#pick-" + other.ID)))
	j.key(" ")
	j.until(`getComputedStyle(document.querySelector("#bulk")).display === "flex"`)
	j.run(chromedp.Focus(chromedp.CSS(`#bulk button[value="share"]`)))
	j.key(kb.Enter)
	j.until(`document.querySelector("#change")?.textContent.includes("Shared 1 snapshot")`)
	j.until(`document.querySelector("#state-` + other.ID + `").getAttribute("aria-pressed") === "true" && ` +
		`!document.querySelector(".pick:checked")`)
	if now, err := mia.Snapshot(t.Context(), other.ID); err != nil || !now.Shared {
		t.Errorf("shared %v, %v", now.Shared, err)
	}
	if now, err := mia.Snapshot(t.Context(), item.ID); err != nil || now.Shared || time.Since(now.Created) < 0 {
		t.Errorf("after Undo: shared %v, %v", now.Shared, err)
	}
}
