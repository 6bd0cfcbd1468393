package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"snap"
	"snap/api"
	"snap/internal/disk"
	"snap/internal/servertest"
)

// BenchmarkPeers compares this program with rclone, MinIO's client and the AWS
// transfer manager. All of them push and pull files over the same S3-compatible
// server, in separate processes that alternate in one run. It reports the best rate
// of a few rounds, the processor seconds per GiB and the peak memory of each
// client.
//
// Our side includes everything: the service plans, checks and redirects, a push
// hashes, and a pull verifies the SHA-256 and syncs. The peers verify only as much
// as they do on their own. Each peer runs once with its own defaults and once with
// our number of connections and part size, and the better result counts for each
// figure. The files that they fetch are synced afterwards within their measured
// time, including the folder, so that all results are equally durable.
//
// The figures with "verified" compare equal work. They add to the peers' time and
// processor time the computation of the whole file's SHA-256, before a push and
// after a pull, with the same code as ours.
//
// A peer that fails is reported and left out. For example, at 4 GiB versitygw over
// ext4 refuses the number of parts that rclone uses by default.
//
// The limits verify nothing. They are a copy of the file with fsync, and plain
// requests for the same bytes through the same server.
//
// SNAP_BENCH_PEER_MIB sets the sizes in MiB (1024,4096 by default), and
// SNAP_BENCH_ROUNDS the number of rounds (3 by default). The programs are those
// that `make bench` builds from tools/transferpeers, or those in SNAP_PEERS.
func BenchmarkPeers(b *testing.B) {
	programs := peerPrograms(b)
	for text := range strings.SplitSeq(orElse(os.Getenv("SNAP_BENCH_PEER_MIB"), "1024,4096"), ",") {
		mib, err := strconv.Atoi(text)
		if err != nil {
			b.Fatalf("SNAP_BENCH_PEER_MIB: %v", err)
		}
		for _, kind := range []string{"incompressible", "compressible"} {
			b.Run(fmt.Sprintf("%d-MiB/%s", mib, kind), func(b *testing.B) {
				c := newContest(b, programs, int64(mib)<<20, kind)
				c.race("push", c.pushers())
				c.race("pull", c.pullers())
			})
		}
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// peerPrograms returns the folder of the peers' programs, or skips the benchmark.
func peerPrograms(b *testing.B) string {
	b.Helper()
	dir := orElse(os.Getenv("SNAP_PEERS"), filepath.Join(servertest.Root(b), "bin", "peers"))
	for _, name := range []string{"rclone", "mc", "awstm"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			b.Skip("needs rclone, mc and awstm: run `make bin/peers`, or set SNAP_PEERS to their folder")
		}
	}
	return dir
}

// contest is one file, one server and all contestants that transfer the file.
type contest struct {
	b        *testing.B
	programs string
	battle   *battle
	gateway  *gatewayProcess
	client   *minio.Core
	file     string
	req      api.PushRequest
	key      string // of the object that is pulled
	serial   int
	results  map[string]result
}

// result is the best of a contestant's rounds.
type result struct {
	work
	verified work // including the file's SHA-256, which ours always computes
	memory   int  // MiB
	failed   error
}

// work is the cost of a transfer.
type work struct {
	rate float64 // bytes per second
	cpu  float64 // seconds per GiB
}

// and returns the cost of two pieces of work on the same bytes, one after the other.
func (w work) and(other work) work {
	return work{1 / (1/w.rate + 1/other.rate), w.cpu + other.cpu}
}

// best returns the better value of each figure.
func (w work) best(other work) work { return work{max(w.rate, other.rate), min(w.cpu, other.cpu)} }

func (r result) best(other result) result {
	return result{r.work.best(other.work), r.verified.best(other.verified), min(r.memory, other.memory), nil}
}

// contestant transfers the file once and returns the cost.
type contestant struct {
	name string // "rclone" and "rclone tuned" are one peer
	run  func() result
}

func newContest(b *testing.B, programs string, size int64, kind string) *contest {
	b.Helper()
	needRoom(b, 4*size)
	gateway := startGateway(b)
	c := &contest{b: b, programs: programs, gateway: gateway, battle: newBattle(b, gateway.url, gateway)}
	c.file = filepath.Join(b.TempDir(), "data")
	c.req = api.PushRequest{
		Target: "shop", Type: snap.TypeSnapshot, Engine: snap.SQLite,
		Size: size, SHA256: generate(b, c.file, size, kind),
	}
	var err error
	c.client, err = minio.NewCore(gateway.address, &minio.Options{
		Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1",
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func needRoom(b *testing.B, size int64) {
	b.Helper()
	var room syscall.Statfs_t
	if err := syscall.Statfs(b.TempDir(), &room); err == nil && int64(room.Bavail)*room.Bsize < size {
		b.Skipf("needs %d GiB of disk: set SNAP_BENCH_PEER_MIB to less, or TMPDIR to a larger disk", size>>30)
	}
}

// generate writes the file and returns its SHA-256. A compressible file has rows of
// text that compress to about a fifth.
func generate(b *testing.B, path string, size int64, kind string) string {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	var source io.Reader = rand.NewChaCha8([32]byte{byte(size >> 20)})
	if kind == "compressible" {
		source = &rows{random: rand.New(rand.NewPCG(1, uint64(size)))}
	}
	sum := sha256.New()
	_, err = io.CopyN(io.MultiWriter(f, sum), source, size)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		b.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// rows is an endless table of customers.
type rows struct {
	random *rand.Rand
	left   []byte
	serial int
}

func (r *rows) Read(p []byte) (int, error) {
	for len(r.left) < len(p) {
		r.serial++
		r.left = fmt.Appendf(r.left, "%d\tcustomer-%d@example.test\t2026-01-%02d 00:00:00\t%s\tactive\n",
			r.serial, r.random.IntN(1e6), 1+r.random.IntN(28),
			[]string{"Berlin", "Lagos", "Lima", "Osaka"}[r.random.IntN(4)])
	}
	n := copy(p, r.left)
	r.left = append(r.left[:0], r.left[n:]...)
	return n, nil
}

// race runs all contestants alternately and compares them with ours.
func (c *contest) race(what string, all []contestant) {
	c.results = map[string]result{}
	rounds := max(1, number("SNAP_BENCH_ROUNDS", 3))
	for range rounds {
		for _, who := range all {
			syscall.Sync() // so that no data of the previous run is written in this one's time
			got := who.run()
			name, _, _ := strings.Cut(who.name, " ")
			if got.failed != nil && name != "ours" {
				fmt.Printf("%4d MiB  %s  %-18s fails: %v\n", c.req.Size>>20, what, who.name, got.failed)
				continue
			}
			if got.failed != nil {
				c.b.Fatal(got.failed)
			}
			best := got
			if before, again := c.results[name]; again {
				best = got.best(before)
			}
			c.results[name] = best
			// Not b.Log, which keeps only ten lines.
			fmt.Printf("%4d MiB  %s  %-18s %5.0f MB/s %6.2f CPU s/GiB %4d MiB  verified %5.0f MB/s %6.2f CPU s/GiB\n",
				c.req.Size>>20, what, who.name,
				got.rate/1e6, got.cpu, got.memory, got.verified.rate/1e6, got.verified.cpu)
		}
	}
	c.report(what)
}

// report reports ratios. A rate above 1 is faster than the fastest peer. A CPU or
// memory ratio below 1 is less than that of the best peer.
func (c *contest) report(what string) {
	ours, limit := c.results["ours"], c.results["limit-disk"].rate
	var peers *result
	for name, r := range c.results {
		switch {
		case strings.HasPrefix(name, "limit"):
			limit = min(limit, r.rate)
		case name == "ours":
		case peers == nil:
			peers = &r
		default:
			*peers = peers.best(r)
		}
	}
	c.b.ReportMetric(ours.rate/1e6, what+"-MB/s")
	if peers == nil {
		c.b.Log("no peer works here")
		return
	}
	c.b.ReportMetric(ours.rate/peers.rate, what+"-of-best-peer")
	c.b.ReportMetric(ours.verified.rate/peers.verified.rate, what+"-verified-of-best-peer")
	c.b.ReportMetric(ours.rate/limit, what+"-of-limit")
	c.b.ReportMetric(ours.cpu, what+"-cpu-s/GiB")
	c.b.ReportMetric(ours.cpu/peers.cpu, what+"-cpu-of-least")
	c.b.ReportMetric(ours.verified.cpu/peers.verified.cpu, what+"-verified-cpu-of-least")
	c.b.ReportMetric(float64(ours.memory), what+"-MiB")
	c.b.ReportMetric(float64(ours.memory)/float64(peers.memory), what+"-memory-of-least")
}

// pushers returns the contestants that push the file.
func (c *contest) pushers() []contestant {
	put := func(name string, env []string, args ...string) contestant {
		return contestant{name, func() result {
			defer c.empty()
			digest := c.digest(c.file)
			r := c.measure(c.program(env, args...), nil)
			r.verified = digest.and(r.work)
			return r
		}}
	}
	return []contestant{
		{"limit-disk", func() result { return c.copySynced(false) }},
		{"limit-disk direct", func() result { return c.copySynced(true) }},
		{"limit-put", func() result { defer c.empty(); return c.plainPut() }},
		{"ours", func() result { defer c.empty(); return c.push() }},
		put("rclone", nil, "rclone", "copyto", c.file, ":s3:blobs/peer"),
		put("rclone tuned", nil, "rclone", "copyto", "--s3-upload-concurrency=4", "--s3-chunk-size=16M", c.file,
			":s3:blobs/peer"),
		put("mc", nil, "mc", "--quiet", "cp", c.file, "peer/blobs/peer"),
		put("mc tuned", nil, "mc", "--quiet", "put", "--parallel=4", "--part-size=16MiB", c.file, "peer/blobs/peer"),
		put("aws", nil, "awstm", "put", c.file, "blobs", "peer"),
		put("aws tuned", tunedAWS(), "awstm", "put", c.file, "blobs", "peer"),
	}
}

func tunedAWS() []string { return []string{"AWSTM_JOBS=4", "AWSTM_PART_MIB=16"} }

// pullers returns the contestants that fetch one object, which ours has pushed.
func (c *contest) pullers() []contestant {
	if r := c.push(); r.failed != nil {
		c.b.Fatal(r.failed)
	}
	listed, err := c.battle.client.Snapshots(c.b.Context(), api.ListOptions{Limit: 1})
	if err != nil || len(listed.Items) != 1 {
		c.b.Fatalf("%v, %v", listed.Items, err)
	}
	c.key = listed.Items[0].ID
	got := filepath.Join(c.b.TempDir(), "got")
	get := func(name string, env []string, args ...string) contestant {
		return contestant{name, func() result {
			defer os.Remove(got)
			r := c.measure(c.program(env, args...), func() error { return syncFile(got) })
			if r.failed == nil {
				r.verified = r.and(c.digest(got))
			}
			return r
		}}
	}
	return []contestant{
		{"limit-disk", func() result { return c.copySynced(false) }},
		{"limit-disk direct", func() result { return c.copySynced(true) }},
		{"limit-get", c.plainGet},
		{"ours", func() result {
			defer os.Remove(got)
			return c.measure(c.battle.command("pull", "SNAP_TEST_FILE="+got, "SNAP_TEST_ID="+c.key,
				"SNAP_TEST_PIECE=0"), nil)
		}},
		get("rclone", nil, "rclone", "copyto", ":s3:blobs/"+c.key, got),
		get("rclone tuned", nil, "rclone", "copyto", "--multi-thread-streams=4", "--multi-thread-chunk-size=16M",
			":s3:blobs/"+c.key, got),
		get("mc", nil, "mc", "--quiet", "cp", "peer/blobs/"+c.key, got),
		get("mc get", nil, "mc", "--quiet", "get", "peer/blobs/"+c.key, got),
		get("aws", nil, "awstm", "get", "blobs", c.key, got),
		get("aws tuned", tunedAWS(), "awstm", "get", "blobs", c.key, got),
	}
}

// program returns a peer's process, configured for the server in the way that each peer needs.
func (c *contest) program(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.programs, args[0]), args[1:]...)
	home := c.b.TempDir()
	cmd.Env = append([]string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home,
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "AWS_ENDPOINT_URL=http://" + c.gateway.address,
		"MC_HOST_peer=http://key:secret@" + c.gateway.address, "MC_CONFIG_DIR=" + home,
		"RCLONE_S3_PROVIDER=Other", "RCLONE_S3_ENV_AUTH=true", "RCLONE_S3_REGION=us-east-1",
		"RCLONE_S3_ENDPOINT=http://" + c.gateway.address,
		"RCLONE_CONFIG=/dev/null", "RCLONE_S3_NO_CHECK_BUCKET=true", "RCLONE_RETRIES=1", "RCLONE_LOW_LEVEL_RETRIES=1",
	}, env...)
	return cmd
}

// push runs our own push.
func (c *contest) push() result {
	c.serial++
	c.req.Name = "shop-" + strconv.Itoa(c.serial)
	if err := os.WriteFile(c.file+".json", mustJSON(c.req), 0o600); err != nil {
		c.b.Fatal(err)
	}
	return c.measure(c.battle.command("push", "SNAP_TEST_FILE="+c.file), nil)
}

// measure runs a client and then calls after, all within the measured time.
func (c *contest) measure(cmd *exec.Cmd, after func() error) result {
	c.b.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		c.b.Fatal(err)
	}
	defer time.AfterFunc(time.Minute+time.Duration(c.req.Size/(5<<20))*time.Second, func() {
		_ = cmd.Process.Kill() // in case it hangs
	}).Stop()
	over, peak := make(chan struct{}), make(chan int)
	go watchPeak(cmd.Process.Pid, over, peak)
	err := cmd.Wait()
	if err == nil && after != nil {
		err = after()
	}
	took := time.Since(start)
	close(over)
	if err != nil {
		return result{failed: fmt.Errorf("%s: %w\n%s", cmd.Path, err, said.Bytes())}
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	own := work{float64(c.req.Size) / took.Seconds(), cpu.Seconds() / c.gib()}
	return result{own, own, <-peak, nil}
}

func (c *contest) gib() float64 { return float64(c.req.Size) / (1 << 30) }

// watchPeak polls the peak memory of a process, in MiB. The figure that the system reports at the end
// of a process includes that of its parent.
func watchPeak(pid int, over <-chan struct{}, peak chan<- int) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	most := 0
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
			var kib int
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				most = max(most, kib>>10)
			}
		}
		select {
		case <-over:
			peak <- most
			return
		case <-look.C:
		}
	}
}

