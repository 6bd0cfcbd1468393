package webui

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// The page offers each role what it may do, and nothing else: a viewer sees and pulls, a member
// also shares what is theirs, and owners and admins do everything.
func TestBrowserRoles(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	if _, err := mia.Share(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct {
		email                          string
		shares, deletes, orgs, journal bool
	}{
		{"alice@acme.test", true, true, true, true},
		{"adam@acme.test", true, true, true, true},
		{"mia@acme.test", true, false, false, false},
		{"max@acme.test", false, false, false, false},
		{"vic@acme.test", false, false, false, false},
	} {
		b := browse(t, openUI(t, c.As(who.email), ""))
		b.until(`document.getElementById("pull-` + item.ID + `")`)
		b.open("/snapshots") // by now the page knows the caller
		for what, is := range map[string]bool{
			`button#state-` + item.ID: who.shares, `a[href$="/delete"]`: who.deletes,
			`a[href="/activity"]`: who.journal,
		} {
			if found := eval[bool](b, `Boolean(document.querySelector('`+what+`'))`); found != is {
				t.Errorf("%s finds %s: %t", who.email, what, found)
			}
		}
		b.click("#also-" + item.ID)
		b.until(`document.querySelector("#dialog").open`)
		if found := eval[bool](b, `Boolean(document.querySelector("#slug"))`); found != who.orgs {
			t.Errorf("%s can choose organizations: %t", who.email, found)
		}
		if found := eval[bool](b, `Boolean(document.querySelector("#gs-dba"))`); found != who.shares {
			t.Errorf("%s can choose groups: %t", who.email, found)
		}
	}
}

// A recipient sees who shared a snapshot and until when, and pulls it into a target of their own.
// An owner of their organization can decline it; it then disappears from the page.
func TestBrowserRecipient(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	config, _, _ := shopConfig(t)
	alice := openUI(t, c.As("alice@acme.test"), config)
	events := alice.listen()
	alice.post("/targets/shop/build", nil)
	events.ended()
	here, err := alice.Agent.Snapshots("")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	alice.post("/local/"+here[0].Name+"/push", nil)
	events.ended()
	page, err := c.As("alice@acme.test").Snapshots(t.Context(), api.ListOptions{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%d in the cloud, %v", len(page.Items), err)
	}
	id, end := page.Items[0].ID, time.Now().Add(50*time.Hour)
	if _, err := c.As("alice@acme.test").ShareOrg(t.Context(), id, "globex", &end); err != nil {
		t.Fatal(err)
	}
	gail := openUI(t, c.As("gail@globex.test"), "")
	b := browse(t, gail)
	row := `document.getElementById("` + id + `")`
	b.until(row +
		`.querySelector(".owner").textContent === "acme" && ` + row + `.textContent.includes("ends in 2 days") && ` +
		`document.querySelector("#also-` + id + `")`)
	b.click("#pull-" + id)
	b.until(`document.querySelector("#job-1.done").textContent.includes("the ` +
		`target shop was created") && ` + row + `.querySelector(".where").textContent === "synced"`)
	b.click("#dismiss-1")
	b.click("#more-" + id)
	b.click(`a[href="/cloud/` + id + `/decline"]`)
	b.until(`document.querySelector("#dialog").open`)
	b.run(chromedp.Click(chromedp.CSS("#confirm")))
	b.until(`!` + row + ` && document.querySelector(".where").textContent === "local"`)
	gary := browse(t, openUI(t, c.As("gary@globex.test"), ""))
	gary.until(`document.querySelector(".empty") && !document.getElementById("` + id + `")`)
}
