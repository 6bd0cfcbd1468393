//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// childAction is the environment variable with the action that a child process of the tests runs
// before it is killed.
const childAction = "SNAPCLI_TEST_ACTION"

// childQuiet stops the child from printing its progress. Benchmarks set it, because
// reading every line would take time from the server.
const childQuiet = "SNAPCLI_TEST_QUIET"

// childInto is the variable that says how a child's load fills the destination.
const childInto = "SNAPCLI_TEST_INTO"

// childDelta is the variable with the file of the delta that a child writes or applies.
const childDelta = "SNAPCLI_TEST_DELTA"

func TestMain(m *testing.M) {
	action := os.Getenv(childAction)
	if action == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	a, err := Open(Options{})
	if err == nil {
		fmt.Println("ready")
		var progress Progress
		if os.Getenv(childQuiet) == "" {
			progress = func(e Event) { fmt.Println(e.Phase) }
		}
		switch action {
		case "build":
			_, err = a.Build(ctx, shopTarget, BuildOptions{}, progress)
		case "sanitize":
			_, err = a.Sanitize(ctx, shopTarget, SanitizeOptions{SQL: os.Getenv("SNAPCLI_TEST_SQL"),
				Rules: os.Getenv("SNAPCLI_TEST_RULES")}, progress)
		case "load":
			// The server may not yet have ended the sessions of the previous load, which was killed.
			into := engine.Into(fromEnv(childInto, 0))
			_, err = a.Load(ctx, shopTarget, LoadOptions{Into: into, Terminate: true}, progress)
		case "diff":
			err = diffNewest(ctx, a)
		case "write delta":
			err = writeNewestDelta(ctx, a, os.Getenv(childDelta))
		case "apply delta":
			err = applyNewestDelta(ctx, a, os.Getenv(childDelta))
		case "clones":
			err = liveClones(ctx, a, progress)
		case "night":
			err = liveNight(ctx, a)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		os.Stdout.Write(status) // has the maximum memory, for benchmarks
	}
	os.Exit(0)
}

// child returns a process that runs an action.
func (s shop) child(t testing.TB, action string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), childAction+"="+action, "SNAPCLI_CONFIG_DIR="+s.dir,
		"SNAPCLI_DATA_DIR="+filepath.Join(s.dir, "data"))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// steps runs an action in a child and counts its lines of progress. The child can be killed at each of
// them.
func (s shop) steps(t *testing.T, action string, env ...string) int {
	t.Helper()
	out, err := s.child(t, action, env...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("%s: %v: %s", action, err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	progress, _, _ := strings.Cut(string(out), "Name:") // the rest is the status of the process
	return strings.Count(progress, "\n")
}

// killedAt runs an action in a child and kills it a moment after a number of lines
// of progress. It returns false if the child ended by itself.
func (s shop) killedAt(t *testing.T, action string, lines int, moment time.Duration, env ...string) (killed bool) {
	t.Helper()
	cmd := s.child(t, action, env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := readLines(out, lines)
	if read == lines {
		<-time.After(moment)
		_ = cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil {
		return false
	}
	if said.Len() > 0 {
		t.Fatalf("%s: %s", action, said.String())
	}
	return true
}

func readLines(r io.Reader, n int) (read int) {
	b := make([]byte, 1)
	for read < n {
		if _, err := r.Read(b); err != nil {
			return read
		}
		if b[0] == '\n' {
			read++
		}
	}
	return read
}

// Actions are killed at many points. A load leaves the complete old or new
// database. A build or sanitize leaves a good snapshot or none. The next command
// works and removes the remains. SNAP_KILL_ROUNDS sets the number of rounds.
func TestKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rounds := fromEnv("SNAP_KILL_ROUNDS", 12)
	s := newShop(t)
	run(t, s.source,
		"CREATE TABLE bulk (v); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000) INSERT "+
			"INTO bulk SELECT randomblob(1000) FROM c")
	bySQL := "SNAPCLI_TEST_SQL=" + s.sqlFile(t, "UPDATE customer SET email = 'masked'")
	byRules := "SNAPCLI_TEST_RULES=" + s.rulesFile(t,
		"keep: ['*']\ntables:\n  customer: {columns: {email: {mask: email, shared: true}}}\n")
	r := rand.New(rand.NewPCG(1, 2))
	first, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
		action := []string{"load", "build", "sanitize"}[round%3]
		lines, moment := 1+r.IntN(40), time.Duration(r.IntN(3000))*time.Microsecond
		if s.killedAt(t, action, lines, moment, []string{bySQL, byRules}[round/3%2]) {
			killed++
		}
		s.whole(t, fmt.Sprintf("round %d, %s killed after %d lines", round, action, lines))
	}
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Snapshot: first.Name}, nil); err != nil {
		t.Errorf("the next load: %v", err)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Errorf("the next build: %v", err)
	}
	for _, pattern := range []string{"data/tmp/work-*", "data/snapshots/*/*" + partSuffix} {
		if left, _ := filepath.Glob(filepath.Join(s.dir, pattern)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	s.recorded(t)
}

// recorded fails the test unless every snapshot file has a record and every record has a file.
func (s shop) recorded(t *testing.T) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.data, "snapshots", "*", "*"+fileSuffix))
	records, _ := filepath.Glob(filepath.Join(s.data, "snapshots", "*", "*"+recordSuffix))
	if len(files) != len(records) {
		t.Errorf("the files %v have the records %v", files, records)
	}
	for _, file := range files {
		if _, err := os.Stat(recordPath(file)); err != nil {
			t.Error(err)
		}
	}
}

