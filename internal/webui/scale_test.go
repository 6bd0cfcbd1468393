package webui

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap"
	service "snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/local"
	"snap/internal/look"
	"snap/internal/servertest"
)

// scaled is a service with many rows that counts the requests to it.
type scaled struct {
	*cloudtest.Cloud
	requests, bytes atomic.Int64
	calls           sync.Map // the requests themselves, by their number
}

// scale starts a service where mia has n snapshots a second apart, every fourth of them shared
// org-wide, and alice is in the given number of groups. The rows are copies of one real push, made
// in the database. Copy i has i newer snapshots.
func scale(t testing.TB, n, groups int) *scaled {
	t.Helper()
	s := &scaled{}
	c := cloudtest.Start(t, cloudtest.Options{Wrap: s.counted, Config: func(config *service.Config) {
		alice := &config.Organizations[0].Users[0]
		for i := range groups {
			alice.Groups = append(alice.Groups, fmt.Sprintf("team-%04d", i))
		}
	}})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	if _, err := mia.Share(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Config.DataDir,
		"snapcloud.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	many := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", n-1)
	for _, statement := range []string{
		`INSERT INTO snapshots(key, id, org_id, owner_id, pushed_with, target_id, target,
			name, folded, type, engine, size, sha256, blob, widened, created_at) ` + many + `SELECT key - i *
				(1000 << 22), printf('snap_%016d', i), org_id, owner_id, pushed_with, target_id, target,
			target || '-' || i, folded || '-' || i, type, engine, size, printf('%064d', i), 'blob-' || i, widened,
				created_at - i * 1000 FROM snapshots, n`,
		`INSERT INTO grants(audience, snapshot, target_id, type, expires_at, ` +
			`created_at, created_by, channel) ` + many + `SELECT audience, snapshot - i * (1000 << 22), target_id,
			type, expires_at, created_at, created_by, channel
			FROM grants, n WHERE audience & 7 <> ` + fmt.Sprint(int(snap.KindMembers)) + ` OR i % 4 = 0`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	s.Cloud = c
	return s
}

// copyID is the ID of copy i, which scale made.
func copyID(i int) string { return fmt.Sprintf("snap_%016d", i) }

// counted counts requests, and the bytes of their responses.
func (s *scaled) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Store(s.requests.Add(1), r)
		next.ServeHTTP(&counter{w, &s.bytes}, r)
	})
}

type counter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// paid is a page and its cost when nothing was cached.
type paid struct {
	answer
	requests, bytes int64
}

func (s *scaled) ask(u *ui, path string) paid {
	u.t.Helper()
	u.Server.cloud.forget()
	requests, bytes := s.requests.Load(), s.bytes.Load()
	a := u.get(path)
	u.must(a, http.StatusOK)
	return paid{a, s.requests.Load() - requests, s.bytes.Load() - bytes}
}

// shownRows returns the IDs of a page's rows.
func shownRows(body string) (ids []string) {
	for _, piece := range strings.Split(body, `<tr id="`)[1:] {
		ids = append(ids, piece[:strings.Index(piece, `"`)])
	}
	return ids
}

// deepPage is the number of pages before the deep page.
const deepPage = 3

// scalePages are the pages whose cost must not depend on the rows that they do not show.
var scalePages = []struct {
	name, path string
	deep       int // number of pages before it
}{
	{"first", "/snapshots", 0},
	{"deep", "/snapshots", deepPage},
	{"shared", "/snapshots?show=shared", 0},
	{"searched", "/snapshots?q=sho", 0},
	{"by-name", "/snapshots?sort=name", 0},
	{"mine", "/snapshots?only=mine", deepPage},
	{"mine-shared", "/snapshots?only=mine&show=shared", 0},
	{"owner", "/snapshots?owner=mi", 0},
	{"days", "/snapshots?from=2020-01-01", deepPage},
}

