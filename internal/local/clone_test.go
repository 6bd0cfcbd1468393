package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/clone"
	"snap/internal/engine/sqlite"
	"snap/internal/servertest"
)

// cloneShop is a machine with a snapshot of one kind of database, and a clock.
type cloneShop struct {
	shop
	kind   snap.Engine
	server string       // of MySQL
	late   atomic.Int64 // how far the clock is ahead
}

// onClones runs a test on every kind of database.
func onClones(t *testing.T, test func(*testing.T, *cloneShop)) {
	t.Parallel()
	for _, kind := range []snap.Engine{snap.SQLite, snap.Postgres, snap.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, newCloneShop(t, kind, "mariadb"))
		})
	}
}

// onMoreServers also runs a test on MySQL 8.0 and 9.7.
func onMoreServers(t *testing.T, test func(*testing.T, *cloneShop)) {
	for _, server := range []string{"mysql-8.0", "mysql-9.7"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			test(t, newCloneShop(t, snap.MySQL, server))
		})
	}
}

// newCloneShop returns a machine with a snapshot of one kind of database. server is the kind of MySQL
// server, see [servertest.MySQLServers].
func newCloneShop(t *testing.T, kind snap.Engine, server string) *cloneShop {
	t.Helper()
	s := &cloneShop{shop: newShop(t), kind: kind, server: server}
	s.now = func() time.Time { return time.Now().Add(time.Duration(s.late.Load())) }
	if kind == snap.MySQL {
		to := servertest.OwnMySQL(t, server, "") // its own: the test counts the databases on it
		for _, statement := range []string{
			"CREATE TABLE customer (id INT PRIMARY KEY, email VARCHAR(100), KEY (email))",
			"INSERT INTO customer WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) " +
				"SELECT i, concat('person-', i) FROM n UNION ALL SELECT i + 1000, concat('person-', i + 1000) FROM n",
			"CREATE VIEW v AS SELECT email FROM customer",
			"CREATE TRIGGER t BEFORE INSERT ON customer FOR EACH ROW SET NEW.email = lower(NEW.email)"} {
			s.exec(t, to, statement)
		}
		s.retarget(t, Target{Name: shopTarget, Source: to, Destination: strings.Replace(to, "/own", "/dev", 1)})
	}
	if kind == snap.Postgres {
		to, _ := servertest.CrashingPostgres(t) // its own: the test counts the databases on it
		execute(t, to, "CREATE TABLE customer (id int PRIMARY KEY, email text); INSERT INTO customer SELECT n, "+
			"'person-' || n FROM generate_series(1, 2000) n")
		s.retarget(t, Target{Name: shopTarget, Source: to, Destination: strings.Replace(to, "/test?", "/dev?", 1)})
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *cloneShop) retarget(t *testing.T, target Target) {
	t.Helper()
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
}

// db opens a clone as a user's program does.
func (s *cloneShop) db(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if s.kind == snap.MySQL {
		user, at, _ := strings.Cut(strings.TrimPrefix(url, "mysql://"), "@")
		host, name, _ := strings.Cut(at, "/")
		driver, url = "mysql", user+"@tcp("+host+")/"+name
	}
	if s.kind == snap.SQLite {
		driver = "sqlite"
		path, err := sqlite.Path(url)
		if err != nil {
			t.Fatal(err)
		}
		url = "file:" + path + "?mode=rw" // never creates the file
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *cloneShop) exec(t testing.TB, url, statement string) {
	t.Helper()
	db := s.db(t, url)
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	db.Close()
}

// rows counts the customers in a clone. It returns -1 if they cannot be read.
func (s *cloneShop) rows(t testing.TB, url string) (n int) {
	t.Helper()
	db := s.db(t, url)
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM customer").Scan(&n); err != nil {
		return -1
	}
	return n
}

func (s *cloneShop) clone(t testing.TB, o CloneOptions) Cloned {
	t.Helper()
	all, err := s.Clone(t.Context(), shopTarget, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// left lists the databases on the server, or the files, that were created for clones.
func (s *cloneShop) left(t testing.TB) (names []string) {
	t.Helper()
	if s.kind == snap.SQLite {
		files, _ := filepath.Glob(filepath.Join(s.dir, "data", "clones", "databases", "*"))
		hidden, _ := filepath.Glob(filepath.Join(s.dir, "data", "clones", "databases", ".*"))
		return append(files, hidden...)
	}
	target, err := s.Target(shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	query := `SELECT datname FROM pg_database WHERE datname LIKE 'snapcli\_%'`
	if s.kind == snap.MySQL {
		query = `SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'snapcli\_%'`
	}
	db := s.db(t, target.Source)
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestClonesLive follows clones from creation to drop. Copies are independent of each other, a reset
// restores one, a branch has the data of its origin, and nothing is left after they are dropped.
func TestClonesLive(t *testing.T) {
	onClones(t, clonesLive)
	onMoreServers(t, clonesLive)
}

func clonesLive(t *testing.T, s *cloneShop) {
	one, two := s.clone(t, CloneOptions{Name: "one"}), s.clone(t, CloneOptions{Name: "two/b"})
	s.exec(t, one.Secret, "DELETE FROM customer WHERE id > 10")
	if a, b := s.rows(t, one.Secret), s.rows(t, two.Secret); a != 10 || b != 2000 {
		t.Errorf("%d and %d rows, want 10 and 2000", a, b)
	}
	branch, err := s.Branch(t.Context(), "one", CloneOptions{Name: "branch"}, false)
	if err != nil || branch.From != "one" {
		t.Fatalf("%+v, %v", branch, err)
	}
	s.exec(t, branch.Secret, "DELETE FROM customer WHERE id > 5")
	if _, err := s.ResetClone(t.Context(), "one", CloneOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if a, b := s.rows(t, one.Secret), s.rows(t, branch.Secret); a != 2000 || b != 5 {
		t.Errorf("%d and %d rows, want 2000 and 5", a, b)
	}
	if _, err := s.ResetClone(t.Context(), "branch", CloneOptions{}, nil); err != nil || s.rows(t,
		branch.Secret) != 2000 {
		t.Errorf("a branch goes back to the snapshot: %v", err)
	}
	for _, name := range []string{"one", "two/b", "branch"} {
		if err := s.DropClone(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if s.rows(t, one.Secret) != -1 {
		t.Error("a dropped clone can be read")
	}
	s.deleteAll(t)
	if _, err := s.SweepClones(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.nothingLeft(t)
}

// deleteAll deletes the snapshots, so that their templates are no longer needed.
func (s *cloneShop) deleteAll(t testing.TB) {
	t.Helper()
	all, err := s.Snapshots("")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if err := s.DeleteSnapshot(one.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// nothingLeft waits until the server has dropped every database of a clone.
func (s *cloneShop) nothingLeft(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		left := s.left(t)
		if len(left) == 0 {
			break
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("left behind: %v", left)
		}
	}
	if all, err := s.Clones(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("clones are listed: %+v, %v", all, err)
	}
	if locks, _ := filepath.Glob(filepath.Join(s.dir, "data", "clones", "*_*.lock")); len(locks) > 0 {
		t.Errorf("locks are left behind: %v", locks)
	}
}

// Clones expire, templates that were not used for a week are dropped, and a clone in use by a run
// stays. The lifetime of a clone begins when it is ready.
func TestClonesExpire(t *testing.T) {
	onClones(t, func(t *testing.T, s *cloneShop) {
		slow := sync.OnceFunc(func() { s.late.Add(int64(3 * time.Hour)) })
		all, err := s.Clone(t.Context(), shopTarget, CloneOptions{Name: "short", TTL: time.Hour},
			func(Event) { slow() })
		if err != nil {
			t.Fatal(err)
		}
		short := all[0]
		if left := short.Expires.Sub(s.now()); left < 30*time.Minute {
			t.Errorf("a clone that took three hours to make expires in %s", left)
		}
		s.clone(t, CloneOptions{Name: "long", TTL: 30 * 24 * time.Hour})
		run, err := s.Borrow(t.Context(), shopTarget, CloneOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.late.Add(int64(2 * time.Hour))
		swept, err := s.SweepClones(t.Context())
		if err != nil || len(swept.Clones) != 1 || swept.Clones[0].Name != "short" || len(swept.Templates) > 0 {
			t.Errorf("%+v, %v", swept, err)
		}
		if s.rows(t, short.Secret) != -1 || s.rows(t, run.Secret) != 2000 {
			t.Error("the wrong clone was dropped")
		}
		s.late.Add(int64(8 * 24 * time.Hour))
		if swept, err = s.SweepClones(t.Context()); err != nil || len(swept.Templates) != 1 {
			t.Errorf("%+v, %v", swept, err)
		}
		if _, err := s.ResetClone(t.Context(), "long", CloneOptions{}, nil); err != nil { // creates the template again
			t.Error(err)
		}
		if err := run.Return(t.Context()); err != nil || s.rows(t, run.Secret) != -1 {
			t.Errorf("a run's clone stays: %v", err)
		}
	})
}

// If somebody opened and changed a template, that is detected and the template is created again.
func TestChangedTemplatesAreRepaired(t *testing.T) {
	onClones(t, changedTemplatesAreRepaired)
	onMoreServers(t, changedTemplatesAreRepaired)
}

func changedTemplatesAreRepaired(t *testing.T, s *cloneShop) {
	s.clone(t, CloneOptions{Name: "one"})
	template := s.template(t)
	switch s.kind {
	case snap.MySQL:
		name := template[strings.LastIndex(template, "/")+1:]
		if s.server != "mariadb" {
			s.exec(t, template, "ALTER DATABASE "+name+" READ ONLY = 0")
		}
		s.exec(t, template, "DELETE FROM customer")
		s.exec(t, template, "ALTER TABLE customer ADD c INT")
		if s.server != "mariadb" {
			s.exec(t, template, "ALTER DATABASE "+name+" READ ONLY = 1")
		}
	case snap.Postgres:
		target, _ := s.Target(shopTarget)
		if s.rows(t, template) != -1 {
			t.Error("a template can be connected to")
		}
		name := template[strings.LastIndex(template, "/")+1 : strings.Index(template, "?")]
		s.exec(t, target.Source, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
		s.exec(t, template, "DELETE FROM customer")
		s.exec(t, target.Source, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
	default:
		path, err := sqlite.Path(template)
		if err != nil || os.Chmod(path, 0o600) != nil {
			t.Fatal(err)
		}
		s.exec(t, template, "DELETE FROM customer")
	}
	if two := s.clone(t, CloneOptions{Name: "two"}); s.rows(t, two.Secret) != 2000 {
		t.Errorf("%d rows in a clone of a changed template", s.rows(t, two.Secret))
	}
	if _, err := s.ResetClone(t.Context(), "one", CloneOptions{}, nil); err != nil {
		t.Error(err)
	}
}

// template returns the URL of the only template.
func (s *cloneShop) template(t *testing.T) string {
	t.Helper()
	all, err := s.clones().Templates()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d templates, %v", len(all), err)
	}
	cloner, server, err := s.cloner(all[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	url, err := cloner.Named(server, clone.Clone{ID: all[0].ID}.Database())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Many concurrent clones share one template and are all complete. A clone above the limit is
// refused. With SNAP_KILL_ROUNDS there are fifty.
func TestManyClonesAtOnce(t *testing.T) {
	onClones(t, func(t *testing.T, s *cloneShop) {
		many := 12
		if os.Getenv("SNAP_KILL_ROUNDS") != "" {
			many = 50
		}
		target, err := s.Target(shopTarget)
		if err != nil {
			t.Fatal(err)
		}
		target.Clones.Max = many
		s.retarget(t, target)
		var loads atomic.Int64
		urls := make([]string, many)
		g, ctx := errgroup.WithContext(t.Context())
		for i := range many {
			g.Go(func() error {
				all, err := s.Clone(ctx, shopTarget, CloneOptions{Name: fmt.Sprint("n", i)}, func(e Event) {
					if e.Phase == "verify" {
						loads.Add(1)
					}
				})
				if err == nil {
					urls[i] = all[0].Secret
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, url := range urls {
			if n := s.rows(t, url); n != 2000 {
				t.Errorf("%d rows in %s", n, url)
			}
		}
		if loads.Load() != 1 {
			t.Errorf("the template was loaded %d times", loads.Load())
		}
		if _, err := s.Clone(t.Context(), shopTarget, CloneOptions{Name: "extra"}, nil); snap.CodeOf(err) !=
			snap.CodeQuota {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

// Only runs use warm copies, and new ones replace those that were used.
func TestRunsTakeWarmClones(t *testing.T) {
	onClones(t, func(t *testing.T, s *cloneShop) {
		if made, err := s.WarmClones(t.Context(), shopTarget, 2, CloneOptions{}, nil); err != nil || made != 2 {
			t.Fatalf("%d made, %v", made, err)
		}
		s.clone(t, CloneOptions{Name: "named"})
		run, err := s.Borrow(t.Context(), shopTarget, CloneOptions{}, nil)
		if err != nil || !strings.Contains(run.Secret, "_warm_") || s.rows(t, run.Secret) != 2000 {
			t.Errorf("%s, %v", run.Secret, err)
		}
		if made, err := s.WarmClones(t.Context(), shopTarget, 2, CloneOptions{}, nil); err != nil || made != 1 {
			t.Errorf("%d made again, %v", made, err)
		}
		if err := s.DropClone(t.Context(), run.Name); snap.CodeOf(err) != snap.CodeConflict {
			t.Errorf("a clone in use by a run was dropped: %v", err)
		}
		if err := run.Return(t.Context()); err != nil {
			t.Error(err)
		}
		s.late.Add(int64(25 * time.Hour))
		if made, err := s.WarmClones(t.Context(), shopTarget, 2, CloneOptions{}, nil); err != nil || made != 2 {
			t.Errorf("%d made when all had expired, %v", made, err)
		}
	})
}

// Each refusal has the code of its cause, and leaves no clone behind.
func TestCloneRefusals(t *testing.T) {
	t.Parallel()
	s := newCloneShop(t, snap.SQLite, "")
	s.clone(t, CloneOptions{Name: "used-12"})
	for _, target := range []Target{{Name: "marked", Destination: "sqlite://" + s.destination, Production: true},
		{Name: "bare"}} {
		s.retarget(t, target)
	}
	long := strings.Repeat("a", 63)
	for name, c := range map[string]struct {
		target string
		o      CloneOptions
		code   snap.Code
	}{
		"a name in use":                {shopTarget, CloneOptions{Name: "used-12"}, snap.CodeConflict},
		"the last name in use":         {shopTarget, CloneOptions{Name: "used", Count: 12}, snap.CodeConflict},
		"a bad name":                   {shopTarget, CloneOptions{Name: "a b"}, snap.CodeUsage},
		"too long with its number":     {shopTarget, CloneOptions{Name: long, Count: 2}, snap.CodeUsage},
		"an unknown target":            {"nope", CloneOptions{}, snap.CodeNotFound},
		"an unknown snapshot":          {shopTarget, CloneOptions{Snapshot: "nope"}, snap.CodeNotFound},
		"an ID that is not here":       {shopTarget, CloneOptions{Snapshot: "snap_7h2k9m"}, snap.CodeNotFound},
		"no masked one":                {shopTarget, CloneOptions{Type: snap.TypeSanitized}, snap.CodeNotFound},
		"more than the limit":          {shopTarget, CloneOptions{Name: "m", Count: 20}, snap.CodeQuota},
		"a name in use, with a count":  {shopTarget, CloneOptions{Name: "used-12", Count: 1}, snap.CodeConflict},
		"a target without a snapshot":  {"bare", CloneOptions{}, snap.CodeNotFound},
		"production without snapshots": {"marked", CloneOptions{}, snap.CodeNotFound},
	} {
		if _, err := s.Clone(t.Context(), c.target, c.o, nil); snap.CodeOf(err) != c.code {
			t.Errorf("%s: %s (%v), want %s", name, snap.CodeOf(err), err, c.code)
		}
	}
	if _, err := s.Clone(t.Context(), shopTarget, CloneOptions{Count: 10_000}, nil); err == nil ||
		!strings.Contains(err.Error(), "has 1 clone, and its limit is 20, so 10000 more cannot be made") {
		t.Errorf("far more than the limit: %v", err)
	}
	target, _ := s.Target(shopTarget)
	target.Production = true
	s.retarget(t, target)
	if _, err := s.Clone(t.Context(), shopTarget, CloneOptions{}, nil); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("production: %v", err)
	}
	for what, err := range map[string]error{
		"reset": second(s.ResetClone(t.Context(), "usd-12", CloneOptions{}, nil)),
		"drop":  s.DropClone(t.Context(), "usd-12"),
		"from":  second(s.Branch(t.Context(), "usd-12", CloneOptions{}, false)),
	} {
		if snap.CodeOf(err) != snap.CodeNotFound || !strings.Contains(hintOf(err), `did you mean "used-12"`) {
			t.Errorf("%s of an unknown clone: %v (%s)", what, err, hintOf(err))
		}
	}
	if all, err := s.Clones(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d clones, %v", len(all), err)
	}
}

func second[T any](_ T, err error) error { return err }

// A SQLite clone that is in use is not reset. A branch has everything that was committed to the
// origin's log.
func TestSQLiteClonesInUse(t *testing.T) {
	t.Parallel()
	s := newCloneShop(t, snap.SQLite, "")
	one := s.clone(t, CloneOptions{Name: "one"})
	db := s.db(t, one.Secret)
	if _, err := db.Exec("PRAGMA journal_mode = wal; DELETE FROM customer WHERE id > 7"); err != nil {
		t.Fatal(err)
	}
	branch, err := s.Branch(t.Context(), "one", CloneOptions{Name: "branch"}, false)
	if err != nil || s.rows(t, branch.Secret) != 7 {
		t.Fatalf("%d rows in the branch, %v", s.rows(t, branch.Secret), err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("DELETE FROM customer"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ResetClone(t.Context(), "one", CloneOptions{}, nil); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("reset while a transaction is open: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := s.rows(t, one.Secret); n != 7 {
		t.Errorf("after the refused reset: %d rows", n)
	}
}

// PostgreSQL cannot copy a database that is in use. The error names the connection, and --terminate
// ends it.
func TestPostgresBranchOfACloneThatIsInUse(t *testing.T) {
	t.Parallel()
	s := newCloneShop(t, snap.Postgres, "")
	one := s.clone(t, CloneOptions{Name: "one"})
	db := s.db(t, one.Secret+"&application_name=shopper")
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Branch(t.Context(), "one", CloneOptions{Name: "branch"}, false)
	if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "shopper") {
		t.Errorf("a branch of a clone in use: %v", err)
	}
	if _, err := s.Branch(t.Context(), "one", CloneOptions{Name: "branch"}, true); err != nil {
		t.Error(err)
	}
	if err := db.Ping(); err != nil { // connects again
		t.Fatal(err)
	}
	if _, err := s.ResetClone(t.Context(), "one", CloneOptions{}, nil); err != nil {
		t.Errorf("a reset ends connections: %v", err)
	}
	all, err := s.Clones(t.Context())
	if err != nil || len(all) != 2 || !all[0].Exists || all[0].Size == 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A clone that is stopped at any point leaves nothing behind.
func TestStoppedClonesLeaveNothing(t *testing.T) {
	onClones(t, func(t *testing.T, s *cloneShop) {
		for _, phase := range []string{"check", "preflight", "restore", "verify", "swap"} {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := s.Clone(ctx, shopTarget, CloneOptions{Name: "one"}, func(e Event) {
				if e.Phase == phase {
					cancel()
				}
			})
			if ctx.Err() == nil {
				t.Errorf("the phase %s was not reported: %v", phase, err)
			}
			cancel()
			if err == nil { // the last phase may end first
				if err := s.DropClone(t.Context(), "one"); err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("stopped in %s: %v", phase, err)
			}
		}
		s.deleteAll(t)
		if _, err := s.SweepClones(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.nothingLeft(t)
	})
}

// The environment has the variables of psql or mysql for a clone, and none that name another
// database.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind snap.Engine
		url  string
		want []string
	}{
		{snap.Postgres, "postgres://me:p%40ss@db.test:5433/c1?sslmode=require",
			[]string{"PGHOST=db.test", "PGPORT=5433", "PGUSER=me", "PGPASSWORD=p@ss", "PGDATABASE=c1",
				"PGSSLMODE=require"}},
		{snap.Postgres, "postgres://me@/c1?host=%2Frun%2Fpg&port=5432",
			[]string{"PGHOST=/run/pg", "PGPORT=5432", "PGUSER=me", "PGDATABASE=c1"}},
		{snap.Postgres, "postgres://localhost:5432/c1?host=%2Frun%2Fpg&port=5433",
			[]string{"PGHOST=/run/pg", "PGPORT=5433", "PGDATABASE=c1"}},
		{snap.MySQL, "mysql://me:pw@127.0.0.1:3307/c1", []string{"MYSQL_HOST=127.0.0.1", "MYSQL_TCP_PORT=3307",
			"MYSQL_USER=me", "MYSQL_PWD=pw", "MYSQL_DATABASE=c1"}},
		{snap.SQLite, "sqlite:///tmp/c1.db", nil},
	} {
		want := append([]string{"PGPASSFILE=/home/me/pass", "DATABASE_URL=" + c.url}, c.want...)
		env := []string{"PGPASSFILE=/home/me/pass", "DATABASE_URL=old"}
		if c.kind == snap.Postgres {
			env = append(env, "PGSERVICE=prod", "PGHOSTADDR=10.0.0.1")
		}
		if got := WithEnvironment(env, c.kind, c.url); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.url, got, want)
		}
	}
}

// A displayed URL has no password, wherever the configuration sets it.
func TestShownURLsHaveNoPassword(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://me:secret@db:5432/x?sslmode=require": "postgres://me@db:5432/x?sslmode=require",
		"postgres://me@db/x?password=secret&sslmode=a":   "postgres://me@db/x?sslmode=a",
		"postgres://me@db/x?sslpassword=secret":          "postgres://me@db/x",
		"postgres://:secret@db/x":                        "postgres://db/x",
		"mysql://root@127.0.0.1/x":                       "mysql://root@127.0.0.1/x",
		"sqlite:///home/me/a%20b.db":                     "sqlite:///home/me/a%20b.db",
		"postgres://me:sec%zzret@db/x":                   "postgres://...",
	} {
		if got := withoutPassword(raw); got != want {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// Clones and runs without a name that start at the same time get different names.
func TestUnnamedClonesAtOnce(t *testing.T) {
	t.Parallel()
	s := newCloneShop(t, snap.SQLite, "")
	s.clone(t, CloneOptions{Name: "first"}) // the template exists
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			_, err := s.Clone(t.Context(), shopTarget, CloneOptions{Count: 2}, nil)
			return err
		})
		g.Go(func() error {
			b, err := s.Borrow(t.Context(), shopTarget, CloneOptions{}, nil)
			if err == nil {
				err = b.Return(t.Context())
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// The URL for programs has the password that the target's command prints.
func TestSecretURLOfAPasswordCommand(t *testing.T) {
	t.Parallel()
	const server = "postgres://me@127.0.0.1/dev"
	a, err := openText(t, "targets:\n  shop: {destination: "+server+", destination_password_command: [echo, s/cret]}\n",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Cloned{Secret: "postgres://me@127.0.0.1/snapcli_clone_1"}
	c.Source = clone.Source{Target: "shop", Server: server}
	want := "postgres://me:s%2Fcret@127.0.0.1/snapcli_clone_1"
	if got, err := a.SecretURL(t.Context(), c); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	c.Source.Server = "postgres://me@127.0.0.2/dev" // no longer the target's server
	if got, err := a.SecretURL(t.Context(), c); err != nil || got != c.Secret {
		t.Errorf("%s, %v", got, err)
	}
}
