//go:build linux

package local

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
)

// nothingHalf fails the test unless every listed snapshot is good.
func (s shop) nothingHalf(t *testing.T, when string) {
	t.Helper()
	list, err := s.Snapshots("")
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for _, snapshot := range list {
		if _, err := s.Verify(t.Context(), snapshot.Name, nil); err != nil {
			t.Fatalf("%s: %s: %v", when, snapshot.Name, err)
		}
	}
}

// If a build or a sanitize by rules or by SQL is killed, at any of many points, it
// leaves a good snapshot or none. The next one removes the remains.
func TestPostgresBuildAndSanitizeKilledAtRandomPoints(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to := p.database(t)
		s, _ := p.built(t, to)
		rules := s.rulesFile(t,
			"key: a key that is long enough\nkeep: ['*']\ntables:\n  public.customer: {columns: {email: email}}\n")
		masked := s.sqlFile(t, "UPDATE customer SET email = 'masked' || id")
		rounds, r, killed := p.rounds(9), chance(t, 6), 0
		for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
			action, env := "build", ""
			switch round % 3 {
			case 1:
				action, env = "sanitize", "SNAPCLI_TEST_RULES="+rules
			case 2:
				action, env = "sanitize", "SNAPCLI_TEST_SQL="+masked
			}
			lines, moment := 1+r.IntN(12), time.Duration(r.IntN(100))*time.Millisecond
			if s.killedAt(t, action, lines, moment, env) {
				killed++
			}
			when := fmt.Sprintf("round %d, %s killed after %d lines and %s", round, action, lines, moment)
			s.nothingHalf(t, when)
			wholePostgres(t, to, when)
		}
		if killed < rounds/3 {
			t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
		}
		if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
			t.Errorf("the next build: %v", err)
		}
		if _, err := s.Sanitize(t.Context(), shopTarget, SanitizeOptions{SQL: masked}, nil); err != nil {
			t.Errorf("the next sanitize: %v", err)
		}
		for _, pattern := range []string{"data/tmp/work-*", "data/snapshots/*/*" + partSuffix} {
			if left, _ := filepath.Glob(filepath.Join(s.dir, pattern)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	})
}

// While tables are occasionally created, changed and dropped, each build shows one
// moment and can be loaded. A build that fails reports the reason.
func TestPostgresSchemaChangesDuringBuild(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		s, from := p.shop(t, p.database(t))
		db, err := sql.Open("pgx", from)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		stop, stopped := make(chan struct{}), make(chan error)
		var pause atomic.Int64
		pause.Store(int64(100 * time.Millisecond))
		go func() {
			for n := 3; ; n++ {
				select {
				case <-stop:
					stopped <- nil
					return
				case <-time.After(time.Duration(pause.Load())):
				}
				_, err := db.Exec(fmt.Sprintf(`CREATE TABLE new_%[1]d (a int); INSERT INTO new_%[1]d
					SELECT generate_series(1, %[1]d %% 50);
					ALTER TABLE customer ADD extra_%[1]d int DEFAULT 5; ALTER TABLE customer DROP extra_%[1]d;
						DROP TABLE IF EXISTS new_%[2]d`, n, n-3))
				if err != nil {
					stopped <- err
					return
				}
			}
		}()
		good := 0
		for round := 0; round < 6 || good == 0 && round < 60; round++ {
			built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
			if err != nil {
				if snap.CodeOf(err) != snap.CodeDatabase {
					t.Errorf("build: %s: %v", snap.CodeOf(err), err)
				}
				t.Logf("refused: %v", err)
				pause.Store(pause.Load() * 5 / 4) // otherwise no build would fit in between on a slow machine
				continue
			}
			good++
			if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Snapshot: built.Name}, nil); err != nil {
				t.Errorf("load of a snapshot that was built in the meantime: %v", err)
			}
		}
		close(stop)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if good == 0 {
			t.Error("no build was whole")
		}
		s.nothingHalf(t, "afterwards")
	})
}

// The error for a wrong password names the server and the user, and not the
// password.
func TestPostgresWrongPassword(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to := p.database(t)
		s, from := p.shop(t, to)
		role := "locked_" + strings.TrimSuffix(from[strings.LastIndexByte(from, '/')+1:], "?sslmode=disable")
		execute(t, from,
			"SET password_encryption = 'scram-sha-256'; CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'right'")
		t.Cleanup(func() { execute(t, to, "DROP ROLE "+role) })
		lockRole(t, from, role)
		with := func(password string) string {
			return strings.Replace(from, "postgres@", role+":"+password+"@", 1)
		}
		for _, password := range []string{"wr0ng-s3cret", ""} {
			if err := s.AddTarget(Target{Name: shopTarget, Source: with(password),
				Destination: with(password)}); err != nil {
				t.Fatal(err)
			}
			_, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
			if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "refused the user") ||
				!strings.Contains(err.Error(), role) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("with the password %q: %s: %v", password, snap.CodeOf(err), err)
			}
		}
		if err := s.AddTarget(Target{Name: shopTarget, Source: with("right"), Destination: to}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
			t.Errorf("with the right one: %v", err)
		}
	})
}

