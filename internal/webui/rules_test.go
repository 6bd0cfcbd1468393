package webui

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"snap/internal/local"
	"snap/internal/servertest"
)

const shopRules = "/targets/shop/rules"

// openRules opens a web UI over a target with a snapshot and proposes rules for it.
func openRules(t testing.TB, rules string) (u *ui, path string) {
	t.Helper()
	config, _, _ := shopConfig(t.(*testing.T))
	path = filepath.Join(t.TempDir(), "shop.rules.yaml")
	if rules != "" {
		if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u = openUI(t, nil, config+"    sanitize: {rules: \""+path+"\"}\n")
	if _, err := u.Agent.Build(t.Context(), "shop", local.BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return u, path
}

// propose proposes rules and waits for them.
func (u *ui) propose(s *stream) {
	u.t.Helper()
	u.must(u.post(shopRules+"/propose", nil, "Fragment", "1"), http.StatusAccepted, "Propose rules for shop")
	if done := s.ended(); !strings.Contains(done, `href="`+shopRules+`"`) {
		u.t.Fatalf("the rules were not proposed: %s", done)
	}
}

var reviewID = regexp.MustCompile(`name="review" value="([^"]+)"`)

// decide sends the form of the review as a browser without JavaScript does.
func (u *ui) decide(do string, more ...string) answer {
	u.t.Helper()
	id := reviewID.FindStringSubmatch(u.get(shopRules).Body)
	if id == nil {
		u.t.Fatal("there is no review")
	}
	form := url.Values{"review": {id[1]}, "page": {"1"}, "back": {shopRules + "?page=1"}, "do": {do}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return u.post(shopRules, form)
}

// column returns the number of a column in a page.
func column(t *testing.T, body, label string) string {
	t.Helper()
	found := regexp.MustCompile(`data-review="(c[0-9]+)"[^>]*>\s*<div class="grow"><bdi class="mono">` +
		regexp.QuoteMeta(label) + "<").FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no column %s in %s", label, body)
	}
	return found[1]
}

// A review proposes a rule for every column, shows no value, and writes the decisions at the end.
// It works with plain forms.
func TestRulesAreReviewed(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	u, path := openRules(t, "")
	u.must(u.get(shopRules), http.StatusOK, "Propose rules")
	u.must(u.get("/targets"), http.StatusOK, shopRules)
	u.must(u.get("/snapshots"), http.StatusOK, shopRules)
	u.propose(u.listen())
	page := u.get(shopRules)
	u.must(page, http.StatusOK, "columns to decide", "An e-mail address", "e-mail address by its name", "Keep all")
	u.mustNot(page, "@", "Every column is decided")
	email, id := column(t, page.Body, "customers.email"), column(t, page.Body, "customers.id")
	u.must(u.decide("mask-"+email, "mask-"+email, "hash"), http.StatusOK, "</svg>hash")
	u.must(u.decide("keep-"+email), http.StatusOK, "</svg>keep")
	u.must(u.decide("undo-"+email), http.StatusOK)
	u.must(u.decide("accept-"+email), http.StatusOK, "</svg>email")
	u.must(u.decide("drop-"+column(t, page.Body, "order_events.id")), http.StatusOK, "rows dropped")
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a decision was written before it was saved")
	}
	for i := range len(u.Server.rules.of["shop"].groups) {
		u.must(u.decide("accept-g"+strconv.Itoa(i)), http.StatusOK)
	}
	u.must(u.decide("undo-"+id), http.StatusOK, "<strong>1 of")
	u.must(u.decide("save"), http.StatusOK, "Saved to", "1 column still says")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`email: email +# an e-mail address by its name\n`,
		`id: decide +# .*; keep would work\n`,
		`order_events:\n    rows: drop\n    columns:\n`} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	u.propose(u.listen())
	u.must(u.get(shopRules), http.StatusOK, "1 of 1 column to decide", "customers.id")
	u.must(u.decide("accept-c0"), http.StatusOK, "Every column is decided")
	u.must(u.decide("save"), http.StatusOK, "Every column is decided")
	if _, err := u.Agent.Sanitize(t.Context(), "shop", local.SanitizeOptions{}, nil); err != nil {
		t.Errorf("the rules cannot be used: %v", err)
	}
}

