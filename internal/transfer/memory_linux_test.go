package transfer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/servertest"
)

// The memory of a transfer and of the folder store does not grow with the snapshot.
// Every process stays below 150 MiB, and a snapshot of ten times the size needs
// hardly more.
func TestMemoryIsFlat(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	b := newBattle(t, "")
	peaks := map[string][]int{}
	for n, size := range []int64{40 << 20, 400 << 20} {
		file := filepath.Join(t.TempDir(), "large.snap")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size); err != nil { // a hole reads as zeros
			t.Fatal(err)
		}
		req := api.PushRequest{
			Target: "shop", Name: fmt.Sprint("large-", n), Type: snap.TypeSnapshot, Engine: snap.SQLite,
			Size: size, SHA256: sumOfZeros(size),
		}
		if err := os.WriteFile(file+".json", mustJSON(req), 0o600); err != nil {
			t.Fatal(err)
		}
		id, peak := b.measured("push", file, "")
		peaks["push"] = append(peaks["push"], peak)
		_, peak = b.measured("pull", target(t), id)
		peaks["pull"] = append(peaks["pull"], peak)
		peaks["service"] = append(peaks["service"], peakOf(t, b.service.cmd.Process.Pid))
	}
	most, more := 150, 40 // MiB
	if servertest.Raced() {
		most, more = 300, 150
	}
	for who, p := range peaks {
		t.Logf("%s: %d MiB, then %d MiB", who, p[0], p[1])
		if p[1] > most || p[1] > p[0]+more {
			t.Errorf("%s takes %d MiB for 40 MiB and %d MiB for 400 MiB", who, p[0], p[1])
		}
	}
}

func sumOfZeros(size int64) string {
	sum, block := sha256.New(), make([]byte, 1<<20)
	for ; size > 0; size -= int64(len(block)) {
		sum.Write(block[:min(size, int64(len(block)))])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// measured runs a client and returns the ID and the client's peak memory in MiB.
func (b *battle) measured(role, file, id string) (string, int) {
	b.t.Helper()
	report := filepath.Join(b.t.TempDir(), "peak")
	client := b.start(role, "SNAP_TEST_FILE="+file, "SNAP_TEST_ID="+id, "SNAP_TEST_PEAK="+report)
	if !client.wait() {
		b.t.Fatalf("%s failed: %s", role, client.line())
	}
	status, err := os.ReadFile(report)
	if err != nil {
		b.t.Fatal(err)
	}
	return client.line(), peakIn(b.t, string(status))
}

// writePeak writes this process's status to a file for the test that started it.
func writePeak() error {
	report := os.Getenv("SNAP_TEST_PEAK")
	if report == "" {
		return nil
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	return os.WriteFile(report, status, 0o600)
}

func peakOf(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return peakIn(t, string(status))
}

func peakIn(t testing.TB, status string) int {
	t.Helper()
	_, rest, found := strings.Cut(status, "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil || !found {
		t.Fatalf("no peak in the status: %v", err)
	}
	return kib >> 10
}
