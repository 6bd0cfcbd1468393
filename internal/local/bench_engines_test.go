//go:build linux

package local

import (
	"database/sql"
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

// peerBench measures one engine against other programs: best times of rounds
// whose steps alternate.
type peerBench struct {
	pgBench
	rules string
	ours  []string          // peers for build and load, as build/PEER
	on    map[string]string // by step: the shell command of a peer
}

func newPeerBench(b *testing.B, from, to, rules string) *peerBench {
	p := &peerBench{pgBench: pgBench{shop: newShop(b), from: from, to: to, took: map[string]time.Duration{},
		bytes: map[string]int64{}, peak: map[string]int64{}}, on: map[string]string{}}
	p.rules = filepath.Join(p.dir, "rules.yaml")
	if err := os.WriteFile(p.rules, []byte(rules), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := p.AddTarget(Target{Name: shopTarget, Source: from, Destination: to}); err != nil {
		b.Fatal(err)
	}
	return p
}

// against adds a peer, unless a program of it is missing.
func (p *peerBench) against(b *testing.B, step, command string, programs ...string) {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			b.Logf("%s needs %s: left out", step, program)
			return
		}
	}
	p.ours = append(p.ours, step)
	p.on[step] = command
}

func (p *peerBench) run(b *testing.B) {
	for b.Loop() {
		for range fromEnv("SNAP_BENCH_ROUNDS", 3) {
			p.measure(b, "build", func() { p.bytes["build"] = p.act(b, "build", "").Size })
			p.peers(b, "build/")
			p.measure(b, "load", func() { p.act(b, "load", "") }) // before sanitize: the peers load originals too
			p.peers(b, "load/")
			p.measure(b, "sanitize", func() { p.act(b, "sanitize", p.rules) })
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
	}
	for _, name := range slices.Sorted(keysOf(p.took)) {
		b.Logf("%-26s %7.2f s", name, p.took[name].Seconds())
	}
	b.Logf("%-26s %7.1f MB", "snapshot", float64(p.bytes["build"])/1e6)
	for _, step := range p.ours {
		ours, _, _ := strings.Cut(step, "/")
		b.ReportMetric(p.took[ours].Seconds()/p.took[step].Seconds(), step)
	}
	b.ReportMetric(p.took["sanitize"].Seconds()/p.took["build"].Seconds(), "sanitize/build")
	for action, bytes := range p.peak {
		b.ReportMetric(float64(bytes)/1e6, action+"-MB")
	}
	b.ReportMetric(0, "ns/op")
}

func (p *peerBench) peers(b *testing.B, of string) {
	for _, step := range p.ours {
		if !strings.HasPrefix(step, of) {
			continue
		}
		p.measure(b, step, func() {
			if out, err := exec.Command("bash", "-ec", "set -o pipefail; "+p.on[step]).CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", step, err, out)
			}
		})
	}
}