// TestPagesAmongMany: the pages of 2,200 snapshots make as many requests to the service as those of
// 1,100, for at most 10% more bytes. A deep page and sorted pages show exactly the right rows.
func TestPagesAmongMany(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	few, many := scale(t, 1_100, 20), scale(t, 2_200, 20)
	fewUI, manyUI := openUI(t, few.As("mia@acme.test"), ""), openUI(t, many.As("mia@acme.test"), "")
	for _, page := range scalePages {
		a := few.ask(fewUI, deep(fewUI, page.path, page.deep))
		b := many.ask(manyUI, deep(manyUI, page.path, page.deep))
		if rows := len(shownRows(b.Body)); rows != pageSize || rows != len(shownRows(a.Body)) {
			t.Errorf("%s: %d rows of 2,200, %d of 1,100", page.name, rows, len(shownRows(a.Body)))
		}
		if b.requests != a.requests || 10*b.bytes > 11*a.bytes {
			t.Errorf("%s: %d requests and %d bytes at 2,200, %d and %d at 1,100", page.name, b.requests, b.bytes,
				a.requests,
				a.bytes)
		}
	}
	for _, page := range rowPages() {
		a := manyUI.get(deep(manyUI, page.path, page.deep))
		if got := shownRows(a.Body); !slices.Equal(got, page.want) {
			t.Errorf("%s shows %v, want %v", page.path, got, page.want)
		}
		if !strings.Contains(a.Body, "of 2200</span>") && !strings.Contains(a.Body, "of 550</span>") {
			t.Errorf("%s does not count exactly", page.path)
		}
		told := strings.Contains(a.Body, "newest 1,000 snapshots are sorted;")
		if told != strings.Contains(page.path, "sort=") {
			t.Errorf("%s: the hint that only the newest are sorted is wrong", page.path)
		}
	}
}

// rowsOf is a page, and the rows it must show.
type rowsOf struct {
	path string
	deep int
	want []string
}

func rowPages() []rowsOf {
	var onward, shared, backward, named, numbers []string
	for i := range pageSize {
		onward, backward = append(onward, copyID(deepPage*pageSize+i)), append(backward, copyID(collectLimit-1-i))
		shared = append(shared, copyID(4*(pageSize+i)))
	}
	for i := 1; i < collectLimit; i++ {
		numbers = append(numbers, fmt.Sprint(i))
	}
	slices.Sort(numbers) // as the names that end in them
	for _, i := range numbers[:pageSize] {
		named = append(named, fmt.Sprintf("snap_%016s", i))
	}
	return []rowsOf{{"/snapshots", deepPage, onward}, {"/snapshots?sort=oldest", 0, backward},
		{"/snapshots?sort=name", 0, named}, {"/snapshots?only=mine", deepPage, onward},
		{"/snapshots?owner=mia@acme.test", deepPage, onward},
		{"/snapshots?from=2020-01-01&to=" + time.Now().AddDate(0, 0, 2).Format(time.DateOnly), deepPage, onward},
		{"/snapshots?only=mine&show=shared&owner=M", 1, shared}}
}

// TestFilteredAmongMany: filtered lists of many snapshots are counted exactly and paged to the end.
// Local snapshots whose copies are on later pages are counted once.
func TestFilteredAmongMany(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := scale(t, 1_204, 2)
	u := openUI(t, c.As("mia@acme.test"), "targets:\n  here: {source: \"sqlite:///tmp/x.db\"}\n")
	for i, id := range []string{"", copyID(1_100), copyID(1_200), "snap_aaaaaaaaaaaaaaaa"} {
		record(t, u, local.Snapshot{Target: "here", Name: fmt.Sprintf("here-%d", i), Type: snap.TypeSnapshot,
			Engine: snap.SQLite, Size: 1, SHA256: fmt.Sprintf("%064x", 0xa000+i), Cloud: map[string]string{c.URL: id},
			Created: time.Now().Add(-time.Hour), From: local.Provenance{Origin: local.Mine}})
	}
	u.must(u.get("/"), http.StatusOK, `<dt>Built here</dt><dd><a href="/local/here-`)
	page := u.get("/snapshots?only=mine&owner=mia")
	u.must(page, http.StatusOK, "1 to 50 of 1206</span>")
	for filter, want := range map[string]string{"All": "1206", "Local": "4", "Cloud": "1204", "Shared": "301"} {
		if got := countOf(page.Body, filter); got != want {
			t.Errorf("%s has %s, want %s", filter, got, want)
		}
	}
	for path, want := range map[string]int{"/snapshots?only=mine": 1_206, "/snapshots?only=mine&show=shared": 301,
		"/snapshots?owner=mia&show=cloud&from=2020-01-01": 1_204, "/snapshots?only=received": 0,
		"/snapshots?only=mine&owner=alice": 0, "/snapshots?to=2020-01-01": 0} {
		seen := map[string]bool{}
		for next := path; next != ""; {
			page := u.get(next)
			u.must(page, http.StatusOK)
			rows := shownRows(page.Body)
			if len(rows) > 0 && !strings.Contains(page.Body, fmt.Sprintf("%d to %d of %d</span>", len(seen)+1,
				len(seen)+len(rows), want)) {
				t.Errorf("%s does not say that it has %d rows after %d of %d", next, len(rows), len(seen), want)
			}
			for _, id := range rows {
				seen[id] = true
			}
			next = nextOf(page.Body)
		}
		if len(seen) != want {
			t.Errorf("%s has %d rows, want %d", path, len(seen), want)
		}
	}
}

