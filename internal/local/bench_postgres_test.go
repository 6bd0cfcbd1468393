//go:build linux

package local

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"snap/internal/servertest"
)

// BenchmarkPostgres builds, loads and sanitizes a database of mixed tables and one of pgbench, and
// compares the times with those of PostgreSQL's own programs on the same server, in the same run.
// Each figure is the best of the rounds. Their steps alternate, so that noise from other programs
// affects both sides.
//
// SNAP_BENCH_DATABASE sets the size of the dump in MB (100 by default), and SNAP_BENCH_ROUNDS the
// number of rounds (3 by default).
func BenchmarkPostgres(b *testing.B) {
	size := fromEnv("SNAP_BENCH_DATABASE", 100)
	b.Run("mixed", func(b *testing.B) {
		from := servertest.Postgres(b)
		fillMixed(b, from, size)
		benchPostgres(b, from, mixedRules)
	})
	b.Run("pgbench", func(b *testing.B) {
		from := servertest.Postgres(b)
		tool(b, "pgbench", "-i", "-q", "-s", strconv.Itoa(max(1, size/9)), from)
		benchPostgres(b, from, pgbenchRules)
	})
}

func fromEnv(name string, or int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return or
}

const mixedRules = `key: the key of the benchmark
keep: ["*"]
tables:
  public.customer:
    columns: {name: {mask: name, shared: true}, email: email, phone: {mask: phone, shared: true}` +
	`, born: {mask: shift, days: 30}}
  public.wide:
    columns: {t1: {mask: hash, shared: true}}
`

const pgbenchRules = `key: the key of the benchmark
keep: ["*"]
tables:
  public.pgbench_accounts:
    columns: {filler: {mask: redact, shared: true}, abalance: {mask: noise, percent: 10, shared: true}}
`

// pgBench is the state of one run.
type pgBench struct {
	shop
	from, to string
	took     map[string]time.Duration
	used     map[string]time.Duration // processor time, including the server's
	server   string                   // the process that all processes of the server are children of
	bytes    map[string]int64
	peak     map[string]int64
	serial   int
}

func benchPostgres(b *testing.B, from, rules string) {
	p := pgBench{shop: newShop(b), from: from, to: servertest.Postgres(b), took: map[string]time.Duration{},
		server: postmaster(b, from), bytes: map[string]int64{}, peak: map[string]int64{}}
	rulesFile := filepath.Join(p.dir, "rules.yaml")
	if err := os.WriteFile(rulesFile, []byte(rules), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := p.AddTarget(Target{Name: shopTarget, Source: p.from, Destination: p.to}); err != nil {
		b.Fatal(err)
	}
	checkpoint(b, from)
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			p.round(b, rulesFile)
		}
	}
	p.report(b)
}

func (p *pgBench) round(b *testing.B, rules string) {
	dump := filepath.Join(p.dir, "dump.fc")
	dir := filepath.Join(p.dir, "dump.fd")
	p.measure(b, "plain", func() { tool(b, "pg_dump", "-f", os.DevNull, "-d", p.from) })
	var built Snapshot
	p.measure(b, "build", func() { built = p.act(b, "build", "") })
	p.bytes["build"] = built.Size
	p.measure(b, "-Fc", func() { tool(b, "pg_dump", "-Fc", "-f", dump, "-d", p.from) })
	p.bytes["-Fc"] = sizeOf(b, dump)
	os.Remove(dump)
	p.measure(b, "sanitize", func() { p.act(b, "sanitize", rules) })
	tool(b, "pg_dump", "-Fd", "-Z0", "-j2", "-f", dir, "-d", p.from)
	for _, jobs := range []string{"2", "4"} {
		p.measure(b, "load", func() { p.act(b, "load", "") })
		p.dropped(b)
		to := p.fresh(b)
		p.measure(b, "pg_restore -j"+jobs, func() { tool(b, "pg_restore", "-j"+jobs, "-d", to, dir) })
		p.measure(b, "its ANALYZE", func() { tool(b, "vacuumdb", "--quiet", "--analyze-only", "-j"+jobs, "-d", to) })
		p.drop(b, to)
	}
	os.RemoveAll(dir)
	all, err := p.Snapshots(shopTarget)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range all {
		if err := p.DeleteSnapshot(s.Name); err != nil {
			b.Fatal(err)
		}
	}
}

// measure keeps the best times of a step.
func (p *pgBench) measure(b *testing.B, name string, f func()) {
	begun, used := time.Now(), p.processor(b)
	f()
	took := time.Since(begun)
	if before, ok := p.took[name]; !ok || took < before {
		p.took[name] = took
	}
	if p.used == nil {
		p.used = map[string]time.Duration{}
	}
	used = p.processor(b) - used
	if before, ok := p.used[name]; !ok || used < before {
		p.used[name] = used
	}
}