// BenchmarkMariaDB builds, loads and sanitizes a mixed database, against
// mariadb-dump as people use it, and against mydumper and myloader.
// SNAP_BENCH_DATABASE and SNAP_BENCH_ROUNDS are those of [BenchmarkPostgres].
func BenchmarkMariaDB(b *testing.B) {
	from, to := servertest.MariaDB(b), servertest.MariaDB(b)
	u, err := url.Parse(from)
	if err != nil {
		b.Fatal(err)
	}
	db := openMySQL(b, from)
	for _, statement := range strings.Split(strings.ReplaceAll(mixedMySQL, "{n}",
		strconv.Itoa(fromEnv("SNAP_BENCH_DATABASE", 100))), ";\n") {
		if _, err := db.Exec(statement); err != nil {
			b.Fatalf("%s: %v", statement, err)
		}
	}
	db.Close()
	p := newPeerBench(b, from, to, `key: the key of the benchmark
keep: ["*"]
tables:
  customer:
    columns: {name: {mask: name, shared: true}, email: {mask: email, shared: true}`+
		`, phone: {mask: phone, shared: true}, born: {mask: shift, days: 30, shared: true}}
`)
	name := strings.Trim(u.Path, "/")
	at := fmt.Sprintf("-h 127.0.0.1 -P %s -u root", u.Port())
	dump := fmt.Sprintf("mariadb-dump --no-defaults %s --single-transaction --quick --hex-blob %s", at, name)
	dir, file := filepath.Join(p.dir, "mydumper"), filepath.Join(p.dir, "peer.dump")
	p.against(b, "build/mariadb-dump", dump+" >/dev/null", "mariadb-dump")
	p.against(b, "build/mariadb-dump|zstd", fmt.Sprintf("%s | zstd -q -T0 -f -o %s", dump, file), "mariadb-dump",
		"zstd")
	p.against(b, "build/mydumper", fmt.Sprintf("rm -rf %s; mydumper %s -B %s -t 2 -o %s", dir, at, name, dir),
		"mydumper")
	fresh := fmt.Sprintf("mariadb --no-defaults %s -e 'DROP DATABASE IF EXISTS peer; CREATE DATABASE peer'; ", at)
	p.against(b, "load/mariadb", fmt.Sprintf("%s zstd -q -dc %s | mariadb --no-defaults %s peer", fresh, file, at),
		"mariadb", "zstd")
	p.against(b, "load/myloader", fmt.Sprintf("%s myloader %s -B peer -o -t 2 -d %s", fresh, at, dir), "mydumper",
		"myloader")
	p.run(b)
	db = openMySQL(b, from)
	defer db.Close()
	if _, err := db.Exec("DROP DATABASE IF EXISTS peer"); err != nil {
		b.Fatal(err)
	}
}

