package transfer_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
)

// BenchmarkMemory reports the peak memory of a client that pushes and pulls snapshots of several
// sizes in a separate process. The other side stores nothing: it discards pushed bytes and serves
// zeros.
//
// SNAP_BENCH_MEMORY_MIB sets the sizes in MiB (100,1024 by default). Pulled
// snapshots use the disk: 10 GiB for 10240.
func BenchmarkMemory(b *testing.B) {
	for text := range strings.SplitSeq(orElse(os.Getenv("SNAP_BENCH_MEMORY_MIB"), "100,1024"), ",") {
		mib, err := strconv.Atoi(text)
		if err != nil {
			b.Fatalf("SNAP_BENCH_MEMORY_MIB: %v", err)
		}
		b.Run(text+"-MiB", func(b *testing.B) {
			v := newVoid(b, int64(mib)<<20)
			b.ReportMetric(float64(v.run(b, "push", v.file)), "push-MiB")
			b.ReportMetric(float64(v.run(b, "pull", filepath.Join(b.TempDir(), "pulled"))), "pull-MiB")
		})
	}
}

// void is a service that stores nothing.
type void struct {
	server   *httptest.Server
	snapshot api.Snapshot
	file     string // the snapshot, a sparse file without data
}

func newVoid(b *testing.B, size int64) *void {
	b.Helper()
	v := &void{file: filepath.Join(b.TempDir(), "hole"), snapshot: api.Snapshot{
		ID: snap.NewSnapshotID(), Target: "shop", Name: "shop", Type: snap.TypeSnapshot, Engine: snap.SQLite,
		Size: size, SHA256: sumOfZeros(size),
	}}
	request := api.PushRequest{Target: "shop", Name: "shop", Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: size,
		SHA256: v.snapshot.SHA256}
	for name, content := range map[string][]byte{v.file: nil, v.file + ".json": mustJSON(request)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Truncate(v.file, size); err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots", answer(v.begin))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/parts", answer(v.parts))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/complete",
		answer(func(*http.Request, struct{}) (api.Snapshot, error) {
			return v.snapshot, nil
		}))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/pull",
		answer(func(*http.Request, struct{}) (api.PullResponse, error) {
			return api.PullResponse{Snapshot: v.snapshot, URL: v.server.URL + "/bytes"}, nil
		}))
	mux.HandleFunc("PUT /bytes", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("GET /bytes", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(zeros{}, 0, size))
	})
	v.server = httptest.NewServer(mux)
	b.Cleanup(v.server.Close)
	return v
}

func (v *void) begin(_ *http.Request, r api.PushRequest) (api.UploadPlan, error) {
	plan := api.UploadPlan{ID: v.snapshot.ID, PartSize: blob.PartSize(r.Size)}
	plan.Parts = int((r.Size + plan.PartSize - 1) / plan.PartSize)
	return plan, nil
}

func (v *void) parts(_ *http.Request, r api.PartsRequest) (out api.PartsResponse, err error) {
	for _, p := range r.Parts {
		out.URLs = append(out.URLs, api.SignedURL{Number: p.Number, Method: http.MethodPut, URL: v.server.URL +
			"/bytes"})
	}
	return out, nil
}

// zeros is an endless file of zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// run pushes or pulls in a process and returns its peak memory in MiB.
func (v *void) run(b *testing.B, role, file string) int {
	b.Helper()
	report := filepath.Join(b.TempDir(), "peak")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRole$", "-test.v=false")
	cmd.Env = append(os.Environ(), "SNAP_TEST_ROLE="+role,
		"SNAP_TEST_ADDRESS="+strings.TrimPrefix(v.server.URL, "http://"),
		"SNAP_TEST_KEY=key", "SNAP_TEST_ID="+v.snapshot.ID, "SNAP_TEST_FILE="+file, "SNAP_TEST_PIECE=0",
		"SNAP_TEST_PEAK="+report)
	if said, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", role, err, said)
	}
	status, err := os.ReadFile(report)
	if err != nil {
		b.Fatal(err)
	}
	if role == "pull" {
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
	}
	return peakIn(b, string(status))
}