// lockRole makes the test's server, which otherwise trusts everybody, ask a role
// for its password.
func lockRole(t *testing.T, url, role string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var path string
	if err := db.QueryRow("SHOW hba_file").Scan(&path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte("host all "+role+" 127.0.0.1/32 scram-sha-256\n"), text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	for { // the server reads the change a little later
		var known int
		if err := db.QueryRow("SELECT count(*) FROM pg_hba_file_rules WHERE $1 = ANY (user_name)",
			role).Scan(&known); err != nil {
			t.Fatal(err)
		}
		refused, err := sql.Open("pgx", strings.Replace(url, "postgres@", role+"@", 1))
		if err != nil {
			t.Fatal(err)
		}
		err = refused.Ping()
		refused.Close()
		if err != nil && known > 0 {
			return
		}
	}
}

// A destination keeps its old database if its disk fills up during a load. A build for which the
// client has no space fails and leaves no file.
func TestPostgresFullDisk(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to := p.database(t)
		s, from := p.built(t, to)
		small := smallDisk(t, 2<<20)
		giveToServer(t, small)
		name := "small_" + strings.TrimSuffix(to[strings.LastIndexByte(to, '/')+1:], "?sslmode=disable")
		execute(t, to, fmt.Sprintf("CREATE ROLE %s LOGIN SUPERUSER", name))
		execute(t, to, fmt.Sprintf("CREATE TABLESPACE %s LOCATION '%s'", name, small))
		execute(t, to, fmt.Sprintf("ALTER ROLE %[1]s SET default_tablespace = %[1]s", name))
		t.Cleanup(func() {
			execute(t, from, "DROP TABLESPACE "+name)
			execute(t, from, "DROP ROLE "+name)
		})
		if err := s.AddTarget(Target{Name: shopTarget, Source: from,
			Destination: strings.Replace(to, "postgres@", name+"@", 1), Jobs: 2}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil)
		if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(err.Error(), "server") {
			t.Errorf("the server's disk is full: %s: %v", snap.CodeOf(err), err)
		}
		wholePostgres(t, to, "after the server's disk was full")
		_, err = s.Load(t.Context(), shopTarget, LoadOptions{Into: engine.Existing}, nil)
		if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(err.Error(), "server") {
			t.Errorf("the server's disk is full, into the existing database: %s: %v", snap.CodeOf(err), err)
		}
		wholePostgres(t, to, "after the server's disk was full, into the existing database")
		nothingOfALoad(t, to)

		s.data = filepath.Join(smallDisk(t, 60<<10), "data")
		if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); snap.CodeOf(err) != snap.CodeStorageFull {
			t.Errorf("build onto a full disk: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.data, "snapshots", "*", "*.*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		wholePostgres(t, to, "after the client's disk was full")
	})
}

func giveToServer(t *testing.T, dir string) {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("needs the user postgres: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); strings.HasPrefix(parent, os.TempDir()+"/"); parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that is damaged or truncated in any of its parts, or that has a newer
// format, never reaches the database.
func TestPostgresDamagedFileIsRefused(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to := p.database(t)
		s, _ := p.shop(t, to)
		built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(built.Path)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(what string, bad []byte, code snap.Code) {
			if err := os.WriteFile(built.Path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil); snap.CodeOf(err) != code {
				t.Errorf("%s: %s: %v", what, snap.CodeOf(err), err)
			}
			wholePostgres(t, to, what)
		}
		r := chance(t, 7)
		for _, part := range []struct {
			name     string
			from, to int
		}{{"magic", 0, 8}, {"header", 10, 16}, {"first frame", 16, 200}, {"dump", 200, len(good) - 2000},
			{"manifest", len(good) - 300, len(good) - 64}, {"footer", len(good) - 64, len(good) - 8},
			{"end", len(good) - 8, len(good)}} {
			at := part.from + r.IntN(part.to-part.from)
			bad := bytes.Clone(good)
			bad[at] ^= byte(1 + r.IntN(255))
			refused(fmt.Sprintf("%s damaged at %d", part.name, at), bad, snap.CodeCorrupt)
			refused(fmt.Sprintf("%s cut at %d", part.name, at), good[:at], snap.CodeCorrupt)
		}
		newer := bytes.Clone(good)
		newer[8] = 0x7f
		refused("a newer format", newer, snap.CodeInvalid)
		if err := os.WriteFile(built.Path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil); err != nil {
			t.Errorf("the unchanged file: %v", err)
		}
	})
}
