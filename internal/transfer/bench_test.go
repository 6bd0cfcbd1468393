package transfer_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"snap/internal/blob"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// BenchmarkBytes pushes and pulls one incompressible snapshot over both kinds of object store. In
// the same run it measures the limits of the machine: writing a file with fsync, and transferring
// the same bytes through the same server with one plain request that verifies nothing. Over S3 it
// also runs a peer of equal durability: MinIO's own client library. The peer pushes over as many
// connections as we do and pulls over one. It then syncs the pulled file and computes its SHA-256.
//
// SNAP_BENCH_MIB sets the size in MiB (256 by default).
func BenchmarkBytes(b *testing.B) {
	size := 256 << 20
	if mib, err := strconv.Atoi(os.Getenv("SNAP_BENCH_MIB")); err == nil {
		size = mib << 20
	}
	data := filepath.Join(b.TempDir(), "data")
	sum := writeRandom(b, data, int64(size))
	disk := bench(b, "limit/write+fsync", size, 0, 0, func(b *testing.B) { writeSynced(b, data) })
	b.Run("folder", func(b *testing.B) { benchStorage(b, newService(b), data, sum, int64(size), disk, peer{}) })
	b.Run("s3", func(b *testing.B) {
		rawURL := servertest.S3(b)
		benchStorage(b, newS3Service(b, rawURL), data, sum, int64(size), disk, newPeer(b, rawURL, data, int64(size)))
	})
}

func benchStorage(b *testing.B, s *service, data, sum string, size int64, disk float64, p peer) {
	s.partLen = blob.PartSize(size)
	crc := fileCRC(b, data)
	put := bench(b, "limit/put", int(size), 0, 0, func(b *testing.B) { s.plainPut(b, data, crc, size) })
	_, req := writeFile(b, []byte("x"))
	req.Size, req.SHA256 = size, sum
	serial := 0
	bench(b, "push", int(size), min(disk, put), p.put, func(b *testing.B) {
		serial++
		req.Name = "shop-" + strconv.Itoa(serial)
		if _, err := transfer.Upload(b.Context(), s.client(), data, req, transfer.Options{}); err != nil {
			b.Fatal(err)
		}
	})
	up, err := transfer.Upload(b.Context(), s.client(), data, req, transfer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	get := bench(b, "limit/get", int(size), 0, 0, func(b *testing.B) { s.plainGet(b, up.ID, size) })
	bench(b, "pull", int(size), min(disk, get), p.get, func(b *testing.B) {
		if _, _, err := transfer.Download(b.Context(), s.client(), up.ID, filepath.Join(b.TempDir(), "x.snap"),
			transfer.Options{}); err != nil {
			b.Fatal(err)
		}
	})
}

// bench runs f and returns its best rate in bytes per second. It reports the
// processor seconds per GiB of the client and the folder store together, and the
// ratio of the best rate to a limit.
func bench(b *testing.B, name string, size int, limit, peer float64, f func(b *testing.B)) float64 {
	var best float64
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(size))
		before := processor()
		for b.Loop() {
			start := time.Now()
			f(b)
			best = max(best, float64(size)/time.Since(start).Seconds())
		}
		b.ReportMetric((processor()-before).Seconds()/float64(b.N)/(float64(size)/(1<<30)), "cpu-s/GiB")
		if limit > 0 {
			b.ReportMetric(best/limit, "of-limit")
		}
		if peer > 0 {
			b.ReportMetric(best/peer, "of-peer")
		}
	})
	return best
}

func writeRandom(b *testing.B, path string, size int64) (sum string) {
	b.Helper()
	content := random(int(size), 99)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		b.Fatal(err)
	}
	return sumOf(content)
}

func writeSynced(b *testing.B, data string) {
	b.Helper()
	from, err := os.Open(data)
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(b.TempDir(), "copy"))
	if err != nil {
		b.Fatal(err)
	}
	// Not ReadFrom, which may copy without touching the bytes.
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 1<<20))
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		b.Fatal(err)
	}
}

// plainPut sends the file as the only part of an upload that is then dropped.
func (s *service) plainPut(b *testing.B, data, crc string, size int64) {
	b.Helper()
	id, err := s.store.Begin(b.Context(), "plain", size, size)
	if err != nil {
		b.Fatal(err)
	}
	defer s.store.Abort(context.WithoutCancel(b.Context()), "plain", id)
	signed, err := s.store.SignPart(b.Context(), "plain", id, blob.Part{Number: 1, CRC64: crc}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(data)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	req, err := http.NewRequestWithContext(b.Context(), signed.Method, signed.URL, file)
	if err != nil {
		b.Fatal(err)
	}
	req.ContentLength = size
	for name, value := range signed.Headers {
		req.Header.Set(name, value)
	}
	s.plain(b, req, 0)
}

// plainGet fetches the object in one response and discards it.
func (s *service) plainGet(b *testing.B, id string, size int64) {
	b.Helper()
	got, err := s.client().Pull(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, got.URL, nil)
	if err != nil {
		b.Fatal(err)
	}
	s.plain(b, req, size)
}

func (s *service) plain(b *testing.B, req *http.Request, size int64) {
	b.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != http.StatusOK || n != size {
		b.Fatalf("status %d, %d bytes, %v", res.StatusCode, n, err)
	}
}

func fileCRC(b *testing.B, path string) string {
	b.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(content)))
}

// peer is another client's rate in bytes per second.
type peer struct{ put, get float64 }

func newPeer(b *testing.B, rawURL, data string, size int64) (p peer) {
	u, err := url.Parse(rawURL)
	if err != nil {
		b.Fatal(err)
	}
	secret, _ := u.User.Password()
	client, err := minio.New(strings.TrimPrefix(u.Query().Get("endpoint"), "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(u.User.Username(), secret, ""), Region: "us-east-1",
	})
	if err != nil {
		b.Fatal(err)
	}
	p.put = bench(b, "peer/put", int(size), 0, 0, func(b *testing.B) {
		_, err := client.FPutObject(b.Context(), u.Host, "peer", data,
			minio.PutObjectOptions{NumThreads: 4, PartSize: 16 << 20})
		if err != nil {
			b.Fatal(err)
		}
	})
	p.get = bench(b, "peer/get+sync+sha256", int(size), 0, 0, func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "x")
		if err := client.FGetObject(b.Context(), u.Host, "peer", file, minio.GetObjectOptions{}); err != nil {
			b.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	})
	return p
}

// newS3Service returns the service over S3.
func newS3Service(t testing.TB, rawURL string) *service {
	store, err := blob.OpenS3(t.Context(), rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, pushes: map[string]*push{}, partLen: 5 << 20, store: store}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	s.public = s.server.URL
	return s
}
