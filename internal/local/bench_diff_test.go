//go:build linux

package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/cloudtest"
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

// BenchmarkDiff compares two snapshots of a PostgreSQL table in which 1 % of the rows changed. In the
// same process it verifies both files, one after the other and both at once, and reports the times and
// the processor times of the diff as multiples of these, and the memory of a diff alone.
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
	for _, s := range all {
		b.Logf("a file of %d bytes", s.Size)
	}
	verify := func(s Snapshot) error {
		_, err := p.Verify(b.Context(), s.Name, nil)
		return err
	}
	took, used := map[string]time.Duration{}, map[string]time.Duration{}
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			best(b, "verify", took, used, func() error { return errors.Join(verify(all[0]), verify(all[1])) })
			best(b, "verify at once", took, used, func() error {
				var g errgroup.Group
				g.Go(func() error { return verify(all[0]) })
				g.Go(func() error { return verify(all[1]) })
				return g.Wait()
			})
			best(b, "diff", took, used, func() error { return diffNewest(b.Context(), p.Agent) })
			p.act(b, "diff", "")
		}
	}
	for _, of := range []string{"verify", "verify at once"} {
		b.ReportMetric(took["diff"].Seconds()/took[of].Seconds(), "diff/"+strings.ReplaceAll(of, " ", "-"))
		b.ReportMetric(used["diff"].Seconds()/used[of].Seconds(), "diff/"+strings.ReplaceAll(of, " ", "-")+"-processor")
	}
	b.ReportMetric(float64(p.peak["diff"])/1e6, "diff-MB")
	b.ReportMetric(0, "ns/op")
}

// best calls f and keeps its time and the processor time of this process, if they are the lowest.
func best(b *testing.B, name string, took, used map[string]time.Duration, f func() error) {
	b.Helper()
	runtime.GC() // no step pays for the garbage of the one before
	begun, before := time.Now(), ownProcessor(b)
	if err := f(); err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	elapsed, own := time.Since(begun), ownProcessor(b)-before
	b.Logf("%-16s %6.2f s, %6.2f s of processor time", name, elapsed.Seconds(), own.Seconds())
	if lowest, ok := took[name]; !ok || elapsed < lowest {
		took[name] = elapsed
	}
	if lowest, ok := used[name]; !ok || own < lowest {
		used[name] = own
	}
}

// ownProcessor returns the processor time that this process has used.
func ownProcessor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// writeNewestDelta writes the delta between the two newest snapshots to a file.
func writeNewestDelta(ctx context.Context, a *Agent, path string) error {
	all, err := a.Snapshots(shopTarget)
	if err != nil || len(all) < 2 {
		return errors.Join(err, fmt.Errorf("there are %d snapshots", len(all)))
	}
	file, _, err := writeDelta(ctx, path, all[1], all[0], all[0].Size, nil)
	if err != nil {
		return err
	}
	return file.Close()
}

// applyNewestDelta applies a file of [writeNewestDelta].
func applyNewestDelta(ctx context.Context, a *Agent, path string) error {
	all, err := a.Snapshots(shopTarget)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	dir, done, err := a.workDir()
	if err != nil {
		return err
	}
	defer done()
	result := api.Snapshot{Size: all[0].Size, SHA256: all[0].SHA256}
	return applyDelta(ctx, file, all[1], result, filepath.Join(dir, "result"), nil)
}

