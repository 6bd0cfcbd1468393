//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"snap/internal/servertest"
)

// diffNewest compares the two newest snapshots.
func diffNewest(ctx context.Context, a *Agent) error {
	all, err := a.Snapshots(shopTarget)
	if err != nil || len(all) < 2 {
		return errors.Join(err, fmt.Errorf("there are %d snapshots", len(all)))
	}
	d, err := a.Diff(ctx, all[1].Name, all[0].Name, DiffOptions{}, nil)
	if err == nil && d.Equal() {
		err = errors.New("no difference was found")
	}
	return err
}

// BenchmarkDiff compares two snapshots of a PostgreSQL table in which 1 % of the rows changed. It
// reports the time as a multiple of reading and verifying both files, and the memory.
// SNAP_BENCH_DIFF_ROWS is the number of rows.
func BenchmarkDiff(b *testing.B) {
	rows := fromEnv("SNAP_BENCH_DIFF_ROWS", 1_000_000)
	p := newPeerBench(b, servertest.Postgres(b), "", "")
	execute(b, p.from, fmt.Sprintf(`
		CREATE TABLE t (id bigint PRIMARY KEY, name text, email text, total numeric(10,2), at timestamptz);
		INSERT INTO t SELECT n, 'Customer number ' || n, md5(n::text) || '@example.test', n / 7.0,
			now() - n * interval '1 minute' FROM generate_series(1, %d) n`, rows))
	p.act(b, "build", "")
	execute(b, p.from, "UPDATE t SET name = name || ' changed' WHERE id % 100 = 0")
	p.act(b, "build", "")
	all, err := p.Snapshots(shopTarget)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			p.measure("read and verify", func() {
				for _, s := range all {
					if _, err := p.Verify(b.Context(), s.Name, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
			p.measure("diff", func() { p.act(b, "diff", "") })
		}
	}
	for name, took := range p.took {
		b.Logf("%-12s %6.2f s", name, took.Seconds())
	}
	b.ReportMetric(p.took["diff"].Seconds()/p.took["verify both"].Seconds(), "diff/verify")
	b.ReportMetric(float64(p.peak["diff"])/1e6, "diff-MB")
	b.ReportMetric(0, "ns/op")
}
