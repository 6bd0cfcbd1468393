package servertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 returns the URL of a fresh, empty bucket on a real S3-compatible server:
// s3://KEY:SECRET@bucket?endpoint=http://127.0.0.1:port. All tests of one process share the server,
// which is started at the first call on a free loopback port and ends with the process. The server
// is versitygw, which serves a temporary folder. The program is $SNAP_VERSITYGW or bin/versitygw;
// if it is missing, the test is skipped.
func S3(t testing.TB) string {
	t.Helper()
	gateway := requireGateway(t)
	bucket := fmt.Sprintf("test-%d", gateway.buckets.Add(1))
	dir := filepath.Join(gateway.dir, "buckets", bucket)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return gateway.url(bucket)
}

// LockedS3 is like [S3], but the bucket has object lock. It also returns the bucket's name and a
// client that can try to remove objects.
func LockedS3(t testing.TB) (url string, client *minio.Client, bucket string) {
	t.Helper()
	gateway := requireGateway(t)
	bucket = fmt.Sprintf("locked-%d", gateway.buckets.Add(1))
	client = gateway.makeBucket(t, bucket, minio.MakeBucketOptions{ObjectLocking: true})
	return gateway.url(bucket), client, bucket
}

// VersionedS3 is like [S3], but starts a separate server for the test, and the bucket keeps object
// versions. It also returns the bucket's name and a client, for example to remove delete markers.
func VersionedS3(t testing.TB) (url string, client *minio.Client, bucket string) {
	t.Helper()
	g := startGateway(S3Program(t), true)
	if g.err != nil {
		t.Fatal(g.err)
	}
	t.Cleanup(func() { g.alive.Close() })
	bucket = "versioned"
	client = g.makeBucket(t, bucket, minio.MakeBucketOptions{})
	if err := client.EnableVersioning(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	return g.url(bucket), client, bucket
}

// url returns the URL of a bucket.
func (g *gateway) url(bucket string) string {
	return fmt.Sprintf("s3://%s:%s@%s?endpoint=http://127.0.0.1:%d", gatewayKey, gatewaySecret, bucket, g.port)
}

// makeBucket creates a bucket over the S3 API and returns the client.
func (g *gateway) makeBucket(t testing.TB, bucket string, o minio.MakeBucketOptions) *minio.Client {
	t.Helper()
	client, err := minio.New(fmt.Sprintf("127.0.0.1:%d", g.port),
		&minio.Options{Creds: credentials.NewStaticV4(gatewayKey, gatewaySecret, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), bucket, o); err != nil {
		t.Fatal(err)
	}
	return client
}

// S3Program returns the path of versitygw, for tests that run a server of their own, or skips the
// test.
func S3Program(t testing.TB) string {
	t.Helper()
	RequireServers(t, "an S3 server")
	program := os.Getenv("SNAP_VERSITYGW")
	if program == "" {
		program = filepath.Join(Root(t), "bin", "versitygw")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("needs an S3 server: run `make tools`, or set SNAP_VERSITYGW to a versitygw program")
	}
	return program
}

// The root account of the test server.
const (
	gatewayKey    = "test-key"
	gatewaySecret = "test-secret"
)

type gateway struct {
	dir     string
	port    int
	alive   io.Closer // the server ends when this is closed, at the latest when the process ends
	buckets atomic.Int64
	err     error

	versions bool // its buckets can keep versions
}

// sharedGateway is the S3 server of this process.
var (
	sharedGateway      *gateway
	startSharedGateway sync.Once
)

// requireGateway returns the S3 server of this process, or skips the test.
func requireGateway(t testing.TB) *gateway {
	t.Helper()
	program := S3Program(t)
	startSharedGateway.Do(func() {
		for range 3 { // another program may take the free port first
			if sharedGateway = startGateway(program, false); sharedGateway.err == nil {
				return
			}
		}
	})
	if sharedGateway.err != nil {
		t.Fatal(sharedGateway.err)
	}
	return sharedGateway
}

// watchGateway is a shell script that runs the server until the script's standard input ends, and
// then removes the server's folder.
const watchGateway = `"$1" --port "127.0.0.1:$3" --quiet $4 posix "$2/buckets" >"$2/log" 2>&1 </dev/null & pid=$!
read -r _; kill -KILL $pid; wait $pid; rm -rf "$2"`

func startGateway(program string, versions bool) *gateway {
	dir, err := os.MkdirTemp("", "servertest-s3-")
	if err != nil {
		return &gateway{err: err}
	}
	g := &gateway{dir: dir, versions: versions}
	if g.err = g.run(program); g.err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		g.err = fmt.Errorf("start versitygw: %w\n%s", g.err, log)
	}
	return g
}

func (g *gateway) run(program string) error {
	if err := os.Mkdir(filepath.Join(g.dir, "buckets"), 0o755); err != nil {
		return err
	}
	versions := ""
	if g.versions {
		versions = "--versions=" + filepath.Join(g.dir, "versions")
		if err := os.Mkdir(filepath.Join(g.dir, "versions"), 0o755); err != nil {
			return err
		}
	}
	var err error
	if g.port, err = freePort(); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", watchGateway, "sh", program, g.dir, fmt.Sprint(g.port), versions)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+gatewayKey, "ROOT_SECRET_KEY="+gatewaySecret)
	runApart(cmd)
	if g.alive, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return g.ready()
}

// ready waits until the server accepts connections.
func (g *gateway) ready() error {
	return waitReady(g.alive, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", g.port))
		if err != nil {
			return err
		}
		return c.Close()
	})
}
