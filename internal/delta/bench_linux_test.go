package delta

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"

	"snap"
)

// BenchmarkRows reports the processor time of a delta in PostgreSQL's rows, of which 1 % were
// updated at random places, 5 % appended and 0.2 % deleted: to write it, to apply it, and, for
// comparison, to compress the same content in a build.
func BenchmarkRows(b *testing.B) {
	before := rows(600_000, 1)
	now := changed(before)
	base, content := pack(b, snap.Postgres, "a", joined(before)), joined(now)
	result := pack(b, snap.Postgres, "bb", content)
	d := write(b, base, result)
	b.Logf("%d bytes of content, %d of the file, %d of the delta", len(content), result.Size, len(d))
	for _, c := range []struct {
		name string
		do   func(b *testing.B)
	}{
		{"build", func(b *testing.B) { pack(b, snap.Postgres, "bb", content) }},
		{"write", func(b *testing.B) { write(b, base, result) }},
		{"apply", func(b *testing.B) {
			r := bytes.NewReader(d)
			h, err := ReadHeader(r)
			if err == nil {
				err = Apply(b.Context(), io.Discard, h, base.open(b), r)
			}
			if err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			used := processor(b)
			for b.Loop() {
				c.do(b)
			}
			b.ReportMetric((processor(b)-used).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// processor returns the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
