package local

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// machine returns an agent with an empty configuration and no snapshots.
func machine(t testing.TB) *Agent {
	t.Helper()
	dir := t.TempDir()
	a, err := Open(Options{
		ConfigFile: filepath.Join(dir, "config.yaml"), DataDir: filepath.Join(dir, "data"),
		Env: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// made adds a snapshot file of a given size to the listing, as a build does.
func (a *Agent) made(t *testing.T, target string, typ snap.Type, at time.Time, size int) Snapshot {
	t.Helper()
	s := Snapshot{Target: target, Name: snap.SnapshotName(target, at), Type: typ, Engine: snap.SQLite, Created: at,
		From: Provenance{Origin: Mine}}
	path, err := a.snapshotFile(s.Target, s.Name)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, 1)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(at.Unix()), byte(size)}).Read(content)
	section, err := w.Section("database")
	if err == nil {
		_, err = section.Write(content)
	}
	if err == nil {
		err = section.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	sum, err := w.Close(archive.Manifest{Engine: s.Engine, Target: target, Name: s.Name, Type: typ, Created: at,
		Tables: []archive.Table{{Name: "t", Rows: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	s.SHA256, s.Size = sum.SHA256, sum.Size
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = a.adopt(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// SPEC 4.4: push and pull through a presigned URL; the target is created on
// the agent that does not have it.
func TestPushAndPull(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	const target = "größe 東京 shop"
	s := here.made(t, target, snap.TypeSnapshot, noon, 2<<20)

	var phases []string
	pushed, err := here.Push(t.Context(), client, target, PushOptions{},
		func(e Event) { phases = append(phases, e.Phase) })
	if err != nil || pushed.Name != s.Name || pushed.Moved != s.Size || pushed.Bytes != s.Size || pushed.Exists {
		t.Fatalf("push: %+v, %v", pushed, err)
	}
	if len(phases) == 0 || phases[0] != "push" {
		t.Errorf("the push told of %v", phases)
	}
	if s, err = here.Snapshot(s.Name); err != nil || s.Cloud[c.URL] != pushed.ID {
		t.Errorf("the local record has the cloud IDs %v, want %s (%v)", s.Cloud, pushed.ID, err)
	}
	pulled, err := there.Pull(t.Context(), client, target, PullOptions{SnapshotID: pushed.ID[:12]}, nil)
	if err != nil || !pulled.CreatedTarget || pulled.Here || pulled.Moved != s.Size || pulled.ID != pushed.ID {
		t.Fatalf("pull: %+v, %v", pulled, err)
	}
	if got := pulled.Snapshot; got.SHA256 != s.SHA256 || got.Name != s.Name || got.Cloud[c.URL] != pushed.ID ||
		len(got.Tables) != 1 {
		t.Errorf("the pulled snapshot is %+v", got)
	}
	intact(t, there, s.Name)
	if _, err := there.Target(target); err != nil {
		t.Errorf("the target was not created: %v", err)
	}
}

// An unchanged snapshot moves no bytes in either direction, and the commands report that.
func TestPushAndPullAgainMoveNothing(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	a := machine(t)
	s := a.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	first, err := a.Push(t.Context(), client, "shop", PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Push(t.Context(), client, "shop", PushOptions{Snapshot: s.Name}, nil)
	if err != nil || !again.Exists || again.Moved != 0 || again.ID != first.ID {
		t.Errorf("push again: %+v, %v", again, err)
	}
	pulled, err := a.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || !pulled.Here || pulled.Moved != 0 || pulled.Snapshot.Name != s.Name {
		t.Errorf("pull what is here: %+v, %v", pulled, err)
	}
}

// A local copy whose bytes have changed is not accepted as the snapshot.
func TestPullReplacesADamagedCopy(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	a := machine(t)
	s := a.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	if _, err := a.Push(t.Context(), client, "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	damaged, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	damaged[500] ^= 1
	if err := os.WriteFile(s.Path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Push(t.Context(), c.As("adam@acme.test"), "shop", PushOptions{},
		nil); snap.CodeOf(err) != snap.CodeCorrupt {
		t.Errorf("push of a damaged snapshot: %v, want corrupt_snapshot", err)
	}
	pulled, err := a.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || pulled.Here || pulled.Moved != s.Size || pulled.Snapshot.Name != s.Name {
		t.Fatalf("%+v, %v; want it fetched", pulled, err)
	}
	intact(t, a, s.Name)
}

// Two snapshots with the same name from different machines both stay.
func TestPullKeepsAnotherSnapshotOfTheName(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	mine := here.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	theirs := there.made(t, "shop", snap.TypeSnapshot, noon, 2000)
	if _, err := there.Push(t.Context(), client, "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	pulled, err := here.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || pulled.Snapshot.Name != theirs.Name+"-2" || pulled.Snapshot.SHA256 != theirs.SHA256 {
		t.Fatalf("%+v, %v", pulled, err)
	}
	if kept, err := here.Snapshot(mine.Name); err != nil || kept.SHA256 != mine.SHA256 {
		t.Errorf("the one that was here is %+v, %v", kept, err)
	}
}

// A pulled snapshot never has the name of another target's snapshot, because the name alone selects
// a local snapshot.
func TestPullKeepsNamesApart(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	mine := here.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	there.made(t, "shop", snap.TypeSnapshot, noon, 2000)
	if err := os.Rename(there.snapshotsDir("shop"), there.snapshotsDir("books")); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Push(t.Context(), client, "books", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, moved := range []bool{true, false} {
		pulled, err := here.Pull(t.Context(), client, "books", PullOptions{}, nil)
		if err != nil || pulled.Snapshot.Name != mine.Name+"-2" || pulled.Here == moved {
			t.Fatalf("%+v, %v", pulled, err)
		}
	}
	if kept, err := here.Snapshot(mine.Name); err != nil || kept.SHA256 != mine.SHA256 {
		t.Errorf("the one that was here is %+v, %v", kept, err)
	}
}

// A pull that was killed after the file got its name and before its record was
// written resumes by verifying the file.
func TestPullTakesUpAFileWithoutARecord(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	a := machine(t)
	s := a.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	if _, err := a.Push(t.Context(), client, "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(recordPath(s.Path)); err != nil {
		t.Fatal(err)
	}
	pulled, err := a.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || pulled.Moved != 0 || pulled.Snapshot.Name != s.Name {
		t.Fatalf("%+v, %v; want the file taken up", pulled, err)
	}
	if _, err := a.Snapshot(s.Name); err != nil {
		t.Error(err)
	}
}

// A file that is not a usable snapshot does not stay, so that a corrected snapshot can be pulled by
// the same name.
func TestPullOfAnUnusableFile(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	unusable := c.Push(client, "shop", []byte("not a snapshot"))
	_, err := there.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	wantRefusal(t, err, snap.CodeCorrupt, "cannot be used")
	if err := client.Delete(t.Context(), unusable.ID); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse("20060102T150405Z", strings.TrimPrefix(unusable.Name, "shop-"))
	if err != nil {
		t.Fatal(err)
	}
	here.made(t, "shop", snap.TypeSnapshot, at, 1000)
	if _, err := here.Push(t.Context(), client, "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	pulled, err := there.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || pulled.Snapshot.Name != unusable.Name {
		t.Fatalf("%+v, %v", pulled, err)
	}
	intact(t, there, unusable.Name)
}

func TestPushAndPullChoose(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	masked := here.made(t, "shop", snap.TypeSanitized, noon, 1000)
	original := here.made(t, "shop", snap.TypeSnapshot, noon.Add(time.Hour), 1000)

	_, err := there.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	wantRefusal(t, err, snap.CodeNotFound, "shop")
	for _, step := range []struct {
		options PushOptions
		want    string
	}{
		{PushOptions{Type: snap.TypeSanitized}, masked.Name},
		{PushOptions{}, original.Name},
		{PushOptions{Snapshot: masked.Name}, masked.Name},
	} {
		got, err := here.Push(t.Context(), client, "shop", step.options, nil)
		if err != nil || got.Name != step.want {
			t.Errorf("push %+v: %s, %v; want %s", step.options, got.Name, err, step.want)
		}
	}
	_, err = here.Push(t.Context(), client, "shop", PushOptions{Snapshot: masked.Name, Type: snap.TypeSnapshot}, nil)
	wantRefusal(t, err, snap.CodeUsage, "sanitized")
	_, err = here.Push(t.Context(), client, "books", PushOptions{Snapshot: masked.Name}, nil)
	wantRefusal(t, err, snap.CodeUsage, `"shop"`)
	_, err = here.Push(t.Context(), client, "books", PushOptions{}, nil)
	wantRefusal(t, err, snap.CodeNotFound, `"books"`)

	got, err := there.Pull(t.Context(), client, "shop", PullOptions{Type: snap.TypeSanitized}, nil)
	if err != nil || got.Snapshot.Type != snap.TypeSanitized {
		t.Errorf("pull of what is sanitized: %+v, %v", got.Snapshot, err)
	}
	_, err = there.Pull(t.Context(), client, "books", PullOptions{SnapshotID: got.ID}, nil)
	wantRefusal(t, err, snap.CodeUsage, `"shop"`)
	_, err = there.Pull(t.Context(), client, "shop", PullOptions{SnapshotID: got.ID, Type: snap.TypeSnapshot}, nil)
	wantRefusal(t, err, snap.CodeUsage, "sanitized")
	if _, err := there.Target("books"); err == nil {
		t.Error("a refused pull created a target")
	}
}

// A pulled snapshot of a colleague is pushed only if it is named. A load uses it if it arrived
// last.
func TestPushTakesOwnAndLoadTakesTheLast(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	colleague, alice := machine(t), c.As("alice@acme.test")
	colleague.made(t, "shop", snap.TypeSanitized, noon.Add(-time.Hour), 1000)
	theirs, err := colleague.Push(t.Context(), alice, "shop", PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Share(t.Context(), theirs.ID); err != nil {
		t.Fatal(err)
	}
	mia, here := c.As("mia@acme.test"), machine(t)
	var took Snapshot
	options := PushOptions{Chosen: func(s Snapshot) { took = s }}
	pulled, err := here.Pull(t.Context(), mia, "shop", PullOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Push(t.Context(), mia, "shop", options, nil); snap.CodeOf(err) != snap.CodeNotFound ||
		!strings.Contains(err.Error(), "was pulled") {
		t.Errorf("with only a pulled one: %v", err)
	}
	own := here.made(t, "shop", snap.TypeSnapshot, noon, 2000)
	if _, err := here.Pull(t.Context(), mia, "shop", PullOptions{}, nil); err != nil { // again: it arrived last
		t.Fatal(err)
	}
	if _, err := here.Push(t.Context(), mia, "shop", PushOptions{Type: snap.TypeSanitized}, nil); err == nil ||
		!strings.Contains(err.Error(), "every sanitized snapshot of target") {
		t.Errorf("with a pulled one of the type and an own one of another: %v", err)
	}
	if r, err := here.Push(t.Context(), mia, "shop", options, nil); err != nil || r.Name != own.Name ||
		took.Name != own.Name {
		t.Errorf("pushed %s, took %s, want %s: %v", r.Name, took.Name, own.Name, err)
	}
	last, err := here.toLoad("shop", LoadOptions{Chosen: func(s Snapshot) { took = s }})
	if err != nil || last.Name != pulled.Snapshot.Name || took.Name != last.Name {
		t.Errorf("would load %s, want %s: %v", last.Name, pulled.Snapshot.Name, err)
	}
	if r, err := here.Push(t.Context(), mia, "shop", PushOptions{Snapshot: pulled.Snapshot.Name}, nil); err != nil ||
		!r.Exists && r.Moved == 0 {
		t.Errorf("by its name: %+v, %v", r, err)
	}
}

// If the configuration cannot be written, a pull of an unknown target still pulls
// the snapshot and reports that the target was not saved.
func TestPullWithAReadOnlyConfiguration(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, dir := c.As("alice@acme.test"), t.TempDir()
	colleague := machine(t)
	item := colleague.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	if _, err := colleague.Push(t.Context(), alice, "shop", PushOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(dir, "config") // a file where the folder would be: nobody can write there, not even root
	a, err := Open(Options{ConfigFile: filepath.Join(blocked, "config.yaml"), DataDir: filepath.Join(dir, "data"),
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocked, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	r, err := a.Pull(t.Context(), alice, "shop", PullOptions{}, nil)
	if err != nil || r.Snapshot.Name != item.Name || r.CreatedTarget || r.Unsaved == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if here, err := a.Snapshots("shop"); err != nil || len(here) != 1 {
		t.Errorf("%d snapshots, %v", len(here), err)
	}
}

// SPEC 5.3, rule 2: a hidden snapshot behaves like one that does not exist.
func TestPullOfWhatMayNotBeSeen(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	a := machine(t)
	a.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	pushed, err := a.Push(t.Context(), c.As("alice@acme.test"), "shop", PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mia := c.As("mia@acme.test")
	there := machine(t)
	_, hidden := there.Pull(t.Context(), mia, "shop", PullOptions{SnapshotID: pushed.ID}, nil)
	_, missing := there.Pull(t.Context(), mia, "shop", PullOptions{SnapshotID: snap.NewSnapshotID()}, nil)
	if !errors.Is(hidden, snap.ErrNotFound) || hidden.Error() != missing.Error() {
		t.Errorf("hidden: %v; missing: %v; want the same", hidden, missing)
	}
}

// interrupter interrupts the client before it answers the client's second request
// for bytes, once for each method.
type interrupter struct {
	mu   sync.Mutex
	stop context.CancelFunc
	seen map[string]int
}

func (i *interrupter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		stop := context.CancelFunc(nil)
		if strings.HasPrefix(r.URL.Path, "/blobs/") {
			if i.seen[r.Method]++; i.seen[r.Method] == 2 {
				stop = i.stop
			}
		}
		i.mu.Unlock()
		if stop != nil {
			stop()
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
}

// After Ctrl-C the same command resumes, and the message explains that.
func TestInterruptedPushAndPullGoOn(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	interrupt := &interrupter{seen: map[string]int{}}
	c := cloudtest.Start(t, cloudtest.Options{Wrap: interrupt.wrap})
	client := c.As("alice@acme.test")
	here, there := machine(t), machine(t)
	s := here.made(t, "shop", snap.TypeSnapshot, noon, inTwoParts)
	interrupted := func() context.Context {
		ctx, stop := context.WithCancel(t.Context())
		interrupt.mu.Lock()
		defer interrupt.mu.Unlock()
		interrupt.stop = stop
		return ctx
	}
	_, err := here.Push(interrupted(), client, "shop", PushOptions{Jobs: 1}, nil)
	wantHint(t, err, "resumes")
	pushed, err := here.Push(t.Context(), client, "shop", PushOptions{}, nil)
	if err != nil || pushed.Moved == 0 || pushed.Moved >= s.Size {
		t.Fatalf("push again: %+v, %v; want less than %d moved", pushed, err, s.Size)
	}
	_, err = there.Pull(interrupted(), client, "shop", PullOptions{Jobs: 1}, nil)
	wantHint(t, err, "resumes")
	if all, err := there.Snapshots(""); err != nil || len(all) != 0 {
		t.Errorf("listed after an interrupted pull: %v, %v", all, err)
	}
	pulled, err := there.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	if err != nil || pulled.Moved == 0 || pulled.Moved >= s.Size {
		t.Fatalf("pull again: %+v, %v; want less than %d moved", pulled, err, s.Size)
	}
	intact(t, there, s.Name)
}

// A pull that is interrupted while it receives a delta says how to resume.
func TestInterruptedDeltaPull(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	client := cloudtest.Start(t, cloudtest.Options{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/blobs/deltas/") {
				interrupt()
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	}}).As("alice@acme.test")
	here, there := machine(t), machine(t)
	push := func(at time.Time, dump []byte) {
		t.Helper()
		here.dumped(t, "shop", at, dump)
		if _, err := here.Push(t.Context(), client, "shop", PushOptions{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	push(noon, shortNights()[0])
	if _, err := there.Pull(ctx, client, "shop", PullOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	push(noon.Add(time.Hour), shortNights()[2])
	_, err := there.Pull(ctx, client, "shop", PullOptions{}, nil)
	wantHint(t, err, "resumes")
}

func TestPushToAServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	a := machine(t)
	a.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	client, err := api.New(api.Options{
		BaseURL: "http://127.0.0.1:1", Mount: api.MountAgent, Token: api.StaticToken("x"), HTTP: &http.Client{},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Push(t.Context(), client, "shop", PushOptions{}, nil)
	wantRefusal(t, err, snap.CodeUnreachable, "127.0.0.1:1")
	_, err = a.Pull(t.Context(), client, "shop", PullOptions{}, nil)
	wantRefusal(t, err, snap.CodeUnreachable, "127.0.0.1:1")
}

func wantRefusal(t *testing.T, err error, code snap.Code, says string) {
	t.Helper()
	if snap.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v (%q), want code %q and the words %q", err, snap.CodeOf(err), code, says)
	}
}

func wantHint(t *testing.T, err error, says string) {
	t.Helper()
	var e *snap.Error
	if !errors.As(err, &e) || e.Code != snap.CodeInterrupted || !strings.Contains(e.Hint, says) {
		t.Fatalf("error %#v, want interrupted with a hint that says %q", err, says)
	}
}

// TestPushAndPullByDelta checks, with real snapshots of each engine and with each object store,
// that only changes are transferred. With a damaged base, an interrupted delta or an older
// service, the whole file is transferred.
func TestPushAndPullByDelta(t *testing.T) {
	t.Parallel()
	for _, server := range diffServers() {
		for _, objects := range []string{"folder", "s3"} {
			if server.name != "sqlite" && objects == "s3" {
				continue // nothing in this case depends on the engine
			}
			t.Run(server.name+" "+objects, func(t *testing.T) {
				t.Parallel()
				var options cloudtest.Options
				if objects == "s3" {
					options.BlobURL = servertest.S3(t)
				}
				accident := &atomic.Value{}
				accident.Store("")
				options.Wrap = func(next http.Handler) http.Handler { return accidents{next, accident} }
				w := &deltaWorld{t: t, shop: newShop(t), there: machine(t), client: cloudtest.Start(t,
					options).As("alice@acme.test")}
				url, dsn := server.url(t, w.dir)
				w.open(server.driver, url, dsn)
				w.live(accident)
			})
		}
	}
}

// accidents is a service whose deltas end in the middle, or an older service without deltas.
type accidents struct {
	next http.Handler
	kind *atomic.Value
}

func (a accidents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bytesOf := strings.HasPrefix(r.URL.Path, "/blobs/deltas/")
	switch kind := a.kind.Load(); {
	case kind == "older" && strings.HasSuffix(r.URL.Path, "delta"):
		r.URL.Path = "/unknown"
	case kind == "cut" && bytesOf && r.Method == http.MethodGet:
		w.Header().Set("Content-Length", "9999")
		_, _ = w.Write([]byte("\x89SNAD"))
		panic(http.ErrAbortHandler)
	case kind == "cut" && bytesOf:
		_, _ = io.CopyN(io.Discard, r.Body, 100)
		panic(http.ErrAbortHandler)
	}
	a.next.ServeHTTP(w, r)
}

// deltaWorld is a database, and the machines of two colleagues.
type deltaWorld struct {
	t *testing.T
	shop
	there  *Agent
	client *api.Client
	db     *sql.DB
	random *rand.Rand
	rows   int
}

func (w *deltaWorld) open(driver, url, dsn string) {
	w.t.Helper()
	var err error
	if w.db, err = sql.Open(driver, dsn); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.db.Close() })
	w.random = rand.New(rand.NewPCG(5, 5))
	runAll(w.t, w.db, []string{"CREATE TABLE visit (id int PRIMARY KEY, token varchar(80), note varchar(80))"})
	w.insert(9000)
	if err := w.AddTarget(Target{Name: "visits", Source: url}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *deltaWorld) insert(n int) {
	var values []string
	for range n {
		w.rows++
		values = append(values, fmt.Sprintf("(%d, '%016x%016x', 'old')", w.rows, w.random.Uint64(), w.random.Uint64()))
	}
	runAll(w.t, w.db, []string{"INSERT INTO visit VALUES " + strings.Join(values, ", ")})
}

// move builds a snapshot, pushes it and pulls it on the other machine. It returns the bytes
// transferred.
func (w *deltaWorld) move() (built Snapshot, pushed PushResult, pulled PullResult) {
	w.t.Helper()
	built, err := w.Build(w.t.Context(), "visits", BuildOptions{}, nil)
	if err == nil {
		pushed, err = w.Push(w.t.Context(), w.client, "visits", PushOptions{}, nil)
	}
	if err == nil {
		pulled, err = w.there.Pull(w.t.Context(), w.client, "visits", PullOptions{}, nil)
	}
	if err == nil {
		_, err = w.there.Verify(w.t.Context(), built.Name, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if pulled.Snapshot.SHA256 != built.SHA256 {
		w.t.Fatalf("%s was pulled as another file", built.Name)
	}
	left, _ := filepath.Glob(filepath.Join(w.there.snapshotsDir("visits"), "*"+partSuffix))
	if len(left) > 0 {
		w.t.Errorf("the pull left %v", left)
	}
	return built, pushed, pulled
}

func (w *deltaWorld) live(accident *atomic.Value) {
	t := w.t
	built, pushed, pulled := w.move()
	if pushed.Moved != built.Size || pulled.Moved != built.Size || built.Size < minDeltaFile {
		t.Fatalf("the first transfer moves %d and %d bytes of %d", pushed.Moved, pulled.Moved, built.Size)
	}
	change := func() {
		runAll(t, w.db, []string{"UPDATE visit SET note = 'new' WHERE id % 500 = 7",
			"DELETE FROM visit WHERE id % 900 = 1"})
		w.insert(90)
	}
	change()
	before := built.Name
	built, pushed, pulled = w.move()
	if pushed.Base != before || pushed.Unchanged || pushed.Moved > built.Size/3 || pulled.Moved > built.Size/3 {
		t.Errorf("after a change, %d and %d bytes of %d are moved: %+v", pushed.Moved, pulled.Moved, built.Size, pushed)
	}
	w.counts(pushed.ID, api.CardRows{Added: 90, Removed: 10, Changed: 18})
	before = built.Name
	if _, pushed, pulled = w.move(); !pushed.Unchanged || pushed.Base != before || pushed.Moved > 64<<10 ||
		pulled.Moved > 64<<10 {
		t.Errorf("with no change, %d and %d bytes are moved: %+v", pushed.Moved, pulled.Moved, pushed)
	}
	w.counts(pushed.ID, api.CardRows{})
	for _, kind := range []string{"cut", "older"} {
		accident.Store(kind)
		change()
		built, pushed, pulled = w.move()
		if pushed.Base != "" || pushed.Moved != built.Size || pulled.Moved != built.Size {
			t.Errorf("%s: %d and %d bytes of %d are moved: %+v", kind, pushed.Moved, pulled.Moved, built.Size, pushed)
		}
	}
	accident.Store("")
	change()
	all, err := w.there.Snapshots("visits")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		content, err := os.ReadFile(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(s.Path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if built, pushed, pulled = w.move(); pushed.Base == "" || pulled.Moved != built.Size {
		t.Errorf("with a damaged base, %d and %d bytes of %d are moved", pushed.Moved, pulled.Moved, built.Size)
	}
}

// TestInterruptedCounting presses Ctrl-C while a push compares the file with the previous snapshot,
// and while it counts the rows that changed. In the second case the snapshot is already in the
// cloud, so its card must be there too, and the machine must know its ID.
func TestInterruptedCounting(t *testing.T) {
	t.Parallel()
	w := &deltaWorld{t: t, shop: newShop(t), there: machine(t), client: cloudtest.Start(t,
		cloudtest.Options{}).As("alice@acme.test")}
	server := diffServers()[slices.IndexFunc(diffServers(), func(s diffServer) bool { return s.name == "sqlite" })]
	url, dsn := server.url(t, w.dir)
	w.open(server.driver, url, dsn)
	w.move()
	w.insert(90)
	built, err := w.Build(t.Context(), "visits", BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	_, err = w.Push(ctx, w.client, "visits", PushOptions{}, func(Event) { interrupt() })
	wantHint(t, err, "resumes")
	ctx, interrupt = context.WithCancel(t.Context())
	sent := false
	_, err = w.Push(ctx, w.client, "visits", PushOptions{}, func(e Event) {
		if sent = sent || e.Phase == "push"; sent && e.Phase == "compare" {
			interrupt()
		}
	})
	wantHint(t, err, "is in the cloud as")
	made, err := w.Snapshot(built.Name)
	if err != nil || made.Counted != nil {
		t.Fatalf("%v, counted %+v", err, made.Counted)
	}
	id := made.Cloud[w.client.BaseURL()]
	if got, err := w.client.Card(t.Context(), id, "", 1); err != nil || got.Card == nil || len(got.Card.Tables) != 1 {
		t.Errorf("the card of %q is %+v, %v", id, got.Card, err)
	}
	if got, err := w.client.CardChanges(t.Context(), id); err != nil || got.Counted || got.Previous == nil {
		t.Errorf("the changes are %+v, %v; want none that were counted", got, err)
	}
	if again, err := w.Push(t.Context(), w.client, "visits", PushOptions{}, nil); err != nil || !again.Exists {
		t.Errorf("pushed again: %+v, %v", again, err)
	}
}

// counts checks how many rows of a pushed snapshot differ from the previous one, and that both
// machines show that.
func (w *deltaWorld) counts(id string, want api.CardRows) {
	w.t.Helper()
	got, err := w.client.CardChanges(w.t.Context(), id)
	if err != nil || !got.Counted || got.Previous == nil {
		w.t.Fatalf("%v, %+v", err, got)
	}
	all, err := w.Snapshots("visits")
	if err == nil {
		err = w.Describe(&all[0], nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	_, here, err := w.Changes(all[0])
	if err != nil {
		w.t.Fatal(err)
	}
	for _, changes := range [][]api.CardChange{got.Changes, here} {
		if want == (api.CardRows{}) {
			if len(changes) > 0 {
				w.t.Errorf("%+v, want no changes", changes)
			}
		} else if len(changes) != 1 || changes[0].Differ == nil || *changes[0].Differ != want {
			w.t.Errorf("%+v, want %+v", changes, want)
		}
	}
}

// intact checks every byte of a local snapshot. The files of these tests hold no database.
func intact(t *testing.T, a *Agent, name string) {
	t.Helper()
	s, err := a.Snapshot(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.openVerified(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}
