package webui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// servicePage is one of the cloud service's own pages, which share the look.
type servicePage struct{ name, path string }

func openPages() []servicePage {
	return []servicePage{{"service-home", "/"}, {"service-docs", "/docs"}, {"service-docs-shares", "/docs/shares"},
		{"service-docs-search", "/docs?q=webhook"}, {"service-sign-in", "/auth/signin"}}
}

// signedInPages are the pages for people who are signed in, one of them with a code that waits for
// approval.
func signedInPages(t *testing.T, c *cloudtest.Cloud) []servicePage {
	t.Helper()
	res, err := http.PostForm(c.URL+"/auth/device_authorization", url.Values{"client_id": {"snapcli"}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var grant struct {
		UserCode string `json:"user_code"`
	}
	if err := json.NewDecoder(res.Body).Decode(&grant); err != nil || grant.UserCode == "" {
		t.Fatalf("no code, status %d, %v", res.StatusCode, err)
	}
	return []servicePage{{"service-account", "/auth/account"}, {"service-code", "/auth/device"},
		{"service-confirm", "/auth/device/confirm?user_code=" + grant.UserCode}}
}

// consolePages are those of an organization for its owners and admins.
func consolePages() (all []servicePage) {
	for _, name := range []string{"", "/members", "/groups", "/groups?id=eng", "/outside", "/keys", "/channels",
		"/retention", "/webhooks", "/audit", "/storage"} {
		all = append(all, servicePage{"console" + strings.NewReplacer("/", "-", "?id=", "-").Replace(name),
			"/console" + name})
	}
	return all
}

// snapshotPages are those of the snapshots, for everybody.
func snapshotPages(t *testing.T, c *cloudtest.Cloud) []servicePage {
	t.Helper()
	alice := c.As("alice@acme.test")
	var last, original api.Snapshot
	for s, err := range alice.AllSnapshots(t.Context(), api.ListOptions{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case s.Target == "shop" && last.ID == "":
			last = s
		case s.Target == "warehouse":
			original = s
		}
	}
	tables := []api.CardTable{{Schema: "public", Name: strings.Repeat("a_table_with_a_very_long_name_", 6), Rows: 3}}
	for _, name := range []string{"customers", "orders", "order_lines", "products", "invoices", "<b>עברית"} {
		tables = append(tables, api.CardTable{Schema: "public", Name: name, Rows: 12043, Bytes: 4_000_000,
			Columns: []api.CardColumn{
				{Name: "id", Type: "integer", NotNull: true, Key: "primary", Mask: "keep"},
				{Name: "email", Type: "character varying(320)", Mask: "email"},
				{Name: "customer", Type: "integer", Refers: "customers.id", Mask: "keep"}}})
	}
	described := api.Card{ServerVersion: "17.2", Encoding: "UTF8", Collation: "en_US.utf8",
		From: "shop-20261121T011600Z", Masking: &api.Masking{Rules: strings.Repeat("a", 64), Masked: 1, Kept: 2},
		Tables: tables}
	if err := c.As("mia@acme.test").PutCard(t.Context(), last.ID, api.PutCardRequest{Card: &described}); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Describe(t.Context(), last.ID, api.DescribeRequest{Description: "Before the July release",
		Labels: []string{"release", strings.Repeat("long", 10)}}); err != nil {
		t.Fatal(err)
	}
	return []servicePage{{"snapshots", "/snapshots"}, {"snapshots-none", "/snapshots?q=nothing"},
		{"snapshot", "/snapshots/" + last.ID}, {"snapshot-found", "/snapshots/" + last.ID + "?q=email&done=shared"},
		{"snapshot-original", "/snapshots/" + original.ID}, {"snapshot-absent", "/snapshots/snap_none"},
		{"snapshot-hidden", "/snapshots/snap_7h2k9m4p6r8t0v2w"}, {"requests", "/requests"},
		{"snapshot-check", "/snapshots/" + last.ID + "?user=max@acme.test#verdict"},
		{"snapshots-expiring", "/snapshots?show=expiring&done=refused"}}
}

// busyOrganization gives acme something for each page of the console.
func busyOrganization(t *testing.T, c *cloudtest.Cloud) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, alice, mia := t.Context(), c.As("alice@acme.test"), c.As("mia@acme.test")
	end := time.Now().Add(70 * time.Hour)
	for i, target := range []string{"shop", "shop", "billing", "customer support desk"} {
		sn := c.PushAs(mia, target, snap.TypeSanitized, bytes.Repeat([]byte{byte(i)}, 40_000*(i+1)))
		_, err := mia.ShareGroup(ctx, sn.ID, "eng")
		must(err)
		_, err = alice.ShareOrg(ctx, sn.ID, "globex", &end)
		must(err)
		must(alice.Pulled(ctx, sn.ID, 10))
		for _, email := range []string{"max@acme.test", "ian@initech.test"} {
			must(c.As(email).RequestAccess(ctx,
				api.AccessRequestRequest{Snapshot: sn.ID, Reason: "To reproduce bug 412"}))
		}
	}
	original := c.Push(alice, "warehouse", []byte("original data"))
	_, err := alice.ShareOrg(ctx, original.ID, "initech", nil)
	must(err)
	_, err = alice.AddChannel(ctx, api.ChannelRequest{Target: "nightly", GroupID: "eng"}, false)
	must(err)
	_, err = alice.AddWebhook(ctx, api.WebhookRequest{URL: "https://hooks.example/services/T0/B0/x"})
	must(err)
	_, err = alice.SetRetention(ctx, api.RetentionRule{Target: "billing", KeepLast: 1})
	must(err)
	c.Push(mia, "nightly", []byte("a"))
	c.Push(mia, "nightly", []byte("b"))
	_, err = alice.SetRetention(ctx, api.RetentionRule{Target: "nightly", KeepLast: 1})
	must(err)
}

// signInAs fills in the service's sign-in form.
func (b *tab) signInAs(email, password string) {
	b.t.Helper()
	b.open("/auth/signin?next=/auth/account")
	b.keys("#email", email)
	b.keys("#password", password+"\r")
	b.run(chromedp.WaitVisible(chromedp.CSS(`form[action="/auth/signout"]`)))
}

// The service's own pages fit 360, 768 and 1440 pixels, and keep the rules of axe-core for WCAG 2.2
// AA in light and dark, each at one of these widths, or at all of them with SNAP_AXE_WIDTHS.
func TestBrowserServicePages(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	rules := axe(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	b := newTab(t, c.URL)
	everywhere := os.Getenv("SNAP_AXE_WIDTHS") != ""
	look := func(pages []servicePage) {
		for i, page := range pages {
			b.open(page.path)
			for j, width := range []int{360, 768, 1440} {
				b.run(chromedp.EmulateViewport(int64(width), 780))
				if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%s is %d wide at %d", page.name, wide, width)
				}
				b.fits(fmt.Sprint(page.name, " at ", width))
				for k, scheme := range []string{"light", "dark"} {
					if everywhere || (i+k)%3 == j {
						b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
						b.check(rules, fmt.Sprint(page.name, " ", scheme, " ", width))
					}
				}
			}
			b.media("prefers-color-scheme", "dark")
			dark := eval[string](b, "getComputedStyle(document.documentElement).backgroundColor")
			b.media("prefers-color-scheme", "light")
			if light := eval[string](b, "getComputedStyle(document.documentElement).backgroundColor"); light == dark {
				t.Errorf("%s is %s in light and in dark", page.name, light)
			}
		}
	}
	look(openPages())
	b.signInAs("adam@acme.test", "adam-password")
	look(signedInPages(t, c))
	busyOrganization(t, c)
	snapshots := snapshotPages(t, c)
	look(snapshots)
	look(consolePages())
	announced(b, snapshots[2])
	for _, scheme := range []string{"light", "dark"} {
		b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
		b.check(rules, "announced "+scheme)
	}
}

// announced ends a group's share on the page of a snapshot, which then announces that and offers
// Undo.
func announced(b *tab, page servicePage) {
	b.open(page.path)
	b.click(`#group-list button[name="revoke"]`)
	b.until(`document.querySelector("#change #undo")`)
}

// The share box of the service works without reloading, like the one of the local web UI: it keeps
// the page, the focus and what was typed, announces each change, and undoes it.
func TestBrowserShareBoxOfTheService(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.PushAs(c.As("mia@acme.test"), "shop", snap.TypeSanitized, []byte("one"))
	b := newTab(t, c.URL)
	b.signInAs("adam@acme.test", "adam-password")
	b.open("/snapshots/" + item.ID)
	b.run(chromedp.Evaluate[chromedp.Void]("void (window.untouched = true)"))
	b.click("#gs-eng")
	b.until(`document.querySelector("#gs-eng").getAttribute("aria-checked") === "true" &&
		document.querySelector("#change")?.textContent.includes("Shared with the group eng. 1 ` +
		`more person can see it.")`)
	if _, err := c.As("gus@acme.test").Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a member of the group: %v", err)
	}
	b.until(`document.activeElement.id === "gs-eng" && document.querySelector("#state").textContent.includes("eng")`)
	b.click("#undo")
	b.until(`document.querySelector("#gs-eng").getAttribute("aria-checked") === "false"`)
	if _, err := c.As("gus@acme.test").Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a member of the group, after Undo: %v", err)
	}
	b.click("#wide-switch")
	b.until(`document.querySelector("#wide-switch").getAttribute("aria-checked") === "true" &&
		document.querySelector("#state").textContent.includes("Shared")`)
	b.keys("#slug", "globx\r")
	b.until(`document.querySelector("#slug-problem") && document.querySelector("#slug").value === "globx"`)
	eval[string](b, `document.querySelector("#slug").value = ""`)
	b.keys("#slug", "globex\r")
	b.until(`document.querySelector("#org-list")?.textContent.includes("ends in 7 days")`)
	b.click("#revoke-globex")
	b.until(`!document.querySelector("#org-list") && document.activeElement.id === "orgs-title"`)
	b.keys("#user", "max@acme.test\r")
	b.until(`document.querySelector("#verdict")?.textContent.includes("can see it")`)
	b.run(chromedp.Evaluate[chromedp.Void](`{
		window.fetch = async () => new Response('{"code":"unavailable"}', { status: 503 });
	}`))
	b.click("#gs-eng")
	b.until(`document.querySelector(".toast.bad")?.textContent.includes("does not answer") &&
		document.querySelector("#gs-eng").getAttribute("aria-checked") === "false"`)
	if !eval[bool](b, "window.untouched && location.search === ''") {
		t.Error("the page was loaded again")
	}
}

