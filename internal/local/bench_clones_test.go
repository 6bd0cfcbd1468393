//go:build linux

package local

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap/internal/servertest"
)

// BenchmarkClones clones and resets a database of mixed tables, and compares that in one run with a
// load of the same snapshot and with other programs: how long a clone or reset takes, as a share of
// theirs. Each takes the best of the rounds, whose steps alternate. SNAP_BENCH_DATABASE and
// SNAP_BENCH_ROUNDS are those of [BenchmarkPostgres].
func BenchmarkClones(b *testing.B) {
	size := fromEnv("SNAP_BENCH_DATABASE", 100)
	b.Run("postgres", func(b *testing.B) {
		from, to := servertest.Postgres(b), servertest.Postgres(b)
		fillMixed(b, from, size)
		dump := filepath.Join(b.TempDir(), "dump")
		shell(b, fmt.Sprintf("%s/pg_dump -Fc -Z0 -f %s '%s'", servertest.PostgresBin(), dump, from))
		u, err := url.Parse(from)
		if err != nil {
			b.Fatal(err)
		}
		at := fmt.Sprintf("-h 127.0.0.1 -p %s -U postgres", u.Port())
		bin := servertest.PostgresBin()
		benchClones(b, from, to, map[string]string{
			"createdb-T": fmt.Sprintf("%s/createdb %s -T %s copied", bin, at, strings.Trim(u.Path, "/")),
			"pg_restore": fmt.Sprintf("%s/createdb %s copied && %[1]s/pg_restore %[2]s -j2 -d copied %s", bin, at,
				dump),
		}, fmt.Sprintf("%s/dropdb %s copied", bin, at))
	})
	b.Run("mariadb", func(b *testing.B) {
		from, to := servertest.MariaDB(b), servertest.MariaDB(b)
		db := openMySQL(b, from)
		for _, statement := range strings.Split(strings.ReplaceAll(mixedMySQL, "{n}", strconv.Itoa(size)), ";\n") {
			if _, err := db.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
		db.Close()
		u, err := url.Parse(from)
		if err != nil {
			b.Fatal(err)
		}
		at := fmt.Sprintf("--no-defaults -h 127.0.0.1 -P %s -u root", u.Port())
		dump := filepath.Join(b.TempDir(), "dump.sql")
		shell(b, fmt.Sprintf("mariadb-dump %s --hex-blob %s >%s", at, strings.Trim(u.Path, "/"), dump))
		benchClones(b, from, to, map[string]string{
			"mariadb": fmt.Sprintf("mariadb %s -e 'CREATE DATABASE copied' && mariadb %[1]s copied <%s", at, dump),
		}, fmt.Sprintf("mariadb %s -e 'DROP DATABASE copied'", at))
	})
	b.Run("sqlite", func(b *testing.B) {
		dir := b.TempDir()
		from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
		run(b, from, strings.ReplaceAll(mixedSQLite, "{n}", strconv.Itoa(size)))
		run(b, to, "CREATE TABLE old (a)")
		benchClones(b, "sqlite://"+from, "sqlite://"+to, map[string]string{
			"cp": fmt.Sprintf("cp %s %s/copied", from, dir),
		}, fmt.Sprintf("rm %s/copied", dir))
	})
}

func shell(b *testing.B, command string) {
	b.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v", command, err)
	}
}

// benchClones measures clones of one database against the commands of peers. undo removes what a
// peer has made.
func benchClones(b *testing.B, from, to string, peers map[string]string, undo string) {
	s := newShop(b)
	if err := s.AddTarget(Target{Name: shopTarget, Source: from, Destination: to}); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Build(b.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		b.Fatal(err)
	}
	best := map[string]time.Duration{}
	measure := func(step string, f func() error) {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatalf("%s: %v", step, err)
		}
		if took := time.Since(began); best[step] == 0 || took < best[step] {
			best[step] = took
		}
	}
	ctx := b.Context()
	clone := func() error { return second(s.Clone(ctx, shopTarget, CloneOptions{Name: "one"}, nil)) }
	measure("template", clone)
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			measure("load", func() error { return second(s.Load(ctx, shopTarget, LoadOptions{}, nil)) })
			measure("reset", func() error { return second(s.ResetClone(ctx, "one", CloneOptions{}, nil)) })
			if err := s.DropClone(ctx, "one"); err != nil {
				b.Fatal(err)
			}
			measure("clone", clone)
			for name, command := range peers {
				measure(name, func() error { shell(b, command); return nil })
				shell(b, undo)
			}
		}
	}
	for step, took := range best {
		b.Logf("%-12s %8.0f ms", step, float64(took.Microseconds())/1000)
		if step != "clone" && step != "template" {
			b.ReportMetric(best["clone"].Seconds()/took.Seconds(), "clone/"+step)
		}
	}
	if err := s.DropClone(ctx, "one"); err != nil {
		b.Fatal(err)
	}
	all, err := s.Snapshots("")
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range all {
		if err := s.DeleteSnapshot(one.Name); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := s.SweepClones(ctx); err != nil {
		b.Fatal(err)
	}
}
