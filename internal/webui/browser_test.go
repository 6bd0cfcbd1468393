package webui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"snap/internal/servertest"
)

// chromium is the one browser of the test process.
type chromium struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	err  error
}

var shared chromium

func TestMain(m *testing.M) {
	defer func() {
		if shared.end != nil {
			shared.end()
		}
	}()
	m.Run()
}

func (c *chromium) start() {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		c.err = exec.ErrNotFound
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		// Every tab has a browser context of its own. For each, Chromium would keep spare processes
		// ready.
		chromedp.Flag("disable-features", "Translate,SpareRendererForSitePerProcess,PreloadTopChromeWebUI,"+
			"OptimizationHints,MediaRouter,CalculateNativeWinOcclusion"),
		chromedp.Flag("no-proxy-server", true),
		chromedp.WSURLReadTimeout(servertest.Patience),
	)
	allocated, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	var endBrowser context.CancelFunc
	c.ctx, endBrowser = chromedp.NewContext(allocated)
	c.end = func() { endBrowser(); endAllocator() }
	c.err = chromedp.Do(c.ctx)
}

// tab is a page in a browser with cookies of its own.
type tab struct {
	t   testing.TB
	ctx context.Context
	URL string
}

// browse opens the web UI by a start link in a real browser. It skips when
// there is none.
func browse(t testing.TB, u *ui) *tab {
	t.Helper()
	b := newTab(t, u.URL)
	b.open(u.Server.StartPath())
	b.open("/snapshots")
	return b
}

// newTab is a tab for the pages at this address, with nothing open yet.
func newTab(t testing.TB, address string) *tab {
	t.Helper()
	servertest.RequireServers(t, "a browser")
	shared.once.Do(shared.start)
	if shared.err != nil {
		t.Skipf("needs Chromium: %v", shared.err)
	}
	first, cancel := chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(first); err != nil { // the tab lives as long as this context
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(first, servertest.Patience)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, URL: address}
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.EmulateViewport(1280, 900))
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.URL+path), chromedp.WaitReady(chromedp.CSS("main")))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.input(chromedp.Click(chromedp.CSS(selector)))
}

// press presses a key with modifiers.
func (b *tab) press(key string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

func (b *tab) keys(selector, text string) {
	b.t.Helper()
	b.input(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// input sends input to an element. It tries again when an event of the page replaced the element
// after it was found: then nothing was sent.
func (b *tab) input(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	err := chromedp.Do(b.ctx, action)
	for detached(err) {
		err = chromedp.Do(b.ctx, action)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// detached reports whether a browser refused an action because its element is no longer in the
// page.
func detached(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && slices.Contains([]string{"Could not find node with given id",
		"No node with given id found", "Node is detached from document"}, refused.Message)
}

// navigated reports whether a browser gave up on a page because another one is loading.
func navigated(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && slices.Contains([]string{"Cannot find context with specified id",
		"Inspected target navigated or closed", "Execution context was destroyed."}, refused.Message)
}

// until waits for a condition in the page, a JavaScript expression. An expression that throws
// counts as false.
func (b *tab) until(condition string) {
	b.t.Helper()
	poll := chromedp.Poll[bool]("(() => { try { return Boolean("+condition+") } catch { return false } })()",
		chromedp.WithPollingTimeout(servertest.Patience), chromedp.WithPollingInterval(30*time.Millisecond))
	_, err := chromedp.Run(b.ctx, poll)
	for navigated(err) {
		_, err = chromedp.Run(b.ctx, poll)
	}
	if err != nil {
		html, _ := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("body")))
		if dir := os.Getenv("SNAP_SCREENSHOTS"); dir != "" {
			png, _ := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			_ = os.WriteFile(filepath.Join(dir, "failed-"+b.t.Name()+".png"), png, 0o644)
		}
		b.t.Fatalf("never: %s: %v\n%s", condition, err, html)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// show makes the page visible, as a tab that is selected, or hides it.
func (b *tab) show(visible bool) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		Object.defineProperty(document, "hidden", { value: %t, configurable: true });
		void document.dispatchEvent(new Event("visibilitychange"));
	}`, !visible)))
}

// media sets what the browser prefers, such as prefers-color-scheme: dark.
func (b *tab) media(features ...string) {
	b.t.Helper()
	var set []*emulation.MediaFeature
	for i := 0; i+1 < len(features); i += 2 {
		set = append(set, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: set}); err != nil {
		b.t.Fatal(err)
	}
}
