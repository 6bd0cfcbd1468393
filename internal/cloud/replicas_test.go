package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// serveEnv makes the test program a service: it names a configuration file.
const serveEnv = "SNAPCLOUD_TEST_SERVE"

func TestMain(m *testing.M) {
	if path := os.Getenv(serveEnv); path != "" {
		os.Exit(serveForTest(path))
	}
	os.Exit(m.Run())
}

// serveForTest serves until standard input ends, at the latest when the test
// is gone.
func serveForTest(path string) int {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	config, err := cloud.LoadConfig(path, nil)
	if err == nil {
		err = cloud.Run(ctx, config, cloud.Options{}, func(net.Addr) { fmt.Println("ready") })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// replica is one process of the service.
type replica struct {
	t      *testing.T
	config string
	url    string
	mu     sync.Mutex
	cmd    *exec.Cmd
	alive  io.Closer
	log    strings.Builder // whole only when the process has ended
}

// startReplica starts a process over a database and a blob folder.
func startReplica(t *testing.T, database, dir string) *replica {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	l.Close()
	r := &replica{t: t, url: "http://" + address, config: filepath.Join(t.TempDir(), "snapcloud.yaml")}
	must(t, os.WriteFile(r.config, []byte(fmt.Sprintf(`
listen: %s
data_dir: %s
database: {url: %q}
organizations:
  - slug: acme
    sign_in: {type: local}
    users:
      - {email: alice@acme.test, password: x, role: owner}
      - {email: max@acme.test, password: x, role: member}
`, address, dir, database)), 0o600))
	r.start()
	t.Cleanup(func() {
		r.kill()
		for _, line := range strings.Split(r.log.String(), "\n") {
			if t.Failed() && strings.Contains(line, "level=ERROR") {
				t.Log(line)
			}
		}
	})
	return r
}

func (r *replica) start() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+r.config)
	var err error
	r.alive, err = cmd.StdinPipe()
	must(r.t, err)
	out, err := cmd.StdoutPipe()
	must(r.t, err)
	cmd.Stderr = &r.log
	must(r.t, cmd.Start())
	r.cmd = cmd
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		r.t.Fatalf("the replica did not start: %v\n%s", err, r.log.String())
	}
}

// kill ends the process as a power cut would.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

func (r *replica) client(key string) *api.Client {
	c, err := api.New(api.Options{BaseURL: r.url, Mount: api.MountAgent, Token: api.StaticToken(key)})
	if err != nil {
		r.t.Error(err)
	}
	return c
}

// Effective immediately, with several replicas (SPEC 3): once unshare has
// answered, no request that begins later, at any process, sees the snapshot.
// Three processes over one PostgreSQL are asked by concurrent callers while
// one of them is killed and restarted, and then the database is.
func TestRevocationIsImmediateAcrossProcesses(t *testing.T) {
	t.Parallel()
	database, crash := servertest.CrashingPostgres(t)
	dir := t.TempDir()
	setup := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, DataDir: dir})
	owner, member := setup.Key("alice@acme.test"), setup.Key("max@acme.test")
	sn := setup.Push(setup.Client(owner), "shop", []byte("x"))
	var replicas []*replica
	for range 3 {
		replicas = append(replicas, startReplica(t, database, dir))
	}
	h := &history{began: time.Now()}
	var running sync.WaitGroup
	var stop atomic.Bool
	for caller := range 6 {
		random := rand.New(rand.NewPCG(7, uint64(caller)))
		running.Go(func() {
			for answered := 0; !stop.Load() || answered < 15; answered++ {
				r := replicas[random.IntN(3)]
				if random.IntN(3) == 0 {
					h.write(r.client(owner), sn.ID, random.IntN(2) == 0)
				} else {
					h.look(r.client(member), sn.ID, random.IntN(3))
				}
				for { // a caller who was not answered asks again when there is somebody
					if _, err := r.client(member).Me(t.Context()); !unanswered(err) {
						break
					}
				}
			}
		})
	}
	replicas[0].kill()
	replicas[0].start()
	crash()
	replicas[1].kill()
	replicas[1].start()
	stop.Store(true)
	running.Wait()
	if h.looks < 20 || h.writes < 10 {
		t.Fatalf("only %d looks and %d writes were answered", h.looks, h.writes)
	}
	for _, err := range h.wrong {
		t.Error(err)
	}
	if result := porcupine.CheckOperationsTimeout(sharedModel, h.operations, time.Minute); result != porcupine.Ok {
		t.Errorf("the history of %d looks and %d writes is not linearizable (%s)", h.looks, h.writes, result)
	}
}

// history is what concurrent callers did, and what they were answered.
type history struct {
	began         time.Time
	mu            sync.Mutex
	operations    []porcupine.Operation
	looks, writes int
	wrong         []error
}

// change is an operation: to share or unshare org-wide, or nil to look.
type change struct{ share bool }

// sharedModel is one switch: a look sees what was last set.
var sharedModel = porcupine.Model{
	Init: func() any { return false },
	Step: func(state, in, out any) (bool, any) {
		if c, write := in.(change); write {
			return true, c.share
		}
		return out == state, state
	},
}

// write shares or unshares. When no answer came it may have been done, at any
// time from then on.
func (h *history) write(c *api.Client, id string, share bool) {
	called := time.Since(h.began)
	var err error
	if share {
		_, err = c.Share(context.Background(), id)
	} else {
		err = c.Unshare(context.Background(), id)
	}
	returned := time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if !unanswered(err) {
			h.wrong = append(h.wrong, fmt.Errorf("share %v: %w", share, err))
		}
		returned = time.Hour
	} else {
		h.writes++
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: len(h.operations), Input: change{share}, Call: int64(called), Return: int64(returned)})
}

// look looks for the snapshot through one of the doors. A look that was not
// answered tells nothing.
func (h *history) look(c *api.Client, id string, door int) {
	ctx := context.Background()
	called := time.Since(h.began)
	var err error
	switch door {
	case 0:
		_, err = c.Snapshot(ctx, id)
	case 1:
		_, err = c.Pull(ctx, id)
	case 2:
		var page api.SnapshotPage
		if page, err = c.Snapshots(ctx, api.ListOptions{}); err == nil && len(page.Items) == 0 {
			err = snap.ErrNotFound
		}
	}
	returned := time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && !errors.Is(err, snap.ErrNotFound) {
		if !unanswered(err) {
			h.wrong = append(h.wrong, fmt.Errorf("look through door %d: %w", door, err))
		}
		return
	}
	h.looks++
	h.operations = append(h.operations, porcupine.Operation{ClientId: len(h.operations), Input: nil, Output: err == nil, Call: int64(called), Return: int64(returned)})
}

// unanswered reports whether the service or its database was down.
func unanswered(err error) bool {
	switch snap.CodeOf(err) {
	case snap.CodeUnreachable, snap.CodeUnavailable:
		return true
	}
	return false
}
