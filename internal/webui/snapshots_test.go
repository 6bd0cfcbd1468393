package webui

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// SPEC 4.6: cloud rows carry a badge, a Sharing control and a Pull action; the
// filter row is All, Local, Cloud, Shared.
func TestSnapshotsPage(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	private := c.Push(mia, "shop", []byte("one"))
	shared := c.PushAs(mia, "billing", snap.TypeSanitized, []byte("two"))
	if _, err := mia.Share(t.Context(), shared.ID); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, mia, "")
	all := u.get("/snapshots")
	u.must(all, http.StatusOK, private.Name, shared.Name, ">cloud</span>", "/cloud/"+private.ID+"/pull",
		"/cloud/"+private.ID+"/share", "Private", "Shared", "mia@acme.test")
	for _, filter := range []string{"All", "Local", "Cloud", "Shared"} {
		u.must(all, http.StatusOK, `id="filter-`+filter+`"`)
	}
	if got := countOf(all.Body, "All"); got != "2" {
		t.Errorf("All counts %q", got)
	}
	if got := countOf(all.Body, "Shared"); got != "1" {
		t.Errorf("Shared counts %q", got)
	}
	only := u.get("/snapshots?show=shared")
	u.must(only, http.StatusOK, shared.Name)
	u.mustNot(only, private.Name)
	none := u.get("/snapshots?show=local")
	u.must(none, http.StatusOK, "Nothing on this machine yet")
	u.mustNot(none, shared.Name)
	u.must(u.get("/snapshots?show=local&before=2000-01-01T00:00:00Z"), http.StatusOK, "Nothing is left on this page",
		`<a class="button" href="/snapshots?show=local"`)
	found := u.get("/snapshots?q=SHOP")
	u.must(found, http.StatusOK, private.Name)
	u.mustNot(found, shared.Name)
	u.must(u.get("/snapshots?target=billing&type=snapshot"), http.StatusOK, "Nothing matches")
}

// countOf returns the number next to an entry of the filter row.
func countOf(body, filter string) string {
	_, rest, _ := strings.Cut(body, `id="filter-`+filter+`"`)
	_, rest, _ = strings.Cut(rest, `<b class="count">`)
	number, _, _ := strings.Cut(rest, "<")
	return number
}

// SPEC 4.6 and 5.3: a snapshot that the caller is not allowed to see is on no page, and its address
// responds like that of one that never existed.
func TestHiddenSnapshotsAreAbsent(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	secret := c.Push(c.As("mia@acme.test"), "payroll", []byte("hidden"))
	u := openUI(t, c.As("max@acme.test"), "")
	for _, path := range []string{"/snapshots", "/snapshots?show=cloud", "/snapshots?q=payroll",
		"/snapshots?target=payroll"} {
		u.mustNot(u.get(path), secret.ID, secret.Name)
	}
	for _, what := range []string{"sharing", "delete"} {
		hidden := u.get("/cloud/" + secret.ID + "/" + what)
		absent := u.get("/cloud/snap_0000000000000000/" + what)
		if hidden.Status != http.StatusNotFound || hidden.Body != absent.Body {
			t.Errorf("%s of a hidden snapshot: %d, differs from an absent one: %t", what, hidden.Status,
				hidden.Body != absent.Body)
		}
	}
}

// A click on the Sharing control takes effect immediately, with and without JavaScript (SPEC 3).
func TestSharingControl(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, max := c.As("mia@acme.test"), c.As("max@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, mia, "")
	sees := func() bool {
		_, err := max.Snapshot(t.Context(), item.ID)
		return err == nil
	}
	plain := u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"true"}, "back": {"/snapshots?show=cloud"}})
	u.must(plain, http.StatusOK, item.Name, `aria-pressed="true"`)
	if plain.URL.RawQuery != "show=cloud" || !sees() {
		t.Errorf("led back to %s; seen by a colleague: %t", plain.URL, sees())
	}
	scripted := u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"false"}}, "Fragment", "1")
	u.must(scripted, http.StatusOK, `id="`+item.ID+`"`, `aria-pressed="false"`)
	u.mustNot(scripted, "<!doctype")
	if sees() {
		t.Error("still seen by a colleague")
	}
	offsite := u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"true"}, "back": {"//evil.test/"}})
	if offsite.URL.Host != strings.TrimPrefix(u.URL, "http://") {
		t.Errorf("led to %s", offsite.URL)
	}
}

