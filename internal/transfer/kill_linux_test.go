package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/cloud"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// In these tests, clients, services and object stores are separate processes that are
// killed at random moments with SIGKILL. No corrupt snapshot may ever be listed, no
// confirmed data may be lost, and the same command must resume.
//
// SNAP_KILL_ROUNDS sets the number of snapshots that are pushed and pulled this way
// (3 by default). SNAP_KILL_SEED repeats a run.

func TestKilledClientsAndServiceOverAFolder(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	underFire(t, newBattle(t, ""), []string{"client", "service"})
}

func TestKilledClientsServiceAndStorageOverS3(t *testing.T) {
	t.Parallel()
	gateway := startGateway(t)
	underFire(t, newBattle(t, gateway.url, gateway), []string{"client", "service", "storage"})
}

func underFire(t *testing.T, b *battle, victims []string) {
	rounds, seed := number("SNAP_KILL_ROUNDS", 3),
		uint64(number("SNAP_KILL_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("SNAP_KILL_SEED=%d", seed)
	b.chance = rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		data := random(17<<20+b.chance.IntN(16<<20), seed+uint64(round))
		file, req := writeFile(t, data)
		req.Name = fmt.Sprintf("shop-%d", round)
		if err := os.WriteFile(file+".json", mustJSON(req), 0o600); err != nil {
			t.Fatal(err)
		}
		b.pushed = append(b.pushed, req)
		id := b.fight(victims, "push", file, "")
		pulled := target(t)
		if got := b.fight(victims, "pull", pulled, id); got != id {
			t.Fatalf("round %d: pulled %s, want %s", round, got, id)
		}
		wantFile(t, pulled, data)
	}
	b.checkListing(rounds)
	t.Logf("%d rounds, killed %v", rounds, b.kills)
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// battle is a service, perhaps an object store, and the pushed snapshots.
type battle struct {
	t       testing.TB
	dir     string
	env     []string
	service *process
	storage *gatewayProcess
	client  *api.Client
	chance  *rand.Rand
	pushed  []api.PushRequest
	kills   map[string]int
}

func newBattle(t testing.TB, blobURL string, storage ...*gatewayProcess) *battle {
	b := &battle{t: t, dir: t.TempDir(), kills: map[string]int{}}
	if len(storage) > 0 {
		b.storage = storage[0]
	}
	address := servertest.Address(t)
	b.env = []string{"SNAP_TEST_DIR=" + b.dir, "SNAP_TEST_ADDRESS=" + address, "SNAP_TEST_BLOBS=" + blobURL}
	b.service = b.start("service")
	key := b.service.awaitLine(t)
	b.env = append(b.env, "SNAP_TEST_KEY="+key)
	var err error
	b.client, err = api.New(api.Options{BaseURL: "http://" + address, Mount: api.MountAgent,
		Token: api.StaticToken(key)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// start runs this test program again in another role.
func (b *battle) start(role string, more ...string) *process {
	b.t.Helper()
	return startProcess(b.t, b.command(role, more...))
}

func (b *battle) command(role string, more ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestRole$", "-test.v=false")
	cmd.Env = append(append(append(os.Environ(), "SNAP_TEST_ROLE="+role), b.env...), more...)
	return cmd
}

// fight runs clients until one succeeds, kills up to three victims on the way, and returns the ID that
// the successful client prints.
func (b *battle) fight(victims []string, role, file, id string) string {
	b.t.Helper()
	killings := 1 + b.chance.IntN(3)
	var out string
	for range 20 {
		client := b.start(role, "SNAP_TEST_FILE="+file, "SNAP_TEST_ID="+id)
		for ; killings > 0; killings-- {
			if client.endsWithin(time.Duration(10+b.chance.IntN(250)) * time.Millisecond) {
				break
			}
			victim := victims[b.chance.IntN(len(victims))]
			b.kills[victim]++
			switch victim {
			case "service":
				b.service.kill()
				b.service = b.start("service")
				b.service.awaitLine(b.t)
			case "storage":
				b.storage.restart()
			case "client":
				client.kill()
			}
			b.checkListing(-1)
		}
		ok := client.wait()
		if out = client.line(); ok {
			return out
		}
	}
	b.t.Fatalf("%s: none of 20 clients succeeded; the output of the last is %q", role, out)
	return ""
}

// checkListing compares everything listed with the pushed files. The number of listed snapshots
// must be count, unless count is negative.
func (b *battle) checkListing(count int) {
	b.t.Helper()
	listed := 0
	for sn, err := range b.client.AllSnapshots(b.t.Context(), api.ListOptions{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		listed++
		known := false
		for _, req := range b.pushed {
			known = known || req.Name == sn.Name && req.SHA256 == sn.SHA256 && req.Size == sn.Size
		}
		if !known {
			b.t.Errorf("%s is listed, but was not pushed like this", sn.Name)
		}
	}
	if count >= 0 && listed != count {
		b.t.Errorf("%d snapshots are listed, want %d", listed, count)
	}
}

// TestRole is not a test. It is the entry point of the other processes.
func TestRole(t *testing.T) {
	role := os.Getenv("SNAP_TEST_ROLE")
	if role == "" {
		t.Skip("a role of the processes that other tests start and kill")
	}
	if err := errors.Join(play(t.Context(), role), writePeak()); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(ctx context.Context, role string) error {
	address, file := os.Getenv("SNAP_TEST_ADDRESS"), os.Getenv("SNAP_TEST_FILE")
	if role == "service" {
		return playService(ctx, address)
	}
	client, err := api.New(api.Options{BaseURL: "http://" + address, Mount: api.MountAgent,
		Token: api.StaticToken(os.Getenv("SNAP_TEST_KEY"))})
	if err != nil {
		return err
	}
	if role == "pull" {
		got, _, err := transfer.Download(ctx, client, os.Getenv("SNAP_TEST_ID"), file,
			transfer.InPieces(transfer.Options{}, int64(number("SNAP_TEST_PIECE", 1<<20))))
		fmt.Println(got.Snapshot.ID)
		return err
	}
	var req api.PushRequest
	text, err := os.ReadFile(file + ".json")
	if err := errors.Join(err, json.Unmarshal(text, &req)); err != nil {
		return err
	}
	up, err := transfer.Upload(ctx, client, file, req, transfer.Options{})
	if err == nil {
		fmt.Println(up.ID)
	}
	return err
}

// playService runs the whole service. It prints a user's key once it serves.
func playService(ctx context.Context, address string) error {
	dir := os.Getenv("SNAP_TEST_DIR")
	config := cloud.Config{
		Listen: address, PublicURL: "http://" + address, DataDir: dir,
		Blob: cloud.Blob{URL: os.Getenv("SNAP_TEST_BLOBS")}, Auth: cloud.Auth{ClientID: "snapcli"},
		Organizations: []cloud.Organization{{Slug: "acme", Name: "Acme", SignIn: cloud.SignIn{Type: "local"},
			Users: []cloud.LocalUser{
				{Email: "alice@acme.test", Name: "Alice", Password: "alice-password", Role: snap.RoleOwner},
			}}},
	}
	options := cloud.Options{Log: slog.New(slog.DiscardHandler), Version: "test"}
	key, err := testKey(ctx, filepath.Join(dir, "key"), config, options)
	if err != nil {
		return err
	}
	return cloud.Run(ctx, config, options, func(net.Addr) { fmt.Println(key) })
}

// testKey returns the key in the file, which is created at the first start.
func testKey(ctx context.Context, file string, config cloud.Config, options cloud.Options) (string, error) {
	if key, err := os.ReadFile(file); err == nil {
		return string(key), nil
	}
	s, err := cloud.New(ctx, config, options)
	if err != nil {
		return "", err
	}
	defer s.Close()
	org, err := s.Store().OrgBySlug(ctx, "acme")
	if err != nil {
		return "", err
	}
	alice, err := s.Store().UserByEmail(ctx, org.ID, "alice@acme.test")
	if err != nil {
		return "", err
	}
	key, _, err := s.Auth().NewKey(ctx, auth.KeySpec{OrgID: org.ID, UserID: alice.ID, Kind: snap.UserKey, Name: "test"})
	return key, errors.Join(err, os.WriteFile(file, []byte(key), 0o600))
}

// gatewayProcess is this test's own S3 server, which can be killed.
type gatewayProcess struct {
	t       testing.TB
	command func() *exec.Cmd
	process *process
	address string
	url     string
	dir     string // of the bucket's objects
}

func startGateway(t testing.TB) *gatewayProcess {
	program := servertest.S3Program(t)
	g := &gatewayProcess{t: t, address: servertest.Address(t)}
	dir := t.TempDir()
	g.dir = filepath.Join(dir, "blobs")
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g.url = "s3://key:secret@blobs?endpoint=http://" + g.address
	g.command = func() *exec.Cmd {
		cmd := exec.Command(program, "--port", g.address, "--quiet", "posix", dir)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY=secret")
		return cmd
	}
	g.process = startProcess(t, g.command())
	g.ready()
	return g
}

func (g *gatewayProcess) restart() {
	g.process.kill()
	g.process = startProcess(g.t, g.command())
	g.ready()
}

// ready waits until the server accepts connections.
func (g *gatewayProcess) ready() {
	g.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); time.Since(began) < servertest.Patience; <-again.C {
		if c, err := net.Dial("tcp", g.address); err == nil {
			c.Close()
			return
		}
	}
	g.t.Fatal("the S3 server did not start")
}
