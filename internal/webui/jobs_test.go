package webui

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/local"
	"snap/internal/sample"
)

// shopConfig returns a configuration with a target "shop": a small sample
// database, and where to load it.
func shopConfig(t *testing.T) (config, source, destination string) {
	t.Helper()
	dir := t.TempDir()
	source, destination = filepath.Join(dir, "shop.db"), filepath.Join(dir, "shop_dev.db")
	if _, err := sample.Write(t.Context(), source,
		sample.Options{Customers: 50, Products: 10, Staff: 3, Orders: 60}); err != nil {
		t.Fatal(err)
	}
	sqliteFile(t, destination)
	return "targets:\n  shop:\n    source: sqlite://" + source + "\n    destination: sqlite://" + destination +
		"\n", source, destination
}

// stream is an open event stream.
type stream struct {
	t     testing.TB
	lines *bufio.Scanner
	seen  strings.Builder
}

func (u *ui) listen() *stream {
	u.t.Helper()
	ctx, stop := context.WithCancel(u.t.Context())
	u.t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL+"/events", nil)
	if err != nil {
		u.t.Fatal(err)
	}
	res, err := u.http.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { res.Body.Close() })
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" || res.StatusCode != http.StatusOK {
		u.t.Fatalf("events answered %d %s", res.StatusCode, kind)
	}
	return &stream{t: u.t, lines: bufio.NewScanner(res.Body)}
}

// ended reads until a job ended and returns the events.
func (s *stream) ended() string {
	s.t.Helper()
	s.seen.Reset()
	for s.lines.Scan() {
		s.seen.WriteString(s.lines.Text() + "\n")
		if s.lines.Text() == "event: listing" {
			return s.seen.String()
		}
	}
	s.t.Fatalf("the stream ended: %v\n%s", s.lines.Err(), s.seen.String())
	return ""
}

// The whole workflow in the web UI: build, push, share, pull as a colleague, load; the list shows
// local, synced and cloud.
func TestBuildPushPullLoad(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	config, source, _ := shopConfig(t)
	u := openUI(t, c.As("mia@acme.test"), config)
	events := u.listen()
	u.must(u.get("/targets"), http.StatusOK, "shop", "Build", "no snapshots")
	u.must(u.post("/targets/shop/build", url.Values{}, "Fragment", "1"), http.StatusAccepted,
		"Build a snapshot of shop")
	if sent := events.ended(); !strings.Contains(sent, "built shop-") {
		t.Fatalf("the build:\n%s", sent)
	}
	here, err := u.Agent.Snapshots("shop")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	name := here[0].Name
	list := u.get("/snapshots")
	u.must(list, http.StatusOK, ">local</span>", "/local/"+name+"/push", "/local/"+name+"/load")
	if got := countOf(list.Body, "Local"); got != "1" {
		t.Errorf("Local counts %q", got)
	}

	u.post("/local/"+name+"/push", url.Values{}, "Fragment", "1")
	if sent := events.ended(); !strings.Contains(sent, "private, unless a channel shares it") {
		t.Fatalf("the push:\n%s", sent)
	}
	list = u.get("/snapshots")
	u.must(list, http.StatusOK, ">synced</span>", "Private")
	if n := strings.Count(list.Body, "<tr id="); n != 1 || countOf(list.Body, "All") != "1" {
		t.Errorf("%d rows, All counts %q; want one row that is both", n, countOf(list.Body, "All"))
	}
	for _, show := range []string{"local", "cloud"} {
		u.must(u.get("/snapshots?show="+show), http.StatusOK, ">synced</span>", name)
	}
	here, _ = u.Agent.Snapshots("shop")
	id := here[0].Cloud[c.URL]
	u.post("/cloud/"+id+"/share", url.Values{"shared": {"true"}})

	_, _, destination := shopConfig(t)
	colleague := openUI(t, c.As("max@acme.test"), "targets:\n  shop:\n    destination: sqlite://"+destination+"\n")
	theirs := colleague.listen()
	colleague.must(colleague.get("/snapshots"), http.StatusOK, ">cloud</span>", "/cloud/"+id+"/pull")
	colleague.post("/cloud/"+id+"/pull", url.Values{}, "Fragment", "1")
	if sent := theirs.ended(); !strings.Contains(sent, "pulled,") || !strings.Contains(sent, "/local/"+name+"/load") {
		t.Fatalf("the pull:\n%s", sent)
	}
	colleague.must(colleague.get("/snapshots"), http.StatusOK, ">synced</span>", "ours (acme)")
	colleague.must(colleague.get("/local/"+name+"/load"), http.StatusOK, "shop_dev.db", "<dd>ours (acme)</dd>",
		"To continue, type the name")
	colleague.must(colleague.post("/local/"+name+"/load", url.Values{"database": {"shop"}}, "Fragment", "1"),
		http.StatusBadRequest, "not that of the database")
	colleague.must(colleague.post("/local/"+name+"/load", url.Values{"database": {"shop_dev.db"}}, "Fragment", "1"),
		http.StatusAccepted)
	if sent := theirs.ended(); !strings.Contains(sent, "tables into shop_dev.db") {
		t.Fatalf("the load:\n%s", sent)
	}
	sameData(t, source, destination)
}

