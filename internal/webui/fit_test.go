package webui

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// On a phone, a button with the service's address stays inside its card, and the tick of a job is
// next to its text.
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
		`document.querySelector("#approve").getBoundingClientRect().right > document.querySelector(".card.sign-in").getBoundingClientRect().right - 10`); spills {
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
		`[...document.querySelectorAll(".job.done .state")].some(s => s.querySelector("span").getBoundingClientRect().top > s.querySelector(".icon").getBoundingClientRect().bottom)`); below {
		t.Error("what a job says stands below its tick")
	}
}
