package webui

import (
	"testing"

	"github.com/chromedp/chromedp"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// maxShift is the maximum layout shift that the Snapshots page may cause by itself;
// https://web.dev/articles/cls calls 0.1 good. It is not always 0, because the columns of a long
// table widen while its rows arrive.
const maxShift = 0.1

// Elements do not move under the pointer: when the page has loaded,
// when it is refreshed, with a new row too, and when a dialog opens on it.
func TestBrowserLayoutIsStable(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	_, dialog := populate(t, c)
	config, _, _ := shopConfig(t)
	u := openUI(t, c.As("alice@acme.test"), config)
	for name, width := range map[string]int64{"desktop": 1280, "phone": 390} {
		old := c.Push(c.As("mia@acme.test"), "shop", []byte("old, for the "+name))
		b := browse(t, u)
		b.run(chromedp.EmulateViewport(width, 900))
		b.open("/snapshots")
		b.steady(name + ", at load")

		if _, err := c.As("mia@acme.test").Share(t.Context(), old.ID); err != nil {
			t.Fatal(err)
		}
		b.refresh(`document.querySelector("#state-` + old.ID + `[aria-pressed=true]")`)
		b.steady(name + ", after a refresh")

		added := c.Push(c.As("mia@acme.test"), "shop", []byte("new, for the "+name))
		b.refresh(`document.getElementById("` + added.ID + `")`)
		b.steady(name + ", after a refresh with a new row")

		b.click("#also-" + dialog.ID)
		b.until(`document.querySelector("#dialog").open`)
		b.steady(name + ", after the dialog opened")

		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#dialog").close(); ` +
			`document.querySelector("main").style.marginTop = "300px"`))
		if moved := b.shift(); moved < maxShift {
			t.Errorf("%s: a page moved on purpose counts as %.4f", name, moved)
		}
	}
}

// refresh lets the page read the cloud again, and waits until the condition is met.
func (b *tab) refresh(condition string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](`void document.dispatchEvent(new Event("visibilitychange"))`))
	b.until(condition)
}

// steady compares the layout shift since the page was opened with maxShift.
func (b *tab) steady(when string) {
	b.t.Helper()
	moved := b.shift()
	b.t.Logf("%s: %.4f", when, moved)
	if moved >= maxShift {
		b.t.Errorf("%s the layout shifted by %.4f", when, moved)
	}
}

// shift is the sum of all layout shifts of the page so far, those that follow a
// click included.
func (b *tab) shift() float64 {
	b.t.Helper()
	moved, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](`new Promise((done) => {
		const next = (then) => requestAnimationFrame(() => setTimeout(then));
		next(() => next(() => {
			let sum = 0;
			const add = (list) => list.forEach((e) => { sum += e.value; });
			const seen = new PerformanceObserver((list) => add(list.getEntries()));
			seen.observe({ type: "layout-shift", buffered: true });
			next(() => next(() => { add(seen.takeRecords()); seen.disconnect(); done(sum); }));
		}));
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return moved
}
