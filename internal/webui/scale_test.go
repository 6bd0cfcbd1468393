package webui

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"snap"
	service "snap/internal/cloud"
	"snap/internal/cloudtest"
)

// scaled starts a service where mia has n snapshots a second apart, every tenth
// of them shared org-wide, and alice is in that many groups. The rows are
// copies of one real push, made in the database.
func scaled(t testing.TB, n, groups int) *cloudtest.Cloud {
	t.Helper()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *service.Config) {
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
	db, err := sql.Open("sqlite", "file:"+filepath.Join(c.Config.DataDir, "snapcloud.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	many := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", n-1)
	for _, statement := range []string{
		`INSERT INTO snapshots ` + many + `SELECT key - i * (1000 << 22), printf('snap_%016d', i), org_id, owner_id, pushed_with, target_id, target,
			target || '-' || i, folded || '-' || i, type, engine, size, printf('%064d', i), 'blob-' || i, widened, created_at - i * 1000 FROM snapshots, n`,
		`INSERT INTO grants(audience, snapshot, target_id, type, expires_at, created_at, created_by, channel) ` + many + `SELECT audience, snapshot - i * (1000 << 22), target_id, type, expires_at, created_at, created_by, channel
			FROM grants, n WHERE audience & 7 <> ` + fmt.Sprint(int(snap.KindMembers)) + ` OR i % 10 = 0`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return c
}

// TestPagesStayQuick holds the pages at 100,000 snapshots against those at
// 1,000, over real HTTP and turn by turn in one run: neither the first page nor
// one deep inside costs more for what it does not show.
func TestPagesStayQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some seconds: not with -short")
	}
	few, many := openUI(t, scaled(t, 1_000, 20).As("mia@acme.test"), ""), openUI(t, scaled(t, 100_000, 20).As("mia@acme.test"), "")
	many.must(many.get("/snapshots?sort=oldest"), http.StatusOK, "Only the newest 1,000 are in this order")
	few.mustNot(few.get("/snapshots?sort=oldest"), "sorted-only")
	for _, page := range []struct {
		name, path string
		deep       int
		most       float64
	}{
		{"first", "/snapshots", 0, 4},
		{"deep", "/snapshots", 15, 4},
		{"shared", "/snapshots?show=shared", 0, 4},
		{"searched", "/snapshots?q=sho", 0, 4},
		{"by name", "/snapshots?sort=name", 0, 4},
	} {
		small, large := deep(few, page.path, page.deep), deep(many, page.path, page.deep)
		a, b := quickest(few, small, many, large)
		t.Logf("%-8s %6.1f ms at 1,000, %6.1f ms at 100,000: ratio %.2f", page.name, a.Seconds()*1000, b.Seconds()*1000, float64(b)/float64(a))
		if float64(b) > page.most*float64(a) {
			t.Errorf("%s: %v at 100,000, %v at 1,000", page.name, b, a)
		}
	}
}

// TestBrowserSharingAmongManyGroups opens the Sharing dialog and searches in it
// in a real browser, with 2,000 groups and with 20.
func TestBrowserSharingAmongManyGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some seconds: not with -short")
	}
	var few, many [3]float64
	for groups, took := range map[int]*[3]float64{20: &few, 2_000: &many} {
		c := scaled(t, 1_000, groups)
		b := browse(t, openUI(t, c.As("alice@acme.test"), ""))
		took[0] = eval[float64](b, `performance.getEntriesByType("navigation")[0].loadEventEnd`)
		took[1] = b.within(`document.querySelector(".also").click()`, `document.querySelector("#dialog").open`)
		took[2] = b.within(`(q => { q.value = "team-0019"; q.dispatchEvent(new Event("input", { bubbles: true })) })(document.querySelector("#group"))`,
			`document.querySelectorAll("#group-list li").length === 1`)
		b.click("#gs-team-0019")
		b.until(`document.querySelector("#gs-team-0019").getAttribute("aria-checked") === "true"  && document.querySelector(".also").textContent.includes("1 group")`)
	}
	for i, what := range []string{"page loaded", "dialog open", "group found"} {
		t.Logf("%s: %.0f ms with 20 groups, %.0f ms with 2,000", what, few[i], many[i])
		if many[i] > 5*few[i]+100 {
			t.Errorf("%s takes %.0f ms with 2,000 groups, %.0f ms with 20", what, many[i], few[i])
		}
	}
}

// within runs a script and returns how many milliseconds the page took until
// the condition was met.
func (b *tab) within(script, condition string) float64 {
	b.t.Helper()
	took, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](`new Promise((done) => {
		const start = performance.now();
		const look = () => { if (`+condition+`) { done(performance.now() - start); } else { requestAnimationFrame(look); } };
		`+script+`;
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return took
}

// deep returns the address of a page that many pages on.
func deep(u *ui, path string, pages int) string {
	u.t.Helper()
	for range pages {
		if path = nextOf(u.get(path).Body); path == "" {
			u.t.Fatal("there are no more pages")
		}
	}
	return path
}

// quickest asks for two pages by turns, with no counts remembered, and returns
// the median of what each took.
func quickest(a *ui, pathA string, b *ui, pathB string) (time.Duration, time.Duration) {
	var took [2][]time.Duration
	for range 9 {
		for i, u := range []*ui{a, b} {
			u.Server.cloud.changed()
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