// The share box works by keyboard alone. The focus stays at the action, except that Undo moves it
// to the heading of the share box. Each change is announced.
func TestBrowserShareBoxOfTheServiceByKeyboard(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.PushAs(c.As("mia@acme.test"), "shop", snap.TypeSanitized, []byte("one"))
	gus := c.As("gus@acme.test")
	j := &journey{tab: newTab(t, c.URL)}
	j.signInAs("adam@acme.test", "adam-password")
	j.open("/snapshots/" + item.ID)
	// Announcements stay, however long the test takes.
	j.run(chromedp.Evaluate[chromedp.Void](`void (window.setTimeout = ` +
		`((real) => (f, ms) => ms < 1000 && real(f, ms))(setTimeout))`))
	shared := func(id, state, announced, focused string) {
		t.Helper()
		j.until(`document.querySelector("#` + id + `").getAttribute("aria-checked") === "` + state + `" &&
			[...document.querySelectorAll("#toasts[role=status] .toast")].some((e) => ` +
			`e.textContent.includes("` + announced + `")) &&
			document.activeElement.id === "` + focused + `"`)
	}
	j.run(chromedp.Focus(chromedp.CSS("#wide-switch")))
	j.tabTo("gs-eng")
	j.key(" ")
	shared("gs-eng", "true", "Shared with the group eng. 1 more person can see it.", "gs-eng")
	if _, err := gus.Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a member of the group: %v", err)
	}
	j.tabTo("undo")
	j.key(kb.Enter)
	shared("gs-eng", "false", "No longer shared with the group eng.", "sharing-title")
	if _, err := gus.Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a member of the group, after Undo: %v", err)
	}
	j.tabTo("wide-switch")
	j.key(kb.Enter)
	shared("wide-switch", "true", "Shared with everyone in", "wide-switch")
	j.tabTo("slug")
	j.run(chromedp.KeyEvent("globex"))
	j.key(kb.Enter)
	j.until(`document.querySelector("#org-list")?.textContent.includes("ends in 7 days")`)
	j.until(`document.querySelector("#toasts").textContent.includes("Shared with everyone in globex") && ` +
		`document.activeElement.id === "slug"`)
	j.tabTo("user")
	j.run(chromedp.KeyEvent("gus@acme.test"))
	j.key(kb.Enter)
	j.until(`document.querySelector("#verdict[role=status]")?.textContent.includes("can see it") && ` +
		`document.activeElement.id === "user"`)
}

// TestScreenshotsOfTheService is TestScreenshots for the service's own pages.
func TestScreenshotsOfTheService(t *testing.T) {
	dir := os.Getenv("SNAP_SCREENSHOTS")
	if dir == "" {
		t.Skip("needs SNAP_SCREENSHOTS, a folder: make screenshots")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := cloudtest.Start(t, cloudtest.Options{})
	b := newTab(t, c.URL)
	for _, page := range openPages() {
		shoot(b, dir, page.name, page.path, "")
	}
	b.signInAs("adam@acme.test", "adam-password")
	busyOrganization(t, c)
	for _, page := range slices.Concat(signedInPages(t, c), snapshotPages(t, c), consolePages()) {
		shoot(b, dir, page.name, page.path, "")
	}
}