// BenchmarkDelta changes mixed databases, pushes and pulls them by delta and as whole files, and
// reports the bytes of the delta as a share of the file, and the times of both. SNAP_BENCH_DATABASE
// is that of [BenchmarkPostgres].
func BenchmarkDelta(b *testing.B) {
	n := strconv.Itoa(fromEnv("SNAP_BENCH_DATABASE", 100))
	b.Run("postgres", func(b *testing.B) {
		from := servertest.Postgres(b)
		fillMixed(b, from, fromEnv("SNAP_BENCH_DATABASE", 100))
		benchDeltas(b, from, "pgx", from, mixedRules, strings.NewReplacer("{text}", "md5(random()::text)",
			"{number}", "random() * 100000", "{ref}", "ref, ", "{bytes}",
			"(SELECT string_agg(decode(md5(random() || name || m), 'hex'), '') FROM generate_series(1, 250) m)"))
	})
	b.Run("mariadb", func(b *testing.B) {
		from := servertest.MariaDB(b)
		db := openMySQL(b, from)
		for _, statement := range strings.Split(strings.ReplaceAll(mixedMySQL, "{n}", n), ";\n") {
			if _, err := db.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
		benchDeltas(b, from, "", "", customerRules, strings.NewReplacer("{text}",
			"lower(hex(random_bytes(16)))", "{number}", "rand() * 100000", "{ref}", "", "{bytes}",
			"concat(repeat(unhex(md5(id)), 100), random_bytes(1000), random_bytes(1000))"))
	})
	b.Run("sqlite", func(b *testing.B) {
		from := filepath.Join(b.TempDir(), "from.db")
		run(b, from, strings.ReplaceAll(mixedSQLite, "{n}", n))
		benchDeltas(b, "sqlite://"+from, "sqlite", from, customerRules, strings.NewReplacer("{text}",
			"lower(hex(randomblob(16)))", "{number}", "abs(random()) % 1000000000 / 10000.0", "{ref}", "", "{bytes}",
			"randomblob(2000) || zeroblob(1600)"))
	})
}

const customerRules = `key: the key of the benchmark
keep: ["*"]
tables:
  customer:
    columns: {name: {mask: name, shared: true}, email: {mask: email, shared: true}, phone: {mask: phone, shared: true}}
`

// The statements of the cases. {c} is the number of the case.
const (
	updateSome = `
UPDATE customer SET phone = substr({text}, 1, 12) WHERE id % 100 = {c};
UPDATE event SET value = {number} WHERE id % 100 = {c};
UPDATE document SET body = concat({text}, substr(body, 1, 200)) WHERE id % 100 = {c};
DELETE FROM event WHERE id % 500 = {c};
DELETE FROM document WHERE id % 500 = {c}`
	appendSome = `
INSERT INTO customer (id, {ref}name, email, phone, created)
	SELECT id + {c}00000000, {ref}{text}, concat({text}, '@mail.test'), substr({text}, 1, 12), created
	FROM customer WHERE id % 20 = 7 AND id < 100000000;
INSERT INTO event (id, customer, kind, at, value) SELECT id + {c}00000000, customer, kind, at, {number}
	FROM event WHERE id % 20 = 7 AND id < 100000000;
INSERT INTO document (id, customer, body, data) SELECT id + {c}00000000, customer, concat({text}, {text}, {text}), data
	FROM document WHERE id % 20 = 7 AND id < 100000000;
INSERT INTO file (id, name, content) SELECT id + {c}00000000, {text}, {bytes}
	FROM file WHERE id % 20 = 7 AND id < 100000000`
	addColumn  = `ALTER TABLE event ADD COLUMN added int DEFAULT 7`
	everything = `
UPDATE customer SET name = {text}, email = concat({text}, id), phone = substr({text}, 1, 12);
UPDATE event SET value = {number}, kind = kind + 1;
UPDATE document SET body = concat({text}, {text}, {text}, {text}), data = NULL;
UPDATE file SET name = {text}, content = {bytes}`
)

// deltaBench is one database, a service that receives deltas and one that receives whole
// files, and a colleague's machine for each.
type deltaBench struct {
	*peerBench
	db       *sql.DB
	words    *strings.Replacer
	services [2]*api.Client // deltas, whole files
	there    [2]*Agent
}

func benchDeltas(b *testing.B, from, driver, dsn, rules string, words *strings.Replacer) {
	d := &deltaBench{peerBench: newPeerBench(b, from, from, rules), words: words}
	if driver == "" {
		d.db = openMySQL(b, from)
	} else {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			b.Fatal(err)
		}
		d.db = db
	}
	b.Cleanup(func() { d.db.Close() })
	for i := range d.services {
		d.services[i] = cloudtest.Start(b, cloudtest.Options{}).As("alice@acme.test")
		d.there[i] = machine(b)
	}
	for b.Loop() {
		d.move(b, "first", false)
		d.move(b, "first masked", true)
		d.move(b, "same", false)
		d.change(b, 3, updateSome, appendSome)
		d.move(b, "mixed", false)
		d.inChildren(b)
		d.patch(b)
		d.move(b, "masked", true)
		d.change(b, 4, updateSome, appendSome)
		d.move(b, "mixed-again", false)
		d.change(b, 5, appendSome)
		bytes := d.move(b, "appended", false)
		b.ReportMetric(float64(bytes)/float64(d.added(b, 500_000_000)), "appended/zstd")
		d.change(b, 6, addColumn)
		d.move(b, "column", false)
		d.change(b, 7, everything)
		d.move(b, "everything", false)
	}
	b.ReportMetric(float64(d.peak["write delta"])/1e6, "write-MB")
	b.ReportMetric(float64(d.peak["apply delta"])/1e6, "apply-MB")
	b.ReportMetric(0, "ns/op")
}