// TestSharingAmongManyGroups: the Sharing dialog shows a fixed number of groups
// with a fixed number of requests, however many groups there are; the search
// finds the others.
func TestSharingAmongManyGroups(t *testing.T) {
	t.Parallel()
	few, many := scale(t, 2, 60), scale(t, 2, 2_000)
	fewUI, manyUI := openUI(t, few.As("alice@acme.test"), ""), openUI(t, many.As("alice@acme.test"), "")
	path := "/cloud/" + copyID(1) + "/sharing"
	a, b := few.ask(fewUI, path), many.ask(manyUI, path)
	if shown := strings.Count(b.Body, `id="gs-`); shown != look.GroupsShown {
		t.Errorf("%d groups are shown, want %d", shown, look.GroupsShown)
	}
	manyUI.must(b.answer, http.StatusOK, "more; search to find them")
	if b.requests != a.requests || 10*len(b.Body) > 11*len(a.Body) {
		t.Errorf("%d requests for %d bytes with 2,000 groups, %d for %d with 60", b.requests, len(b.Body), a.requests,
			len(a.Body))
	}
	t.Run("browser", func(t *testing.T) { shareWithOneOfMany(t, manyUI) })
}

// shareWithOneOfMany finds a group in the dialog and shares with it, in a real
// browser.
func shareWithOneOfMany(t *testing.T, u *ui) {
	b := browse(t, u)
	b.click(".also")
	b.until(`document.querySelector("#dialog").open`)
	b.until(fmt.Sprintf(`document.querySelectorAll("#group-list li").length === %d`, look.GroupsShown))
	b.run(chromedp.Evaluate[chromedp.Void](typedBeforeResponse("#group", "team-0007")))
	b.until(`document.querySelectorAll("#group-list li").length === 1`)
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#group").value = ""`))
	b.keys("#group", "team-0019")
	b.until(`document.querySelector("#gs-team-0019") && document.querySelectorAll("#group-list li").length === 1`)
	b.click("#gs-team-0019")
	b.until(`document.querySelector("#gs-team-0019").getAttribute("aria-checked") === "true" && ` +
		`document.querySelector(".also").textContent.includes("team-0019")`)
	b.open("/cloud/" + copyID(1) + "/sharing") // as a page of its own
	b.keys("#group", "team-1234")
	b.until(`document.querySelector("#gs-team-1234") && document.activeElement.id === "group" && ` +
		`location.search === ""`)
}

// typedBeforeResponse returns a script that types a text, after which the response to an earlier
// request immediately replaces the form. The clone keeps the text, as the page does.
func typedBeforeResponse(selector, text string) string {
	return fmt.Sprintf(`{
		const input = document.querySelector(%q), form = input.form;
		input.value = %q;
		input.dispatchEvent(new Event("input", {bubbles: true}));
		form.replaceWith(form.cloneNode(true));
	}`, selector, text)
}

// BenchmarkPagesAmongMany compares pages at 100,000 snapshots with those at
// 1,000, over real HTTP and turn by turn.
func BenchmarkPagesAmongMany(b *testing.B) {
	few, many := openUI(b, scale(b, 1_000, 20).As("mia@acme.test"), ""),
		openUI(b, scale(b, 100_000, 20).As("mia@acme.test"), "")
	for _, page := range scalePages {
		small, large := deep(few, page.path, page.deep), deep(many, page.path, page.deep)
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				atFew, atMany := median(few, small, many, large)
				b.ReportMetric(float64(atMany)/float64(atFew), "of-1000")
			}
		})
	}
}

