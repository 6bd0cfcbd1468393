package store_test

import (
	"testing"
	"time"

	"snap/internal/servertest"
	"snap/internal/store"
)

// Replicas measure their clocks against PostgreSQL's, and a replica that has ended does not count.
func TestClockSkewIsMeasured(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	running := func(d time.Duration) *store.Store {
		s, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time { return time.Now().Add(d) }})
		ok(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	right, late := running(0), running(-40*time.Second)
	ok(t, right.RecordRunning(t.Context(), "right"))
	skew := func() time.Duration {
		d, err := right.ClockSkew(t.Context())
		ok(t, err)
		return d
	}
	if d := skew(); d != 0 {
		t.Errorf("one replica differs from itself by %v", d)
	}
	ok(t, late.RecordRunning(t.Context(), "late"))
	if d := skew(); d < 35*time.Second || d > 45*time.Second {
		t.Errorf("measured %v, want 40s", d)
	}
	seen, err := store.Inspect(t.Context(), store.Options{URL: url})
	if err != nil || seen.Skew < 35*time.Second {
		t.Errorf("inspected %v, %v", seen.Skew, err)
	}
	ok(t, late.RecordStopped(t.Context(), "late"))
	if d := skew(); d != 0 {
		t.Errorf("measured %v after the other one stopped", d)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
