// Package load measures how much load the whole service can carry: how many requests of a realistic
// mix over many snapshots it answers in a second, and how long they take, on SQLite and on
// PostgreSQL with one replica and with three. It also measures the sizes of database and processes.
// Service, database, object store and clients are separate processes. There are 100 organizations.
// Half of the snapshots belong to one of them, which is the hot one: first only its people send
// requests, then one person of each of the others. Half of the shares expire, and the hot
// organization's shares and unshares go to a webhook.
//
//	SNAP_LOAD_SNAPSHOTS=1000000 go test -run '^$' -bench Load -benchtime 1x ./internal/load
//
// SNAP_LOAD_SECONDS is how long each measurement takes, and SNAP_LOAD_WORKERS how many workers send
// requests concurrently. PostgreSQL runs with fsync here, as SQLite does.
package load

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"snap/internal/blob"
	"snap/internal/cloud"
	"snap/internal/servertest"
)

// sizes of the database if the environment does not set them.
const (
	fewSnapshots  = 10_000
	fewSeconds    = 5
	someWorkers   = 16
	users         = 20
	groups        = 50
	organizations = 100
	singles       = organizations - 1 // organizations of which one person signs in
	perSnapshots  = 20                // snapshots for each user who never signs in: 50,000 at a million
)

// crowds are the groups of clients.
func crowds() []crowd {
	return []crowd{{"people of one hot organization", colleagues()},
		{fmt.Sprintf("people of the other %d organizations", singles), strangers()}}
}

// crowd is the clients of one measurement.
type crowd struct {
	name   string
	people []person
}

type person struct{ Org, Email string }

func colleagues() (all []person) {
	for u := range users {
		all = append(all, person{"acme", fmt.Sprintf("user%d@acme.test", u)})
	}
	return all
}

func strangers() (all []person) {
	for o := range singles {
		all = append(all, person{fmt.Sprintf("org%d", o), fmt.Sprintf("user@org%d.test", o)})
	}
	return all
}

// BenchmarkLoad prints a table for each crowd, with a row for each kind of request and three
// columns for each way to run the service, and the sizes of the databases.
func BenchmarkLoad(b *testing.B) {
	n := number("SNAP_LOAD_SNAPSHOTS", fewSnapshots)
	l := &lab{B: b, program: build(b), dir: b.TempDir()}
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { l.received.Add(1) }))
	defer receiver.Close()
	l.receiver = receiver.URL
	results := map[string][]result{}
	measure := func(name string, at site, replicas int) {
		processes := l.serve(at, replicas)
		idle := largest(processes, "VmRSS")
		for _, c := range crowds() {
			results[c.name] = append(results[c.name], l.drive(name, c, processes))
		}
		fmt.Printf("%s: a process of the service takes %d MiB when it has started, %d MiB at most; "+
			"the webhook received %d messages\n", name, idle, largest(processes, "VmHWM"), l.received.Swap(0))
		for _, p := range processes {
			p.stop()
		}
	}
	embedded := l.site("", "", filepath.Join(l.dir, "sqlite"))
	l.seed(embedded, n)
	measure("SQLite, 1 process", embedded, 1)
	replicated := l.site(synced(b), servertest.S3(b), filepath.Join(l.dir, "pg"))
	l.seed(replicated, n)
	measure("PostgreSQL, 1 replica", replicated, 1)
	measure("PostgreSQL, 3 replicas", replicated, 3)
	l.sayAudit(replicated)
	for _, c := range crowds() {
		show(n, c, results[c.name])
	}
}

// number reads a number from the environment.
func number(name string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return otherwise
	}
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// build builds the program that is measured.
func build(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "snapcloud")
	cmd := exec.CommandContext(b.Context(), "go", "build", "-o", program, "./cmd/snapcloud")
	cmd.Dir = servertest.Root(b)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// synced is a database on a PostgreSQL that syncs every commit, as SQLite does.
func synced(b *testing.B) string {
	b.Helper()
	url := servertest.Postgres(b)
	db, err := sql.Open("pgx", url)
	must(b, err)
	defer db.Close()
	for _, text := range []string{`ALTER SYSTEM SET fsync = on`, `ALTER SYSTEM SET max_wal_size = '4GB'`,
		`SELECT pg_reload_conf()`} {
		_, err := db.ExecContext(b.Context(), text)
		must(b, err)
	}
	return url
}

// lab is one run.
type lab struct {
	*testing.B
	program  string
	dir      string
	receiver string       // URL of the webhook
	received atomic.Int64 // messages of the webhook
}

// site is where a service keeps its data.
type site struct{ database, blobs, dir string }

func (l *lab) site(database, blobs, dir string) site {
	must(l, os.MkdirAll(dir, 0o700))
	return site{database, blobs, dir}
}

func (l *lab) blobs(s site) blob.Store {
	all, err := cloud.OpenBlobs(l.Context(), cloud.Config{DataDir: s.dir, Blob: cloud.Blob{URL: s.blobs}})
	must(l, err)
	return all
}

// public is the service's public URL, wherever its processes listen.
const public = "http://127.0.0.1:1"