// BenchmarkPagesAndTheirCalls compares a page of the web UI with the requests to the service that
// it needs, sent one after the other and parsed. A ratio below 1 is possible because a page sends
// several at a time.
func BenchmarkPagesAndTheirCalls(b *testing.B) {
	s := scale(b, 1_000, 20)
	u := openUI(b, s.As("mia@acme.test"), "")
	for _, path := range []string{"/", "/snapshots", "/snapshots?show=shared", "/snapshots?q=sho",
		"/cloud/" + copyID(4), "/cloud/" + copyID(4) + "/sharing"} {
		before := s.requests.Load()
		s.ask(u, path)
		var calls []*http.Request
		for i := before + 1; i <= s.requests.Load(); i++ {
			r, _ := s.calls.Load(i)
			calls = append(calls, r.(*http.Request))
		}
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				var page, alone []time.Duration
				for range 15 {
					start := time.Now()
					s.ask(u, path)
					page = append(page, time.Since(start))
					start = time.Now()
					for _, call := range calls {
						s.repeat(b, call)
					}
					alone = append(alone, time.Since(start))
				}
				slices.Sort(page)
				slices.Sort(alone)
				b.ReportMetric(float64(len(calls)), "calls")
				b.ReportMetric(float64(page[7])/float64(alone[7]), "page/calls")
			}
		})
	}
}

// repeat sends a request of the web UI to the service again.
func (s *scaled) repeat(b *testing.B, call *http.Request) {
	b.Helper()
	if call.Method != http.MethodGet {
		b.Fatalf("a page sends %s %s", call.Method, call.URL)
	}
	r, err := http.NewRequestWithContext(b.Context(), call.Method, s.URL+call.URL.RequestURI(), nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header = call.Header.Clone()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var answer any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d, %v", call.URL, res.StatusCode, err)
	}
}

// BenchmarkSharingAmongManyGroups compares how long a browser takes for the Sharing dialog with
// 2,000 groups and with 20.
func BenchmarkSharingAmongManyGroups(b *testing.B) {
	few, many := scale(b, 1_000, 20), scale(b, 1_000, 2_000)
	for b.Loop() {
		a, c := openingDialog(b, few), openingDialog(b, many)
		for i, what := range []string{"page", "dialog", "search"} {
			b.ReportMetric(c[i]/a[i], what+"/of-20")
		}
	}
}

// openingDialog returns the milliseconds until the page is loaded, the dialog
// is open, and a group is found in it.
func openingDialog(t testing.TB, c *scaled) [3]float64 {
	b := browse(t, openUI(t, c.As("alice@acme.test"), ""))
	return [3]float64{
		eval[float64](b, `performance.getEntriesByType("navigation")[0].loadEventEnd`),
		b.took(`document.querySelector(".also").click()`, `document.querySelector("#dialog").open`),
		b.took(`(q => { q.value = "team-0019"; q.dispatchEvent(new Event("input", { bubbles: true })) }`+
			`)(document.querySelector("#group"))`,
			`document.querySelectorAll("#group-list li").length === 1`),
	}
}

// took runs a script and returns how many milliseconds the page took until
// the condition was met.
func (b *tab) took(script, condition string) float64 {
	b.t.Helper()
	took, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](`new Promise((done) => {
		const start = performance.now();
		const look = () => { if (`+condition+`) { done(performance.now() - start); `+
		`} else { requestAnimationFrame(look); } };
		`+script+`;
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return took
}

// deep returns the address of the page that is the given number of pages after path.
func deep(u *ui, path string, pages int) string {
	u.t.Helper()
	for range pages {
		if path = nextOf(u.get(path).Body); path == "" {
			u.t.Fatal("there are no more pages")
		}
	}
	return path
}

// median requests two pages in turns, with nothing cached, and returns the median time of each.
func median(a *ui, pathA string, b *ui, pathB string) (time.Duration, time.Duration) {
	var took [2][]time.Duration
	for range 9 {
		for i, u := range []*ui{a, b} {
			u.Server.cloud.forget()
			start := time.Now()
			if page := u.get([]string{pathA, pathB}[i]); page.Status != http.StatusOK {
				u.t.Fatal(page.Status)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return took[0][4], took[1][4]
}