// processor returns the processor time of the ended programs and of the server. The server's sessions
// can end after their clients.
func (p *pgBench) processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		b.Fatal(err)
	}
	used := time.Duration(u.Utime.Nano()+u.Stime.Nano()) + processorOf(b, p.server)
	sessions, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]s/task/%[1]s/children", p.server))
	for pid := range strings.FieldsSeq(string(sessions)) {
		used += processorOf(b, pid)
	}
	return used
}

// act runs an action in a separate process and records its maximum memory in bytes.
func (p *pgBench) act(b *testing.B, action, rules string) Snapshot {
	b.Helper()
	out, err := p.child(b, action, childQuiet+"=yes", "SNAPCLI_TEST_RULES="+rules).Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", action, err, errorOutput(err))
	}
	p.peak[action] = max(p.peak[action], peakMemory(string(out)))
	s, err := p.newest(shopTarget, "")
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func errorOutput(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return ""
}

func (p *pgBench) report(b *testing.B) {
	for _, name := range slices.Sorted(keysOf(p.took)) {
		b.Logf("%-16s %6.2f s, %6.2f s of processor time", name, p.took[name].Seconds(), p.used[name].Seconds())
	}
	used := func(a string, of ...string) (n float64) {
		var sum time.Duration
		for _, name := range of {
			sum += p.used[name]
		}
		return p.used[a].Seconds() / sum.Seconds()
	}
	b.ReportMetric(used("build", "plain"), "build/plain-processor")
	b.ReportMetric(used("build", "-Fc"), "build/-Fc-processor")
	b.ReportMetric(used("load", "pg_restore -j2", "its ANALYZE"), "load/restore+analyze-processor")
	ratio := func(a, of string) float64 { return p.took[a].Seconds() / p.took[of].Seconds() }
	b.ReportMetric(ratio("-Fc", "build"), "-Fc/build")
	b.ReportMetric(ratio("build", "plain"), "build/plain")
	b.ReportMetric(float64(p.bytes["build"])/float64(p.bytes["-Fc"]), "size/-Fc")
	fastest := cmp.Or(min(p.took["pg_restore -j2"], p.took["pg_restore -j4"]), 1)
	b.ReportMetric(p.took["load"].Seconds()/fastest.Seconds(), "load/pg_restore")
	analyzed := fastest + p.took["its ANALYZE"] // a load includes its own ANALYZE
	b.ReportMetric(p.took["load"].Seconds()/analyzed.Seconds(), "load/pg_restore+ANALYZE")
	b.ReportMetric(ratio("sanitize", "build"), "sanitize/build")
	for action, bytes := range p.peak {
		b.ReportMetric(float64(bytes)/1e6, action+"-MB")
	}
	b.ReportMetric(0, "ns/op")
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// checkpoint makes the server write its buffers, so that no step pays for another one.
func checkpoint(b *testing.B, url string) {
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		command(b, url, statement)
	}
}

func (p *pgBench) fresh(b *testing.B) string {
	p.serial++
	name := fmt.Sprintf("peer_%d", p.serial)
	command(b, p.to, "CREATE DATABASE "+name+" TEMPLATE template0")
	at := strings.LastIndexByte(p.to, '/')
	return p.to[:at+1] + name + "?sslmode=disable"
}

func (p *pgBench) drop(b *testing.B, url string) {
	name := strings.TrimSuffix(url[strings.LastIndexByte(url, '/')+1:], "?sslmode=disable")
	command(b, p.from, "DROP DATABASE "+name)
	command(b, p.from, "CHECKPOINT")
}

// dropped returns when the server has dropped the replaced database. The load does not wait for that,
// and until then its session holds a lock on the name.
func (p *pgBench) dropped(b *testing.B) {
	server := p.to[:strings.LastIndexByte(p.to, '/')]
	command(b, server+"/postgres?sslmode=disable",
		`SELECT pg_advisory_lock(hashtextextended(datname, 0)) FROM pg_database `+
			`WHERE datname LIKE 'snapcli\_replaced%'`)
}

func command(b *testing.B, url, text string) {
	b.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
}

