//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap/internal/servertest"
)

// BenchmarkClones clones and resets a database of mixed tables. In the same run it loads the same
// snapshot and runs other programs, and it reports the time of a clone as a share of the times of a
// load, of a reset and of each program. Each figure is the best of the rounds, whose steps
// alternate. Then the program itself creates its first clone, which loads the template, then one
// clone, a reset, a run from a warm pool and many clones at once. The benchmark reports the time of
// each and the maximum memory. SNAP_BENCH_DATABASE and SNAP_BENCH_ROUNDS are those of
// [BenchmarkPostgres]. SNAP_BENCH_CLONES is the number of clones created at once (50 by default, 0
// for none).
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

// benchClones measures clones of one database against the commands of peers. undo removes the results
// of a peer.
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
	s.benchProgram(b)
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

// benchProgram measures snapcli as its users run it.
func (s shop) benchProgram(b *testing.B) {
	program := filepath.Join(b.TempDir(), "snapcli")
	shell(b, fmt.Sprintf("cd %s && go build -o %s ./cmd/snapcli", servertest.Root(b), program))
	many := fromEnv("SNAP_BENCH_CLONES", 50)
	best, peak := map[string]time.Duration{}, int64(0)
	act := func(step string, args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "SNAPCLI_CONFIG_DIR="+s.dir, "SNAPCLI_DATA_DIR="+filepath.Join(s.dir, "data"))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ended := make(chan struct{})
		memory := memoryOf(cmd.Process.Pid, ended)
		err := cmd.Wait()
		took := time.Since(began)
		close(ended)
		most := <-memory
		if err != nil {
			b.Fatalf("%s: %v\n%s", step, err, said.String())
		}
		if step == "" {
			return
		}
		if best[step] == 0 || took < best[step] {
			best[step] = took
		}
		peak = max(peak, most)
		b.Logf("%-12s %8.0f ms %6d MiB", step, float64(took.Microseconds())/1000, most>>20)
	}
	act("", "config", "set", "targets."+shopTarget+".clones.max", strconv.Itoa(many+5))
	if err := s.dropTemplatesNow(b.Context()); err != nil {
		b.Fatal(err)
	}
	act("first", "clone", shopTarget, "--name", "first")
	for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
		act("program", "clone", shopTarget, "--name", "program")
		act("resetting", "reset", "program")
		act("", "clones", "drop", "program")
		act("", "clones", "warm", shopTarget, "--count", "1")
		act("run", "run", shopTarget, "--", "true")
	}
	drop := []string{"clones", "drop", "first"}
	if many > 0 {
		act("many", "clone", shopTarget, "--name", "many", "--count", strconv.Itoa(many))
		drop = append(drop, s.CloneNames()...)
		slices.Sort(drop[2:])
		drop = slices.Compact(drop)
	}
	act("", drop...)
	for step, took := range best {
		b.ReportMetric(took.Seconds()*1000, step+"-ms")
	}
	b.ReportMetric(float64(peak>>20), "MiB")
}

// memoryOf returns the maximum memory of a process in bytes. It reads the value every few
// milliseconds until the process has ended. The system's own count for a child begins with the
// memory of its parent.
func memoryOf(pid int, ended <-chan struct{}) <-chan int64 {
	result := make(chan int64, 1)
	go func() {
		var most int64
		again := time.NewTicker(2 * time.Millisecond)
		defer again.Stop()
		for {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
				most = max(most, peakMemory(string(text)))
			}
			select {
			case <-again.C:
			case <-ended:
				result <- most
				return
			}
		}
	}()
	return result
}

// peakMemory returns the maximum memory of a process in bytes, from its status.
func peakMemory(status string) int64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// dropTemplatesNow drops the templates, so that the next clone loads its snapshot.
func (s shop) dropTemplatesNow(ctx context.Context) error {
	all, err := s.clones().Templates()
	for _, one := range all {
		_, dropped := s.clones().DropTemplate(ctx, one)
		err = errors.Join(err, dropped)
	}
	return err
}
