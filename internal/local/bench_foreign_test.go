//go:build linux

package local

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap/internal/servertest"
)

// BenchmarkForeignLoad loads the databases of the other benchmarks alternately as
// the user's own and as somebody else's. It reports the time of the foreign load as
// a multiple of the other: elapsed time (the best of the rounds), and processor
// time (of all rounds, for snapcli and the server together). SNAP_BENCH_DATABASE
// and SNAP_BENCH_ROUNDS are those of [BenchmarkPostgres].
func BenchmarkForeignLoad(b *testing.B) {
	size := fromEnv("SNAP_BENCH_DATABASE", 100)
	b.Run("postgres", func(b *testing.B) {
		from := servertest.Postgres(b)
		fillMixed(b, from, size)
		benchForeign(b, from, servertest.Postgres(b), postmaster(b, from))
	})
	b.Run("pgbench", func(b *testing.B) {
		from := servertest.Postgres(b)
		tool(b, "pgbench", "-i", "-q", "-s", strconv.Itoa(max(1, size/9)), from)
		benchForeign(b, from, servertest.Postgres(b), postmaster(b, from))
	})
	b.Run("mariadb", func(b *testing.B) {
		from := servertest.MariaDB(b)
		db := openMySQL(b, from)
		defer db.Close()
		for _, statement := range strings.Split(strings.ReplaceAll(mixedMySQL, "{n}", strconv.Itoa(size)), ";\n") {
			if _, err := db.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
		var path string
		if err := db.QueryRow("SELECT @@pid_file").Scan(&path); err != nil {
			b.Fatal(err)
		}
		pid, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		benchForeign(b, from, servertest.MariaDB(b), strings.TrimSpace(string(pid)))
	})
	b.Run("sqlite", func(b *testing.B) {
		dir := b.TempDir()
		from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
		run(b, from, strings.ReplaceAll(mixedSQLite, "{n}", strconv.Itoa(size)))
		run(b, to, "CREATE TABLE old (a)")
		benchForeign(b, "sqlite://"+from, "sqlite://"+to, "")
	})
}

// postmaster returns the process that all processes of a server are children of.
func postmaster(b *testing.B, url string) string {
	b.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var pid string
	if err := db.QueryRow(`SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&pid); err != nil {
		b.Fatal(err)
	}
	return pid
}

func benchForeign(b *testing.B, from, to, server string) {
	p := pgBench{shop: newShop(b), from: from, to: to, took: map[string]time.Duration{},
		bytes: map[string]int64{}, peak: map[string]int64{}}
	if err := p.AddTarget(Target{Name: shopTarget, Source: from, Destination: to}); err != nil {
		b.Fatal(err)
	}
	built := p.act(b, "build", "")
	used := map[Origin]time.Duration{}
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			for _, origin := range []Origin{Mine, Theirs} {
				built.From = Provenance{Origin: origin}
				if err := p.writeRecord(built); err != nil {
					b.Fatal(err)
				}
				before := processorOf(b, server)
				p.measure(b, string(origin), func() {
					load := p.child(b, "load", childQuiet+"=yes")
					if out, err := load.CombinedOutput(); err != nil {
						b.Fatalf("load: %v\n%s", err, out)
					}
					used[origin] += load.ProcessState.UserTime() + load.ProcessState.SystemTime()
				})
				if strings.HasPrefix(to, "postgres:") {
					p.dropped(b)
				}
				used[origin] += processorOf(b, server) - before
			}
		}
	}
	for _, origin := range []Origin{Mine, Theirs} {
		b.Logf("%-8s %6.2f s, processor %6.2f s in all", origin, p.took[string(origin)].Seconds(),
			used[origin].Seconds())
	}
	b.ReportMetric(p.took[string(Theirs)].Seconds()/p.took[string(Mine)].Seconds(), "foreign/mine")
	b.ReportMetric(used[Theirs].Seconds()/used[Mine].Seconds(), "foreign/mine-cpu")
	b.ReportMetric(0, "ns/op")
}

// processorOf returns the processor time of a process and of its ended children. It
// returns 0 for "".
func processorOf(b *testing.B, pid string) time.Duration {
	b.Helper()
	if pid == "" {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0 // it has ended
	}
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
