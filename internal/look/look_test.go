package look

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
	"time"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestAssetsAreServedUnderTheirHashForEver(t *testing.T) {
	t.Parallel()
	a := NewAssets("/assets/", Files(), fstest.MapFS{
		"a.js": {Data: []byte(`import { b } from "./b.js"; b();`)},
		"b.js": {Data: []byte(`export function b() {}`)},
	})
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, a.URL("a.js"), nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Fatalf("status %d, Cache-Control %q", w.Code, w.Header().Get("Cache-Control"))
	}
	imported := strings.TrimPrefix(a.URL("b.js"), "/assets/")
	if want := `from "./` + imported + `"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("module %q does not import the hashed name %q", w.Body.String(), want)
	}
	if kind := w.Header().Get("Content-Type"); !strings.Contains(kind, "javascript") {
		t.Errorf("module served as %q", kind)
	}
	plain, r := w.Body.String(), httptest.NewRequest(http.MethodGet, a.URL("a.js"), nil)
	r.Header.Set("Accept-Encoding", "gzip, br")
	w = httptest.NewRecorder()
	a.ServeHTTP(w, r)
	zipped, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v, %v", w.Header(), err)
	}
	if text, err := io.ReadAll(zipped); err != nil || string(text) != plain {
		t.Errorf("the compressed module is %q, %v", text, err)
	}
	w = httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/assets/look.css", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("a name without hash answered %d", w.Code)
	}
}

func TestAHashChangesWithWhatAModuleImports(t *testing.T) {
	t.Parallel()
	urlOf := func(imported string) string {
		return NewAssets("/", fstest.MapFS{
			"a.js": {Data: []byte(`import "./b.js";`)},
			"b.js": {Data: []byte(imported)},
		}).URL("a.js")
	}
	if urlOf("1") == urlOf("2") {
		t.Error("the importing module kept its name although the imported one changed")
	}
}

func TestSecureForbidsInlineAndFraming(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Secure(http.NotFoundHandler(), "https://idp.example").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
		"form-action 'self' https://idp.example"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q allows something unsafe", policy)
	}
}

func TestPageEscapesAndFillsTheParts(t *testing.T) {
	t.Parallel()
	a := NewAssets("/assets/", Files())
	now := at("2026-11-21T10:00:00Z")
	v, err := Parse(a, func() time.Time { return now }, fstest.MapFS{
		"p/_hello.html": {Data: []byte(`{{define "hello"}}<p>{{.}}</p>{{end}}`)},
		"p/one.html":    {Data: []byte(`{{define "main"}}{{template "hello" .Title}}{{template "time" .At}}{{end}}`)},
		"p/two.html":    {Data: []byte(`{{define "main"}}two{{end}}`)},
	}, "p/*.html")
	if err != nil {
		t.Fatal(err)
	}
	data := struct {
		Page
		At time.Time
	}{Page{Title: "<script>", Product: "x", Nav: []Link{{URL: "/a", Text: "A", Icon: "cloud", Current: true, Count: 2}},
		Who: "mia"}, now.Add(-time.Hour)}
	w := httptest.NewRecorder()
	if err := v.Page(w, http.StatusTeapot, "one.html", data); err != nil {
		t.Fatal(err)
	}
	body := w.Body.String()
	for _, want := range []string{"<p>&lt;script&gt;</p>",
		`aria-current="page"`, "1 hour ago", a.URL("look.css"), "mia"} {
		if !strings.Contains(body, want) {
			t.Errorf("page lacks %q:\n%s", want, body)
		}
	}
	if w.Code != http.StatusTeapot || strings.Contains(body, "two") {
		t.Errorf("status %d, body %s", w.Code, body)
	}
}

func TestPageWritesNothingWhenATemplateFails(t *testing.T) {
	t.Parallel()
	v, err := Parse(NewAssets("/", Files()), time.Now,
		fstest.MapFS{"bad.html": {Data: []byte(`{{define "main"}}{{.Fail}}{{end}}`)}}, "*.html")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := v.Page(w, http.StatusOK, "bad.html", failing{}); err == nil {
		t.Error("a failing template gave no error")
	}
	if w.Body.Len() > 0 {
		t.Errorf("half a page was written: %s", w.Body)
	}
}

type failing struct{ Page }

func (failing) Fail() (string, error) { return "", errors.New("failed") }

// Times are shown in the clock's zone, each with its distance from now.
func TestTimes(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("JST", 9*60*60)
	now := func() time.Time { return at("2026-11-21T10:00:00Z").In(tokyo) }
	v, err := Parse(NewAssets("/", Files()), now,
		fstest.MapFS{"one.html": {Data: []byte(`{{define "main"}}{{template "time" .}}` +
			`|{{template "ending" .}}|{{since .}}{{end}}`)}}, "*.html")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"2026-11-20T09:59:50Z": {"20 Nov 2026, 18:59 JST", "(1 day ago)", "ended"},
		"2026-11-21T09:59:55Z": {"21 Nov 2026, 18:59 JST", "(5 seconds ago)"},
		"2026-11-22T22:00:00Z": {"23 Nov 2026, 07:00 JST", "(in 1 day 12 hours)", "ends in 1 day 12 hours",
			`title="23 Nov 2026, 07:00 JST">in 2 days<`},
	} {
		var b strings.Builder
		if err := v.Write(&b, "one.html", "main", at(text)); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s lacks %q:\n%s", text, w, b.String())
			}
		}
	}
}

func TestEveryIconIsDrawn(t *testing.T) {
	t.Parallel()
	icon := iconFunc()
	for name := range icons() {
		if !strings.Contains(string(icon(name)), "<path") && name != "more" && name != "target" {
			t.Errorf("icon %s is empty", name)
		}
	}
}

// TestEveryPageIsATemplate parses and escapes every page of every program. A process does so only
// when it first shows the page.
func TestEveryPageIsATemplate(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../*/pages")
	if err != nil || len(folders) < 3 {
		t.Fatalf("%v, %v", folders, err)
	}
	for _, folder := range folders {
		assets := NewAssets("/", Files(), os.DirFS(filepath.Join(filepath.Dir(folder), "assets")))
		v, err := Parse(assets, time.Now, os.DirFS(folder), "*.html")
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		for _, name := range v.Names() {
			err := v.Write(io.Discard, name, "base", nil)
			if late := (template.ExecError{}); err != nil && !errors.As(err, &late) { // not for lack of data
				t.Errorf("%s: %v", filepath.Join(folder, name), err)
			}
		}
	}
}

func TestProse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        "",
		"no such <b>snapshot</b>": "No such &lt;b&gt;snapshot&lt;/b&gt;.",
		"run `snapcli login`":     "Run <code>snapcli login</code>.",
		"cloud.url is not set":    "cloud.url is not set.",
		"is it there?":            "Is it there?",
		"`a <b> c` is wrong":      "<code>a &lt;b&gt; c</code> is wrong.",
	} {
		if got := string(prose(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
