package webui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// SPEC 5.2 from the page: sign in by device grant, see the cloud, sign out. The
// tokens are in no page (L4).
func TestBrowserSignInAndOut(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.Push(c.As("mia@acme.test"), "shop", []byte("one"))
	u := openUI(t, nil, "cloud: {url: \""+c.URL+"\"}\n")
	b := browse(t, u)
	b.open("/snapshots")
	b.until(`document.querySelector("#listing")?.textContent.includes("You are signed out")`)
	text := eval[string](b, `document.querySelector("#listing").textContent`)
	if strings.Contains(text, "available again") {
		t.Errorf("a signed-out person reads %q", text)
	}
	b.open("/")
	b.click("#sign-in") // in place
	b.until(`document.querySelector("#user-code")`)
	code := eval[string](b, `document.querySelector("#user-code").textContent`)
	approve := eval[string](b, `document.querySelector("#approve").href`)
	if !strings.HasPrefix(approve, c.URL+"/auth/device") || len(code) < 8 {
		t.Fatalf("code %q at %q", code, approve)
	}
	other := browse(t, openUI(t, nil, "")) // another browser
	other.run(chromedp.Navigate(approve), chromedp.WaitReady(chromedp.CSS("main")))
	for eval[bool](other, `!document.querySelector("[name=decision]")`) { // the code and the sign-in, in any order
		_, err := chromedp.RunResponse(other.ctx, chromedp.Evaluate[chromedp.Void](`void (() => {
			const field = (name) => document.querySelector("[name=" + name + "]");
			if (field("email")) field("email").value = "mia@acme.test";
			if (field("password")) field("password").value = "mia-password";
			(field("password") ?? field("user_code")).form.requestSubmit();
		})()`))
		if err != nil {
			t.Fatal(err)
		}
		other.run(chromedp.WaitReady(chromedp.CSS("main")))
	}
	other.until(`document.body.textContent.includes("` + code + `")`)
	other.click(`[name=decision][value=approve]`)
	b.until(`document.querySelector("#home").textContent.includes("shop")`) // without a reload
	b.open("/snapshots")
	b.until(`document.getElementById("` + item.ID + `")`)
	b.open("/account?keys=all")
	b.show(false)
	b.show(true)
	b.until(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("/account?keys=all"))`)
	b.open("/account")
	b.until(`document.querySelector("#account")?.textContent.includes("mia@acme.test")`)
	b.until(`document.querySelector("#account")?.textContent.includes("this one")`)
	session, ok, err := u.Server.signin.file.Session(c.URL)
	if err != nil || !ok {
		t.Fatalf("no session: %v", err)
	}
	for _, path := range []string{"/account", "/snapshots", "/jobs"} {
		u.mustNot(u.get(path), session.AccessToken, session.RefreshToken)
	}
	b.open("/account")
	events := u.listen()
	b.click("#sign-out")
	b.until(`document.querySelector("#sign-in")`)
	events.until("event: account")
	events.until("event: listing")
	if _, ok, _ := u.Server.signin.file.Session(c.URL); ok {
		t.Error("the session is still stored")
	}
}

// A canceled sign-in leaves nothing behind. With an API key, no sign-in is offered.
func TestSignInStopped(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	u := openUI(t, nil, "cloud: {url: \""+c.URL+"\"}\n")
	events := u.listen()
	u.must(u.post("/account/sign-in", url.Values{}), http.StatusOK, "Approve the sign-in",
		`id="user-code"`, `http-equiv="refresh"`)
	u.must(u.post("/account/sign-in/stop", url.Values{}), http.StatusOK)
	events.until("event: account")
	u.must(u.get("/account"), http.StatusOK, "You are signed out", `id="sign-in"`)

	key := openUI(t, c.As("mia@acme.test"), "cloud: {url: \""+c.URL+"\", api_key: "+c.Key("mia@acme.test")+"}\n")
	key.mustNot(key.get("/account"), `id="sign-in"`, `id="sign-out"`)
	key.must(key.post("/account/sign-in", url.Values{}), http.StatusBadRequest, "API key is configured")
}

// until reads until a line was sent.
func (s *stream) until(line string) {
	s.t.Helper()
	for s.lines.Scan() {
		if s.lines.Text() == line {
			return
		}
	}
	s.t.Fatalf("never sent %q: %v", line, s.lines.Err())
}

// Activity: admins read the audit log in words. Others see why they cannot.
func TestActivity(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	item := c.Push(alice, "shop", []byte("one"))
	end := time.Now().Add(24 * time.Hour)
	for _, err := range []error{
		second(alice.Share(t.Context(), item.ID)), second(alice.ShareGroup(t.Context(), item.ID, "eng")),
		second(alice.ShareOrg(t.Context(), item.ID, "globex", &end)), alice.Unshare(t.Context(), item.ID),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u := openUI(t, alice, "")
	u.must(u.get("/activity"), http.StatusOK, "with everyone", "with the group eng", "with globex until",
		"stopped sharing", "pushed", item.Name)
	u.must(u.get("/snapshots"), http.StatusOK, `href="/activity"`)
	only := u.get("/activity?action=snapshot.pushed&snapshot=" + item.ID)
	u.must(only, http.StatusOK, "pushed")
	u.mustNot(only, "stopped sharing")
	mia := openUI(t, c.As("mia@acme.test"), "")
	mia.must(mia.get("/activity"), http.StatusOK, "Not allowed")
	mia.mustNot(mia.get("/snapshots"), `href="/activity"`)
}

func second[T any](_ T, err error) error { return err }

// An admin of the recipient can decline a received snapshot.
func TestDecline(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, gail := c.As("alice@acme.test"), c.As("gail@globex.test")
	item := c.Push(alice, "shop", []byte("one"))
	if _, err := alice.ShareOrg(t.Context(), item.ID, "globex", nil); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, gail, "")
	u.must(u.get("/snapshots"), http.StatusOK, "Decline for globex")
	u.must(u.get("/cloud/"+item.ID+"/decline"), http.StatusOK, "Nobody in globex can see it")
	u.must(u.post("/cloud/"+item.ID+"/decline", url.Values{}, "Fragment", "1"), http.StatusOK, "Declined")
	if _, err := gail.Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("after: %v", err)
	}
	owner := openUI(t, alice, "")
	owner.must(owner.get("/cloud/"+item.ID+"/sharing"), http.StatusOK, "declined")
	gary := openUI(t, c.As("gary@globex.test"), "")
	gary.mustNot(gary.get("/snapshots"), "Decline for")
}