// If a build is killed after it wrote its record and before its file got its final name, nothing is
// listed, and the next build removes both.
func TestKilledBeforeItHasItsName(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	killed, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(killed.Path, killed.Path+partSuffix); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Snapshots(""); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if left := s.leftFiles(); len(left) != 1 {
		t.Errorf("the remains are %v", left)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	s.recorded(t)
	_, err = os.Stat(recordPath(killed.Path))
	// A build in the same second gets the same name.
	if !errors.Is(err, fs.ErrNotExist) && mustLast(t, s).Name != killed.Name {
		t.Errorf("the record of the killed build stays: %v", err)
	}
}

// whole fails the test unless the destination is a complete database, old or new,
// and every listed snapshot is good.
func (s shop) whole(t *testing.T, when string) {
	t.Helper()
	if check := query(t, s.destination, "PRAGMA integrity_check"); check != "ok" {
		t.Fatalf("%s: the destination is damaged: %s", when, check)
	}
	tables := query(t, s.destination, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	switch tables {
	case "old":
	case "bulk\ncustomer\npurchase":
		if n := query(t, s.destination,
			"SELECT (SELECT count(*) FROM bulk) || ' ' || (SELECT count(*) FROM customer)"); n != "4000 2000" {
			t.Fatalf("%s: the destination has %s rows", when, n)
		}
	default:
		t.Fatalf("%s: the destination has the tables %q", when, tables)
	}
	list, err := s.Snapshots("")
	if err != nil {
		t.Fatal(err)
	}
	for _, snapshot := range list {
		if _, err := s.Verify(t.Context(), snapshot.Name, nil); err != nil {
			t.Fatalf("%s: %s: %v", when, snapshot.Name, err)
		}
	}
}

// A full disk causes one clear error, and existing data stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	small := smallDisk(t, 300<<10)
	s.data = filepath.Join(small, "data")
	run(t, s.source,
		"CREATE TABLE bulk (v); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500) INSERT "+
			"INTO bulk SELECT randomblob(1000) FROM c")
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("build: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.data, "snapshots", "*", "*.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	s.data = filepath.Join(s.dir, "data")
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(small, "there.db")
	run(t, there, "CREATE TABLE old (a); INSERT INTO old VALUES ('precious')")
	target, err := s.Target(shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	target.Destination = "sqlite://" + there
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	s.destination = there
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("load: %v", err)
	}
	// There is enough space for the unpacked copy, but not for the result.
	s.data = filepath.Join(smallDisk(t, 4<<20), "data")
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	rules := s.rulesFile(t, "keep: ['*']\ntables:\n  customer: {columns: {email: {mask: email, shared: true}}}\n")
	if _, err := s.Sanitize(t.Context(), shopTarget, SanitizeOptions{Rules: rules},
		nil); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("sanitize: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.data, "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.data = filepath.Join(s.dir, "data")
	// The same happens if the disk fills up only while the file is written.
	r, err := s.openVerified(t.Context(), mustLast(t, s), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to, err := s.databaseAt(target.destination())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.replace(t.Context(), dumpIn(r), to, LoadOptions{Jobs: 1},
		nil); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("replace: %v", err)
	}
	s.untouched(t)
}

func mustLast(t *testing.T, s shop) Snapshot {
	t.Helper()
	last, err := s.newest(shopTarget, "")
	if err != nil {
		t.Fatal(err)
	}
	return last
}