func syncFile(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// empty removes the bucket's objects.
func (c *contest) empty() {
	entries, err := os.ReadDir(c.gateway.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.gateway.dir, e.Name())))
	}
	if err != nil {
		c.b.Fatal(err)
	}
}

// copySynced measures how fast this machine's disk durably stores the file, through
// the system's cache or bypassing it.
func (c *contest) copySynced(direct bool) result {
	to := filepath.Join(c.b.TempDir(), "copy")
	defer os.Remove(to)
	return c.timed(func() error {
		from, err := os.Open(c.file)
		if err != nil {
			return err
		}
		defer from.Close()
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		defer f.Close()
		w := &copied{file: f}
		if direct {
			w.direct = disk.OpenDirect(to)
			defer w.direct.Close() // it may be nil; syncFile also syncs what it wrote
			err = disk.Preallocate(f, c.req.Size)
		}
		// Not ReadFrom, which may copy without touching the bytes.
		if _, copyErr := io.CopyBuffer(w, struct{ io.Reader }{from}, make([]byte, 4<<20)); errors.Join(err,
			copyErr) != nil {
			return errors.Join(err, copyErr)
		}
		return syncFile(to)
	})
}

// copied writes one block after the other.
type copied struct {
	file, direct *os.File
	offset       int64
}