// inChildren writes and applies a delta in a process each, as a push and a pull do, so that the
// memory of each is known.
func (d *deltaBench) inChildren(b *testing.B) {
	b.Helper()
	b.Setenv(childDelta, filepath.Join(b.TempDir(), "delta"))
	d.act(b, "write delta", "")
	d.act(b, "apply delta", "")
}

func (d *deltaBench) change(b *testing.B, number int, scripts ...string) {
	b.Helper()
	for _, script := range scripts {
		text := strings.ReplaceAll(d.words.Replace(script), "{c}", strconv.Itoa(number))
		for _, statement := range strings.Split(text, ";\n") {
			if _, err := d.db.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
	}
}

// move takes a snapshot, pushes and pulls it by delta and as a whole file, and returns the bytes that
// were pushed by delta.
func (d *deltaBench) move(b *testing.B, label string, masked bool) int64 {
	b.Helper()
	action, kind := "build", snap.TypeSnapshot
	if masked {
		action, kind = "sanitize", snap.TypeSanitized
	}
	made := d.act(b, action, d.rules)
	var took [2][2]time.Duration // of delta and whole file: push, pull
	var moved [2]int64
	for i, whole := range []bool{false, true} {
		start := time.Now()
		pushed, err := d.Push(b.Context(), d.services[i], shopTarget, PushOptions{Type: kind, Full: whole}, nil)
		took[i][0] = time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		o := PullOptions{Type: kind, Full: whole}
		pulled, err := d.there[i].Pull(b.Context(), d.services[i], shopTarget, o, nil)
		took[i][1] = time.Since(start)
		if err != nil || pulled.Snapshot.SHA256 != made.SHA256 {
			b.Fatalf("%s: another file was pulled: %v", label, err)
		}
		if !whole {
			moved = [2]int64{pushed.Moved, pulled.Moved}
		}
	}
	b.Logf("%-12s %9d bytes: pushed %9d = %6.2f %%, pulled %9d = %6.2f %%; push %6.2f s, whole %6.2f s; "+
		"pull %6.2f s, whole %6.2f s", label, made.Size, moved[0], percent(moved[0], made.Size), moved[1],
		percent(moved[1], made.Size), took[0][0].Seconds(), took[1][0].Seconds(), took[0][1].Seconds(),
		took[1][1].Seconds())
	if strings.HasPrefix(label, "first") {
		return moved[0]
	}
	b.ReportMetric(percent(moved[0], made.Size), label+"-%")
	byDelta, byFile := (took[0][0] + took[0][1]).Seconds(), (took[1][0] + took[1][1]).Seconds()
	b.ReportMetric(byDelta/byFile, label+"/whole")
	byDelta, byFile = byDelta+at50Mbit(moved[0]+moved[1]), byFile+at50Mbit(2*made.Size)
	b.ReportMetric(byDelta/byFile, label+"/whole-50Mbit")
	return moved[0]
}

// at50Mbit returns how many seconds a line of 50 Mbit/s takes for a number of bytes. The benchmark
// adds them to the time on loopback, as if the work and the line did not overlap.
func at50Mbit(bytes int64) float64 { return float64(bytes) / (50e6 / 8) }

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(whole) }

