package cloud_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"snap/api"
	"snap/internal/cloud"
	"snap/internal/servertest"
)

// serveEnv makes the test program a service: it names a configuration file.
const serveEnv = "SNAPCLOUD_TEST_SERVE"

// TestMain lets this test program run as a replica of the service in a process of its own.
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

// startReplica starts a process of the service over a database and a blob folder. The parameter
// public is the URL by which people know the service, and more has further lines of the
// configuration.
func startReplica(t *testing.T, database, dir, public string, more ...string) *replica {
	t.Helper()
	servertest.RequireServers(t, "processes of the service")
	address := servertest.Address(t)
	r := &replica{t: t, url: "http://" + address, config: filepath.Join(t.TempDir(), "snapcloud.yaml")}
	must(t, os.WriteFile(r.config, []byte(fmt.Sprintf(`
listen: %s
public_url: %s
data_dir: %s
database: {url: %q}
limits: {requests_per_credential: -1, requests_per_address: -1}
organizations:
  - slug: acme
    sign_in: {type: local}
    users:
      - {email: alice@acme.test, password: x, role: owner}
      - {email: max@acme.test, password: x, role: member}
  - slug: globex
    sign_in: {type: local}
    users: [{email: gail@globex.test, password: x, role: owner}, {email: gary@globex.test, password: x, role: member}]
%s
`, address, public, dir, database, strings.Join(more, "\n"))), 0o600))
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

// start starts the process. While the process was down, a caller's connection may have taken its
// port briefly, so start tries again.
func (r *replica) start() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	const attempts = 20
	for try := 1; ; try++ {
		err := r.launch()
		if err == nil {
			return
		}
		r.cmd.Wait()
		if try == attempts || !strings.Contains(r.log.String(), "address already in use") {
			r.t.Fatalf("the replica did not start: %v\n%s", err, r.log.String())
		}
	}
}

// launch runs the program and waits until it serves or has ended.
func (r *replica) launch() error {
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
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	return err
}

// kill ends the process as a power cut would.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

func (r *replica) client(mount, secret string) *api.Client {
	c, err := api.New(api.Options{BaseURL: r.url, Mount: mount, Token: api.StaticToken(secret)})
	if err != nil {
		r.t.Error(err)
	}
	return c
}