// configure writes the configuration of one process.
func (l *lab) configure(s site) (file, address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(l, err)
	address = listener.Addr().String()
	listener.Close()
	var people strings.Builder
	for u, p := range colleagues() {
		role := map[bool]string{true: "owner", false: "member"}[u == 0]
		var in []string
		for g := range 5 {
			in = append(in, fmt.Sprintf("group%d", (u*7+g*11)%groups))
		}
		fmt.Fprintf(&people, "      - {email: %s, password: secret, role: %s, groups: [%s]}\n", p.Email, role,
			strings.Join(in, ", "))
	}
	var others strings.Builder
	for _, p := range strangers() {
		fmt.Fprintf(&others,
			"  - slug: %s\n    sign_in: {type: local}\n    users: [{email: %s, password: secret, role: owner, groups: "+
				"[team]}]\n", p.Org, p.Email)
	}
	text := fmt.Sprintf(`
listen: %s
public_url: %s
data_dir: %s
database: {url: %q}
blob: {url: %q}
log: {level: warn}
webhooks: {allow_private: true}
limits: {requests_per_credential: -1, requests_per_address: -1, sign_in_requests_per_address: -1, uploads_per_user: -1,
  uploads_per_organization: -1}
organizations:
  - slug: acme
    sign_in: {type: local}
    users:
%s  - slug: globex
    sign_in: {type: local}
    users: [{email: gail@globex.test, password: secret, role: owner}]
%s`, address, public, s.dir, s.database, s.blobs, people.String(), others.String())
	file = filepath.Join(l.TempDir(), "snapcloud.yaml")
	must(l, os.WriteFile(file, []byte(text), 0o600))
	return file, address
}

// process is a running snapcloud.
type process struct {
	url  string
	pid  int
	stop func()
}

// largest returns the largest figure of this name in /proc/PID/status, in MiB; 0
// where there is none.
func largest(all []process, name string) (mib int) {
	for _, p := range all {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		for line := range strings.Lines(string(text)) {
			var kib int
			if n, _ := fmt.Sscanf(line, name+": %d kB", &kib); n == 1 {
				mib = max(mib, kib/1024)
			}
		}
	}
	return mib
}

// serve starts replicas and waits until they are ready.
func (l *lab) serve(s site, replicas int) (all []process) {
	for range replicas {
		file, address := l.configure(s)
		cmd := exec.CommandContext(l.Context(), l.program, "serve", "--config", file)
		cmd.Stderr = os.Stderr
		must(l, cmd.Start())
		p := process{url: "http://" + address, pid: cmd.Process.Pid, stop: func() {
			cmd.Process.Signal(os.Interrupt)
			cmd.Wait()
		}}
		l.ready(p.url)
		all = append(all, p)
	}
	return all
}

func (l *lab) ready(url string) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); time.Since(began) < servertest.Patience; <-again.C {
		req, err := http.NewRequestWithContext(l.Context(), http.MethodGet, url+"/readyz", nil)
		must(l, err)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
	}
	l.Fatal("a process did not become ready")
}

// result is the measured result of one way to run the service.
type result struct {
	Name    string
	Seconds float64
	Kinds   map[string]kindResult
}

type kindResult struct {
	Count, Failed int
	P50, P99      time.Duration
}

// drive sends requests to the service from a separate process.
func (l *lab) drive(name string, c crowd, processes []process) result {
	o := order{People: c.people, Seconds: number("SNAP_LOAD_SECONDS", fewSeconds),
		Workers: number("SNAP_LOAD_WORKERS", someWorkers)}
	for _, p := range processes {
		o.URLs = append(o.URLs, p.url)
	}
	text, err := json.Marshal(o)
	must(l, err)
	cmd := exec.CommandContext(l.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), driveEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(l, err)
	var r result
	must(l, json.Unmarshal(out, &r))
	r.Name = name
	return r
}

// show writes a table.
func show(snapshots int, c crowd, results []result) {
	fmt.Printf("\n%d snapshots, %s: requests a second, p50 and p99 in milliseconds\n%-16s", snapshots, c.name, "")
	for _, r := range results {
		fmt.Printf("%36s", r.Name)
	}
	fmt.Println()
	for _, kind := range append(kinds(), "all") {
		fmt.Printf("%-16s", kind)
		for _, r := range results {
			k := r.Kinds[kind]
			fmt.Printf("%12.0f%12.1f%12.1f", float64(k.Count)/r.Seconds, milliseconds(k.P50), milliseconds(k.P99))
		}
		fmt.Println()
	}
	fmt.Printf("%-16s", "failed")
	for _, r := range results {
		fmt.Printf("%12d%24s", r.Kinds["all"].Failed, "")
	}
	fmt.Println()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile returns the time within which this share of the requests was answered.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*share), len(sorted)-1)]
}

// summary is the result of a kind of request.
func summary(took []time.Duration, failed int) kindResult {
	slices.SortFunc(took, cmp.Compare[time.Duration])
	return kindResult{Count: len(took), Failed: failed, P50: percentile(took, 0.50), P99: percentile(took, 0.99)}
}