func openMySQL(t testing.TB, raw string) *sql.DB {
	t.Helper()
	host, name, _ := strings.Cut(strings.TrimPrefix(raw, "mysql://root@"), "/")
	db, err := sql.Open("mysql", "root@tcp("+host+")/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// mixedMySQL creates tables of about {n} MB with keys and indexes: narrow and wide
// rows, texts, JSON, numbers, times and bytes.
const mixedMySQL = `CREATE TABLE customer (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100) NOT NULL, ` +
	`email VARCHAR(200) NOT NULL, phone VARCHAR(40), born DATE, balance DECIMAL(12,2), created DATETIME NOT NULL, ` +
	`UNIQUE KEY (email), KEY (created)) CHARSET utf8mb4;
INSERT INTO customer SELECT seq, concat(elt(1 + seq % 7, 'Anna', 'Bert', 'Carla', 'Dora', 'Emil', 'Fritz', 'Gerda'), ` +
	`' ', substr(md5(seq), 1, 10)), concat('user', seq, '@', ` +
	`elt(1 + seq % 3, 'example.com', 'mail.test', 'corp.example')), concat('+49 ', seq * 7919 % 8999999), ` +
	`'1950-01-01' + INTERVAL seq % 20000 DAY, seq * 37 % 1000000 / 100, '2020-01-01' + INTERVAL seq MINUTE ` +
	`FROM seq_1_to_{n}000;
CREATE TABLE event (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, kind SMALLINT, at DATETIME(3), ` +
	`value DECIMAL(14,4), reading DOUBLE, ok BOOLEAN, KEY (customer), KEY (at), ` +
	`CONSTRAINT event_customer FOREIGN KEY (customer) REFERENCES customer (id));
INSERT INTO event SELECT seq, 1 + seq * 31 % {n}000, seq % 20, '2024-01-01' + INTERVAL seq * 13 SECOND, ` +
	`seq * 37 % 1000000000 / 10000, sin(seq), seq % 10 < 9 FROM seq_1_to_{n}0000 WHERE seq <= {n} * 5000;
CREATE TABLE document (id INT PRIMARY KEY, customer INT, body TEXT, data JSON, KEY (customer), ` +
	`CONSTRAINT document_customer FOREIGN KEY (customer) REFERENCES customer (id)) CHARSET utf8mb4;
INSERT INTO document SELECT seq, 1 + seq % {n}` +
	`000, repeat(concat(md5(seq), ' invoice contract refund of the customer '), 8), ` +
	`json_object('id', seq, 'title', md5(seq * 3), 'score', seq % 100, ` +
	`'items', json_array(md5(seq), seq * 7, seq % 2)) FROM seq_1_to_{n}000 WHERE seq <= {n} * 400;
CREATE TABLE file (id INT PRIMARY KEY, name VARCHAR(100), content LONGBLOB);
INSERT INTO file SELECT seq, concat('file-', seq), concat(repeat(unhex(md5(seq)), 100), random_bytes(1000), ` +
	`random_bytes(1000)) FROM seq_1_to_{n}00 WHERE seq <= {n} * 12;
ANALYZE TABLE customer, event, document, file`

// BenchmarkSQLite builds, loads and sanitizes a mixed database, against
// VACUUM INTO and .backup of the sqlite3 program with zstd, and against copying
// the file and checking it.
func BenchmarkSQLite(b *testing.B) {
	dir := b.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	run(b, from, strings.ReplaceAll(mixedSQLite, "{n}", strconv.Itoa(fromEnv("SNAP_BENCH_DATABASE", 100))))
	run(b, to, "CREATE TABLE old (a)")
	p := newPeerBench(b, "sqlite://"+from, "sqlite://"+to, `key: the key of the benchmark
keep: ["*"]
tables:
  customer:
    columns: {name: {mask: name, shared: true}, email: {mask: email, shared: true}, phone: {mask: phone, shared: true}}
`)
	copied, packed := filepath.Join(dir, "copy.db"), filepath.Join(dir, "copy.zst")
	p.against(b, "build/VACUUM-INTO|zstd",
		fmt.Sprintf("rm -f %[1]s; sqlite3 %[3]s \"VACUUM INTO '%[1]s'\"; zstd -q -T0 -f %[1]s -o %[2]s", copied, packed,
			from), "sqlite3", "zstd")
	p.against(b, "build/VACUUM-INTO", fmt.Sprintf("rm -f %[1]s; sqlite3 %[2]s \"VACUUM INTO '%[1]s'\"", copied, from),
		"sqlite3")
	p.against(b, "build/backup|zstd",
		fmt.Sprintf("rm -f %[1]s; sqlite3 %[3]s '.backup %[1]s'; zstd -q -T0 -f %[1]s -o %[2]s", copied, packed, from),
		"sqlite3", "zstd")
	p.against(b, "load/cp+check", fmt.Sprintf("cp %s %s; sync %[2]s; sqlite3 %[2]s 'PRAGMA integrity_check(1)'", from,
		copied), "sqlite3")
	// only the check
	p.against(b, "load/check", fmt.Sprintf("sqlite3 %s 'PRAGMA integrity_check(1)'", from), "sqlite3")
	p.against(b, "load/zstd+check",
		fmt.Sprintf("zstd -q -f -d %s -o %s; sync %[2]s; sqlite3 %[2]s 'PRAGMA integrity_check(1)'", packed, copied),
		"sqlite3", "zstd")
	p.run(b)
}

const mixedSQLite = `CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, ` +
	`phone TEXT, created TEXT NOT NULL);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n} * 1000) INSERT INTO customer ` +
	`SELECT n, 'customer ' || hex(n * 7919), 'user' || n || '@example.com', '+49 ' || (n * 7919 % 8999999), ` +
	`datetime(1577836800 + n * 60, 'unixepoch') FROM c;
CREATE TABLE event (id INTEGER PRIMARY KEY, customer INT REFERENCES customer, kind INT, at TEXT, value REAL);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n} * 5000) INSERT INTO event ` +
	`SELECT n, 1 + n * 31 % ({n} * 1000), n % 20, datetime(1577836800 + n * 13, 'unixepoch'), ` +
	`n * 37 % 1000000000 / 10000.0 FROM c;
CREATE INDEX event_customer ON event (customer);
CREATE TABLE document (id INTEGER PRIMARY KEY, customer INT, body TEXT, data TEXT);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n} * 400) INSERT INTO document ` +
	`SELECT n, 1 + n % ({n} * 1000), replace(hex(zeroblob(20)), ` +
	`'0000', hex(n * 7919) || ' invoice of the customer '), json_object('id', n, 'title', hex(n), 'score', n % 100) ` +
	`FROM c;
CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT, content BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n} * 12) INSERT INTO file ` +
	`SELECT n, 'file-' || n, randomblob(2000) || zeroblob(1600) FROM c`