// A form that names nothing, a mask that does not fit, a review that is over and a file that was
// changed are refused, and nothing is written.
func TestRuleDecisionsAreRefused(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	const mine = "# mine\ntables:\n  customers:\n    columns:\n      id: keep # mine too\n"
	u, path := openRules(t, mine)
	u.must(u.get("/targets/none/rules"), http.StatusNotFound)
	u.must(u.post("/targets/none/rules/propose", nil), http.StatusNotFound)
	u.must(u.post(shopRules, url.Values{"do": {"save"}}), http.StatusConflict, "Reload the page")
	events := u.listen()
	u.propose(events)
	size := column(t, u.get(shopRules).Body, "orders.id")
	for _, do := range []string{"", "accept", "accept-", "accept-c", "accept-c-1", "accept-c99999", "accept-g99999",
		"accept-x1", "nonsense-c1", "mask-c1", "accept-c1e9", "drop-c1 ", "keep-ç1"} {
		u.must(u.decide(do), http.StatusBadRequest)
	}
	u.must(u.decide("mask-"+size, "mask-"+size, "email"), http.StatusBadRequest, "cannot hold the values")
	u.must(u.decide("mask-"+size, "mask-"+size, "keep\n  evil: keep"), http.StatusBadRequest)
	u.must(u.decide("accept-g0", "review", "another"), http.StatusConflict)
	u.must(u.decide("accept-"+size), http.StatusOK)
	if err := os.WriteFile(path, []byte(mine+"# somebody else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must(u.decide("save"), http.StatusConflict, "was changed after the rules were proposed",
		"Propose the rules again")
	if text, err := os.ReadFile(path); err != nil || string(text) != mine+"# somebody else\n" {
		t.Errorf("%q, %v", text, err)
	}
	u.propose(events)
	u.must(u.get(shopRules), http.StatusOK, `value="undo-`+size+`"`) // the decision is kept
	u.must(u.decide("save"), http.StatusOK, "Saved to")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "id: keep # mine too\n") ||
		!strings.Contains(string(text), "# somebody else\n") || !strings.HasPrefix(string(text), "# mine\n") {
		t.Errorf("%s, %v", text, err)
	}
	u.propose(events)
	u.must(u.decide("discard"), http.StatusOK, "Propose rules")
	if err := os.WriteFile(path, []byte("tables: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	u.post(shopRules+"/propose", nil, "Fragment", "1")
	if done := events.ended(); !strings.Contains(done, "rules.yaml") {
		t.Errorf("a broken file: %s", done)
	}
}

// The whole review works with the keyboard alone. It survives a reload of the page, and keeps the
// rules of axe-core in light and dark and at three widths.
func TestBrowserRulesReview(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "a browser")
	rules := axe(t)
	u, path := openRules(t, "")
	b := browse(t, u)
	b.open(shopRules)
	b.run(chromedp.Focus(chromedp.CSS("#propose")))
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#g0-main")`)
	review := u.Server.rules.of["shop"]
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 768, 1440} {
			b.media("prefers-color-scheme", scheme, "prefers-reduced-motion", "reduce")
			b.run(chromedp.EmulateViewport(width, 900))
			b.open(shopRules)
			b.check(rules, scheme)
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
				t.Errorf("the page is %d wide at %d", wide, width)
			}
		}
	}
	press := func(keys string) { b.run(chromedp.KeyEvent(keys)) }
	at := func(id string) { b.until(`document.activeElement.id === "` + id + `"`) }
	first := "c" + strconv.Itoa(review.order[0]) + "-main"
	second := "c" + strconv.Itoa(review.order[1]) + "-main"
	b.run(chromedp.Focus(chromedp.CSS("#g0-main")))
	press(kb.ArrowDown)
	at(first)
	press("m")
	b.until(`document.activeElement.tagName === "SELECT"`)
	press("\u001b")
	at(first)
	press("m")
	b.until(`document.activeElement.tagName === "SELECT"`)
	press("redac")
	press("\r")
	b.until(`document.querySelector("#` + first + `").value.startsWith("undo")`)
	b.open(shopRules) // the decision is still there
	b.until(`document.querySelector("#` + first + `").closest("li").textContent.includes("redact")`)
	b.run(chromedp.Focus(chromedp.CSS("#" + first)))
	press("u")
	b.until(`document.querySelector("#` + first + `").value.startsWith("accept")`)
	at(first)
	press("k")
	b.until(`document.querySelector("#` + first + `").closest("li").textContent.includes("keep")`)
	if len(review.groups[0].columns) > 1 {
		at(second)
	}
	b.run(chromedp.Focus(chromedp.CSS("#g0-main")))
	for i := range review.groups {
		if len(review.groups[i].columns) == 1 && i == 0 {
			continue // decided above
		}
		b.until(`document.activeElement.id === "g` + strconv.Itoa(i) + `-main"`)
		press("a")
		b.until(`document.querySelector("#g` + strconv.Itoa(i) + `-main").value.startsWith("undo")`)
	}
	at("save-rules")
	b.run(chromedp.Focus(chromedp.CSS("#" + first)))
	press("d")
	b.until(`document.querySelector("#` + first + `").closest("li").textContent.includes("rows dropped")`)
	press("s")
	b.until(`document.querySelector("#propose")`)
	b.check(rules, "saved")
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "rows: drop\n") {
		t.Errorf("%s, %v", text, err)
	}
}
