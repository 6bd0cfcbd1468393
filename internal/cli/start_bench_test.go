package cli

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkStart reports the median time, in milliseconds, of the commands that need nothing but
// the program.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "snapcli")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program,
		"../../cmd/snapcli")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, arg := range []string{"version", "--help"} {
		var passed []time.Duration
		for range 50 {
			began := time.Now()
			if err := exec.CommandContext(b.Context(), program, arg).Run(); err != nil {
				b.Fatal(err)
			}
			passed = append(passed, time.Since(began))
		}
		slices.Sort(passed)
		b.ReportMetric(float64(passed[len(passed)/2].Microseconds())/1000, arg+"-ms")
	}
	for b.Loop() { // the metrics are the result
	}
}