// others are the commands that measure how much other tools transfer for the two newest snapshots.
// The files 1 and 0 are the content of the older and the newer one, and whole is the file of the
// newer one. Each command prints a number of bytes.
var others = []struct{ tool, label, script string }{
	{"zstd", "patch-from", "zstd -q --long=31 --patch-from=1 0 -o patch; stat -c %s patch; rm patch"},
	{"rclone", "rclone", "rclone copyto whole there; stat -c %s there; rm there"},
	{"restic", "restic", `export RESTIC_PASSWORD=bench RESTIC_REPOSITORY=repo RESTIC_CACHE_DIR=cache
		size() { du -sb repo | cut -f1; }
		restic -q init; cp 1 content; restic -q backup content; before=$(size)
		cp 0 content; restic -q backup content; echo $(($(size) - before)); rm -r repo cache content`},
}

// patch compares the size of the delta between the two newest snapshots with the bytes that other
// tools transfer. Tools that are not installed are left out.
func (d *deltaBench) patch(b *testing.B) {
	b.Helper()
	all, err := d.Snapshots(shopTarget)
	if err != nil {
		b.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s Snapshot) bool { return s.Type != snap.TypeSnapshot })
	dir := b.TempDir()
	for i, s := range all[:2] {
		unpackTo(b, s.Path, filepath.Join(dir, strconv.Itoa(i)))
	}
	if err := os.Link(all[0].Path, filepath.Join(dir, "whole")); err != nil {
		b.Fatal(err)
	}
	for _, o := range others {
		if _, err := exec.LookPath(o.tool); err != nil {
			b.Logf("%s is not installed: left out", o.tool)
			continue
		}
		start := time.Now()
		cmd := exec.Command("bash", "-ec", o.script)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%s: %v", o.label, err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("%s: %d bytes, %.2f s", o.label, size, time.Since(start).Seconds())
		b.ReportMetric(percent(size, all[0].Size), o.label+"-%")
	}
	for _, name := range []string{"0", "1", "whole"} {
		os.Remove(filepath.Join(dir, name))
	}
}

// unpackTo writes the content of a snapshot to a file.
func unpackTo(b *testing.B, snapshot, path string) {
	b.Helper()
	r, err := archive.Open(snapshot)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	content, err := r.Content(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer content.Close()
	stream, err := content.Range(0, content.Size())
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	file, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(file, stream)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
}

// added returns how many bytes zstd needs for the text of the rows with IDs >= first.
func (d *deltaBench) added(b *testing.B, first int) int64 {
	b.Helper()
	var size byteCount
	packed, err := zstd.NewWriter(&size)
	if err != nil {
		b.Fatal(err)
	}
	for _, table := range []string{"customer", "event", "document", "file"} {
		rows, err := d.db.Query(fmt.Sprintf("SELECT * FROM %s WHERE id >= %d ORDER BY id", table, first))
		if err != nil {
			b.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			b.Fatal(err)
		}
		values := make([]sql.RawBytes, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				b.Fatal(err)
			}
			for _, v := range values {
				_, _ = packed.Write(append(v, '\t'))
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			b.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		b.Fatal(err)
	}
	return int64(size)
}

type byteCount int64

func (c *byteCount) Write(p []byte) (int, error) {
	*c += byteCount(len(p))
	return len(p), nil
}
