// Package servertest gives tests real servers and real data, or skips a test and names the missing
// program. It is imported by tests only.
package servertest

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// Root returns the repository's root folder: the nearest folder above the test's that has a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}

// Samples returns the folder shared/samples next to the repository, which has sample databases. It
// skips the test if the folder is missing.
func Samples(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), "..", "shared", "samples")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs the sample databases: ../shared/samples is not there")
	}
	return dir
}

// RequireServers skips a test that uses a server or a browser when the tests run with -short, as
// `make check` does.
func RequireServers(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out tests with " + what)
	}
}

// Thorough skips a test that takes seconds of processor time when the tests run with -short, as
// `make check` does.
func Thorough(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out thorough tests")
	}
}

// CollectLess makes a test process collect garbage less often, which saves processor time. Tests
// that start services or servers call it. It has no effect in benchmarks, or if the environment
// sets GOGC.
var CollectLess = sync.OnceFunc(func() {
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(300)
})

// Raced reports whether the test runs with the race detector, which multiplies the memory that a
// program needs.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Hostile returns how long a test attacks a server with generated dumps: the duration in
// SNAP_HOSTILE, or a second.
func Hostile(t testing.TB) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv("SNAP_HOSTILE"), "1s"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