func sameData(t *testing.T, one, other string) {
	t.Helper()
	a, err := sample.Fingerprint(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sample.Fingerprint(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d tables, %d tables", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("table %v differs: %v", a[i], b[i])
		}
	}
}

// A pull of a target that is not here creates it first (SPEC 4.4).
func TestPullCreatesTheTarget(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	config, _, _ := shopConfig(t)
	mia := openUI(t, c.As("mia@acme.test"), config)
	events := mia.listen()
	mia.post("/targets/shop/build", url.Values{})
	events.ended()
	here, _ := mia.Agent.Snapshots("shop")
	mia.post("/local/"+here[0].Name+"/push", url.Values{})
	events.ended()
	here, _ = mia.Agent.Snapshots("shop")
	id := here[0].Cloud[c.URL]

	admin := openUI(t, c.As("alice@acme.test"), "")
	theirs := admin.listen()
	plain := admin.post("/cloud/"+id+"/pull", url.Values{})
	if plain.URL.Path != "/jobs" {
		t.Errorf("without JavaScript a pull leads to %s", plain.URL)
	}
	if sent := theirs.ended(); !strings.Contains(sent, "the target shop was created") {
		t.Errorf("the pull:\n%s", sent)
	}
	if _, err := admin.Agent.Target("shop"); err != nil {
		t.Error(err)
	}
	admin.must(admin.get("/jobs"), http.StatusOK, "Pull "+here[0].Name, "started", "Log")

	admin.must(admin.get("/local/"+here[0].Name+"/delete"), http.StatusOK, "from this machine?",
		"copy in the cloud stays")
	admin.must(admin.post("/local/"+here[0].Name+"/delete", url.Values{}, "Fragment", "1"), http.StatusOK,
		"data-refresh")
	admin.must(admin.get("/cloud/"+id+"/delete"), http.StatusOK, "from the cloud?")
	mia.must(mia.get("/local/"+here[0].Name+"/delete"), http.StatusOK, "copy in the cloud stays")
	admin.must(admin.post("/cloud/"+id+"/delete", url.Values{}), http.StatusOK, "No snapshots yet")
	mia.must(mia.get("/local/"+here[0].Name+"/delete"), http.StatusOK, "the only known copy")
}

func TestAJobThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "targets:\n  shop: {source: \"sqlite:///nowhere/at/all.db\"}\n")
	events := u.listen()
	u.post("/targets/shop/build", url.Values{}, "Fragment", "1")
	if sent := events.ended(); !strings.Contains(sent, `class="job failed"`) || !strings.Contains(sent, "state bad") {
		t.Errorf("sent:\n%s", sent)
	}
	u.must(u.post("/targets/nothing/build", url.Values{}, "Fragment", "1"), http.StatusNotFound, "Not found")
	u.must(u.post("/jobs/77/cancel", url.Values{}, "Fragment", "1"), http.StatusNotFound, "There is no job 77.")
	u.must(u.post("/jobs/first/cancel", url.Values{}, "Fragment", "1"), http.StatusNotFound,
		"There is no job &#34;first&#34;.")
}

// A page shows a running job. The job can be canceled, and does not run twice at once.
func TestJobs(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "")
	js := u.Server.jobs
	begun, finish := make(chan bool), make(chan bool)
	run := func(ctx context.Context, p local.Progress) (outcome, error) {
		p(local.Event{Phase: "dump", Done: 5, Total: 10, Detail: "<orders>"})
		begun <- true
		select {
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		case <-finish:
			return outcome{text: "finished"}, nil
		}
	}
	events := u.listen()
	if _, err := js.start(task{kind: "build", target: "shop", title: "Build one", run: run}); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := js.start(task{kind: "build", target: "shop", title: "Build one",
		run: run}); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("the same again: %v", err)
	}
	page := u.get("/snapshots")
	u.must(page, http.StatusOK, `value="50" max="100"`, `<b class="count">1</b>`)
	u.must(u.get("/jobs"), http.StatusOK, "dump: &lt;orders&gt;")
	finish <- true
	if sent := events.ended(); !strings.Contains(sent, "finished") {
		t.Errorf("sent:\n%s", sent)
	}
	u.post("/jobs/1/dismiss", url.Values{}, "Fragment", "1")
	if left := u.Server.dock(); len(left) != 0 {
		t.Errorf("%d jobs left after the dismissal", len(left))
	}
	id, err := js.start(task{kind: "build", target: "shop", title: "Build one", run: run})
	if err != nil || id != 2 {
		t.Fatalf("job %d, %v", id, err)
	}
	<-begun
	u.must(u.post("/jobs/2/cancel", url.Values{}), http.StatusOK)
	if sent := events.ended(); !strings.Contains(sent, "Canceled") {
		t.Errorf("sent:\n%s", sent)
	}
}

