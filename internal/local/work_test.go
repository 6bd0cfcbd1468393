package local

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/servertest"
)

// shop is a machine with one target: a SQLite source and a destination.
type shop struct {
	*Agent
	dir, source, destination string
}

const shopSchema = `CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT);
	WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) INSERT INTO customer
		SELECT n, 'person-' || n || '@real.example' FROM c;
	CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer REFERENCES customer, total REAL);
	INSERT INTO purchase SELECT id, id, id * 1.5 FROM customer;`

func newShop(t testing.TB) shop {
	t.Helper()
	s := shop{dir: t.TempDir()}
	s.source, s.destination = filepath.Join(s.dir, "Größe 東京 source.db"), filepath.Join(s.dir, "the destination.db")
	run(t, s.source, shopSchema)
	run(t, s.destination, "CREATE TABLE old (a); INSERT INTO old VALUES ('precious')")
	var err error
	s.Agent, err = Open(Options{ConfigFile: filepath.Join(s.dir, "config.yaml"), DataDir: filepath.Join(s.dir, "data"),
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddTarget(Target{Name: "Größe 東京", Source: "sqlite://" + s.source, Destination: "sqlite://" +
		s.destination}); err != nil {
		t.Fatal(err)
	}
	return s
}

const shopTarget = "Größe 東京"

func run(t testing.TB, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// query returns one column of a database as text.
func query(t testing.TB, path, text string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// execute runs statements on PostgreSQL.
func execute(t testing.TB, url, text string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(t, db, url)
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// leave closes a connection to PostgreSQL, and waits until the server has ended its session. Otherwise
// the next load may find the database in use.
func leave(t testing.TB, db *sql.DB, url string) {
	t.Helper()
	var session int
	known := db.QueryRow("SELECT pg_backend_pid()").Scan(&session)
	db.Close()
	at, err := pgx.ParseConfig(url)
	if err != nil || known != nil { // there is no session
		return
	}
	at.Database = "postgres"
	ctx := context.Background()
	other, err := pgx.ConnectConfig(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	for there := true; there; {
		if err := other.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND datname <> $2)",
			session, at.Database).Scan(&there); err != nil {
			t.Fatal(err)
		}
	}
}

// one returns the number that is the result of a query on PostgreSQL.
func one(t *testing.T, url, query string) (n int64) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(t, db, url)
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// untouched fails the test if the destination is not the old database.
func (s shop) untouched(t testing.TB) {
	t.Helper()
	if got := query(t, s.destination, "SELECT a FROM old"); got != "precious" {
		t.Errorf("the destination has %q", got)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "snapcli-tmp") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildVerifyLoad(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var phases []string
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, func(e Event) {
		if len(phases) == 0 || phases[len(phases)-1] != e.Phase {
			phases = append(phases, e.Phase)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"connect", "count", "dump"}; !reflect.DeepEqual(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	if !strings.HasPrefix(built.Name, shopTarget+"-20") || built.Type != snap.TypeSnapshot ||
		built.Engine != snap.SQLite || len(built.SHA256) != 64 || len(built.Tables) != 2 ||
		built.Tables[0].Rows != 2000 {
		t.Errorf("built %+v", built)
	}
	listed, err := s.Snapshots("")
	if err != nil || len(listed) != 1 || !reflect.DeepEqual(listed[0], built) {
		t.Errorf("listed %+v, %v\nbuilt  %+v", listed, err, built)
	}
	if m, err := s.Verify(t.Context(), built.Name, nil); err != nil || m.Target != shopTarget || m.Name != built.Name {
		t.Errorf("manifest %+v, %v", m, err)
	}
	var asked Preflight
	result, err := s.Load(t.Context(), shopTarget,
		LoadOptions{Confirm: func(p Preflight) error { asked = p; return nil }}, nil)
	if err != nil || !result.Replaced || result.Snapshot.Name != built.Name || !asked.Exists || asked.Tables != 1 {
		t.Fatalf("%+v, %+v, %v", result, asked, err)
	}
	for _, q := range []string{"SELECT email FROM customer", "SELECT id||customer||total FROM purchase",
		"SELECT sql FROM sqlite_schema"} {
		if got, want := query(t, s.destination, q), query(t, s.source, q); got != want {
			t.Errorf("%s differs", q)
		}
	}
	if err := s.DeleteSnapshot(built.Name); err != nil {
		t.Fatal(err)
	}
	if left, _ := s.Snapshots(shopTarget); len(left) != 0 {
		t.Errorf("after deletion: %v", left)
	}
}

func TestTwoBuildsInOneSecond(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	for _, want := range []string{"-20260102T030405Z", "-20260102T030405Z-2", "-20260102T030405Z-3"} {
		got, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
		if err != nil || got.Name != shopTarget+want {
			t.Errorf("%q, %v, want %s", got.Name, err, want)
		}
	}
}

func (s shop) sqlFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mask.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSanitizeMakesAnotherSnapshot(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	original, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(original.Path)
	if err != nil {
		t.Fatal(err)
	}
	clean, err := s.Sanitize(t.Context(), shopTarget,
		SanitizeOptions{SQL: s.sqlFile(t, "UPDATE customer SET email = 'c' || id || '@masked.example';")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if clean.Type != snap.TypeSanitized || clean.Name == original.Name {
		t.Errorf("sanitized %+v", clean)
	}
	m, err := s.Verify(t.Context(), clean.Name, nil)
	if err != nil || m.Sanitized == nil || m.Sanitized.From != original.Name || len(m.Sanitized.SQL) != 64 {
		t.Errorf("manifest %+v, %v", m.Sanitized, err)
	}
	if after, err := os.ReadFile(original.Path); err != nil || !bytes.Equal(after, before) {
		t.Error("the original changed")
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Type: snap.TypeSanitized}, nil); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s.destination, "SELECT count(*) FROM customer WHERE email LIKE '%masked%'"); got != "2000" {
		t.Errorf("%s masked rows", got)
	}
	raw, err := os.ReadFile(s.destination)
	if err != nil || bytes.Contains(raw, []byte("real.example")) {
		t.Errorf("an original value is in the sanitized file (%v)", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "tmp", "*")); len(left) > 0 {
		t.Errorf("the scratch copy is left behind: %v", left)
	}
}

// Sanitizing fails closed: it leaves neither a sanitized snapshot nor an original in its place.
func TestSanitizeFailsClosed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    SanitizeOptions
		code snap.Code
	}{
		"no rules":     {SanitizeOptions{}, snap.CodeUsage},
		"no such file": {SanitizeOptions{SQL: "/none.sql"}, snap.CodeNotFound},
		"empty":        {SanitizeOptions{SQL: s.sqlFile(t, " \n-- nothing\n/* at all */;")}, snap.CodeInvalid},
		"half way": {SanitizeOptions{SQL: s.sqlFile(t, "UPDATE customer SET email = 'x'; UPDATE none SET a = 1;")},
			snap.CodeDatabase},
		"open transaction": {SanitizeOptions{SQL: s.sqlFile(t, "BEGIN; UPDATE customer SET email = 'x';")},
			snap.CodeInvalid},
		"no such snapshot": {SanitizeOptions{SQL: s.sqlFile(t, "SELECT 1"), Snapshot: "none"}, snap.CodeNotFound},
	} {
		if _, err := s.Sanitize(t.Context(), shopTarget, c.o, nil); snap.CodeOf(err) != c.code {
			t.Errorf("%s: %s (%v), want %s", name, snap.CodeOf(err), err, c.code)
		}
	}
	if all, _ := s.Snapshots(""); len(all) != 1 {
		t.Errorf("%d snapshots", len(all))
	}
	var none *snap.Error
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Type: snap.TypeSanitized}, nil); !errors.As(err, &none) ||
		none.Code != snap.CodeNotFound ||
		!strings.Contains(none.Hint, "snapcli sanitize") { // not build, which masks nothing
		t.Errorf("load --type sanitized: %v", err)
	}
	s.untouched(t)
}

// A damaged or truncated file is refused before the destination is touched.
func TestDamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		return bad
	}
	other := newShop(t)
	run(t, other.source, "INSERT INTO customer VALUES (9999, 'x')")
	if _, err := other.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	list, _ := other.Snapshots("")
	swapped, err := os.ReadFile(list[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"header": flip(3), "section": flip(1000), "manifest": flip(len(good) - 80), "footer": flip(len(good) - 60),
		"magic": flip(len(good) - 1),
		"cut":   good[:len(good)/2], "cut by one": good[:len(good)-1], "empty": nil,
		"longer":             append(bytes.Clone(good), 0),
		"another whole file": swapped,
	} {
		if err := os.WriteFile(built.Path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		asked := false
		_, err := s.Load(t.Context(), shopTarget,
			LoadOptions{Confirm: func(Preflight) error { asked = true; return nil }},
			nil)
		if snap.CodeOf(err) != snap.CodeCorrupt || asked {
			t.Errorf("%s: %v, asked %v", name, err, asked)
		}
		s.untouched(t)
	}
}

func TestLoadRefusals(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{
		{Name: "same", Source: "sqlite://" + s.destination, Destination: "sqlite://" + s.destination},
		{Name: "marked", Destination: "sqlite://" + s.destination, Production: true},
		{Name: "named", Destination: "postgres://u@db.prod.example/shop"},
		{Name: "none"}, {Name: "kind", Destination: "postgres://u@h/shop"},
	} {
		if err := s.AddTarget(target); err != nil {
			t.Fatal(err)
		}
		path, err := s.snapshotFile(target.Name, "x")
		if err != nil {
			t.Fatal(err)
		}
		copyFile(t, built.Path, path)
		copied := built
		copied.Target, copied.Name = target.Name, "x"
		if _, err := s.adopt(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
	}
	refused := errors.New("no")
	for name, c := range map[string]struct {
		target string
		o      LoadOptions
		code   snap.Code
	}{
		"destination is the source": {"same", LoadOptions{}, snap.CodeForbidden},
		"marked as production":      {"marked", LoadOptions{}, snap.CodeForbidden},
		"of another kind":           {"kind", LoadOptions{}, snap.CodeUsage},
		"no destination":            {"none", LoadOptions{}, snap.CodeUsage},
		"unknown target":            {"nope", LoadOptions{}, snap.CodeNotFound},
		"unknown snapshot":          {shopTarget, LoadOptions{Snapshot: "nope"}, snap.CodeNotFound},
		"another type": {shopTarget, LoadOptions{Snapshot: built.Name, Type: snap.TypeSanitized},
			snap.CodeUsage},
		"of another target": {"marked", LoadOptions{Snapshot: built.Name, Force: true}, snap.CodeUsage},
		"not confirmed": {shopTarget, LoadOptions{Confirm: func(Preflight) error { return refused }},
			snap.CodeInternal},
	} {
		if _, err := s.Load(t.Context(), c.target, c.o, nil); snap.CodeOf(err) != c.code {
			t.Errorf("%s: %s (%v), want %s", name, snap.CodeOf(err), err, c.code)
		}
	}
	s.untouched(t)
	named, err := s.Target("named")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Agent.destination(named, Snapshot{Engine: snap.Postgres},
		false); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a host with prod in its name: %v", err)
	}
	if _, err := s.Load(t.Context(), "marked", LoadOptions{Force: true}, nil); err != nil {
		t.Errorf("forced: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Build(ctx, shopTarget, BuildOptions{}, func(e Event) {
		if e.Phase == "dump" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "snapshots", "*", "*.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Load uses the pulled snapshot, even if a newer one was built.
func TestLoadTakesWhatArrivedLast(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	pulled := built
	pulled.Name, pulled.Created = "pulled one", built.Created.Add(-24*time.Hour)
	path, err := s.snapshotFile(shopTarget, pulled.Name)
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, built.Path, path)
	if _, err := s.adopt(t.Context(), pulled); err != nil {
		t.Fatal(err)
	}
	if got, err := s.toLoad(shopTarget, LoadOptions{}); err != nil || got.Name != "pulled one" {
		t.Errorf("to load: %s, %v", got.Name, err)
	}
	if got, err := s.newest(shopTarget, ""); err != nil || got.Name != built.Name {
		t.Errorf("newest: %s, %v", got.Name, err)
	}
}

// A snapshot that the cloud lists as sanitized must say so in its own manifest.
func TestAdoptRefusesAnotherType(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	built.Type = snap.TypeSanitized
	if _, err := s.adopt(t.Context(), built); snap.CodeOf(err) != snap.CodeCorrupt {
		t.Errorf("got %v", err)
	}
}

func TestNamesFromElsewhereAreNoPaths(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b",
		`a\b`, ".hidden", "-x", "a\x00b", "a\nb", " a", strings.Repeat("x", 300), "a\xff"} {
		if path, err := s.snapshotFile("shop", name); err == nil {
			t.Errorf("snapshotFile(%q) = %s", name, path)
		}
	}
	if _, err := s.snapshotFile("../x", "a"); err == nil {
		t.Error("a target with a slash was accepted")
	}
}

// TestPostgresBuildSanitizeLoad builds, sanitizes and loads with PostgreSQL. No scratch copy
// remains.
func TestPostgresBuildSanitizeLoad(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	// a separate server: killed loads of other tests leave scratch databases on the shared one
	to, _ := servertest.CrashingPostgres(t)
	db, err := sql.Open("pgx", from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE customer (id int PRIMARY KEY, email text); INSERT INTO customer SELECT n, 'p' " +
		"|| n || '@real.example' FROM generate_series(1, 5000) n"); err != nil {
		t.Fatal(err)
	}
	s := newShop(t)
	if err := s.AddTarget(Target{Name: "pg", Source: from, Destination: to}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "pg", BuildOptions{Jobs: 2}, nil); err != nil {
		t.Fatal(err)
	}
	clean, err := s.Sanitize(t.Context(), "pg",
		SanitizeOptions{SQL: s.sqlFile(t, "UPDATE customer SET email = 'c' || id || '@masked.example'")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Load(t.Context(), "pg", LoadOptions{Snapshot: clean.Name}, nil)
	if err != nil || len(result.Tables) != 1 || result.Tables[0].Rows != 5000 ||
		strings.Contains(result.Destination, "postgres:postgres") {
		t.Fatalf("%+v, %v", result, err)
	}
	loaded, err := sql.Open("pgx", to)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	var masked int
	if err := loaded.QueryRow("SELECT count(*) FROM customer WHERE email LIKE '%masked%'").Scan(&masked); err != nil ||
		masked != 5000 {
		t.Errorf("%d masked, %v", masked, err)
	}
	if left := scratchLeft(t, to); left != nil {
		t.Errorf("%q are left behind", left)
	}
	if err := loaded.QueryRow("SELECT 1").Err(); err != nil {
		t.Error(fmt.Errorf("after the load: %w", err))
	}
}

// scratchLeft returns the scratch databases on the server that no load holds. It ignores those that
// other tests' loads hold on the same server. After a load has returned, the server may still be
// dropping the database that the load replaced, so the first query can see that database without
// its lock. The second query checks whether it is still there.
func scratchLeft(t *testing.T, url string) (left []string) {
	t.Helper()
	db := open(t, "pgx", url)
	defer leave(t, db, url)
	for _, name := range column(t, db, `SELECT datname FROM pg_database WHERE datname LIKE 'snapcli\_%' AND NOT EXISTS
		(SELECT FROM pg_locks WHERE locktype = 'advisory'
			AND (classid::bigint << 32 | objid::bigint) = hashtextextended(datname, 0))`) {
		left = append(left, column(t, db,
			"SELECT concat_ws(' ', datname, datconnlimit, shobj_description(oid, 'pg_database')) "+
				"FROM pg_database WHERE datname = $1", name)...)
	}
	return left
}

// column returns the texts that a query selects.
func column(t *testing.T, db *sql.DB, query string, args ...any) (texts []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestMariaDBBuildSanitizeLoad builds, sanitizes and loads with MariaDB.
func TestMariaDBBuildSanitizeLoad(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	dsn := func(url string) string {
		host, name, _ := strings.Cut(strings.TrimPrefix(url, "mysql://root@"), "/")
		return "root@tcp(" + host + ")/" + name
	}
	db, err := sql.Open("mysql", dsn(from))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"CREATE TABLE customer (id INT PRIMARY KEY, email VARCHAR(100))",
		"INSERT INTO customer SELECT seq, concat('p', seq, '@real.example') FROM seq_1_to_3000",
		"CREATE VIEW v AS SELECT email FROM customer",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s := newShop(t)
	if err := s.AddTarget(Target{Name: "my", Source: from, Destination: to}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "my", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	clean, err := s.Sanitize(t.Context(), "my",
		SanitizeOptions{SQL: s.sqlFile(t, "UPDATE customer SET email = concat('c', id, '@masked.example');")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(content(t, clean), "real.example") {
		t.Error("an original value is in the sanitized snapshot")
	}
	byRules, err := s.Sanitize(t.Context(), "my",
		SanitizeOptions{Rules: s.rulesFile(t, "keep: ['*.id']\ntables: {customer: {columns: {email: email}}}\n")}, nil)
	if err != nil || byRules.Tables[0].Rows != 3000 || strings.Contains(content(t, byRules), "real.example") {
		t.Errorf("by rules: %+v, %v", byRules, err)
	}
	result, err := s.Load(t.Context(), "my", LoadOptions{Snapshot: clean.Name}, nil)
	if err != nil || len(result.Tables) != 1 || result.Tables[0].Rows != 3000 {
		t.Fatalf("%+v, %v", result, err)
	}
	loaded, err := sql.Open("mysql", dsn(to))
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	var masked int
	if err := loaded.QueryRow("SELECT count(*) FROM v WHERE email LIKE '%masked%'").Scan(&masked); err != nil ||
		masked != 3000 {
		t.Errorf("%d masked, %v", masked, err)
	}
}

// Files of other programs in the folder of snapshots are no snapshots.
func TestStrayFileAmongTheSnapshots(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.snapshotsDir(""), ".DS_Store"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Snapshots(""); err != nil || len(all) != 1 {
		t.Errorf("%d, %v", len(all), err)
	}
}
