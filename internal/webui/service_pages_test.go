package webui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// servicePage is one of the cloud service's own pages, which share the look.
type servicePage struct{ name, path string }

func openPages() []servicePage {
	return []servicePage{{"service-home", "/"}, {"service-docs", "/docs"}, {"service-sign-in", "/auth/signin"}}
}

// signedInPages are those for who is signed in, one of them with a code that
// waits for its approval.
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

// signInAs fills in the service's sign-in form.
func (b *tab) signInAs(email, password string) {
	b.t.Helper()
	b.open("/auth/signin?next=/auth/account")
	b.keys("#email", email)
	b.keys("#password", password+"\r")
	b.run(chromedp.WaitVisible(chromedp.CSS(`form[action="/auth/signout"]`)))
}

// The service's own pages keep the rules of axe-core for WCAG 2.2 AA in light
// and dark, and fit 360 pixels.
func TestBrowserServicePages(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	rules := axe(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	b := newTab(t, c.URL)
	look := func(pages []servicePage) {
		for _, page := range pages {
			for _, scheme := range []string{"light", "dark"} {
				b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
				b.run(chromedp.EmulateViewport(360, 780))
				b.open(page.path)
				if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 360 {
					t.Errorf("%s is %d wide at 360", page.name, wide)
				}
				b.check(rules, page.name+" "+scheme)
			}
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
	for _, page := range signedInPages(t, c) {
		shoot(b, dir, page.name, page.path, "")
	}
}