func (w *copied) Write(p []byte) (int, error) {
	err := disk.WriteAt(w.file, w.direct, p, w.offset)
	w.offset += int64(len(p))
	return len(p), err
}

// plainPut sends the file in one request that nobody verifies.
func (c *contest) plainPut() result {
	u, err := c.client.PresignedPutObject(c.b.Context(), "blobs", "plain", time.Hour)
	if err != nil {
		c.b.Fatal(err)
	}
	return c.timed(func() error {
		f, err := os.Open(c.file)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.request(http.MethodPut, u, f, 0)
	})
}

// plainGet fetches the object in one request and discards it.
func (c *contest) plainGet() result {
	u, err := c.client.PresignedGetObject(c.b.Context(), "blobs", c.key, time.Hour, nil)
	if err != nil {
		c.b.Fatal(err)
	}
	return c.timed(func() error { return c.request(http.MethodGet, u, nil, c.req.Size) })
}

func (c *contest) request(method string, u *url.URL, body *os.File, want int64) error {
	var reader io.Reader
	if body != nil {
		reader = body
	}
	req, err := http.NewRequestWithContext(c.b.Context(), method, u.String(), reader)
	if err != nil {
		return err
	}
	if body != nil {
		req.ContentLength = c.req.Size
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || n != want) {
		err = fmt.Errorf("status %d and %d bytes", res.StatusCode, n)
	}
	return err
}

func (c *contest) timed(f func() error) result {
	c.b.Helper()
	before, start := processor(), time.Now()
	if err := f(); err != nil {
		c.b.Fatal(err)
	}
	took := time.Since(start)
	own := work{float64(c.req.Size) / took.Seconds(), (processor() - before).Seconds() / c.gib()}
	return result{own, own, 0, nil}
}

// digest returns the cost of verifying a file.
func (c *contest) digest(path string) work {
	c.b.Helper()
	return c.timed(func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20)); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != c.req.SHA256 {
			return fmt.Errorf("%s has other bytes", path)
		}
		return nil
	}).work
}