// tool runs one of PostgreSQL's programs.
func tool(b *testing.B, name string, args ...string) {
	b.Helper()
	if out, err := exec.Command(filepath.Join(servertest.PostgresBin(), name), args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func sizeOf(b *testing.B, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

// fillMixed creates tables of typical application data whose dump has about mb MB.
// They have keys and indexes, narrow and wide rows, text and JSON documents,
// numbers, times and bytes, and one of them is partitioned.
func fillMixed(b *testing.B, url string, mb int) {
	b.Helper()
	command(b, url, strings.NewReplacer("{n}", strconv.Itoa(mb)).Replace(mixedTables))
}

const mixedTables = `
SELECT setseed(0.5);
CREATE FUNCTION words(n int, salt int) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT string_agg((ARRAY['time','person','year','way','day','thing','man','world','life','hand','part','child',
		'eye','woman','place','work','week','case','point','government','company','number','group','problem','fact',
		'delivery','invoice','contract','refund','account','shipping','customer','discount','address','quality',
		'return','monthly','between','under','never','because','however','their','about','which','would','these',
		'other','into','more'])
		[1 + floor(random() * random() * 50)::int], ' ') FROM generate_series(1, n + salt * 0) $$;
CREATE TABLE customer (id int PRIMARY KEY, ref uuid NOT NULL, name text NOT NULL, email text NOT NULL UNIQUE,
	phone text, born date, balance numeric(12,2), tags text[], created timestamptz NOT NULL);
INSERT INTO customer SELECT n, md5(n::text)::uuid, words(2, n),
	'user' || n || '@' || (ARRAY['example.com','mail.test','corp.example'])[1 + n % 3],
	'+49 ' || (1000000 + random() * 8999999)::int, date '1950-01-01' + (random() * 20000)::int,
	(random() * 10000)::numeric(12,2), ARRAY[words(1, n), words(1, n)],
		timestamptz '2020-01-01' + random() * interval '5 years' FROM generate_series(1, {n} * 800) n;
CREATE TABLE event (id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customer, kind smallint, at timestamptz,
	value numeric(14,4), ok boolean);
INSERT INTO event SELECT n, 1 + floor(random() * {n} * 800)::int, (random() * 20)::int,
	timestamptz '2024-01-01' + n * interval '13 seconds', (random() * 100000)::numeric(14,4), random() < 0.9
	FROM generate_series(1, {n} * 4000) n;
CREATE INDEX ON event (customer); CREATE INDEX ON event (at);
CREATE TABLE document (id int PRIMARY KEY, customer int REFERENCES customer, body text, data jsonb, words tsvector);
INSERT INTO document SELECT n, 1 + n % ({n} * 800), words(120, n),
	jsonb_build_object('id', n, 'title', words(5, n), 'score', random(),
	'items', jsonb_build_array(words(3, n), n * 7, random() < 0.5),
	'at', timestamptz '2024-01-01' + n * interval '1 minute'), NULL FROM generate_series(1, {n} * 240) n;
CREATE INDEX ON document USING gin (data jsonb_path_ops);
CREATE TABLE wide (id int PRIMARY KEY, a1 int, a2 int, a3 bigint, a4 smallint, f1 float8, f2 float4, n1 numeric,
	n2 numeric(8,2), t1 text, t2 text, t3 varchar(40), d1 date, d2 timestamp, d3 timestamptz, b1 boolean, b2 boolean,
	u1 uuid, i1 inet, a5 int[], t4 text, t5 text, a6 int, a7 int, v1 interval);
INSERT INTO wide SELECT n, n % 7, (random() * 1e6)::int, (random() * 1e12)::bigint, n % 3, random(), random()::float4,
	random()::numeric, (random() * 1000)::numeric(8,2), words(3, n), words(2, n), words(1, n),
	date '2000-01-01' + n % 9000, timestamp '2010-01-01' + n * interval '1 minute',
	timestamptz '2010-01-01' + n * interval '1 minute', n % 2 = 0, NULL, md5((n * 3)::text)::uuid,
		('10.' || n % 250 || '.' || n % 199 || '.7')::inet, ARRAY[n, n + 1], NULL, '', NULL, 0, n * interval '1 second'
		FROM generate_series(1, {n} * 700) n;
CREATE INDEX ON wide (a2); CREATE INDEX ON wide (t1, d1);
CREATE TABLE file (id int PRIMARY KEY, name text, content bytea);
INSERT INTO file SELECT n, 'file-' || n, (SELECT string_agg(decode(md5(n::text || m), 'hex'), '')
	FROM generate_series(1, 250) m) FROM generate_series(1, {n} * 12) n;
CREATE TABLE measure (device int, at timestamptz, reading double precision) PARTITION BY RANGE (at);
CREATE TABLE measure_1 PARTITION OF measure FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE measure_2 PARTITION OF measure FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
INSERT INTO measure SELECT n % 50, timestamptz '2024-01-01' + (n % 5000000) * interval '1 second', sin(n)
	FROM generate_series(1, {n} * 2000) n;
CREATE INDEX ON measure (device, at);
DROP FUNCTION words;
`
