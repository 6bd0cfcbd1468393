//go:build linux

package soak

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"snap/api"
	"snap/internal/servertest"
)

// world is everything that runs.
type world struct {
	t    *testing.T
	dir  string
	seed uint64
	old  string // program of an older release, or ""

	pooled bool // the replicas reach PostgreSQL through PgBouncer in transaction mode

	db       *sql.DB // bypasses all links
	crash    func()  // of PostgreSQL, and its restart
	storage  *process
	bucket   string // its folder
	provider *provider
	idp      *link
	clientS3 *link
	replicas []*replica
	people   []*person
	hooks    *hooks
	model    model

	ctx     context.Context // of the load
	running sync.WaitGroup
	gate    sync.RWMutex // held for reading by every step of the load

	churns *person        // whose groups change at every sign-in
	canary *thing         // that is there from the beginning to the end
	pushed map[string]int // lines of the audit log, by snapshot

	mu      sync.Mutex
	chance  *rand.Rand
	counts  map[string]int
	longest map[string]time.Duration // until everything was right again
	stale   []staleURL
}

// replica is one process of the service, and the links around it.
type replica struct {
	*process
	config, listen, private string
	oldConfig               string // the part of the configuration that the older program understands
	front, db, s3           *link
	launches                int
	old                     bool // the older program was started last
}

