package webui

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// On a phone, a button with the service's address stays inside its card, a job in the corner is one
// line and covers no action on chosen snapshots, its check mark is next to its text, and the parts of
// a snapshot's row are aligned.
func TestBrowserTextStaysInPlace(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	out := openUI(t, nil, "cloud: {url: \""+c.URL+"\"}\n")
	out.post("/account/sign-in", url.Values{})
	b := browse(t, out)
	b.run(chromedp.EmulateViewport(360, 780))
	b.open("/account")
	if spills := eval[bool](b,
		`document.querySelector("#approve").getBoundingClientRect().right > `+
			`document.querySelector(".card.sign-in").getBoundingClientRect().right - 10`); spills {
		t.Error("the button to the approval page spills out of its card")
	}

	config, _, _ := shopConfig(t)
	u := openUI(t, c.As("mia@acme.test"), config)
	events := u.listen()
	u.post("/targets/shop/build", url.Values{}, "Fragment", "1")
	events.ended()
	here, err := u.Agent.Snapshots("")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	u.post("/local/"+here[0].Name+"/push", url.Values{}, "Fragment", "1")
	events.ended()
	b = browse(t, u)
	b.run(chromedp.EmulateViewport(360, 780))
	b.open("/snapshots")
	if below := eval[bool](b,
		`[...document.querySelectorAll(".job.done .state")].some(s => `+
			`s.querySelector("span").getBoundingClientRect().top > `+
			`s.querySelector(".icon").getBoundingClientRect().bottom)`); below {
		t.Error("the text of a job is below its check mark")
	}
	if tall := eval[int64](b, `Math.ceil(document.querySelector("#dock").getBoundingClientRect().height)`); tall > 100 {
		t.Errorf("the jobs in the corner are %d pixels high", tall)
	}
	for i := range 6 {
		c.Push(c.As("mia@acme.test"), "shop", []byte{byte(i)})
	}
	b.open("/snapshots")
	b.click(".pick")
	if covered := eval[string](b, `[...document.querySelectorAll("#bulk button")].filter((e) => {
		const at = e.getBoundingClientRect();
		return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)?.closest("button") !== e;
	}).map((e) => e.textContent).join(", ")`); covered != "" {
		t.Errorf("a job covers the actions on the chosen snapshots: %s", covered)
	}
	if uneven := eval[string](b, `(() => {
		const at = (name) => document.querySelector(".snapshots tbody " + name).getBoundingClientRect();
		const tall = (selector) => document.querySelector(selector).getBoundingClientRect().height;
		return [
			at(".created").left !== at(".type").left && "the time does not begin where the type does",
			at(".share").top < at(".size").bottom && "Sharing is next to the size",
			at(".share").bottom < at(".do").top && "the actions are below Sharing",
			tall("#q") !== tall(".finer summary") && "the search is not as high as the button Filters",
		].filter(Boolean).join(", ");
	})()`); uneven != "" {
		t.Error(uneven)
	}
}

// Opening the filters moves no other control, at any width.
func TestBrowserFiltersMoveNoControl(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	b := browse(t, openUI(t, nil, ""))
	const places = `JSON.stringify([...document.querySelectorAll(".title h1, .search > :not(details), summary")]
		.map((e) => e.getBoundingClientRect()))`
	for _, width := range []int64{360, 390, 430, 768, 1100, 1440} {
		b.run(chromedp.EmulateViewport(width, 900))
		b.open("/snapshots")
		before := eval[string](b, places)
		b.click(".finer summary")
		b.until(`document.querySelector(".finer").open && document.querySelector("#only").offsetParent`)
		if after := eval[string](b, places); after != before {
			t.Errorf("at %d the controls moved from %s to %s", width, before, after)
		}
		b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#only").value = "ending"`))
		b.fits(fmt.Sprint("the filters at ", width))
		if out := eval[bool](b, `[...document.querySelectorAll(".finer .field")].some((e) => {
			const at = e.getBoundingClientRect();
			return at.left < 0 || at.right > innerWidth;
		})`); out {
			t.Errorf("at %d a filter is outside the page", width)
		}
	}
}

// unfit lists parts of the page that are cut off or torn apart: links of the navigation,
// placeholders, chosen options, and words of commands.
const unfit = `(() => {
	const pen = document.createElement("canvas").getContext("2d");
	const room = (e) => {
		const s = getComputedStyle(e);
		pen.font = s.fontWeight + " " + s.fontSize + " " + s.fontFamily;
		const clear = e.type === "search" ? parseFloat(s.fontSize) : 0; // the button that empties the field
		return e.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) - clear;
	};
	const all = (selector, cut) => [...document.querySelectorAll(selector)]
		.filter((e) => e.checkVisibility() && cut(e));
	const lines = (e) => e.getClientRects()[0].height / parseFloat(getComputedStyle(e).fontSize);
	return [
		...all("nav a", (e) => e.getBoundingClientRect().right > e.closest("nav").getBoundingClientRect().right + 1)
			.map((e) => "the link " + e.textContent.trim()),
		...all("input[placeholder]", (e) => room(e) < pen.measureText(e.placeholder).width)
			.map((e) => "the placeholder " + e.placeholder),
		...all("select", (e) => room(e) < pen.measureText(e.selectedOptions[0].text).width)
			.map((e) => "the option " + e.selectedOptions[0].text),
		...all(".command span", (e) => e.textContent.startsWith("--") && lines(e) > 2)
			.map((e) => "the flag " + e.textContent),
		...all(".command code", (e) => {
			getSelection().selectAllChildren(e);
			return getSelection().toString() !== e.nextElementSibling.dataset.copy;
		}).map((e) => "the selected command " + e.textContent),
	];
})()`

// fits reports the parts of the page that are cut off.
func (b *tab) fits(where string) {
	b.t.Helper()
	for _, cut := range eval[[]string](b, unfit) {
		b.t.Errorf("%s: %s does not fit", where, cut)
	}
}
