package webui

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"snap"
	"snap/internal/local"
)

// BenchmarkSnapshotsPage asks for the first page over real HTTP, with a
// thousand snapshots on this machine.
func BenchmarkSnapshotsPage(b *testing.B) {
	u := openUI(b, nil, "")
	now := time.Now()
	for i := range 1000 {
		record(b, u, local.Snapshot{Target: "shop", Name: fmt.Sprintf("shop-%04d", i), Type: snap.TypeSnapshot,
			Engine: snap.SQLite, Size: 1, SHA256: fmt.Sprintf("%064d", i),
			Created: now.Add(-time.Duration(i) * time.Minute)})
	}
	for b.Loop() {
		if a := u.get("/snapshots?show=local"); a.Status != http.StatusOK {
			b.Fatal(a.Status)
		}
	}
}