// Under the policy ask, a separate page asks if there is no JavaScript. It says how many people the
// share adds, and what they could see.
func TestUnsanitizedIsAskedAbout(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, unsanitizedShares(snap.UnsanitizedAsk))
	mia := c.As("mia@acme.test")
	raw, masked := c.Push(mia, "shop", []byte("one")), c.PushAs(mia, "shop", snap.TypeSanitized, []byte("two"))
	u := openUI(t, mia, "")
	page := u.get("/snapshots")
	u.must(page, http.StatusOK, `href="/cloud/`+raw.ID+`/share"`, `action="/cloud/`+masked.ID+`/share"`)
	u.mustNot(page, `action="/cloud/`+raw.ID+`/share"`)
	u.must(u.get("/cloud/"+raw.ID+"/share"), http.StatusOK, "not sanitized", "adds 3 people, who could see",
		`name="shared" value="true"`, `action="/cloud/`+raw.ID+`/share"`)
	u.must(u.post("/cloud/"+raw.ID+"/share", url.Values{"shared": {"true"}}), http.StatusOK, "Share anyway",
		`name="confirmed" value="true"`)
	u.must(u.post("/cloud/"+raw.ID+"/share", url.Values{"shared": {"true"}, "confirmed": {"true"}}), http.StatusOK,
		`action="/cloud/`+raw.ID+`/share"`, `aria-pressed="true"`)
}

// Members who may not change shares see the state as a word, and are refused if they try anyway.
func TestSharingControlOfOthers(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	if _, err := mia.Share(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"max@acme.test", "vic@acme.test"} {
		u := openUI(t, c.As(email), "")
		page := u.get("/snapshots")
		u.must(page, http.StatusOK, item.Name, `class="state shared fixed"`, "/pull")
		u.mustNot(page, "/cloud/"+item.ID+"/share\"")
		u.must(u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"false"}}), http.StatusForbidden, "Not allowed")
		u.must(u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"false"}}, "Fragment", "1"),
			http.StatusForbidden,
			`class="toast bad"`)
	}
	admin := openUI(t, c.As("adam@acme.test"), "")
	admin.must(admin.get("/snapshots"), http.StatusOK, "/cloud/"+item.ID+"/share\"")
}

// Pages follow each other without a gap and without repeating.
func TestPaging(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	want := map[string]bool{}
	for i := range pageSize + 7 {
		want[c.Push(mia, "t"+strconv.Itoa(i), []byte(strconv.Itoa(i))).ID] = true
	}
	u := openUI(t, mia, "")
	path, pages := "/snapshots", 0
	for path != "" {
		a := u.get(path)
		u.must(a, http.StatusOK)
		if got := countOf(a.Body, "All"); got != strconv.Itoa(pageSize+7) {
			t.Errorf("page %d counts %q", pages, got)
		}
		u.must(a, http.StatusOK, []string{">1 to 50 of 57<", ">51 to 57 of 57<"}[min(pages, 1)])
		if strings.Contains(a.Body, "page-previous") != (pages > 0) {
			t.Errorf("page %d: is there a way back?", pages)
		}
		for id := range want {
			if strings.Contains(a.Body, `<tr id="`+id+`"`) {
				delete(want, id)
			}
		}
		_, rest, more := strings.Cut(a.Body, `<a class="button small" href="`)
		for more && !strings.Contains(rest[:strings.Index(rest, ">")], "page-next") {
			_, rest, more = strings.Cut(rest, `<a class="button small" href="`)
		}
		if path = ""; more {
			path = strings.ReplaceAll(rest[:strings.Index(rest, `"`)], "&amp;", "&")
		}
		pages++
	}
	if len(want) > 0 || pages != 2 {
		t.Errorf("%d snapshots are on none of %d pages", len(want), pages)
	}
}