func TestOldJobsAreForgotten(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	js := u.Server.jobs
	for i := range keptJobs + 5 {
		if _, err := js.start(task{kind: "build", title: "Build " + string(rune('a'+i)),
			run: func(context.Context, local.Progress) (outcome, error) {
				return outcome{}, errors.New("no")
			}}); err != nil {
			t.Fatal(err)
		}
		js.wait.Wait()
	}
	if n := len(js.list(func(*job) bool { return true })); n != keptJobs {
		t.Errorf("%d jobs kept", n)
	}
}

func TestDatabaseName(t *testing.T) {
	t.Parallel()
	for destination, want := range map[string]string{
		"postgres://u@h:5432/shop_dev": "shop_dev",
		"mysql://h/shop":               "shop",
		"sqlite:///tmp/a b.db":         "a b.db",
		"sqlite:dev.db":                "dev.db",
	} {
		if got := databaseName(destination); got != want {
			t.Errorf("%s: %q, want %q", destination, got, want)
		}
	}
}

// Jobs that run when the process ends are offered again by exactly one later process. Jobs of a
// running process are not offered.
func TestJobsAreOfferedAgain(t *testing.T) {
	t.Parallel()
	config, _, _ := shopConfig(t)
	u := openUI(t, nil, config)
	begun := make(chan bool)
	if _, err := u.Server.jobs.start(task{kind: "build", target: "shop", title: "Build a snapshot of shop",
		again: "/targets/shop/build", run: func(ctx context.Context, _ local.Progress) (outcome, error) {
			close(begun)
			<-ctx.Done()
			return outcome{}, ctx.Err()
		}}); err != nil {
		t.Fatal(err)
	}
	<-begun
	next := func() *ui {
		s, err := New(u.Server.o)
		if err != nil {
			t.Fatal(err)
		}
		return serveUI(t, s)
	}
	beside := next()
	beside.mustNot(beside.get("/jobs"), "Build a snapshot of shop")
	u.Server.jobs.stop()
	after := next()
	after.must(after.get("/snapshots"), http.StatusOK, "Interrupted when", "Start again")
	after.mustNot(after.get("/jobs"), ", took")
	again := next()
	again.mustNot(again.get("/jobs"), "Build a snapshot of shop")
	events := after.listen()
	after.must(after.post("/targets/shop/build", url.Values{}, "Fragment", "1"), http.StatusAccepted)
	if sent := events.ended(); !strings.Contains(sent, "built shop-") {
		t.Errorf("sent:\n%s", sent)
	}
	after.mustNot(after.get("/snapshots"), "Interrupted when")
}

// TestLoadIntoNothing: a load that replaces nothing needs no name. If a database appears before the
// load begins, it is not replaced.
func TestLoadIntoNothing(t *testing.T) {
	t.Parallel()
	config, source, destination := shopConfig(t)
	if err := os.Remove(destination); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, nil, config)
	s, err := u.Agent.Build(t.Context(), "shop", local.BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	page := u.get("/local/" + s.Name + "/load")
	u.must(page, http.StatusOK, "it will be created", `id="load-now" autofocus`)
	u.mustNot(page, "To continue, type")
	heard := u.listen()
	u.must(u.post("/local/"+s.Name+"/load", nil, "Fragment", "1"), http.StatusAccepted)
	if sent := heard.ended(); !strings.Contains(sent, "tables into shop_dev.db") {
		t.Fatalf("the load:\n%s", sent)
	}
	sameData(t, source, destination)
	u.must(u.post("/local/"+s.Name+"/load", nil, "Fragment", "1"), http.StatusBadRequest, "not that of the database")

	// A database that appears after the load began is not replaced either, unless its name was
	// typed.
	if err := os.Remove(destination); err != nil {
		t.Fatal(err)
	}
	flight, err := u.Agent.Preflight(t.Context(), "shop", local.LoadOptions{Snapshot: s.Name})
	if err != nil {
		t.Fatal(err)
	}
	meanwhile := func(e local.Event) {
		if e.Phase == "swap" {
			if err := os.Link(source, destination); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = u.Agent.Load(t.Context(), "shop", confirmedBy("", flight), meanwhile)
	if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "has content now") {
		t.Errorf("over a new database: %v", err)
	}
	if err := os.Remove(destination); err != nil {
		t.Fatal(err)
	}
	if _, err = u.Agent.Load(t.Context(), "shop", confirmedBy("shop_dev.db", flight), meanwhile); err != nil {
		t.Errorf("over a database whose name was typed: %v", err)
	}
}