const (
	replicaCount = 3
	workEvery    = time.Second // how often a replica asks for background work
)

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), seed: seed, old: os.Getenv("SNAP_SOAK_OLD"),
		pooled: os.Getenv("SNAP_SOAK_POOLED") != "",
		chance: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}, longest: map[string]time.Duration{},
	}
	program := servertest.S3Program(t)
	var database string
	database, w.crash = servertest.CrashingPostgres(t)
	behind := database
	if w.pooled {
		behind = servertest.PgBouncer(t, database, "default_pool_size = 20", "max_client_conn = 500",
			"server_login_retry = 1")
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w.db = db
	w.provider = newProvider(t)
	w.idp = newLink(t, "idp", w.provider.Listener.Addr().String(), seed+1)
	w.provider.issuer = "http://" + w.idp.address()
	w.hooks = newHooks(t)
	address := w.startStorage(program)
	w.clientS3 = newLink(t, "client-s3", address, seed+2)
	for i := range replicaCount {
		w.addReplica(i, behind, address)
	}
	for _, r := range w.replicas { // all at once, over an empty database
		if err := r.start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range w.replicas {
		if err := w.serves(r); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) startStorage(program string) (address string) {
	w.t.Helper()
	buckets := filepath.Join(w.dir, "buckets")
	w.bucket = filepath.Join(buckets, "soak")
	if err := os.MkdirAll(w.bucket, 0o755); err != nil {
		w.t.Fatal(err)
	}
	address = servertest.Address(w.t)
	w.storage = newProcess(w.t, w.dir, "storage", func() *exec.Cmd {
		cmd := exec.Command(program, "--port", address, "--quiet", "posix", buckets)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=soak-key", "ROOT_SECRET_KEY=soak-secret")
		return cmd
	})
	if err := w.storage.start(); err != nil {
		w.t.Fatal(err)
	}
	w.must("the object store serves", func() error { return dials(address) })
	return address
}

func dials(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func (w *world) addReplica(i int, database, storage string) {
	w.t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		w.t.Fatal(err)
	}
	name := fmt.Sprintf("replica-%d", i)
	seed := w.seed + uint64(10*i)
	r := &replica{
		config: filepath.Join(w.dir, name+".yaml"), listen: servertest.Address(w.t), private: servertest.Address(w.t),
		db: newLink(w.t, name+"-db", u.Host, seed+3), s3: newLink(w.t, name+"-s3", storage, seed+4),
	}
	r.front = newLink(w.t, name+"-front", r.listen, seed+5)
	u.Host = r.db.address()
	text := fmt.Sprintf(configuration, r.listen, publicURL, u, w.pooling(), w.blobURL(r.s3.address()),
		w.provider.issuer, clientSecret)
	r.oldConfig = filepath.Join(w.dir, name+"-old.yaml")
	for path, content := range map[string]string{r.oldConfig: text,
		r.config: text + fmt.Sprintf("private: {listen: %q}\n", r.private)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	r.process = newProcess(w.t, w.dir, name, func() *exec.Cmd {
		r.launches++
		if r.old = w.old != "" && r.launches%2 == i%2; r.old {
			return exec.Command(w.old, "serve", "--config", r.oldConfig)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serveEnv+"="+r.config, everyEnv+"="+workEvery.String())
		return cmd
	})
	w.replicas = append(w.replicas, r)
}

// pooling is the setting that PgBouncer needs, which older programs do not know.
func (w *world) pooling() string {
	if w.pooled {
		return ", transaction_pooling: true"
	}
	return ""
}

func (w *world) blobURL(address string) string {
	return "s3://soak-key:soak-secret@soak?endpoint=http://" + address
}

// configuration is the part that programs of every release understand.
const configuration = `
listen: %s
public_url: %s
database: {url: "%s"%s}
blob: {url: "%s"}
trust_proxies: [127.0.0.0/8]
webhooks: {allow_private: true}
log: {format: json, level: debug}
organizations:
  - slug: acme
    name: Acme
    sign_in: &provider {type: oidc, issuer: "%[6]s", client_id: snapcloud, client_secret: %[7]s,
      allow_private: true, roles: {admin: [leads]}}
  - slug: globex
    name: Globex
    sign_in: *provider
`

// pick returns a number below n.
func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.IntN(n)
}

func (w *world) isStorage(address string) bool {
	return slices.ContainsFunc(w.replicas, func(r *replica) bool { return r.s3.address() == address })
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// violated reports an invariant that does not hold. It prints the first few of
// a kind and counts the others.
func (w *world) violated(format string, args ...any) {
	w.count("VIOLATION " + format)
	w.mu.Lock()
	n := w.counts["VIOLATION "+format]
	w.mu.Unlock()
	if n <= 5 {
		w.t.Errorf("%s seed %d: "+format, append([]any{time.Now().Format("15:04:05.000"), w.seed}, args...)...)
	}
}

// bound limits the wait for recovery after a fault. It only ends waits that would never end;
// usually recovery takes seconds.
const bound = servertest.Patience

// until retries until the bound has passed.
func (w *world) until(check func() error) (time.Duration, error) {
	started := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if took := time.Since(started); err == nil || took > bound {
			return took, err
		}
		<-tick.C
	}
}

// must is like until, and reports a violation if the check did not succeed.
func (w *world) must(what string, check func() error) {
	if _, err := w.until(check); err != nil {
		w.violated("%s: not within %v: %v", what, bound, err)
	}
}

// serves waits until a replica answers. It starts the replica again when it has ended, as a
// supervisor does if a replica starts before its database.
func (w *world) serves(r *replica) error {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	_, err := w.until(func() error {
		if !r.alive() {
			if err := r.start(); err != nil {
				return err
			}
		}
		res, err := client.Get("http://" + r.listen + "/healthz")
		if err != nil {
			return err
		}
		res.Body.Close()
		return dials(r.listen)
	})
	return err
}

// hooks receives webhooks, and fails from time to time.
type hooks struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int // by snapshot
	n    int
}

func newHooks(t *testing.T) *hooks {
	h := &hooks{seen: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e api.WebhookEvent
	err := json.NewDecoder(r.Body).Decode(&e)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n++; err != nil || h.n%7 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h.seen[e.Data.Snapshot]++
}

// wait pauses a step of the load.
func (w *world) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// work repeats a step until the load ends.
func (w *world) work(number uint64, step func(*rand.Rand)) {
	chance := rand.New(rand.NewPCG(w.seed, 100+number))
	w.running.Go(func() {
		for w.ctx.Err() == nil {
			w.gate.RLock()
			step(chance)
			w.gate.RUnlock()
			w.wait(time.Duration(5+chance.IntN(40)) * time.Millisecond)
		}
	})
}

// summary describes the run for the log.
func (w *world) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for what, n := range w.counts {
		lines = append(lines, fmt.Sprintf("%-40s %d", what, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