// People see what they store, and owners what all store.
func TestAccountShowsUsage(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	c.Push(mia, "shop", []byte("1234"))
	member, owner := openUI(t, mia, "").get("/account"), openUI(t, alice, "")
	owner.must(member, http.StatusOK, "<dt>Stored</dt><dd>4 B in 1 snapshot</dd>")
	owner.mustNot(member, "Stored by all")
	owner.must(owner.get("/account"), http.StatusOK, "<dt>Stored</dt><dd>0 B", "<dt>Stored by all</dt><dd>4 B")
}

// A hostile name is text, in the page and in attributes.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	c.Push(mia, `a' onmouseover='x' & {{.}} é`, []byte("one"))
	u := openUI(t, mia, "")
	a := u.get("/snapshots")
	u.must(a, http.StatusOK, "a&#39; onmouseover=&#39;x&#39; &amp; {{.}} é")
}

func TestWithoutTheService(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	u := openUI(t, c.Client("cak_"+strings.Repeat("0", 38)), "")
	u.must(u.get("/snapshots"), http.StatusOK, "Not signed in to the cloud service")
	u.must(u.get("/account"), http.StatusOK, "Not signed in to the cloud service")
	_ = mia
	gone := openUI(t, unreachable(t), "")
	gone.must(gone.get("/snapshots"), http.StatusOK, "The cloud service does not answer")
	gone.must(gone.post("/cloud/snap_0000000000000000/share", url.Values{"shared": {"true"}}), http.StatusBadGateway,
		"does not answer")
	none := openUI(t, nil, "")
	none.must(none.get("/snapshots"), http.StatusOK, "No snapshots yet", "snapcli build")
	none.must(none.get("/account"), http.StatusOK, "No cloud service")
	for _, path := range []string{"/account/sign-in", "/account/sign-in/stop", "/account/sign-out"} {
		none.must(none.post(path, url.Values{}), http.StatusBadRequest, "No cloud service is configured",
			"Set cloud.url")
	}
	none.must(none.get("/nothing"), http.StatusNotFound, "This page does not exist",
		"Go back to the snapshots.", "Back to snapshots</a>")
}

// Each order sorts the cloud snapshots, over several pages.
func TestSorting(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	small := c.Push(mia, "bb", []byte("1"))
	large := c.Push(mia, "cc", []byte("4444"))
	first := c.Push(mia, "Aa", []byte("22"))
	u := openUI(t, mia, "")
	order := func(query string) string {
		body := u.get("/snapshots" + query).Body
		var names []string
		for _, piece := range strings.Split(body, `<a class="name"`)[1:] {
			_, name, _ := strings.Cut(piece, ">")
			names = append(names, name[:2])
		}
		return strings.Join(names, " ")
	}
	for query, want := range map[string]string{
		"": "Aa cc bb", "?sort=oldest": "bb cc Aa", "?sort=name": "Aa bb cc", "?sort=target": "Aa bb cc",
		"?sort=size":     "cc Aa bb",
		"?sort=nonsense": "Aa cc bb",
	} {
		if got := order(query); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"", "?sort=oldest", "?sort=name", "?sort=target", "?sort=size"} {
		if n := strings.Count(u.get("/snapshots"+query).Body, "aria-sort="); n != 1 {
			t.Errorf("%q: %d columns say that the list is sorted by them", query, n)
		}
	}
	for i := range pageSize {
		c.Push(mia, "zz"+strconv.Itoa(i), []byte(strconv.Itoa(1000+i)))
	}
	one := u.get("/snapshots?sort=oldest")
	u.must(one, http.StatusOK, small.Name, large.Name, first.Name, "cursor=50")
	u.must(u.get("/snapshots?sort=oldest&cursor=50"), http.StatusOK, "zz49", "page-previous", "51 to 53 of 53")
}
