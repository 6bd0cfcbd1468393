package webui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// held makes the first matching response at once, but sends it only when release is closed.
type held struct {
	next    http.Handler
	match   func(*http.Request) bool
	once    sync.Once
	made    chan struct{} // closed when the response is made
	release chan struct{}
}

func newHeld(next http.Handler, match func(*http.Request) bool) *held {
	return &held{next: next, match: match, made: make(chan struct{}), release: make(chan struct{})}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hold := false
	if h.match(r) {
		h.once.Do(func() { hold = true })
	}
	if !hold {
		h.next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	h.next.ServeHTTP(answer, r)
	close(h.made)
	select {
	case <-h.release:
	case <-r.Context().Done(): // the test ends before
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// browseHeld opens the web UI in a browser that gets one response late.
func browseHeld(t *testing.T, u *ui, match func(*http.Request) bool) (*tab, *held) {
	t.Helper()
	h := newHeld(u.Server.Handler(), match)
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	b := newTab(t, server.URL)
	b.open(u.Server.StartPath())
	b.open("/snapshots")
	return b, h
}

// A job that has ended stays ended when the response to the request that started it arrives
// afterwards.
func TestBrowserLateAnswerOfAJob(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	b, late := browseHeld(t, u, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/build") })
	b.open("/targets")
	build := `form[action="/targets/shop/build"] button`
	b.click(build)
	<-late.made
	b.until(`document.querySelector("#job-1").classList.contains("done")`)
	b.run(chromedp.Evaluate[chromedp.Void](`void new MutationObserver(() => {
		if (document.querySelector("#job-1.running")) window.wentBack = true;
	}).observe(document.body, {subtree: true, childList: true})`))
	close(late.release)
	b.until(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("/build"))`)
	b.click(build)
	b.until(`document.querySelector("#job-2").classList.contains("done")`)
	if eval[bool](b, "window.wentBack === true") {
		t.Error("the older card replaced the finished one")
	}
}

// A dismissed job does not come back with a late response.
func TestBrowserLateAnswerAfterDismissal(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	b, late := browseHeld(t, u, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/build") })
	b.open("/targets")
	build := `form[action="/targets/shop/build"] button`
	b.click(build)
	<-late.made
	b.until(`document.querySelector("#job-1").classList.contains("done")`)
	b.click("#dismiss-1")
	b.until(`!document.querySelector("#job-1")`)
	close(late.release)
	b.until(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("/build"))`)
	b.click(build)
	b.until(`document.querySelector("#job-2").classList.contains("done")`)
	if eval[bool](b, `document.querySelector("#job-1") !== null`) {
		t.Error("the dismissed job came back")
	}
}

// A listing that was read before a change does not undo the change on the page when it arrives
// later; the page requests it again.
func TestBrowserLateListing(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	b, late := browseHeld(t, openUI(t, mia, ""), func(r *http.Request) bool {
		return r.URL.Path == "/snapshots" && r.Header.Get("Fragment") != ""
	})
	b.run(chromedp.Evaluate[chromedp.Void](`document.dispatchEvent(new CustomEvent("listing"))`))
	<-late.made
	state := `document.querySelector("#state-` + item.ID + `")`
	b.click("#state-" + item.ID)
	b.until(state + `.textContent === "Shared" && !` + state + `.classList.contains("waiting")`)
	b.run(chromedp.Evaluate[chromedp.Void](`void new MutationObserver(() => {
		if (` + state + `?.textContent === "Private") window.wentBack = true;
	}).observe(document.body, {subtree: true, childList: true})`))
	close(late.release)
	b.until(`document.querySelector("#listing tr#` + item.ID + `:not([data-revision])")`)
	if eval[bool](b, "window.wentBack === true") {
		t.Error("the older listing took the change back")
	}
}

// If the response to a change of one snapshot arrives when the dialog already shows another, it
// does not replace the dialog. Otherwise the next click would share the wrong snapshot.
func TestBrowserLateAnswerForAnotherDialog(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	first := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("one"))
	second := c.PushAs(alice, "orders", snap.TypeSanitized, []byte("two"))
	b := browse(t, openUI(t, alice, ""))
	eval[bool](b, `(() => {
		const send = window.fetch;
		window.fetch = async (url, init) => {
			if (init.method === "post") await new Promise((arrive) => { window.arrive = arrive });
			const response = await send(url, init), text = await response.text();
			if (init.method === "post") setTimeout(() => { window.arrived = true });
			return { ok: response.ok, text: async () => text };
		};
		return true;
	})()`)
	b.click("#also-" + first.ID)
	b.until(`document.querySelector("#dialog").open`)
	b.click("#gs-eng")
	b.until("window.arrive")
	b.press(kb.Escape)
	b.until(`!document.querySelector("#dialog").open`)
	b.click("#also-" + second.ID)
	b.until(`document.querySelector("#dialog").open`)
	eval[bool](b, "(window.arrive(), true)")
	b.until("window.arrived")
	shown := eval[string](b, `document.querySelector("#dialog").textContent`)
	if !strings.Contains(shown, second.Name) {
		t.Errorf("the dialog of %s shows %s", second.Name, shown)
	}
}
